"""Replay: answers a question by following a demonstration's look-ups with the question's own names, without a model."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from db.recording import TraceAnswers
from db.trace_record import TraceRecord
from reasoners.base import FinalAnswer, QuestionRefused, ReasonerGenerator, Task
from reasoners.provenance import TYPED_ORIGIN, BrokenOrigin, Origin
from reasoners.replay.alignment import Alignment, Calibration, Mismatches, QuestionAligner
from reasoners.replay.compiler import build_program
from reasoners.replay.demonstration import (
    Program,
    WorldWords,
    list_subprograms,
    mask_question,
    resolve_part,
    split_argument,
)
from reasoners.replay.derivations import UndecidedAnswer
from reasoners.replay.follower import LibraryIndex, ProgramFollower, ReplayCalls, ShapeMismatch, call_key
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


class ReplayLibrary:
    """Demonstrations, compiled; they are aligned and calibrated together when the first new question is asked."""

    def __init__(self, records: Sequence[TraceRecord]) -> None:
        self.all = [_compile(record) for record in records]
        self.own = {normalize_name(program.question): program for program in reversed(self.all)}
        self._opened: tuple[QuestionAligner, Calibration, LibraryIndex] | None = None

    def open(self, world: WorldWords, encode: EncodeFunction) -> tuple[QuestionAligner, Calibration, LibraryIndex]:
        """The programs that can be followed with those of their sub-questions; QuestionRefused if there is none."""
        if self._opened is None:
            usable = [program for program in self.all if program.problem is None]
            if not usable:
                raise QuestionRefused(f"{REFUSAL}: {self.all[0].problem} ({self.all[0].question!r}).")
            asked = {own.question: own for program in usable for own in list_subprograms(program)}
            programs = [*usable, *(own for question, own in asked.items() if normalize_name(question) not in self.own)]
            aligner = QuestionAligner(programs, encode)
            index = LibraryIndex(programs, spreads_facts=world.spreads_facts())
            self._opened = aligner, Calibration.leave_one_out(aligner, world), index
        return self._opened


Cached = TypeVar("Cached")
MAX_CACHED_PROGRAMS, MAX_CACHED_LIBRARIES = 20_000, 8
_PROGRAMS: OrderedDict[tuple[Any, ...], Program] = OrderedDict()
_LIBRARIES: OrderedDict[tuple[Any, ...], ReplayLibrary] = OrderedDict()


def _identify(record: TraceRecord) -> tuple[Any, ...]:
    return record.trace.id, record.trace.version, record.trace.final_answer


def _compile(record: TraceRecord) -> Program:
    return _recall(_PROGRAMS, _identify(record), lambda: build_program(record))


def _recall(cache: OrderedDict[tuple[Any, ...], Cached], key: tuple[Any, ...], make: Callable[[], Cached]) -> Cached:
    value = cache.get(key)
    if value is None:
        value = cache[key] = make()
        while len(cache) > (MAX_CACHED_PROGRAMS if cache is _PROGRAMS else MAX_CACHED_LIBRARIES):
            cache.popitem(last=False)
    return value


class ReplayReasoner:
    """Answers questions by following demonstrations; repeats a demonstration exactly on its own question."""

    name = "replay"

    def __init__(self, options: ReplayOptions | None = None) -> None:
        self._options = options or ReplayOptions()

    def solve(self, task: Task) -> ReasonerGenerator:
        """Follow the demonstration that fits best; QuestionRefused names the nearest one and what did not fit."""
        if not task.demonstrations:
            raise QuestionRefused(f"{REFUSAL}: there is none; choose a library with demonstrations.")
        key = (task.context.world.name, *map(_identify, task.demonstrations))
        library = _recall(_LIBRARIES, key, lambda: ReplayLibrary(task.demonstrations))
        own = library.own.get(normalize_name(task.question))
        if own is not None:
            return (yield from _repeat(own, task))
        return (yield from self._follow(library, task))

    def _follow(self, library: ReplayLibrary, task: Task) -> ReasonerGenerator:
        world = WorldWords(task.context.world, task.context.encode)
        aligner, calibration, index = library.open(world, task.context.encode)
        alignments, mismatches = self._correct(index.programs) or _align(aligner, task.question, world)
        threshold = self._options.threshold or calibration.threshold
        calls, failures = ReplayCalls(task), []
        for alignment in alignments[:MAX_CANDIDATES]:
            confidence = calibration.confidence(alignment.score)
            if confidence < threshold:
                failures.append(
                    (alignment.program.question, f"the confidence {confidence:.2f} is below {threshold:.2f}")
                )
                continue
            try:
                answer = yield from ProgramFollower(calls, alignment, index, world).follow()
            except (ShapeMismatch, UndecidedAnswer) as mismatch:
                failures.append((alignment.program.question, str(mismatch)))
                continue
            thought = f"As in the demonstration, the answer is: {answer}."
            details = _describe(alignment, confidence, threshold)
            return FinalAnswer(TraceAnswers(final_answer=answer, final_thought=thought), details={"replay": details})
        failures = failures or [(index.programs[place].question, reason) for _, place, reason in mismatches[:1]]
        reasons = "; ".join(f"like {shown!r}: {why}" for shown, why in failures)
        refusal = QuestionRefused(f"{REFUSAL}: {reasons}.")
        refusal.reason = failures[0][1]
        raise refusal

    def _correct(self, programs: Sequence[Program]) -> tuple[list[Alignment], Mismatches] | None:
        """The alignment that a person has corrected; None without one."""
        texts = tuple(self._options.slots)
        if not self._options.demonstration:
            return None
        chosen = [program for program in programs if str(program.id) == self._options.demonstration]
        fitting = [Alignment(program, texts, 1.0) for program in chosen if len(program.slots) == len(texts)]
        return (fitting[:1], []) if fitting else None


def _align(aligner: QuestionAligner, text: str, world: WorldWords) -> tuple[list[Alignment], Mismatches]:
    """The distinct alignments of a question, with phrases in place of names if need be, best first."""
    question = mask_question(text, world, aligner.vocabulary)
    alignments, mismatches = aligner.align_all(question, world)
    phrases: dict[str, Alignment] = {}
    while (reduced := aligner.reduce(question)) is not None:
        names, (question, phrase) = question.mentions, reduced
        phrases |= {text[slice(*span)]: phrase for span in question.mentions if span not in names}
        alignments += aligner.align_all(question, world)[0]
    distinct: dict[Any, Alignment] = {}
    for alignment in sorted(alignments, key=lambda alignment: -alignment.score):
        names_here = tuple(alignment.fillers[slot] for slot in alignment.program.names)
        distinct.setdefault((alignment.key, names_here), replace(alignment, phrases=phrases))
    return list(distinct.values()), mismatches


def _repeat(program: Program, task: Task) -> ReasonerGenerator:
    """Run the demonstration's calls again with the arguments from their origins; its answer if it observes the same."""
    calls, made = ReplayCalls(task), Counter[str]()
    data: dict[int, Mapping[str, Any]] = {}
    for step in (step for step in program.steps if step.tool):
        arguments = {
            name: _restore(value, step.origins.get(name, TYPED_ORIGIN), task.question, data)
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
    """The argument from its origin, in the demonstration's case if that is the only difference."""
    if isinstance(value, list) and origin["from"] == "parts":
        return [
            _restore(item, part["origin"], question, data) for item, part in zip(value, origin["parts"], strict=True)
        ]
    if not isinstance(value, str):
        return value
    try:
        text = "".join(resolve_part(part, question, data) for part in split_argument(value, origin))
    except BrokenOrigin as error:
        raise QuestionRefused(f"{REFUSAL}: {error}.") from error
    return value if text.casefold() == value.strip().casefold() else text


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
            "derivation": alignment.derivation or program.derivation,
        },
        "confidence": round(confidence, 4),
        "threshold": round(threshold, 4),
        "demonstrations": [{"id": str(program.id), "question": program.question}],
    }
