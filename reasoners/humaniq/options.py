"""How an agent is asked to work: every choice with its names, for the page, the verbs and the evaluation alike."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from fewshot_library.selection import SelectionConfig

SELECTION_DESCRIPTIONS = {
    "dpp": "relevant and different ones, by a determinantal point process",
    "relevance": "those whose questions are most alike",
    "diversity": "those that differ most in what they do",
    "random": "any",
    "one": "the single best one",
    "none": "no demonstration",
}
PIPELINES = {
    "dynamic": "the model chooses each action",
    "static": "search, id, query, run, label, always in this order",
}
SOURCE_CHOICES = {"both": "text and graph", "text": "text only", "graph": "graph only"}
PROMPT_FORMATS = {
    "auto": "tool calls, or text where the model has none",
    "chat": "chat messages with tool calls",
    "text": "plain text with stop sequences",
}
RESPONSE_STYLES = {
    "short": "an answer as short as a gold answer",
    "normal": "a few sentences with their sources",
    "none": "what the last step says, without another call",
}
MERGE_STRATEGIES = {"random": "either answer by chance", "model": "the model reads both"}
OPTION_CHOICES: dict[str, Mapping[str, str]] = {
    "selection": SELECTION_DESCRIPTIONS,
    "pipeline": PIPELINES,
    "sources": SOURCE_CHOICES,
    "form": PROMPT_FORMATS,
    "response": RESPONSE_STYLES,
    "merge": MERGE_STRATEGIES,
}
"""The options of Setup that are names, each name with what it means."""


class AgentOptionsError(ValueError):
    """A setup that cannot be, in one sentence."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Everything that decides how an agent works, beside its model."""

    selection: str = "dpp"
    k: int = 3
    """How many demonstrations; `one` and `none` say it by themselves."""
    pipeline: str = "dynamic"
    sources: str = "both"
    form: str = "auto"
    response: str = "short"
    own_answer: bool = True
    """Whether the model is also asked without tools, for the final response."""
    merge: str = "model"
    """Of late fusion: how the answers of the two pipelines become one."""
    context_tokens: int = 16_000
    """What the model can take, its reply included."""
    reply_tokens: int = 1_500
    """What is kept free of it for the reply."""
    observation_tokens: int = 500
    """Longer observations are cut to what fits the question best."""
    seed: int = 0
    """Of chance."""

    def __post_init__(self) -> None:
        for name, known in OPTION_CHOICES.items():
            if getattr(self, name) not in known:
                raise AgentOptionsError(f"there is no {name} {getattr(self, name)!r}; choose one of {', '.join(known)}")
        if self.k < 0:
            raise AgentOptionsError(f"k is {self.k}; ask for no demonstration or more")
        if min(self.reply_tokens, self.observation_tokens) < 1 or self.context_tokens <= self.reply_tokens:
            raise AgentOptionsError(
                f"a context of {self.context_tokens} tokens with {self.reply_tokens} for the reply and "
                f"{self.observation_tokens} an observation leaves no room; raise context_tokens"
            )

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> "AgentOptions":
        """The setup of these options; SetupError names the known ones where one is not."""
        known = [option.name for option in fields(cls)]
        if unknown := sorted(options.keys() - set(known)):
            raise AgentOptionsError(f"there is no option {unknown[0]!r}; there are {', '.join(known)}")
        return cls(**options)

    def selection_config(self) -> SelectionConfig:
        """The demonstrations that are to be selected."""
        k = {"one": 1, "none": 0}.get(self.selection, self.k)
        mode = self.selection if self.selection in ("relevance", "diversity", "random") else "dpp"
        return SelectionConfig(k=k, mode=mode, seed=self.seed)

    @property
    def compared_sources(self) -> tuple[str, ...]:
        """Those whose answers are compared: text and graph as they may be asked, and the model itself."""
        sources = ("text", "graph") if self.sources == "both" else (self.sources,)
        return (*sources, "model") if self.own_answer and self.response != "none" else sources

    def to_json(self) -> dict[str, Any]:
        """As a trace's configuration keeps it."""
        return asdict(self)
