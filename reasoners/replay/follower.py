"""Follows an aligned demonstration: makes its look-ups, and checks the shape of what they observe."""

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from reasoners.base import Action, Task
from reasoners.provenance import (
    collect_known_sentences,
    collect_known_values,
    find_origin,
)
from reasoners.replay.alignment import Alignment
from reasoners.replay.demonstration import (
    ASK,
    ID,
    NAME,
    STEM,
    WORD,
    CallValue,
    LookUp,
    LookUpWay,
    Program,
    WayCall,
    WorldWords,
    fill_word,
)
from reasoners.replay.derivations import (
    ALL,
    DATE,
    NONE,
    TEXT,
    NoValue,
    ReplayValue,
    derive_answer,
    is_form,
    list_values,
    read_values,
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
            known, sentences = collect_known_values(self._data), collect_known_sentences(self._data)
            origins = {name: find_origin(v, self._question, known, sentences) for name, v in arguments.items()}
            outcome = yield Action(thought, tool, arguments, origins)
            observation = outcome.observation if outcome else None
            self._data[len(self._data) + 1] = observation.data if observation else None
            self._results[key] = observation.data if observation else str((outcome and outcome.error) or "no data")
        result = self._results[key]
        if isinstance(result, str):
            raise ShapeMismatch(result.rstrip("."))
        return result


def call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, dict(arguments)], sort_keys=True, ensure_ascii=False)


class ProgramFollower:
    """Follows one alignment: makes its look-ups, and checks the shape of what they observe."""

    def __init__(
        self,
        calls: ReplayCalls,
        alignment: Alignment,
        library: Sequence[Program],
        world: WorldWords,
        *,
        spreads_facts: bool,
    ) -> None:
        self._spreads_facts = spreads_facts
        self._calls, self._alignment, self._library, self._world = calls, alignment, library, world
        self._program = alignment.program
        self._shows_ids = any(program.shows_ids for program in library)
        self._no_answer = next((p.answer for p in library if p.derivation == NONE), None)
        lacking = [
            (program, lookup)
            for program in library
            if program.derivation == NONE
            for lookup in program.lookups
            if not any(values for _, values in lookup.observed)
        ]
        self._may_lack = {lookup.ask.replace(STEM, WORD) for _, lookup in lacking}
        self._may_lack |= {program.filled_ask(lookup) for program, lookup in lacking}
        self._allows_lists = any(p.derivation == ALL and len(_last_values(p)) > 1 for p in library)

    def follow(self) -> ReplayMoves:
        """Return the answer; ShapeMismatch or UndecidedAnswer if there is none."""
        evidence = yield from self._gather()
        derivation = str(self._alignment.derivation or self._program.derivation)
        try:
            return derive_answer(ALL if derivation == NONE else derivation, evidence)
        except NoValue:
            if self._no_answer is None or len(evidence.results) > 1:
                raise
            return self._no_answer

    def _gather(self) -> ReplayMoves:
        """Make the look-ups; returns the evidence for the answer."""
        fillers: dict[int, list[ReplayValue]] = {}
        for slot in self._program.names:
            text = self._alignment.fillers[slot]
            phrase = self._alignment.phrases.get(text)
            fillers[slot] = [ReplayValue(text)]
            if phrase is not None:
                follower = ProgramFollower(
                    self._calls,
                    replace(phrase, phrases=self._alignment.phrases),
                    self._library,
                    self._world,
                    spreads_facts=self._spreads_facts,
                )
                inner = yield from follower._gather()
                fillers[slot] = inner.results[0].values
        rows: list[list[tuple[ReplayValue, tuple[ReplayValue, ...]]]] = []
        for lookup in self._program.lookups:
            subjects = (
                fillers[lookup.subject]
                if lookup.subject >= 0
                else _unique(value for _, values in rows[-1 - lookup.subject] for value in values)
            )
            if len(subjects) > MAX_SUBJECTS:
                raise ShapeMismatch(f"it would follow {len(subjects)} values, and at most {MAX_SUBJECTS} are followed")
            pairs = []
            for subject in subjects:
                values = yield from self._look_up(lookup, subject, is_only=len(subjects) == 1)
                pairs.append((subject, tuple(values)))
            rows.append(pairs)
        texts = [
            fillers[slot][0].text if len(fillers.get(slot, ())) == 1 else text
            for slot, text in enumerate(self._alignment.fillers)
        ]
        return self._program.evidence(
            rows, texts, allows_missing=self._no_answer is not None, shows_ids=self._shows_ids
        )

    def _look_up(self, lookup: LookUp, subject: ReplayValue, *, is_only: bool) -> ReplayMoves:
        ask = self._fill(lookup)
        values: list[ReplayValue] | None = None
        failures = []
        for way in self._ways(lookup):
            try:
                values = yield from self._follow_way(way, lookup, ask, subject)
            except ShapeMismatch as mismatch:
                failures.append(str(mismatch))
            if values:
                break
        if values is None:
            raise ShapeMismatch("; ".join(dict.fromkeys(failures)) or "no call of a tool shows how to look it up")
        self._check(lookup, subject, values, is_only=is_only)
        return values

    def _ways(self, lookup: LookUp) -> list[LookUpWay]:
        """The ways of the demonstration, then those of others that take such an ask; those with plain values first."""
        takes_label = lookup.ways[0].takes_label
        is_query = ID in lookup.ask
        others = (
            way
            for program in self._library
            for other in program.lookups
            if (ID in other.ask) == is_query
            for way in other.ways
            if way.takes_label == takes_label and not is_query
        )
        ways = dict.fromkeys([*lookup.ways, *others])
        return [way for way in ways if way.path is not None or self._contexts(lookup)]

    def _contexts(self, lookup: LookUp) -> list[tuple[str, str]]:
        """Where demonstrations read the values of such a look-up in sentences."""
        asked = self._fill(lookup)
        same = (
            (program, other)
            for program in self._library
            for other in program.lookups
            if other.contexts and program.filled_ask(other) == asked
        )
        return [context for _, other in same for context in other.contexts]

    def _fill(self, lookup: LookUp) -> str:
        """The ask of a look-up with this question's word."""
        return lookup.ask if lookup.word is None else fill_word(lookup.ask, self._alignment.fillers[lookup.word])

    def _check(self, lookup: LookUp, subject: ReplayValue, values: Sequence[ReplayValue], *, is_only: bool) -> None:
        """Raise ShapeMismatch unless there are values of the demonstration's kind, and one where it has one."""
        ask = self._fill(lookup)
        if self._spreads_facts and self._no_answer is not None and not self._is_complete(ask, values):
            raise ShapeMismatch(f"the sources hold different facts, and {subject.text} may have other values")
        asked = ask.replace(NAME, subject.text).replace(ID, subject.text)
        may_lack = {lookup.ask.replace(STEM, WORD), ask} & self._may_lack or (self._no_answer and not is_only)
        if not values and not may_lack:
            raise ShapeMismatch(f"nothing was observed for {asked!r} of {subject.text}")
        if len(values) > 1 and not self._allows_lists and all(len(shown) < 2 for _, shown in lookup.observed):
            raise ShapeMismatch(
                f"{subject.text} has {len(values)} values for {asked!r} where the demonstration has one"
            )
        kinds = {value.kind for _, shown in lookup.observed for value in shown}
        if lookup.word is None and kinds and TEXT not in kinds and {value.kind for value in values} - kinds - {TEXT}:
            raise ShapeMismatch(f"the values for {asked!r} of {subject.text} are of another kind")

    def _is_complete(self, ask: str, values: Sequence[ReplayValue]) -> bool:
        """Whether there is one value, as for every subject of which demonstrations ask this."""
        shown = [
            len(observed)
            for program in self._library
            for lookup in program.lookups
            if program.filled_ask(lookup) == ask
            for _, observed in lookup.observed
        ]
        return len(values) == 1 and max(shown, default=2) == 1

    def _follow_way(self, way: LookUpWay, lookup: LookUp, ask: str, subject: ReplayValue) -> ReplayMoves:
        observations: list[Mapping[str, Any]] = []
        identifier = subject.id
        if identifier is None and any(_needs_id(call, ask) for call in way.calls):
            identifier = yield from self._identify(subject)
        filled = ask.replace(NAME, subject.text).replace(ID, str(identifier))
        for call in way.calls:
            arguments: dict[str, Any] = {}
            for name, content, is_list in call.arguments:
                text = self._resolve(content, filled, lookup, ask, subject, observations)
                text = text.replace(NAME, subject.text).replace(ID, str(identifier))
                arguments[name] = [text] if is_list else text
            thought = (
                f"As in the demonstration: {filled}"
                if NAME in ask
                else f"As in the demonstration: {filled} of {subject.text}."
            )
            observations.append((yield from self._calls.call(thought, call.tool, arguments)))
        data = observations[-1]
        if data.get("truncated"):
            raise ShapeMismatch("there are more values than a look-up may return")
        if way.path is None:
            dates = any(value.kind == DATE for _, values in lookup.observed for value in values)
            contexts = self._contexts(lookup)
            values = read_values(data.get("sentences", ()), subject.text, contexts, dates=dates)
            if len(values) != 1:
                raise ShapeMismatch(f"the article about {subject.text} has {len(values)} values for {filled!r}")
            return values
        lists = list_values(data)
        if way.path not in lists:
            raise ShapeMismatch(f"the observation has no list at {way.path}")
        return lists[way.path]

    def _resolve(  # noqa: PLR0913, PLR0917 - each is a part of the call
        self,
        content: str | CallValue,
        filled: str,
        lookup: LookUp,
        ask: str,
        subject: ReplayValue,
        observations: Sequence[Mapping[str, Any]],
    ) -> str:
        """The text of an argument; ShapeMismatch if an earlier observation does not have it."""
        if isinstance(content, str):
            return content
        if content == ASK:
            return filled
        value: Any = observations[content.call]
        if content.by_label:
            items = value["relations"]
            match = next((item for item in items if normalize_name(item["label"]) == normalize_name(filled)), None)
            if match is None:
                raise ShapeMismatch(f"{subject.text} has no {filled} in the graph")
            return str(match["id"])
        item: Any = None
        try:
            for key in content.pointer.split("/")[1:]:
                item, value = value, value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError) as error:
            raise ShapeMismatch(f"the observation has nothing at {content.pointer}") from error
        if (
            isinstance(item, Mapping)
            and "reading" in item
            and not self._is_understood(str(item["reading"]), lookup, ask, subject)
        ):
            raise ShapeMismatch(f"{filled!r} is understood as {item['reading']!r}")
        return str(value)

    def _is_understood(self, reading: str, lookup: LookUp, ask: str, subject: ReplayValue) -> bool:
        """Whether a tool understood the ask as in a demonstration, or by the same words."""
        masked = normalize_name(reading.replace(subject.text, NAME))
        word = "" if lookup.word is None else self._alignment.fillers[lookup.word]
        for program in self._library:
            if ask in program.readings:
                return masked == normalize_name(program.readings[ask])
            if lookup.ask in program.readings and lookup.word is not None:
                known = program.readings[lookup.ask]
                pattern = (
                    re.escape(normalize_name(known)).replace(re.escape(WORD), "(.+)").replace(re.escape(STEM), "(.+)")
                )
                match = re.fullmatch(pattern, masked)
                return match is not None and bool(match.groups()) and is_form(match[1], word)
        return False

    def _identify(self, subject: ReplayValue) -> ReplayMoves:
        """The id of a name, looked up as demonstrations do; ShapeMismatch if no or several things have the name."""
        ways = dict.fromkeys(way[:2] for program in (self._program, *self._library) for way in program.identifiers)
        for tool, argument in ways:
            data = yield from self._calls.call(f"I need the id of {subject.text}.", tool, {argument: subject.text})
            entities = list(_iterate_entities(data))
            same = [entity for entity in entities if normalize_name(subject.text) in entity.names]
            if len(same) == 1 or (same and same[0].title == normalize_name(subject.text)):
                return same[0].id
            if len(same) > 1:
                raise ShapeMismatch(f"several things are called {subject.text}")
            if len(entities) == 1 and self._world.knows(subject.text):
                return entities[0].id
        raise ShapeMismatch(f"this world knows nothing called {subject.text}")


@dataclass(frozen=True, slots=True)
class _NamedEntity:
    id: str
    title: str
    label: str

    @property
    def names(self) -> tuple[str, str]:
        return self.title, self.label


def _iterate_entities(data: Mapping[str, Any]) -> Iterator[_NamedEntity]:
    for items in data.values():
        for item in items if isinstance(items, list) else ():
            identifier = isinstance(item, Mapping) and (item.get("id") or item.get("entity"))
            if identifier:
                names = (normalize_name(item.get(name) or "") for name in ("title", "label"))
                yield _NamedEntity(str(identifier), *names)


def _needs_id(call: WayCall, ask: str) -> bool:
    return any(ID in (ask if content == ASK else str(content)) for _, content, _ in call.arguments)


def _unique(values: Iterator[ReplayValue]) -> list[ReplayValue]:
    return list({value.key: value for value in values}.values())


def _last_values(program: Program) -> Sequence[ReplayValue]:
    return [value for _, values in program.lookups[-1].observed for value in values]
