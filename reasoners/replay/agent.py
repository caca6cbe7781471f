"""Replay: answers a question by following a demonstration's look-ups with the question's own names, without a model."""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from db.recording import TraceAnswers
from db.trace_record import TraceRecord
from reasoners.base import FinalAnswer, QuestionRefused, ReasonerGenerator, Task
from reasoners.provenance import (
    BrokenOrigin,
    Origin,
    resolve_origin,
)
from reasoners.replay.alignment import Alignment, Calibration, QuestionAligner
from reasoners.replay.compiler import build_program
from reasoners.replay.demonstration import Program, WorldWords, list_subprograms, mask_question
from reasoners.replay.derivations import UndecidedAnswer
from reasoners.replay.follower import ProgramFollower, ReplayCalls, ShapeMismatch, call_key
from tools.tool import EncodeFunction
from worlds.text_normalization import normalize_name

MAX_CANDIDATES = 5
"""The alignments that are tried, best first."""
REFUSAL = "I can't follow any demonstration here"


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
    spreads_facts: bool
    """Whether the sources of the world hold different facts."""


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
        _LIBRARIES[key] = ReplayLibrary(
            everything, aligner, Calibration.leave_one_out(aligner, world), world.spreads_facts()
        )
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
                answer = yield from ProgramFollower(
                    calls, alignment, library.programs, world, spreads_facts=library.spreads_facts
                ).follow()
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
        occurrence = made[call_key(str(step.tool), arguments)]
        made[call_key(str(step.tool), arguments)] += 1
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
