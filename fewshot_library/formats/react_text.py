r"""A solution process as marked text, as ReAct prompts show it.

    Question:... (Thought:... Action:... Action Input:... Observation:...)* Final Answer:... Assistant Response:...

A marker counts at the start of a line. A line of a value that would begin with one gets a backslash before it.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace

MARKERS = ("Question", "Thought", "Action Input", "Action", "Observation", "Final Answer", "Assistant Response")
_ANY = "|".join(MARKERS)
# Some models wrote the action behind an empty thought, in one line.
_MARKER = re.compile(rf"^({_ANY}):|(?<=^Thought: )(Action):|(?<=^Thought:)(Action):", re.MULTILINE)
_GUARDED = re.compile(rf"^\\(\\*(?:{_ANY}):)", re.MULTILINE)
_TO_GUARD = re.compile(rf"^(\\*(?:{_ANY}):)", re.MULTILINE)
_RANK = {"Thought": 0, "Action": 1, "Action Input": 2, "Observation": 3}


@dataclass(slots=True)
class Turn:
    """One step of the text; a part that was not written is None."""

    thought: str | None = None
    action: str | None = None
    action_input: str | None = None
    observation: str | None = None


@dataclass(slots=True)
class Told:
    """A text in its parts; `preamble` is what stands before the first marker."""

    preamble: str = ""
    question: str | None = None
    turns: list[Turn] = field(default_factory=list)
    final_thought: str | None = None
    final_answer: str | None = None
    response: str | None = None
    repeated: list[str] = field(default_factory=list)
    """Parts that a text has once but this one had again."""

    def stripped(self) -> "Told":
        """The parts as they come back: the white space round a value is layout in a text."""

        def strip(value: str | None) -> str | None:
            return None if value is None else value.strip()

        turns = [
            Turn((turn.thought or "").strip(), strip(turn.action), strip(turn.action_input), strip(turn.observation))
            for turn in self.turns
        ]
        return replace(
            self,
            question=strip(self.question),
            turns=turns,
            final_thought=strip(self.final_thought),
            final_answer=strip(self.final_answer),
            response=strip(self.response),
        )


def parse(text: str) -> Told:
    """The text in its parts, each without the white space round it; nothing else is dropped."""
    found = list(_MARKER.finditer(text))
    told = Told(preamble=_clean(text[: found[0].start()] if found else text))
    rank = len(_RANK)
    for place, match in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        name = match.group(1) or match.group(2) or match.group(3)
        value = _clean(text[match.end() : end])
        if name in _RANK:
            if _RANK[name] <= rank:
                told.turns.append(Turn())
            rank = _RANK[name]
            setattr(told.turns[-1], name.lower().replace(" ", "_"), value)
        else:
            rank = len(_RANK)
            _put_once(told, name, value)
    last = told.turns[-1] if told.turns else None
    if (
        told.final_answer is not None
        and last is not None
        and last.action is last.action_input is last.observation is None
    ):
        told.final_thought = told.turns.pop().thought
    return told


def _put_once(told: Told, name: str, value: str) -> None:
    slot = {"Question": "question", "Final Answer": "final_answer", "Assistant Response": "response"}[name]
    if getattr(told, slot) is None:
        setattr(told, slot, value)
    else:
        told.repeated.append(f"{name}:{value}")


def _clean(value: str) -> str:
    return _GUARDED.sub(r"\1", value.strip())


def parts(told: Told) -> Iterator[tuple[str, str]]:
    """The markers with what follows each, in order; a text that ends without an answer has none."""
    yield "Question", told.question or ""
    for turn in told.turns:
        yield "Thought", turn.thought or ""
        called = (("Action", turn.action), ("Action Input", turn.action_input), ("Observation", turn.observation))
        yield from ((marker, value) for marker, value in called if value is not None)
    if told.final_thought is not None:
        yield "Thought", told.final_thought
    if told.final_answer is not None:
        yield "Final Answer", told.final_answer
    if told.response is not None:
        yield "Assistant Response", told.response


def compose(told: Told) -> str:
    """The text of these parts, a line each."""
    return "".join(f"{marker}: {_guard(value)}".rstrip() + "\n" for marker, value in parts(told))


def compose_as_humaniq(told: Told) -> str:
    """The text of these parts, in the layout of HumanIQ's library."""
    lines = [f"Question:{_guard(told.question or '')}\n\n"]
    for turn in told.turns:
        lines.append(f"Thought:{_guard(turn.thought or '')}\n")
        lines += [f"Action:{_guard(turn.action)}\n"] if turn.action is not None else []
        lines += [f"Action Input: {_guard(turn.action_input)}\n"] if turn.action_input is not None else []
        if turn.observation is not None:
            # The published texts have no empty line between an observation and the next thought.
            lines.append(f"Observation: {_guard(turn.observation)}")
    lines += [f"Thought:{_guard(told.final_thought)}"] if told.final_thought is not None else []
    lines.append(f"Final Answer: {_guard(told.final_answer or '')}\n")
    lines += [f"Assistant Response: {_guard(told.response)}"] if told.response is not None else []
    return "\n".join(lines)


def white_space(told: Told, passed: Collection[str] = ()) -> Iterator[str]:
    """The values that have white space round them, which is layout in a text; those of these names are passed over."""
    stripped = told.stripped()
    pairs: list[tuple[Told | Turn, Told | Turn]] = [(told, stripped), *zip(told.turns, stripped.turns, strict=True)]
    for before, after in pairs:
        for each in fields(before):
            if each.name not in {"turns", *passed} and getattr(before, each.name) != getattr(after, each.name):
                kind = "a step's" if isinstance(before, Turn) else "a trace's"
                yield f"white space round {kind} {each.name.replace('_', ' ')}"


def _guard(value: str) -> str:
    return _TO_GUARD.sub(r"\\\1", value)
