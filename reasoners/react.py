"""The prompt as plain ReAct text, for models without tool calls, and what is read out of their replies."""

import re
from collections.abc import Sequence

from fewshot_library.formats.react import turn_of
from fewshot_library.formats.react_text import MARKERS, Told, Turn, compose, parse
from reasoners.calling import Call, NoCall, called
from reasoners.decision import Decision
from reasoners.material import Material
from reasoners.prompt import prompt
from reasoners.shown import Shown
from tools.chat import Message, Reply
from tools.tool import Tool

NAME = "text"
STOP: tuple[str, ...] = ("\nObservation:",)
# Models set marks off in bold, number them, or write them in capitals.
_LOOSE = re.compile(rf"^[ \t]*[*#_]*({'|'.join(MARKERS)})(?:[ \t]*\d+)?[*_]*:[*_]*", re.MULTILINE | re.IGNORECASE)
_OBSERVATION = re.compile(r"^Observation:", re.MULTILINE)
_CALL = re.compile(r"([\w.-]+)\s*[\[(](.*)[\])]", re.DOTALL)
HOW = (
    "Go on with a line `Thought:`, a line `Action:` that names one tool and a line `Action Input:`; "
    "or, if you know the answer, with a line `Final Answer:`."
)


class ReAct:
    """Text with stop sequences."""

    name = NAME
    stop = STOP

    def __init__(self) -> None:
        self._shown: tuple[Shown, ...] | None = None
        self._written: list[str] = []

    def messages(self, material: Material) -> list[Message]:
        """The instructions with tools and demonstrations; the question and the steps, up to the next thought."""
        if self._shown is not material.demonstrations:
            # Written once, as long as they are the same.
            self._shown, self._written = (
                material.demonstrations,
                [compose(_told(each)) for each in material.demonstrations],
            )
        system = prompt("react", sources=material.sources, tools=material.tools, demonstrations=self._written)
        so_far = compose(_told(material.shown))
        cue = f"({material.cue})\n" if material.cue else ""
        return [Message("system", system), Message("user", f"{so_far}{cue}Thought:")]

    def offers(self, tools: Sequence[Tool]) -> Sequence[Tool]:  # noqa: ARG002 - the prompt names them
        """No tool goes beside the messages."""
        return ()

    def read(self, reply: Reply, question: str, tools: Sequence[Tool]) -> Decision:
        """What the model decided."""
        return read_text(reply, question, tools, HOW)


def read_text(reply: Reply, question: str, tools: Sequence[Tool], how: str) -> Decision:
    """The first thought with its action, or the answer; where it has neither, the model is told `how` to go on.

    What follows the action is left away: an observation that a model writes itself is made up.
    """
    text = reply.text
    marked = _OBSERVATION.split(_LOOSE.sub(lambda found: f"{found[1].title()}:", text), maxsplit=1)[0]
    told = parse(marked)
    if reply.stopped == "length":
        return Decision(text, refused=f"The reply was cut off, because it was too long. Think in a few words. {how}")
    acted = next((place for place, turn in enumerate(told.turns) if turn.action is not None), None)
    turns = told.turns if acted is None else told.turns[: acted + 1]
    thought = "\n".join(filter(None, (told.preamble, *(turn.thought for turn in turns))))
    if acted is not None:
        try:
            return Decision(thought, calls=(_call(told.turns[acted], question, tools),))
        except NoCall as wrong:
            return Decision(text, refused=str(wrong))
    if told.final_answer is not None:
        thought = "\n".join(filter(None, (thought, told.final_thought)))
        return Decision(thought, ending=told.final_answer)
    return Decision(text, refused=f"The reply has no action and no answer. {how}")


def _call(turn: Turn, question: str, tools: Sequence[Tool]) -> Call:
    action, given = (turn.action or "").strip(), turn.action_input
    written = _CALL.fullmatch(action)
    if written and not given:
        action, given = written[1], written[2].strip().strip("\"'")
    return called(action.strip("`* "), given or "", question, tools)


def _told(shown: Shown) -> Told:
    return Told(
        question=shown.question,
        turns=[turn_of(step, shown.question) for step in shown.steps],
        final_thought=shown.thought or None,
        final_answer=shown.ending,
    )
