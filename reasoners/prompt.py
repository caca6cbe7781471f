"""The prompts of this room, in the folder `prompts`."""

from tools.prompt import Prompts

prompt = Prompts("reasoners")
