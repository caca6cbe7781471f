r"""A solution process as marked text, as ReAct prompts show it.

    Question:... (Thought:... Action:... Action Input:... Observation:...)* Final Answer:... Assistant Response:...

A marker counts at the start of a line. A line of a value that would begin with one gets a backslash before it.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace

MARKERS = ("Question", "Thought", "Action Input", "Action", "Observation", "Final Answer", "Assistant Response")
_ANY_MARKER = "|".join(MARKERS)
# Some models wrote the action behind an empty thought, in one line.
_MARKER = re.compile(rf"^({_ANY_MARKER}):|(?<=^Thought: )(Action):|(?<=^Thought:)(Action):", re.MULTILINE)
_ESCAPED_MARKER = re.compile(rf"^\\(\\*(?:{_ANY_MARKER}):)", re.MULTILINE)
_UNESCAPED_MARKER = re.compile(rf"^(\\*(?:{_ANY_MARKER}):)", re.MULTILINE)
_MARKER_ORDER = {"Thought": 0, "Action": 1, "Action Input": 2, "Observation": 3}


@dataclass(slots=True)
class ReactTurn:
    """One step of the text; a part that was not written is None."""

    thought: str | None = None
    action: str | None = None
    action_input: str | None = None
    observation: str | None = None


@dataclass(slots=True)
class ReactTranscript:
    """A text in its parts; `preamble` is what stands before the first marker."""

    preamble: str = ""
    question: str | None = None
    turns: list[ReactTurn] = field(default_factory=list)
    final_thought: str | None = None
    final_answer: str | None = None
    response: str | None = None
    repeated: list[str] = field(default_factory=list)
    """Parts that a text has once but this one had again."""

    def strip_values(self) -> "ReactTranscript":
        """The parts as they come back: the white space round a value is layout in a text."""

        def strip(value: str | None) -> str | None:
            return None if value is None else value.strip()

        turns = [
            ReactTurn(
                (turn.thought or "").strip(), strip(turn.action), strip(turn.action_input), strip(turn.observation)
            )
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


def parse_transcript(text: str) -> ReactTranscript:
    """The text in its parts, each without the white space round it; nothing else is dropped."""
    found = list(_MARKER.finditer(text))
    told = ReactTranscript(preamble=_unescape_value(text[: found[0].start()] if found else text))
    rank = len(_MARKER_ORDER)
    for place, match in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        name = match.group(1) or match.group(2) or match.group(3)
        value = _unescape_value(text[match.end() : end])
        if name in _MARKER_ORDER:
            if _MARKER_ORDER[name] <= rank:
                told.turns.append(ReactTurn())
            rank = _MARKER_ORDER[name]
            setattr(told.turns[-1], name.lower().replace(" ", "_"), value)
        else:
            rank = len(_MARKER_ORDER)
            _set_once(told, name, value)
    last = told.turns[-1] if told.turns else None
    if (
        told.final_answer is not None
        and last is not None
        and last.action is last.action_input is last.observation is None
    ):
        told.final_thought = told.turns.pop().thought
    return told


def _set_once(told: ReactTranscript, name: str, value: str) -> None:
    slot = {"Question": "question", "Final Answer": "final_answer", "Assistant Response": "response"}[name]
    if getattr(told, slot) is None:
        setattr(told, slot, value)
    else:
        told.repeated.append(f"{name}:{value}")


def _unescape_value(value: str) -> str:
    return _ESCAPED_MARKER.sub(r"\1", value.strip())


def iterate_parts(told: ReactTranscript) -> Iterator[tuple[str, str]]:
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


def format_transcript(told: ReactTranscript) -> str:
    """The text of these parts, a line each."""
    return "".join(f"{marker}: {_escape_markers(value)}".rstrip() + "\n" for marker, value in iterate_parts(told))


def format_as_humaniq(told: ReactTranscript) -> str:
    """The text of these parts, in the layout of HumanIQ's library."""
    lines = [f"Question:{_escape_markers(told.question or '')}\n\n"]
    for turn in told.turns:
        lines.append(f"Thought:{_escape_markers(turn.thought or '')}\n")
        lines += [f"Action:{_escape_markers(turn.action)}\n"] if turn.action is not None else []
        lines += [f"Action Input: {_escape_markers(turn.action_input)}\n"] if turn.action_input is not None else []
        if turn.observation is not None:
            # The published texts have no empty line between an observation and the next thought.
            lines.append(f"Observation: {_escape_markers(turn.observation)}")
    lines += [f"Thought:{_escape_markers(told.final_thought)}"] if told.final_thought is not None else []
    lines.append(f"Final Answer: {_escape_markers(told.final_answer or '')}\n")
    lines += [f"Assistant Response: {_escape_markers(told.response)}"] if told.response is not None else []
    return "\n".join(lines)


def find_outer_whitespace(told: ReactTranscript, passed: Collection[str] = ()) -> Iterator[str]:
    """The values that have white space round them, which is layout in a text; those of these names are passed over."""
    stripped = told.strip_values()
    pairs: list[tuple[ReactTranscript | ReactTurn, ReactTranscript | ReactTurn]] = [
        (told, stripped),
        *zip(told.turns, stripped.turns, strict=True),
    ]
    for before, after in pairs:
        for each in fields(before):
            if each.name not in {"turns", *passed} and getattr(before, each.name) != getattr(after, each.name):
                kind = "a step's" if isinstance(before, ReactTurn) else "a trace's"
                yield f"white space round {kind} {each.name.replace('_', ' ')}"


def _escape_markers(value: str) -> str:
    return _UNESCAPED_MARKER.sub(r"\\\1", value)
