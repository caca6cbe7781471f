r"""Formats and parses the labelled text of ReAct prompts.

    Question:... (Thought:... Action:... Action Input:... Observation:...)* Final Answer:... Assistant Response:...

A marker counts only at the start of a line. A line of a value that begins with a marker is escaped by a backslash.
Models write markers in other forms too; `normalize_markers` makes them usual.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace

MARKERS = ("Question", "Thought", "Action Input", "Action", "Observation", "Final Answer", "Assistant Response")
_ANY_MARKER = "|".join(MARKERS)
# Some models write the action after an empty thought on the same line.
_MARKER = re.compile(rf"^({_ANY_MARKER}):|(?<=^Thought: )(Action):|(?<=^Thought:)(Action):", re.MULTILINE)
# Models write the markers in bold or in another case, number them, or make them headings or list items.
_LOOSE_MARKER = (
    rf"(?P<before>[ \t>]*+(?:#++|[-*](?=[ \t])|\d++[.)])?+[ \t]*+(?P<mark>[*_`]*+))(?P<name>{_ANY_MARKER})"
    rf"(?P<after>(?:[ \t]*+\d++)?+[*_`]*+[:\uff1a][*_`]*+)|#++[ \t]*+[*_]*+(?P<heading>{_ANY_MARKER})[*_]*+[ \t]*+$"
)
_WRITTEN_MARKER = re.compile(f"^(?:{_LOOSE_MARKER})", re.MULTILINE | re.IGNORECASE)
_ESCAPED_MARKER = re.compile(rf"^\\(\\*+(?:{_LOOSE_MARKER}))", re.MULTILINE | re.IGNORECASE)
_UNESCAPED_MARKER = re.compile(rf"^(\\*+(?:{_LOOSE_MARKER}))", re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+```(\w*+)[ \t\r]*+(?:\n|\Z)", re.MULTILINE)
_MARKER_ORDER = {"Thought": 0, "Action": 1, "Action Input": 2, "Observation": 3}


@dataclass(slots=True)
class ReactTurn:
    """One step of the text; missing parts are None."""

    thought: str | None = None
    action: str | None = None
    action_input: str | None = None
    observation: str | None = None


@dataclass(slots=True)
class ReactTranscript:
    """The parts of a text; `preamble` is the text before the first marker."""

    preamble: str = ""
    question: str | None = None
    turns: list[ReactTurn] = field(default_factory=list)
    final_thought: str | None = None
    final_answer: str | None = None
    response: str | None = None
    repeated: list[str] = field(default_factory=list)
    """Repetitions of parts that occur once in a text, with their markers."""

    def strip_values(self) -> "ReactTranscript":
        """The transcript as it parses back: without white space around its values."""

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


def normalize_markers(text: str) -> str:
    """The text with its markers in the usual form, and without the code fences around lines with markers.

    In an observation, whose text is the world's, a marker counts only in a form that was used outside of one. So it is
    with a question in another form than the usual one, unless it follows an answer.
    """
    forms: set[str] = set()
    name, end, mark = "Final Answer", 0, ""
    # The text before the first marker, and behind each one.
    values, markers = list[str](), list[str]()
    for match in _WRITTEN_MARKER.finditer(text):
        written = match["name"] or match["heading"]
        form = re.sub(r"\d++", "0", match[0].replace(written, "N" if written.istitle() else "n"))
        next_name = written.title()
        is_quoted = name == "Observation" or (
            next_name == "Question" and name not in ("Final Answer", "Assistant Response")
        )
        if is_quoted and form != "N:" and form not in forms:
            continue
        forms.add(form)
        values.append(_close_mark(text[end : match.start()], mark))
        markers.append(f"{next_name}:")
        name, end = next_name, match.end()
        # The bold type may go on to the end of the line.
        mark = (
            "" if match["after"] is None or match["after"][-1] in "*_`" or match["after"][0] in "*_`" else match["mark"]
        )
    values.append(_close_mark(text[end:], mark))
    first, *others = _without_wrapping_fences(values)
    return first + "".join(marker + value for marker, value in zip(markers, others, strict=True))


def _close_mark(value: str, mark: str) -> str:
    """The value without the mark at the end of its first line."""
    line, separator, rest = value.partition("\n")
    return line.rstrip().removesuffix(mark) + separator + rest if mark else value


def _without_wrapping_fences(values: list[str]) -> list[str]:
    """The values without the code fences that begin in one of them and end in another."""
    removed: list[list[tuple[int, int]]] = [[] for _ in values]
    wrapping: tuple[int, tuple[int, int]] | None = None
    for place, value in enumerate(values):
        fences = list(_FENCE.finditer(value))
        opened = None
        for number, fence in enumerate(fences):
            after = fences[number + 1] if number + 1 < len(fences) else None
            is_last = not value[fence.end() : after.start() if after else len(value)].strip()
            if opened is None and wrapping is not None and is_last and not fence[1]:
                removed[wrapping[0]].append(wrapping[1])
                removed[place].append(fence.span())
                wrapping = None
            else:
                opened = fence if opened is None else None
        if opened is not None and not value[opened.end() :].strip():
            wrapping = place, opened.span()
    return [_cut(value, spans) for value, spans in zip(values, removed, strict=True)]


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return text


def parse_transcript(text: str) -> ReactTranscript:
    """Parse a text into its parts, stripped of surrounding white space; nothing else is dropped."""
    matches = list(_MARKER.finditer(text))
    transcript = ReactTranscript(preamble=_unescape_value(text[: matches[0].start()] if matches else text))
    rank = len(_MARKER_ORDER)
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        name = match.group(1) or match.group(2) or match.group(3)
        value = _unescape_value(text[match.end() : end])
        if name in _MARKER_ORDER:
            if _MARKER_ORDER[name] <= rank:
                transcript.turns.append(ReactTurn())
            rank = _MARKER_ORDER[name]
            setattr(transcript.turns[-1], name.lower().replace(" ", "_"), value)
        else:
            rank = len(_MARKER_ORDER)
            _set_once(transcript, name, value)
    last = transcript.turns[-1] if transcript.turns else None
    if (
        transcript.final_answer is not None
        and last is not None
        and last.action is last.action_input is last.observation is None
    ):
        transcript.final_thought = transcript.turns.pop().thought
    return transcript


def _set_once(transcript: ReactTranscript, name: str, value: str) -> None:
    attribute = {"Question": "question", "Final Answer": "final_answer", "Assistant Response": "response"}[name]
    if getattr(transcript, attribute) is None:
        setattr(transcript, attribute, value)
    else:
        transcript.repeated.append(f"{name}:{value}")


def _unescape_value(value: str) -> str:
    return _ESCAPED_MARKER.sub(r"\1", value.strip())


def iterate_parts(transcript: ReactTranscript) -> Iterator[tuple[str, str]]:
    """Yield the markers with their values, in order; missing parts are left out."""
    yield "Question", transcript.question or ""
    for turn in transcript.turns:
        yield "Thought", turn.thought or ""
        parts = (("Action", turn.action), ("Action Input", turn.action_input), ("Observation", turn.observation))
        yield from ((marker, value) for marker, value in parts if value is not None)
    if transcript.final_thought is not None:
        yield "Thought", transcript.final_thought
    if transcript.final_answer is not None:
        yield "Final Answer", transcript.final_answer
    if transcript.response is not None:
        yield "Assistant Response", transcript.response


def format_transcript(transcript: ReactTranscript) -> str:
    """Format the parts as text, one on a line."""
    return "".join(f"{marker}: {_escape_markers(value)}".rstrip() + "\n" for marker, value in iterate_parts(transcript))


def format_as_humaniq(transcript: ReactTranscript) -> str:
    """Format the parts as text in the layout of HumanIQ's library."""
    lines = [f"Question:{_escape_markers(transcript.question or '')}\n\n"]
    for turn in transcript.turns:
        lines.append(f"Thought:{_escape_markers(turn.thought or '')}\n")
        lines += [f"Action:{_escape_markers(turn.action)}\n"] if turn.action is not None else []
        lines += [f"Action Input: {_escape_markers(turn.action_input)}\n"] if turn.action_input is not None else []
        if turn.observation is not None:
            # As in the published texts, no empty line separates an observation from the next thought.
            lines.append(f"Observation: {_escape_markers(turn.observation)}")
    lines += [f"Thought:{_escape_markers(transcript.final_thought)}"] if transcript.final_thought is not None else []
    lines.append(f"Final Answer: {_escape_markers(transcript.final_answer or '')}\n")
    lines += [f"Assistant Response: {_escape_markers(transcript.response)}"] if transcript.response is not None else []
    return "\n".join(lines)


def find_outer_whitespace(transcript: ReactTranscript, excluded: Collection[str] = ()) -> Iterator[str]:
    """Describe the values whose surrounding white space the text loses, except those with the names `excluded`."""
    stripped = transcript.strip_values()
    pairs: list[tuple[ReactTranscript | ReactTurn, ReactTranscript | ReactTurn]] = [
        (transcript, stripped),
        *zip(transcript.turns, stripped.turns, strict=True),
    ]
    for before, after in pairs:
        for part in fields(before):
            if part.name not in {"turns", *excluded} and getattr(before, part.name) != getattr(after, part.name):
                owner = "a step's" if isinstance(before, ReactTurn) else "a trace's"
                yield f"white space around {owner} {part.name.replace('_', ' ')}"


def _escape_markers(value: str) -> str:
    return _UNESCAPED_MARKER.sub(r"\\\1", value)
