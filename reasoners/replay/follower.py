"""Follows an aligned demonstration: makes its look-ups, and checks the shape of what they observe."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from reasoners.base import Action, Task
from reasoners.provenance import trace_argument_origins
from reasoners.replay.alignment import Alignment
from reasoners.replay.demonstration import (
    ASK,
    ID,
    NAME,
    RELATION,
    STEM,
    WORD,
    CallValue,
    LookUp,
    LookUpWay,
    Program,
    WorldWords,
    fill_word,
    read_text,
)
from reasoners.replay.derivations import (
    ALL,
    DATE,
    NONE,
    TEXT,
    UNREMARKABLE_WORDS,
    LookUpRows,
    NoValue,
    ReplayValue,
    Values,
    derive_answer,
    list_values,
    read_values,
    stem,
    tokenize,
    unique_values,
)
from tools.tool import ToolResult
from worlds.text_normalization import normalize_name

MAX_SUBJECTS = 40
"""The subjects of one look-up; more of them are not followed."""
ReplayMoves = Generator[Action, ToolResult | None, Any]


class ShapeMismatch(Exception):
    """An observation has not the shape that the demonstration's had; the message is a clause that says how."""


class ReplayCalls:
    """The tool calls of one run with the origins of their arguments; the results of its earlier steps are taken."""

    def __init__(self, task: Task) -> None:
        self._question = task.question
        self._tools = {tool.name for tool in task.tools}
        self._data: dict[int, Mapping[str, Any] | None] = {}
        self._results: dict[str, Mapping[str, Any] | str] = {}
        for step in task.prior_steps:
            self._data[step.position] = step.data
            if step.tool and (step.data is not None or step.error):
                key = call_key(step.tool, step.arguments)
                occurrence = next(n for n in count() if f"{key}{n}" not in self._results)
                self._results[f"{key}{occurrence}"] = step.data or str(step.error)

    def call(self, thought: str, tool: str, arguments: dict[str, Any], occurrence: int = 0) -> ReplayMoves:
        """Call a tool and return its data, or that of an equal call with this number; ShapeMismatch if it fails."""
        key = f"{call_key(tool, arguments)}{occurrence}"
        if key not in self._results:
            if tool not in self._tools:
                raise ShapeMismatch(f"the tool {tool} is not offered here")
            origins = trace_argument_origins(arguments, self._question, self._data)
            outcome = yield Action(thought, tool, arguments, origins)
            observation = outcome.observation if outcome else None
            self._data[len(self._data) + 1] = observation.data if observation else None
            self._results[key] = observation.data if observation else str((outcome and outcome.error) or "no data")
        result = self._results[key]
        if isinstance(result, str):
            raise ShapeMismatch(result.rstrip("."))
        return result


def call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    """The identity of a call."""
    return json.dumps([tool, dict(arguments)], sort_keys=True, ensure_ascii=False)


class LibraryIndex:
    """What the demonstrations of a library show together, by what they ask."""

    def __init__(self, programs: Sequence[Program], *, spreads_facts: bool) -> None:
        self.programs = programs
        self.spreads_facts = spreads_facts
        self.shows_ids = any(program.shows_ids for program in programs)
        self.no_answer = next((program.answer for program in programs if program.derivation == NONE), None)
        self.allows_lists = any(p.derivation == ALL and len(p.lookups[-1].values) > 1 for p in programs)
        self.identifiers = list(dict.fromkeys(pair for program in programs for pair in program.identifiers))
        self.ways: dict[bool, dict[LookUpWay, None]] = {True: {}, False: {}}
        """The ways of the look-ups with and without a label, without queries."""
        self.contexts: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self.observed: dict[str, list[Values]] = defaultdict(list)
        """The values of each subject."""
        self.readings: dict[str, str] = {}
        self.may_lack: set[str] = set()
        for program in programs:
            self.readings = {**program.readings, **self.readings}
            for lookup in program.lookups:
                ask = lookup.fill(program.texts)
                self.contexts[ask].update(lookup.contexts)
                self.observed[ask] += [values for _, values in lookup.observed]
                if ID not in ask:
                    self.ways[lookup.is_label].update(dict.fromkeys(lookup.ways))
                if program.derivation == NONE and not lookup.values:
                    self.may_lack |= {lookup.ask.replace(STEM, WORD), ask}
        # Words that stand before the answers to different questions tell nothing.
        uses = Counter(context for own in self.contexts.values() for context in own)
        self.contexts = {ask: {c for c in own if uses[c] == 1} for ask, own in self.contexts.items()}


class ProgramFollower:
    """Follows one alignment: makes its look-ups, and checks the shape of what they observe."""

    def __init__(self, calls: ReplayCalls, alignment: Alignment, library: LibraryIndex, world: WorldWords) -> None:
        self._calls, self._alignment, self._library, self._world = calls, alignment, library, world
        self._program = alignment.program

    def follow(self) -> ReplayMoves:
        """Return the answer; ShapeMismatch or UndecidedAnswer if there is none."""
        rows, texts = yield from self._gather()
        no_answer, derivation = self._library.no_answer, str(self._alignment.derivation or self._program.derivation)
        evidence = self._program.evidence(
            rows, texts, allows_missing=no_answer is not None, shows_ids=self._library.shows_ids
        )
        if self._program.is_cut_short and all(result.values for result in evidence.results):
            raise ShapeMismatch("the demonstration ends where this look-up has no value")
        try:
            return derive_answer(ALL if derivation == NONE else derivation, evidence)
        except NoValue:
            if no_answer is None or len(evidence.results) > 1:
                raise
            return no_answer

    def _gather(self) -> ReplayMoves:
        """Make the look-ups; returns the rows of each, and the texts of the slots."""
        texts, subjects_of_slot = list(self._alignment.fillers), {}
        for slot in self._program.names:
            subjects_of_slot[slot] = [ReplayValue(texts[slot])]
            if phrase := self._alignment.phrases.get(texts[slot]):
                inner = replace(phrase, phrases=self._alignment.phrases)
                resolved, _ = yield from ProgramFollower(self._calls, inner, self._library, self._world)._gather()
                subjects_of_slot[slot] = unique_values(value for _, values in resolved[-1] for value in values)
                if len(subjects_of_slot[slot]) == 1:
                    texts[slot] = subjects_of_slot[slot][0].text
        rows: list[LookUpRows] = []
        for lookup in self._program.lookups:
            subjects = subjects_of_slot.get(lookup.subject)
            if subjects is None:
                subjects = unique_values(value for _, values in rows[-1 - lookup.subject] for value in values)
            if len(subjects) > MAX_SUBJECTS:
                raise ShapeMismatch(f"it would follow {len(subjects)} values, and at most {MAX_SUBJECTS} are followed")
            pairs = []
            for subject in subjects:
                values = yield from self._look_up(lookup, subject, is_only=len(subjects) == 1)
                pairs.append((subject, tuple(values)))
            rows.append(pairs)
        return rows, texts

    def _look_up(self, lookup: LookUp, subject: ReplayValue, *, is_only: bool) -> ReplayMoves:
        """The values by the first way that has any; those of the demonstration come first."""
        ask = lookup.fill(self._alignment.fillers)
        others = () if ID in lookup.ask else self._library.ways[lookup.is_label]
        values: Values | None = None
        failures = ["no call of a tool shows how to look it up"]
        for way in dict.fromkeys([*lookup.ways, *others]):
            if way.path is None and not self._library.contexts.get(ask):
                continue
            try:
                values = yield from self._follow_way(way, lookup, ask, subject)
            except ShapeMismatch as mismatch:
                failures.append(str(mismatch))
            if values:
                break
        if values is None:
            raise ShapeMismatch("; ".join(dict.fromkeys(failures[1:] or failures)))
        self._check(lookup, ask, subject, values, is_only=is_only)
        return values

    def _check(self, lookup: LookUp, ask: str, subject: ReplayValue, values: Values, *, is_only: bool) -> None:
        """Raise ShapeMismatch unless there are values of the demonstration's kind, and one where it has one."""
        library, asked = self._library, ask.replace(NAME, subject.text).replace(ID, subject.text)
        shown = library.observed.get(ask, ())
        if library.spreads_facts and (len(values) != 1 or any(len(own) > 1 for own in shown)):
            raise ShapeMismatch(f"the sources hold different facts, and {subject.text} may have other values")
        may_lack = {lookup.ask.replace(STEM, WORD), ask} & library.may_lack or (library.no_answer and not is_only)
        if not values and not may_lack:
            raise ShapeMismatch(f"nothing was observed for {asked!r} of {subject.text}")
        if len(values) > 1 and not library.allows_lists and all(len(shown) < 2 for _, shown in lookup.observed):
            raise ShapeMismatch(
                f"{subject.text} has {len(values)} values for {asked!r} where the demonstration has one"
            )
        kinds = {value.kind for own in shown for value in own}
        if lookup.word is None and kinds and TEXT not in kinds and {value.kind for value in values} - kinds - {TEXT}:
            raise ShapeMismatch(f"the values for {asked!r} of {subject.text} are of another kind")

    def _follow_way(self, way: LookUpWay, lookup: LookUp, ask: str, subject: ReplayValue) -> ReplayMoves:
        observations: list[Mapping[str, Any]] = []
        identifier = subject.id
        contents = [content for call in way.calls for _, content, _ in call.arguments]
        if identifier is None and any(ID in (ask if content == ASK else str(content)) for content in contents):
            identifier = yield from self._identify(subject)
        filled = ask.replace(NAME, subject.text).replace(ID, str(identifier))
        for call in way.calls:
            arguments: dict[str, Any] = {}
            for name, content, is_list in call.arguments:
                if isinstance(content, CallValue):
                    text = self._take(observations[content.call], content, lookup, ask, subject)
                else:
                    text = content.replace(ASK, filled).replace(NAME, subject.text).replace(ID, str(identifier))
                arguments[name] = [text] if is_list else text
            thought = f"As in the demonstration: {filled}{'' if NAME in ask else f' of {subject.text}.'}"
            observations.append((yield from self._calls.call(thought, call.tool, arguments)))
        data = observations[-1]
        if data.get("truncated"):
            raise ShapeMismatch("there are more values than a look-up may return")
        if way.path is None:
            dates = any(value.kind == DATE for value in lookup.values)
            values = read_values(data.get("sentences", ()), subject.text, self._library.contexts[ask], dates=dates)
            if len(values) != 1:
                raise ShapeMismatch(f"the article about {subject.text} has {len(values)} values for {filled!r}")
            return values
        lists = list_values(data)
        if way.path not in lists:
            raise ShapeMismatch(f"the observation has no list at {way.path}")
        return lists[way.path]

    def _take(self, data: Any, place: CallValue, lookup: LookUp, ask: str, subject: ReplayValue) -> str:
        """The value of an earlier observation; ShapeMismatch if it has none, or is understood in another way."""
        if place.pointer == RELATION:
            match = [item for item in data["relations"] if normalize_name(item["label"]) == normalize_name(ask)]
            if not match:
                raise ShapeMismatch(f"{subject.text} has no {ask} in the graph")
            return str(match[0]["id"])
        value, reading = read_text(data, place.pointer), read_text(data, f"{place.pointer.rpartition('/')[0]}/reading")
        if value is None:
            raise ShapeMismatch(f"the observation has nothing at {place.pointer}")
        # A reading may leave out the remark of a name: Ada Lund (baker).
        name = re.escape(subject.text.partition(" (")[0]) + r"( \([^()]*\))?"
        if reading is not None and not self._is_understood(re.sub(name, NAME, reading), lookup, ask):
            raise ShapeMismatch(f"{ask.replace(NAME, subject.text)!r} is understood as {reading!r}")
        return value

    def _is_understood(self, reading: str, lookup: LookUp, ask: str) -> bool:
        """Whether a tool understood the ask as in a demonstration, but for the word that is a slot.

        Or as all words of the ask; or as it understood the same word in a demonstration.
        """
        readings, stems = self._library.readings, _list_stems(reading)
        known = readings.get(ask)
        if known is not None or lookup.word is None:
            return stems == _list_stems(known or "")
        word = self._alignment.fillers[lookup.word]
        if stems == _list_stems(fill_word(readings.get(lookup.ask, ""), word)):
            return True
        if sorted(set(stems) - UNREMARKABLE_WORDS) == sorted(set(_list_stems(ask)) - UNREMARKABLE_WORDS):
            return True
        others = (other for other, own in readings.items() if _list_stems(own) == stems)
        return any(_is_same_verb(word.casefold(), own) for other in others for own in _list_stems(other))

    def _identify(self, subject: ReplayValue) -> ReplayMoves:
        """The id of a name, looked up as demonstrations do; ShapeMismatch if no or several things have the name."""
        name = normalize_name(subject.text)
        for tool, argument in dict.fromkeys([*self._program.identifiers, *self._library.identifiers]):
            data = yield from self._calls.call(f"I need the id of {subject.text}.", tool, {argument: subject.text})
            entities = list(_iterate_entities(data))
            same = [(identifier, names) for identifier, names in entities if name in names]
            if same and (len(same) == 1 or same[0][1][0] == name):
                return same[0][0]
            if same:
                raise ShapeMismatch(f"several things are called {subject.text}")
            if len(entities) == 1 and self._world.knows(subject.text):
                return entities[0][0]
        raise ShapeMismatch(f"this world knows nothing called {subject.text}")


def _list_stems(text: str) -> list[str]:
    return [stem(word) for word, _, _ in tokenize(text)]


def _is_same_verb(word: str, other: str) -> bool:
    """Whether one of two words is the other with an ending: die and died."""
    short, long = sorted((word, other), key=len)
    return len(short) > 2 and long.startswith(short) and len(long) - len(short) <= 2


def _iterate_entities(data: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the id of each entity, with its title and its label."""
    for items in data.values():
        for item in items if isinstance(items, list) else ():
            identifier = isinstance(item, Mapping) and (item.get("id") or item.get("entity"))
            if identifier:
                yield str(identifier), [normalize_name(item.get(name) or "") for name in ("title", "label")]
