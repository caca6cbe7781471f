"""Replay: answers a question by following a demonstration's look-ups with the question's own names, without a model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from showhow.db.traces.recording import TraceAnswers
from showhow.db.unanswerable import read_unanswerable
from showhow.reasoners import provenance
from showhow.reasoners.base import FinalAnswer, QuestionRefused, ReasonerGenerator, Task
from showhow.reasoners.replay.alignment import Alignment
from showhow.reasoners.replay.calls import REFUSAL, ReplayCalls, ReplayMoves, repeat
from showhow.reasoners.replay.composition import ComposedProgram, Composer, describe_program, observe
from showhow.reasoners.replay.counterparts import substitute
from showhow.reasoners.replay.demonstration import (
    ASK,
    ID,
    LINK,
    NAME,
    LookUp,
    LookUpWay,
    Program,
    read_context,
)
from showhow.reasoners.replay.derivations import (
    DATE,
    Mismatch,
    NoValue,
    ReplayValue,
    Values,
    derive_answer,
    list_values,
    unique_values,
)
from showhow.reasoners.replay.lookups import UnitedLookUps
from showhow.reasoners.replay.phrases import FramedQuestion
from showhow.reasoners.replay.replay_library import ReplayLibrary, open_library
from showhow.reasoners.sources import list_sources
from showhow.worlds.lexicon.english import phrase_key
from showhow.worlds.text_normalization import normalize_name, replace_surrogates

MAX_CANDIDATES, MAX_SUBJECTS, MAX_CHARACTERS = 5, 40, 1_000
"""The alignments that are tried, best first; the subjects of one look-up that are followed; the length of a question
that is compared."""
SOURCE_ORDER = ("graph", "text", "web")
"""Rows are exact, articles are about their subjects, and pages may be out of date."""
_AND_NAME = re.compile(r",? and [^\W\d_a-z]")
_FULL_NAME = re.compile(r"(?<![\w'-])[\da-z_'-]*+[^\W\d_a-z][\w'-]++ [^\W\d_a-z][\w'-]")
_NAME = provenance.compile_name_pattern("of|the|de|von|van", numbers=False)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of replay."""

    threshold: float = 0.0
    """The least confidence of an answer; 0 chooses it so that at most 3 % of the library's answers would be wrong."""
    demonstration: str = ""
    """The key of the demonstration to follow with `slots`, in place of those that fit best."""
    slots: Sequence[str] = ()
    """The texts of its slots in their order, corrected by a person."""


class ReplayReasoner:
    """Answers questions by following demonstrations; repeats a demonstration exactly on its own question."""

    name = "replay"

    def __init__(self, options: ReplayOptions | None = None) -> None:
        self._options = options or ReplayOptions()

    def solve(self, task: Task) -> ReasonerGenerator:
        """Follow the demonstration that fits best; QuestionRefused names the nearest one and what did not fit."""
        if not task.demonstrations:
            raise QuestionRefused(f"{REFUSAL}: there is none; choose a library with demonstrations.")
        library = open_library(task)
        own = library.own.get(normalize_name(task.question))
        if own is not None and not self._options.demonstration and (yield from repeat(own, task)):
            thought = f"So the answer is: {own.answer}."
            return FinalAnswer(TraceAnswers(final_answer=own.answer, final_thought=thought))
        if len(task.question) > MAX_CHARACTERS:
            raise QuestionRefused(f"{REFUSAL}: the question has more than {MAX_CHARACTERS:,} characters.")
        calls, unlike = ReplayCalls(task), list[tuple[str, str]]()
        corrected = self._options.demonstration, self._options.slots
        substituted = yield from substitute(library.substitutions, task.question, calls, unlike, corrected)
        if substituted is not None:
            return _answer(*substituted)
        answer: FinalAnswer | None = (yield from self._search(task, library, calls)) if task.has_sources else None
        if answer is None:
            problems = [(own.question, own.problem or "it has no answer") for own in library.programs]
            raise _refuse([*calls.failures, *unlike, *problems])
        return answer

    def _search(self, task: Task, library: ReplayLibrary, calls: ReplayCalls) -> ReplayMoves:
        """The answer by what the world knows of the words of the question; None if there is none."""
        answer: FinalAnswer | None = None
        if not library.spreads_facts and any(map(_asks_by_label, library.aligner.programs)):
            answer = yield from self._align(task, library, calls, by_label=True)
        if answer is None:
            answer = yield from self._compose(task, library, calls)
        if answer is None and not (calls.failures and library.spreads_facts):
            answer = yield from self._align(task, library, calls)
        return answer

    def _compose(self, task: Task, library: ReplayLibrary, calls: ReplayCalls) -> ReplayMoves:
        """The answer by look-ups in all sources, for a frame that demonstrations show; None if there is none."""
        sources = [source for source in SOURCE_ORDER if source in list_sources(task)]
        lookups = UnitedLookUps(calls, library.world, library.reader, sources, spreads=library.spreads_facts)
        for framed, program in self._list_readings(library.composer, replace_surrogates(task.question)):
            try:
                evidence = yield from observe(framed, program, lookups)
                answer = program.derive(evidence, library.no_answer, shows_ids=library.shows_ids)
            except Mismatch as mismatch:
                calls.failures.append((program.question, str(mismatch)))
                continue
            return _answer(answer, describe_program(framed, program))
        return None

    def _align(self, task: Task, library: ReplayLibrary, calls: ReplayCalls, *, by_label: bool = False) -> ReplayMoves:
        """The answer by the look-ups of a demonstration for other names; None if there is none.

        By label, only those are followed that ask for relations by their labels, and put no names into sentences.
        """
        aligner, calibration = library.aligner, library.calibration
        if self._options.demonstration:
            alignments = self._correct(aligner.programs, is_last=not by_label)
        else:
            alignments, mismatches = aligner.align_all(aligner.mask(replace_surrogates(task.question)))
            calls.failures += [] if alignments else mismatches
        alignments = [own for own in alignments if not by_label or _asks_by_label(own.program)]
        threshold = self._options.threshold or calibration.threshold
        for alignment in alignments[:MAX_CANDIDATES]:
            confidence = calibration.confidence(alignment.score)
            try:
                if confidence < threshold:
                    mismatch = Mismatch(
                        f"the two are not alike enough: the confidence {confidence:.2f} is below {threshold:.2f}"
                    )
                    raise (
                        _refuse([(alignment.program.question, str(mismatch))]) if self._options.threshold else mismatch
                    )
                answer = yield from ProgramFollower(calls, alignment, library).follow()
            except Mismatch as mismatch:
                calls.failures.append((alignment.program.question, str(mismatch)))
                continue
            return _answer(answer, _describe(alignment, confidence, threshold))
        return None

    def _list_readings(self, composer: Composer, question: str) -> list[tuple[FramedQuestion, ComposedProgram]]:
        """The readings to follow; those of the question with the phrases that a person has corrected, if any were."""
        chosen, texts = self._options.demonstration, self._options.slots
        readings = composer.list_readings(question)
        if not chosen:
            return readings
        own = next((f for f, p in readings if p.key == chosen and len(f.phrases) == len(texts)), None)
        if own is None:
            return []
        for phrase, text in reversed(list(zip(own.phrases, texts, strict=True))):
            question = question[: phrase.start] + text + question[phrase.end :]
        return [(framed, program) for framed, program in composer.list_readings(question) if program.key == chosen]

    def _correct(self, programs: Sequence[Program], *, is_last: bool) -> list[Alignment]:
        """The alignment that a person has corrected; at last QuestionRefused if it cannot be followed."""
        texts, chosen = self._options.slots, self._options.demonstration
        fitting = [own for own in programs if own.key == chosen and len(own.slots) == len(texts)]
        if not fitting and is_last:
            raise QuestionRefused(f"{REFUSAL}: none in this library is {chosen} with {len(texts)} slots.")
        return [Alignment(own, dict(zip(own.texts, texts, strict=True)), 1.0) for own in fitting[:1]]


def _asks_by_label(program: Program) -> bool:
    return all(lookup.is_label for lookup in program.lookups)


def _answer(answer: str, details: dict[str, Any]) -> FinalAnswer:
    thought = answer if read_unanswerable(answer) else f"As in the demonstration, the answer is: {answer}."
    return FinalAnswer(TraceAnswers(final_answer=answer, final_thought=thought), details={"replay": details})


def _refuse(failures: Sequence[tuple[str, str]]) -> QuestionRefused:
    """The refusal that names the nearest demonstration and what did not fit."""
    (shown, why), *_ = failures
    refusal = QuestionRefused(f"{REFUSAL}: the nearest asks {shown!r}, but {why}.")
    refusal.reason = why
    return refusal


def _describe(alignment: Alignment, confidence: float, threshold: float) -> dict[str, Any]:
    program = alignment.program
    return {
        "alignment": {
            "program": program.key,
            "slots": [
                {"there": slot.text, "here": alignment.fillers[slot.start], "relation": slot.is_relation}
                for slot in program.slots
            ],
            "similarity": round(alignment.score, 4),
            "soft": [list(pair) for pair in alignment.soft_words],
            "derivation": program.derivation,
        },
        "confidence": round(confidence, 4),
        "threshold": round(threshold, 4),
        "demonstrations": [{"id": str(program.id), "question": program.question}],
    }


class ProgramFollower:
    """Follows one alignment: makes its look-ups, and checks the shape of what they observe."""

    def __init__(self, calls: ReplayCalls, alignment: Alignment, library: ReplayLibrary) -> None:
        self._calls, self._fillers, self._library = calls, alignment.fillers, library
        self._program = alignment.program

    def follow(self) -> ReplayMoves:
        """Return the answer; Mismatch if there is none."""
        rows: dict[LookUp, list[tuple[ReplayValue, Values]]] = {}
        for lookup in self._program.lookups:
            above = lookup.subject
            subjects = [ReplayValue(self._fillers[above])] if isinstance(above, int) else unique_values(rows[above])
            if len(subjects) > MAX_SUBJECTS:
                raise Mismatch(f"it would follow {len(subjects)} values, and at most {MAX_SUBJECTS} are followed")
            rows[lookup] = []
            for subject in subjects:
                values = yield from self._look_up(lookup, subject)
                rows[lookup] += [(subject, values)]
        no_answer, shows_ids = self._library.no_answer, self._library.shows_ids
        evidence = self._program.evidence(
            rows, self._fillers, allows_missing=no_answer is not None, shows_ids=shows_ids
        )
        try:
            return derive_answer(str(self._program.derivation), evidence)
        except NoValue:
            if no_answer is None or len(evidence.results) > 1:
                raise
            return no_answer

    def _look_up(self, lookup: LookUp, subject: ReplayValue) -> ReplayMoves:
        """The values by the first way that has any: lists before sentences, then the demonstration's own."""
        library, key, ask = self._library, lookup.key(self._fillers), lookup.fill(self._fillers)
        others = () if ID in lookup.ask else library.ways[lookup.is_label]
        values: Values | None = None
        failures: dict[str, None] = {}
        for way in sorted(dict.fromkeys([*lookup.ways, *others]), key=lambda way: way.path is None):
            if values or (way.path is None and not library.list_contexts(key)):
                continue
            try:
                values = yield from self._follow_way(way, lookup, ask, subject)
            except Mismatch as mismatch:
                failures[str(mismatch)] = None
        if values is None:
            raise Mismatch("; ".join(failures) or "no call of a tool shows how to look it up")
        is_single = len(values) == 1 and all(len(own) < 2 for own in library.observed.get(key, ()))
        if library.spreads_facts and not (is_single and (key in library.observed or lookup.is_label)):
            raise Mismatch(f"the sources hold different facts, and {subject.text} may have other values")
        # Nothing to go on with, for an ask of the demonstration alone, is no answer to a question.
        is_basis = lookup.word is None and any(other.subject is lookup for other in self._program.lookups)
        if not values and (library.no_answer is None or is_basis):
            asked = ask.replace(NAME, subject.text).replace(ID, subject.text)
            raise Mismatch(f"nothing was observed for {asked!r} of {subject.text}")
        return values

    def _follow_way(self, way: LookUpWay, lookup: LookUp, ask: str, subject: ReplayValue) -> ReplayMoves:
        """The values that the calls of a way observe; Mismatch if they have another shape."""
        contents = [ask if content == ASK else content for call in way.calls for _, content, _ in call.arguments]
        identifier = subject.id
        data: Mapping[str, Any] = {}
        if identifier is None and any(ID in content for content in contents):
            identifier = yield from self._identify(subject)
        filled = ask.replace(NAME, subject.text).replace(ID, str(identifier))
        for call in way.calls:
            arguments: dict[str, Any] = {}
            for name, content, is_list in call.arguments:
                text = content.replace(ASK, filled).replace(NAME, subject.text).replace(ID, str(identifier))
                text = _take(data, content[1:], ask, subject.text) if content.startswith(LINK) else text
                arguments[name] = [text] if is_list else text
            thought = f"As in the demonstration: {filled}{'' if NAME in ask else f' of {subject.text}.'}"
            data = yield from self._calls.call(thought, call.tool, arguments)
        if way.path is None:
            return self._read_values(data.get("sentences", ()), lookup, subject.text)
        if data.get("truncated") or way.path not in list_values(data):
            raise Mismatch(f"the observation has no list at {way.path}, or not all of it")
        return list_values(data)[way.path]

    def _read_values(self, sentences: Sequence[str], lookup: LookUp, subject: str) -> Values:
        """The only date or name behind words behind which demonstrations read such values; Mismatch for others."""
        is_date = any(value.kind == DATE for value in unique_values(lookup.rows))
        if lookup.is_label:
            is_date = DATE in self._library.world.value_kinds(lookup.fill(self._fillers))
        contexts, values = self._library.list_contexts(lookup.key(self._fillers)), {}
        for sentence in sentences:
            for match in (provenance.DATE_PATTERN if is_date else _NAME).finditer(sentence):
                if read_context(sentence, match.start(), subject) in contexts:
                    # A sentence that has another name before may tell it of somebody else.
                    is_of_other = _FULL_NAME.search(sentence[: match.start()].replace(subject, ""))
                    # Behind "and" there is another value.
                    is_one_of_two = not is_date and _AND_NAME.match(sentence, match.end())
                    values[match.group().rstrip(".")] = is_of_other is not None or is_one_of_two is not None
        if list(values.values()) != [False]:
            raise Mismatch(f"the article about {subject} does not clearly tell what the demonstration reads")
        return list(map(ReplayValue, values))

    def _identify(self, subject: ReplayValue) -> ReplayMoves:
        """The id of a name, looked up as demonstrations do; Mismatch if no or several things have the name."""
        for tool, argument in dict.fromkeys([*self._program.identifiers, *self._library.identifiers]):
            data = yield from self._calls.call(f"I need the id of {subject.text}.", tool, {argument: subject.text})
            items = [item for items in data.values() if isinstance(items, list) for item in items]
            names = {
                str(item.get("id") or item["entity"]): [normalize_name(item.get(n) or "") for n in ("title", "label")]
                for item in items
                if isinstance(item, Mapping) and (item.get("id") or item.get("entity"))
            }
            same = [identifier for identifier, own in names.items() if normalize_name(subject.text) in own]
            if same and (len(same) == 1 or names[same[0]][0] == normalize_name(subject.text)):
                return same[0]
            if same:
                raise Mismatch(f"several things are called {subject.text}")
        raise Mismatch(f"this world knows nothing called {subject.text}")


def _take(data: Mapping[str, Any], pointer: str, ask: str, subject: str) -> str:
    """The value of an earlier observation, of the relation that the ask names for *; Mismatch if it has none."""
    if "*" in pointer:
        labels = [phrase_key(relation["label"]) for relation in data.get("relations", ())]
        if phrase_key(ask) not in labels:
            raise Mismatch(f"{subject} has no {ask} in the graph")
        pointer = pointer.replace("*", str(labels.index(phrase_key(ask))))
    try:
        return provenance.resolve_origin({"from": "step", "step": 0, "pointer": pointer}, "", {0: data})
    except provenance.BrokenOrigin as error:
        raise Mismatch(str(error)) from error
