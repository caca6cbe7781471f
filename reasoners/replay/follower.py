"""Follows an aligned demonstration: makes its look-ups, and checks the shape of what they observe."""

import json
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from itertools import count
from typing import Any

from reasoners.base import Action, Task
from reasoners.provenance import BrokenOrigin, resolve_origin, trace_argument_origins
from reasoners.replay.alignment import Alignment, WorldWords
from reasoners.replay.demonstration import ASK, ID, NAME, CallValue, LookUp, LookUpWay, Program
from reasoners.replay.derivations import (
    ALL,
    DATE,
    NONE,
    TEXT,
    LookUpRows,
    NoValue,
    ReplayValue,
    Values,
    derive_answer,
    list_values,
    read_values,
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
            if step.tool and (step.data is not None or step.error or step.observation is not None):
                key = call_key(step.tool, step.arguments)
                occurrence = next(n for n in count() if f"{key}{n}" not in self._results)
                self._results[f"{key}{occurrence}"] = step.data or step.error or {}

    def call(self, thought: str, tool: str, arguments: dict[str, Any], occurrence: int = 0) -> ReplayMoves:
        """Call a tool and return its data, or that of an equal call with this number; ShapeMismatch if it fails.

        An observation without data has empty data.
        """
        key = f"{call_key(tool, arguments)}{occurrence}"
        if key not in self._results:
            if tool not in self._tools:
                raise ShapeMismatch(f"the tool {tool} is not offered here")
            origins = trace_argument_origins(arguments, self._question, self._data)
            outcome = yield Action(thought, tool, arguments, origins)
            observation = outcome.observation if outcome else None
            self._data[len(self._data) + 1] = observation.data if observation else None
            error = str((outcome and outcome.error) or "no data")
            self._results[key] = (observation.data or {}) if observation else error
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
        for texts, lookup in ((program.texts, lookup) for program in programs for lookup in program.lookups):
            ask = lookup.fill(texts)
            self.contexts[ask].update(lookup.contexts)
            self.observed[ask] += [values for _, values in lookup.observed]
            if ID not in ask:
                self.ways[lookup.is_label].update(dict.fromkeys(lookup.ways))


class ProgramFollower:
    """Follows one alignment: makes its look-ups, and checks the shape of what they observe."""

    def __init__(self, calls: ReplayCalls, alignment: Alignment, library: LibraryIndex, world: WorldWords) -> None:
        self._calls, self._fillers, self._library, self._world = calls, alignment.fillers, library, world
        self._program = alignment.program

    def follow(self) -> ReplayMoves:
        """Return the answer; ShapeMismatch or UndecidedAnswer if there is none."""
        rows: list[LookUpRows] = []
        for lookup in self._program.lookups:
            subjects = [ReplayValue(self._fillers[lookup.subject])] if lookup.subject >= 0 else None
            if subjects is None:
                subjects = unique_values(value for _, values in rows[-1 - lookup.subject] for value in values)
            if len(subjects) > MAX_SUBJECTS:
                raise ShapeMismatch(f"it would follow {len(subjects)} values, and at most {MAX_SUBJECTS} are followed")
            pairs = []
            for subject in subjects:
                values = yield from self._look_up(lookup, subject)
                pairs.append((subject, tuple(values)))
            rows.append(pairs)
        no_answer = self._library.no_answer
        evidence = self._program.evidence(
            rows, self._fillers, allows_missing=no_answer is not None, shows_ids=self._library.shows_ids
        )
        try:
            return derive_answer(str(self._program.derivation), evidence)
        except NoValue:
            if no_answer is None or len(evidence.results) > 1:
                raise
            return no_answer

    def _look_up(self, lookup: LookUp, subject: ReplayValue) -> ReplayMoves:
        """The values by the first way that has any: lists before sentences, then the demonstration's own."""
        ask = lookup.fill(self._fillers)
        others = () if ID in lookup.ask else self._library.ways[lookup.is_label]
        values: Values | None = None
        failures = ["no call of a tool shows how to look it up"]
        for way in sorted(dict.fromkeys([*lookup.ways, *others]), key=lambda way: way.path is None):
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
        self._check(lookup, ask, subject, values)
        return values

    def _check(self, lookup: LookUp, ask: str, subject: ReplayValue, values: Values) -> None:
        """Raise ShapeMismatch unless there are values of the demonstration's kind, and one where it has one."""
        library, asked = self._library, ask.replace(NAME, subject.text).replace(ID, subject.text)
        shown = library.observed.get(ask, ())
        is_single = len(values) == 1 and all(len(own) < 2 for own in shown) and (shown or lookup.is_label)
        if library.spreads_facts and not is_single:
            raise ShapeMismatch(f"the sources hold different facts, and {subject.text} may have other values")
        index = self._program.lookups.index(lookup)
        # Nothing to go on with, for an ask of the demonstration alone, is no answer to a question.
        is_basis = lookup.word is None and any(other.subject == -1 - index for other in self._program.lookups)
        if not values and (library.no_answer is None or is_basis):
            raise ShapeMismatch(f"nothing was observed for {asked!r} of {subject.text}")
        if len(values) > 1 and not library.allows_lists and all(len(own) < 2 for _, own in lookup.observed):
            raise ShapeMismatch(
                f"{subject.text} has {len(values)} values for {asked!r} where the demonstration has one"
            )
        kinds = {value.kind for own in shown for value in own}
        if lookup.word is None and kinds and TEXT not in kinds and {value.kind for value in values} - kinds - {TEXT}:
            raise ShapeMismatch(f"the values for {asked!r} of {subject.text} are of another kind")

    def _follow_way(self, way: LookUpWay, lookup: LookUp, ask: str, subject: ReplayValue) -> ReplayMoves:
        observations: list[Mapping[str, Any]] = []
        identifier = subject.id
        contents = [ask if content == ASK else content for call in way.calls for _, content, _ in call.arguments]
        if identifier is None and any(ID in content for content in contents):
            identifier = yield from self._identify(subject)
        filled = ask.replace(NAME, subject.text).replace(ID, str(identifier))
        for call in way.calls:
            arguments: dict[str, Any] = {}
            for name, content, is_list in call.arguments:
                if isinstance(content, CallValue):
                    unread = [o for o in way.calls[content.call].empty if observations[content.call].get(o)]
                    if unread:
                        raise ShapeMismatch(f"{filled!r} has {unread[0]}, where the demonstration has none")
                    text = _take(observations[content.call], content.pointer, ask, subject)
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

    def _identify(self, subject: ReplayValue) -> ReplayMoves:
        """The id of a name, looked up as demonstrations do; ShapeMismatch if no or several things have the name."""
        name = normalize_name(subject.text)
        for tool, argument in dict.fromkeys([*self._program.identifiers, *self._library.identifiers]):
            data = yield from self._calls.call(f"I need the id of {subject.text}.", tool, {argument: subject.text})
            entities: list[tuple[str, list[str]]] = [
                (str(item.get("id") or item["entity"]), [normalize_name(item.get(n) or "") for n in ("title", "label")])
                for items in data.values()
                for item in (items if isinstance(items, list) else ())
                if isinstance(item, Mapping) and (item.get("id") or item.get("entity"))
            ]
            same = [(identifier, names) for identifier, names in entities if name in names]
            if same and (len(same) == 1 or same[0][1][0] == name):
                return same[0][0]
            if same:
                raise ShapeMismatch(f"several things are called {subject.text}")
            if len(entities) == 1 and self._world.knows(subject.text):
                return entities[0][0]
        raise ShapeMismatch(f"this world knows nothing called {subject.text}")


def _take(data: Mapping[str, Any], pointer: str, ask: str, subject: ReplayValue) -> str:
    """The value of an earlier observation, of the relation that the ask names for *; ShapeMismatch if it has none."""
    if "*" in pointer:
        labels = [normalize_name(relation["label"]) for relation in data.get("relations", ())]
        if normalize_name(ask) not in labels:
            raise ShapeMismatch(f"{subject.text} has no {ask} in the graph")
        pointer = pointer.replace("*", str(labels.index(normalize_name(ask))))
    try:
        return resolve_origin({"from": "step", "step": 0, "pointer": pointer}, "", {0: data})
    except BrokenOrigin as error:
        raise ShapeMismatch(str(error)) from error
