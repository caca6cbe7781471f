"""Replay: answers a question by following a demonstration's look-ups with the question's own names, without a model."""

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from db.recording import TraceAnswers
from db.trace_record import TraceRecord
from reasoners.base import Action, FinalAnswer, QuestionRefused, ReasonerGenerator, Task
from reasoners.provenance import (
    BrokenOrigin,
    Origin,
    collect_known_sentences,
    collect_known_values,
    find_origin,
    resolve_origin,
)
from reasoners.replay.alignment import Alignment, Calibration, QuestionAligner, WorldWords, mask_question
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
    build_program,
    fill_word,
    list_subprograms,
)
from reasoners.replay.derivations import ALL, NONE, NoValue, UndecidedAnswer, derive_answer
from reasoners.replay.values import TEXT, ReplayValue, is_form, list_values
from tools.tool import EncodeFunction, ToolResult
from worlds.text_normalization import normalize_name

MAX_SUBJECTS = 40
"""The subjects of one look-up; more of them are not followed."""
MAX_CANDIDATES = 5
"""The alignments that are tried, best first."""
REFUSAL = "I can't follow any demonstration here"
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
                key = _call_key(step.tool, step.arguments)
                occurrence = next(n for n in count() if f"{key}{n}" not in self._results)
                self._results[f"{key}{occurrence}"] = step.data or str(step.error)

    def call(self, thought: str, tool: str, arguments: dict[str, Any], occurrence: int = 0) -> ReplayMoves:
        """Call a tool and return its data, or that of an equal call with this number; ShapeMismatch if it fails."""
        key = f"{_call_key(tool, arguments)}{occurrence}"
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


def _call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, dict(arguments)], sort_keys=True, ensure_ascii=False)


class ProgramFollower:
    """Follows one alignment: makes its look-ups, and checks the shape of what they observe."""

    def __init__(
        self,
        calls: ReplayCalls,
        alignment: Alignment,
        library: Sequence[Program],
        world: WorldWords,
    ) -> None:
        self._calls, self._alignment, self._library, self._world = calls, alignment, library, world
        self._program = alignment.program
        self._shows_ids = any(program.shows_ids for program in library)
        self._no_answer = next((p.answer for p in library if p.derivation == NONE), None)
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
                    self._calls, replace(phrase, phrases=self._alignment.phrases), self._library, self._world
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
            found = []
            for subject in subjects:
                values = yield from self._look_up(lookup, subject)
                found.append((subject, tuple(values)))
            rows.append(found)
        texts = [
            fillers[slot][0].text if len(fillers.get(slot, ())) == 1 else text
            for slot, text in enumerate(self._alignment.fillers)
        ]
        return self._program.evidence(
            rows, texts, allows_missing=self._no_answer is not None, shows_ids=self._shows_ids
        )

    def _look_up(self, lookup: LookUp, subject: ReplayValue) -> ReplayMoves:
        word = None if lookup.word is None else self._alignment.fillers[lookup.word]
        ask = lookup.ask if word is None else fill_word(lookup.ask, word)
        values: list[ReplayValue] = []
        failures = []
        for way in self._ways(lookup):
            try:
                values = yield from self._follow_way(way, lookup, ask, subject)
            except ShapeMismatch as mismatch:
                failures.append(str(mismatch))
                continue
            break
        else:
            raise ShapeMismatch("; ".join(dict.fromkeys(failures)) or "no call of a tool shows how to look it up")
        self._check(lookup, subject, ask, values)
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
        return [way for way in ways if way.path is not None]

    def _check(self, lookup: LookUp, subject: ReplayValue, ask: str, values: Sequence[ReplayValue]) -> None:
        asked = ask.replace(NAME, subject.text).replace(ID, subject.text)
        if not values and self._no_answer is None:
            raise ShapeMismatch(f"nothing was observed for {asked!r} of {subject.text}")
        if len(values) > 1 and not self._allows_lists and all(len(shown) < 2 for _, shown in lookup.observed):
            raise ShapeMismatch(
                f"{subject.text} has {len(values)} values for {asked!r} where the demonstration has one"
            )
        kinds = {value.kind for _, shown in lookup.observed for value in shown}
        if lookup.word is None and kinds and TEXT not in kinds and {value.kind for value in values} - kinds:
            raise ShapeMismatch(f"the values for {asked!r} of {subject.text} are of another kind")

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


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of replay."""

    threshold: float = 0.0
    """The least confidence of an answer; 0 chooses it so that at most 3 % of the library's answers would be wrong."""
    demonstration: str = ""
    """The id of the demonstration to follow with `slots`, in place of those that fit best."""
    slots: Sequence[str] = ()
    """The texts of its slots in their order, corrected by a person."""


@dataclass(frozen=True, slots=True)
class ReplayLibrary:
    """Demonstrations, compiled and calibrated together."""

    programs: Sequence[Program]
    aligner: QuestionAligner
    calibration: Calibration


MAX_CACHED_PROGRAMS, MAX_CACHED_LIBRARIES = 20_000, 8
_PROGRAMS: OrderedDict[tuple[Any, ...], Program] = OrderedDict()
_LIBRARIES: OrderedDict[tuple[Any, ...], ReplayLibrary] = OrderedDict()


def _compile(record: TraceRecord, encode: EncodeFunction) -> Program:
    """The program of a demonstration, compiled once for each of its versions."""
    key = (record.trace.id, record.trace.version, record.trace.final_answer)
    if key not in _PROGRAMS:
        _PROGRAMS[key] = build_program(record, encode)
        while len(_PROGRAMS) > MAX_CACHED_PROGRAMS:
            _PROGRAMS.popitem(last=False)
    return _PROGRAMS[key]


def _open_library(programs: Sequence[Program], task: Task, world: WorldWords) -> ReplayLibrary:
    """The programs with those of their sub-questions, calibrated once for the same set in the same world."""
    key = (task.context.world.name, *sorted(id(program) for program in programs))
    if key not in _LIBRARIES:
        questions = {program.question for program in programs}
        asked = {own.question: own for program in programs for own in list_subprograms(program)}
        everything = [*programs, *(own for own in asked.values() if own.question not in questions)]
        aligner = QuestionAligner(everything, task.context.encode)
        _LIBRARIES[key] = ReplayLibrary(everything, aligner, Calibration.leave_one_out(aligner, world))
        while len(_LIBRARIES) > MAX_CACHED_LIBRARIES:
            _LIBRARIES.popitem(last=False)
    return _LIBRARIES[key]


class ReplayReasoner:
    """Answers questions by following demonstrations; repeats a demonstration exactly on its own question."""

    name = "replay"

    def __init__(self, options: ReplayOptions | None = None) -> None:
        self._options = options or ReplayOptions()

    def solve(self, task: Task) -> ReasonerGenerator:
        """Follow the demonstration that fits best; QuestionRefused names the nearest one and what did not fit."""
        if not task.demonstrations:
            raise QuestionRefused(f"{REFUSAL}: there is none; choose a library with demonstrations.")
        programs = [_compile(record, task.context.encode) for record in task.demonstrations]
        own = next((p for p in programs if normalize_name(p.question) == normalize_name(task.question)), None)
        if own is not None:
            return (yield from _repeat(own, task))
        return (yield from self._follow(programs, task))

    def _correct(self, library: ReplayLibrary) -> tuple[list[Alignment], list[tuple[float, int, str]]] | None:
        """The alignment that a person has corrected; None without one."""
        programs = [program for program in library.programs if str(program.id) == self._options.demonstration]
        fitting = [program for program in programs if len(program.slots) == len(self._options.slots)]
        return ([Alignment(fitting[0], tuple(self._options.slots), 1.0)], []) if fitting else None

    def _follow(self, programs: Sequence[Program], task: Task) -> ReasonerGenerator:
        usable = [program for program in programs if program.problem is None]
        if not usable:
            raise QuestionRefused(f"{REFUSAL}: {programs[0].problem} ({programs[0].question!r}).")
        world = WorldWords(task.context.world, task.context.encode)
        library = _open_library(usable, task, world)
        aligner, calibration = library.aligner, library.calibration
        alignments, mismatches = self._correct(library) or _align(aligner, task.question, world)
        threshold = self._options.threshold or calibration.threshold
        calls, failures = ReplayCalls(task), []
        for alignment in _distinct(alignments)[:MAX_CANDIDATES]:
            confidence = calibration.confidence(alignment.score)
            if confidence < threshold:
                failures.append(
                    (alignment.program.question, f"the confidence {confidence:.2f} is below {threshold:.2f}")
                )
                continue
            try:
                answer = yield from ProgramFollower(calls, alignment, library.programs, world).follow()
            except (ShapeMismatch, UndecidedAnswer) as mismatch:
                failures.append((alignment.program.question, str(mismatch)))
                continue
            details = _describe(alignment, confidence, threshold)
            thought = f"As in the demonstration, the answer is: {answer}."
            return FinalAnswer(TraceAnswers(final_answer=answer, final_thought=thought), details={"replay": details})
        if not failures:
            _, index, reason = mismatches[0]
            failures.append((library.programs[index].question, reason))
        reasons = "; ".join(f"like {shown!r}: {why}" for shown, why in failures)
        raise QuestionRefused(f"{REFUSAL}: {reasons}.")


def _align(
    aligner: QuestionAligner, text: str, world: WorldWords
) -> tuple[list[Alignment], list[tuple[float, int, str]]]:
    """The alignments of a question, with phrases in place of names if need be."""
    question = mask_question(text, world, aligner.vocabulary)
    alignments, mismatches = aligner.align_all(question, world)
    states, phrases = [question], {}
    while (reduced := aligner.reduce(states[-1])) is not None:
        states.append(reduced[0])
        start, end = next(span for span in reduced[0].mentions if span not in states[-2].mentions)
        phrases[text[start:end]] = reduced[1]
    for state in states[1:]:
        alignments += aligner.align_all(state, world)[0]
    alignments.sort(key=lambda alignment: -alignment.score)
    return [replace(alignment, phrases=phrases) for alignment in alignments], mismatches


def _distinct(alignments: Sequence[Alignment]) -> list[Alignment]:
    return list({(a.key, a.fillers_by_name): a for a in reversed(alignments)}.values())[::-1]


def _repeat(program: Program, task: Task) -> ReasonerGenerator:
    """Run the demonstration's calls again with the arguments from their origins; its answer if it observes the same."""
    calls, made = ReplayCalls(task), Counter[str]()
    data: dict[int, Mapping[str, Any]] = {}
    for step in (step for step in program.steps if step.tool):
        arguments = {
            name: _restore(value, step.origins.get(name, {"from": "typed"}), task.question, data)
            for name, value in step.arguments.items()
        }
        occurrence = made[_call_key(str(step.tool), arguments)]
        made[_call_key(str(step.tool), arguments)] += 1
        try:
            data[step.position] = yield from calls.call(step.thought, str(step.tool), arguments, occurrence)
        except ShapeMismatch as failure:
            if step.error is None:
                raise QuestionRefused(f"{REFUSAL}: step {step.position} fails now: {failure}.") from failure
    answers = TraceAnswers(final_answer=program.answer, final_thought=f"So the answer is: {program.answer}.")
    return FinalAnswer(answers, details={})


def _restore(value: Any, origin: Origin, question: str, data: Mapping[int, Any]) -> Any:
    """The argument from its origin; in the demonstration's case, and typed parts as they are."""
    if origin["from"] in ("question", "step"):
        try:
            text = resolve_origin(origin, question, data)
        except BrokenOrigin as error:
            raise QuestionRefused(f"{REFUSAL}: {error}.") from error
        return value if isinstance(value, str) and text.casefold() == value.strip().casefold() else text
    if origin["from"] != "parts":
        return value
    if isinstance(value, list):
        return [
            _restore(item, part["origin"], question, data) for item, part in zip(value, origin["parts"], strict=True)
        ]
    pieces, end = [], 0
    for part in origin["parts"]:
        pieces += [
            value[end : part["start"]],
            _restore(value[part["start"] : part["end"]], part["origin"], question, data),
        ]
        end = part["end"]
    return "".join([*pieces, value[end:]])


def _describe(alignment: Alignment, confidence: float, threshold: float) -> dict[str, Any]:
    program = alignment.program
    slots = [
        {"there": slot.text, "here": text, "relation": slot.is_relation}
        for slot, text in zip(program.slots, alignment.fillers, strict=True)
    ]
    return {
        "alignment": {
            "slots": slots,
            "similarity": round(alignment.similarity, 4),
            "soft": [list(pair) for pair in alignment.soft_words],
            "derivation": program.derivation,
        },
        "confidence": round(confidence, 4),
        "threshold": round(threshold, 4),
        "demonstrations": [{"id": str(program.id), "question": program.question}],
    }
