"""The prompt as plain ReAct text, for models without tool calls, and what is read out of their replies."""

import re
from collections.abc import Sequence

from fewshot_library.formats.react import turn_of
from fewshot_library.formats.react_text import MARKERS, Told, Turn, compose, parse
from reasoners.calling import Call, NoCall, by_keyword, called
from reasoners.decision import Decision
from reasoners.material import Material
from reasoners.prompt import prompt
from reasoners.shown import Shown
from tools.chat import Message, Reply
from tools.thinking import apart
from tools.tool import Tool

NAME = "text"
STOP: tuple[str, ...] = ("\nObservation:",)
# Models set marks off in bold, as headings or items, number them, or write them in capitals.
_LOOSE = re.compile(
    rf"^[ \t>]*(?:#+|-|\d+[.)])?[ \t]*[*_]*({'|'.join(MARKERS)})(?:[ \t]*\d+)?[*_]*:[*_]*"
    r"|^#+[ \t]*[*_]*(Final Answer)[*_]*[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_OBSERVATION = re.compile(r"^Observation:", re.MULTILINE)
_ACTS_OR_ANSWERS = re.compile(r"^(?:Action|Final Answer):", re.MULTILINE)
_GOES_ON = re.compile(r"^(?:Question|Thought|Action|Action Input):", re.MULTILINE)
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

    What follows is left away: an observation or a next question that a model writes itself is made up.
    """
    thinking, said = apart(reply.text)
    if reply.stopped == "length":
        refused = f"The reply was cut off, because it was too long. Think in a few words. {how}"
        return Decision(reply.text, refused=refused)
    told = parse(_first(said))
    acted = next((place for place, turn in enumerate(told.turns) if turn.action is not None), None)
    turns = told.turns if acted is None else told.turns[: acted + 1]
    thought = "\n".join(filter(None, (told.preamble, *(turn.thought for turn in turns))))
    if acted is not None and not _answers(told, told.turns[acted], tools):
        try:
            return Decision(thought or thinking, calls=(_call(told.turns[acted], question, tools),))
        except NoCall as wrong:
            return Decision(reply.text, refused=str(wrong))
    if told.final_answer is not None:
        thought = "\n".join(filter(None, (thought, told.final_thought)))
        return Decision(thought or thinking, ending=told.final_answer)
    return Decision(reply.text, refused=f"The reply has no action and no answer. {how}")


def _first(said: str) -> str:
    """What is said up to the first observation, and no further than the answer where that comes before any action."""
    marked = _LOOSE.sub(lambda found: f"{(found[1] or found[2]).title()}:", said)
    marked = _OBSERVATION.split(marked, maxsplit=1)[0]
    first = _ACTS_OR_ANSWERS.search(marked)
    if first is None or first[0] == "Action:":
        return marked
    goes_on = _GOES_ON.search(marked, first.end())
    return marked[: goes_on.start()] if goes_on else marked


def _answers(told: Told, turn: Turn, tools: Sequence[Tool]) -> bool:
    """Whether an action is none, such as `Action: none needed`, and an answer follows it."""
    names = {tool.name.casefold() for tool in tools}
    return told.final_answer is not None and not turn.action_input and not names & set(_words(turn.action or ""))


def _words(action: str) -> list[str]:
    return re.findall(r"[\w.-]+", action.casefold())


def _call(turn: Turn, question: str, tools: Sequence[Tool]) -> Call:
    action, given = (turn.action or "").strip("` *"), turn.action_input
    written = _CALL.fullmatch(action)
    if written and not given:
        named = by_keyword(action)
        if named is not None:
            return called(written[1], named, question, tools)
        action, given = written[1], written[2].strip().strip("\"'")
    return called(action, given or "", question, tools)


def _told(shown: Shown) -> Told:
    return Told(
        question=shown.question,
        turns=[turn_of(step, shown.question) for step in shown.steps],
        final_thought=shown.thought or None,
        final_answer=shown.ending,
    )
