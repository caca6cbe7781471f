"""The demonstrations of replay, compiled, with what they show together."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from showhow.db.traces.trace_record import TraceRecord
from showhow.db.unanswerable import UnanswerableReason, write_unanswerable
from showhow.reasoners.base import Task
from showhow.reasoners.mentions import WorldWords
from showhow.reasoners.replay.alignment import Calibration, QuestionAligner
from showhow.reasoners.replay.composition import ComposedProgram, Composer, compile_program
from showhow.reasoners.replay.demonstration import (
    CONTEXT_WORDS,
    ID,
    LookUpWay,
    Program,
    build_program,
    list_parts,
)
from showhow.reasoners.replay.derivations import (
    NONE,
    Values,
)
from showhow.reasoners.replay.observed import ObservedFacts, read_ask, relation_labels
from showhow.reasoners.replay.phrases import Frame
from showhow.reasoners.replay.statements import Pattern, SentenceReader
from showhow.reasoners.replay.substitution import SubstitutionProgram, compile_substitution, uses_external_results
from showhow.tools.tool import ToolContext
from showhow.worlds.lexicon.english import load_lexicon, phrase_key
from showhow.worlds.source import World
from showhow.worlds.text_normalization import normalize_name

MAX_CACHED_WORLDS, MAX_CACHED_LIBRARIES, MAX_CACHED_PROGRAMS = 4, 8, 1024
"""The worlds whose sentences are kept, the libraries and the demonstrations."""


class ReplayLibrary:
    """Demonstrations, compiled, and what they show together; they are aligned when the first new question is asked."""

    def __init__(self, records: Sequence[TraceRecord], context: ToolContext, reader: SentenceReader) -> None:
        self.programs = [_compile(record) for record in records]
        self.own = {normalize_name(program.question): program for program in reversed(self.programs)}
        self._usable = [program for program in self.programs if program.problem is None]
        # The world is kept with what is made from it, so that its id is not given again.
        self._encode, self._context = context.encode, context
        self.reader, self.world = reader.unlearnt(), reader.world
        """Reads sentences as demonstrations do."""
        self._records, self._labels = records, relation_labels(context.world)
        self.shows_ids = any(program.shows_ids for program in self._usable)
        shows_none = any(program.derivation == NONE for program in self._usable)
        # What other demonstrations gave as their reason says nothing of this question.
        self.no_answer = write_unanswerable(UnanswerableReason.NOT_IN_SOURCES) if shows_none else None
        self.identifiers = list(dict.fromkeys(pair for program in self._usable for pair in program.identifiers))
        self.ways: dict[bool, dict[LookUpWay, None]] = {True: {}, False: {}}
        """The ways of the look-ups with and without a label, without queries."""
        self.contexts: dict[str, set[str]] = defaultdict(set)
        self.observed: dict[str, list[Values]] = defaultdict(list)
        """The values of each subject."""
        for lookup, key in ((lookup, lookup.key(p.texts)) for p in self._usable for lookup in p.lookups):
            self.contexts[key] |= lookup.contexts
            self.observed[key] += [values for _, values in lookup.rows]
            if ID not in lookup.ask:
                self.ways[lookup.is_label].update(lookup.ways)

    @cached_property
    def aligner(self) -> QuestionAligner:
        """The demonstrations that have an answer, and each of their look-ups, to be followed."""
        answered = [program for program in self._usable if program.derivation != NONE]
        parts = [part for program in self._usable for part in list_parts(program)]
        return QuestionAligner([*answered, *parts], self.world, self._encode)

    @cached_property
    def calibration(self) -> Calibration:
        """The confidence of alignments."""
        return Calibration.leave_one_out(self.aligner)

    def list_contexts(self, key: str) -> set[str]:
        """The words behind which demonstrations read the values of an ask, or those of the lexicon: directed by."""
        lexicon = load_lexicon()
        # Places lie in places, and sentences may name another one than is asked for.
        names = () if phrase_key(key) in lexicon.answers_to_where else lexicon.other_names(phrase_key(key))
        return self.contexts.get(key, set()) | {name for name in names if len(name.split()) == CONTEXT_WORDS}

    @cached_property
    def substitutions(self) -> list[SubstitutionProgram]:
        """The demonstrations with results of external tools, as they are followed with other values."""
        return [compile_substitution(record) for record in self._records if uses_external_results(record)]

    @cached_property
    def composer(self) -> Composer:
        """What the demonstrations show for other questions with their frames; the reader learns to read as they did."""
        programs = []
        for record in self._records:
            program = self._compile(record)
            suggested = self._suggest_patterns(record) if program is None else {}
            for pair in suggested:
                self.reader.learn(*pair)
            program = program or self._compile(record)
            for pair in suggested:
                # Only that is kept without which the answer would not follow.
                self.reader.forget(*pair)
                if program is not None and self._compile(record) is None:
                    self.reader.learn(*pair)
            programs.append(program)
        return Composer([own for own in programs if own is not None], self.world)

    def _compile(self, record: TraceRecord) -> tuple[Frame, ComposedProgram] | None:
        facts = ObservedFacts(record.steps, self.world, self.reader, self._labels)
        return compile_program(record, facts, self.world)

    def _suggest_patterns(self, record: TraceRecord) -> dict[tuple[Pattern, str], None]:
        """The clauses that a demonstration may have read as what it asked for."""
        patterns: dict[tuple[Pattern, str], None] = {}
        for step in record.steps:
            data = step.data or {}
            title = "" if data.get("address") else str(step.arguments.get("title", ""))
            question = str(step.arguments.get("question", ""))
            ask = read_ask(question, self.world, title) if "sentences" in data else None
            if ask is not None:
                pattern = self.reader.suggest(data["sentences"], *ask, is_title=not data.get("address"))
                patterns |= {(pattern, ask[1]): None} if pattern is not None else {}
        return patterns

    @cached_property
    def spreads_facts(self) -> bool:
        """Whether the sources of the world hold different facts."""
        return self.world.spreads_facts()


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_READERS: OrderedDict[int, tuple[World, SentenceReader]] = OrderedDict()
_LIBRARIES: OrderedDict[tuple[Any, ...], ReplayLibrary] = OrderedDict()
_PROGRAMS: OrderedDict[tuple[Any, ...], Program] = OrderedDict()
"""Each question of a library is asked with the other demonstrations, which are compiled once for all of them."""


def _keep(kept: OrderedDict[_Key, _Value], key: _Key, build: Callable[[], _Value], most: int) -> _Value:
    """What is kept of a key, built where nothing is; of more than `most` the one that was asked for first goes."""
    if (value := kept.get(key)) is None:
        value = kept[key] = build()
        if len(kept) > most:
            kept.popitem(last=False)
    return value


def _compile(record: TraceRecord) -> Program:
    trace = record.trace
    steps = tuple((step.id, step.version) for step in record.steps)
    key = trace.id, trace.version, trace.final_answer, record.question.text, steps
    return _keep(_PROGRAMS, key, lambda: build_program(record), MAX_CACHED_PROGRAMS)


def open_library(task: Task) -> ReplayLibrary:
    """The library of the demonstrations of a task in its world; it is compiled once, whatever their order."""
    context, records = task.context, sorted(task.demonstrations, key=lambda record: record.trace.id)
    # A world that is built anew is another object.
    key = id(context.world)
    world = context.world
    _, reader = _keep(
        _READERS, key, lambda: (world, SentenceReader(WorldWords(world, context.encode))), MAX_CACHED_WORLDS
    )
    traces = tuple((own.trace.id, own.trace.version, own.trace.final_answer) for own in records)
    return _keep(_LIBRARIES, (key, traces), lambda: ReplayLibrary(records, context, reader), MAX_CACHED_LIBRARIES)
