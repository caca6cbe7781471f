"""Composed look-ups: what demonstrations show for a frame of questions, asked of other things by other relations.

A demonstration shows which relations of the things in its question were looked up, and how the answer follows. Another
question with its frame is answered by the same look-ups of its own things, each made in all sources.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.mentions import DATE, WorldWords
from showhow.reasoners.replay.calls import ReplayMoves
from showhow.reasoners.replay.derivations import (
    ALL,
    COMMON,
    COUNT,
    COUNT_OF,
    DERIVATIONS,
    FILTERS,
    NONE,
    OPPOSITES,
    Evidence,
    LookUpRows,
    Mismatch,
    NoValue,
    ReplayValue,
    Values,
    derive_answer,
    recognize_derivation,
)
from showhow.reasoners.replay.lookups import UnitedLookUps, value_key
from showhow.reasoners.replay.observed import ObservedFacts, Path
from showhow.reasoners.replay.phrases import RELATION, THING, Frame, FramedQuestion, Phrase, frame_question, unify_word
from showhow.worlds.lexicon.english import VALUE_QUESTION_WORDS, nouns_for_kinds

COUNTING = ("how", "many")
StepOfPath = str | int
"""A relation, or the place of the word for it among those of the question."""
LeafPath = tuple[StepOfPath, ...]


Members = list[list[ReplayValue]]
MemberRows = list[list[list[tuple[ReplayValue, Values]]] | None]


class Observed(NamedTuple):
    """The things of each phrase of a question, and the values of each path from them; None for a value to compare."""

    phrases: Sequence[Phrase]
    members: Members
    rows: MemberRows

    def evidence(self, **options: bool) -> Evidence | None:
        """What the answer is derived from; None if several things are compared with others."""
        places = [place for place, own in enumerate(self.rows) if own is not None]
        results: list[tuple[str, LookUpRows]] = []
        for place in places:
            name, things, own = self.phrases[place].name, self.members[place], self.rows[place]
            if not own:
                results.append((f"{name} {place}", [(ReplayValue(name), things)]))
            elif len(places) > 1 and len(things) != 1:
                return None
            else:
                results += [(things[0].text if len(places) > 1 else name, path) for path in own]
        given = next((ReplayValue(p.name) for p, own in zip(self.phrases, self.rows, strict=True) if own is None), None)
        return Evidence(results, given, **options) if results else None


@dataclass(frozen=True, slots=True)
class ComposedProgram:
    """What is looked up of the things of a frame, and how the answer follows."""

    leaves: tuple[tuple[LeafPath, ...] | None, ...]
    """For each phrase the paths that are followed from its things; None for the value that is compared with."""
    derivation: str
    relations: tuple[tuple[frozenset[str], str | None], ...]
    """What each word for a relation may mean, and the one of these that was looked up in the demonstration."""
    question: str = ""
    """The question of the demonstration."""
    key: str = ""
    """The id of the demonstration."""
    phrases: tuple[str, ...] = ()
    """The phrases of its question."""

    def derive(self, observed: Observed, no_answer: str | None, *, shows_ids: bool) -> str:
        """The answer, or that there is none, in the words of demonstrations; Mismatch if it does not follow."""
        evidence = observed.evidence(allows_missing=no_answer is not None, shows_ids=shows_ids)
        if evidence is None:
            raise Mismatch("what is compared is not one thing each")
        try:
            return derive_answer(self.derivation, evidence)
        except NoValue:
            if no_answer is None or len(evidence.results) > 1:
                raise
            return no_answer


def compile_program(
    record: TraceRecord, facts: ObservedFacts, world: WorldWords
) -> tuple[Frame, ComposedProgram] | None:
    """The program of a demonstration with its frame; None if its answer does not follow in a known way."""
    answer = facts.strip_ids(record.trace.final_answer or "")
    for framed in frame_question(record.question.full_text, world):
        members = [_observe(phrase, facts) for phrase in framed.phrases]
        # Only words that are left can mean that something is looked up of the things.
        has_words = any(word not in (THING, *COUNTING) for word in framed.frame.words)
        asked = [
            _find_leaves(phrase, own, facts) if has_words else ()
            for phrase, own in zip(framed.phrases, members, strict=True)
        ]
        named: list[Path] = [(relation,) for meanings in framed.relations for relation in sorted(meanings)]
        guesses: list[tuple[Path, ...]] = [(), *((path,) for path in named)]
        for leaves in (asked, *([paths] * len(members) for paths in guesses)):
            for own, derivation in _derive(framed, members, leaves, facts, answer):
                relations = _choose_relations(own, framed)
                # What was not asked for is no more than listed or counted.
                is_guess = leaves is not asked and derivation not in (ALL, COUNT, COMMON)
                if is_guess or not _accounts_for_words(framed.frame, relations, derivation):
                    continue
                program = ComposedProgram(
                    tuple(_place(paths, framed) for paths in own),
                    derivation,
                    relations,
                    record.question.full_text,
                    str(record.trace.id),
                    tuple(phrase.text for phrase in framed.phrases),
                )
                return framed.frame, program
    return None


def _accounts_for_words(frame: Frame, relations: Sequence[tuple[frozenset[str], str | None]], derivation: str) -> bool:
    """Whether no word is left that may change the answer, where it does not follow from a comparison."""
    if derivation not in (ALL, COUNT, COMMON) and derivation.removeprefix(COUNT_OF) != "equal":
        return True
    known = {THING, RELATION, *COUNTING, *VALUE_QUESTION_WORDS, *nouns_for_kinds()}
    return known.issuperset(frame.words) and all(chosen is not None for _, chosen in relations)


def _derive(
    framed: FramedQuestion,
    members: Sequence[Sequence[ReplayValue]],
    leaves: Sequence[tuple[Path, ...]],
    facts: ObservedFacts,
    answer: str,
) -> Iterator[tuple[list[tuple[Path, ...] | None], str]]:
    """The paths from which the answer follows, without a value that they are compared with; and how it follows."""
    for given in (None, *range(len(members) - 1, -1, -1)):
        if given is not None and (len(members) < 2 or framed.phrases[given].relations):
            continue
        own = [None if place == given else paths for place, paths in enumerate(leaves)]
        rows: MemberRows = [
            None if paths is None else [[(m, facts.follow([m], path)) for m in things] for path in paths]
            for things, paths in zip(members, own, strict=True)
        ]
        for allows_missing in (False, True):
            evidence = Observed(framed.phrases, list(map(list, members)), rows).evidence(allows_missing=allows_missing)
            derivation = recognize_derivation(evidence, answer) if evidence else None
            if derivation in ((ALL, COUNT, COMMON) if not any(own) else set(DERIVATIONS) - {NONE}):
                yield own, str(derivation)


def _observe(phrase: Phrase, facts: ObservedFacts) -> list[ReplayValue]:
    starts = [ReplayValue(phrase.name)]
    if phrase.holds is not None:
        starts = facts.list_holders(phrase.holds, phrase.name)
        for relation, value in phrase.conditions:
            starts = [s for s in starts if value_key(ReplayValue(value)) in map(value_key, facts.look_up(s, relation))]
    return facts.follow(starts, phrase.relations)


def _find_leaves(phrase: Phrase, members: Sequence[ReplayValue], facts: ObservedFacts) -> tuple[Path, ...]:
    """The paths that were asked of the things of a phrase, beside those that its conditions need."""
    keys = {value_key(member) for member in members}
    own = {(relation,) for relation, _ in phrase.conditions} | {(phrase.holds,)}
    direct = dict.fromkeys(path for key, path in facts.asks if key in keys and path not in own)
    paths: dict[Path, None] = {}
    for path in direct:
        ends = {value_key(v) for v in facts.follow(members, path)} - keys
        further = dict.fromkeys(other for key, other in facts.asks if key in ends)
        paths |= dict.fromkeys((*path, *other) for other in further) if further else {path: None}
    return tuple(paths)


def _place(paths: tuple[Path, ...] | None, framed: FramedQuestion) -> tuple[LeafPath, ...] | None:
    """The paths with the place of the word that means it for each relation."""
    if paths is None:
        return None
    meant = {relation: place for place, meanings in enumerate(framed.relations) for relation in meanings}
    return tuple(tuple(meant.get(relation, relation) for relation in path) for path in paths)


def _choose_relations(
    leaves: Sequence[tuple[Path, ...] | None], framed: FramedQuestion
) -> tuple[tuple[frozenset[str], str | None], ...]:
    used = {relation for paths in leaves if paths for path in paths for relation in path}
    return tuple((meanings, next(iter(sorted(meanings & used)), None)) for meanings in framed.relations)


class Composer:
    """The programs of a library by their frames, and what follows from several of them."""

    def __init__(self, programs: Sequence[tuple[Frame, ComposedProgram]], world: WorldWords) -> None:
        self._world = world
        self._programs: dict[Frame, dict[ComposedProgram, None]] = {}
        for frame, program in programs:
            self._programs.setdefault(frame, {})[program] = None
        self._counts = any(p.derivation == COUNT for _, p in programs)
        self._opposites = self._find_opposites()

    def _find_opposites(self) -> dict[str, str]:
        """The words that alone turn a derivation round, each with its opposite."""
        words: dict[str, str] = {}
        shown = [(frame, program) for frame, own in self._programs.items() for program in own]
        for frame, program in shown:
            for other, turned in shown:
                if OPPOSITES.get(program.derivation, "") == turned.derivation and len(frame.words) == len(other.words):
                    pairs = [(a, b) for a, b in zip(frame.words, other.words, strict=True) if a != b]
                    words |= dict(pairs) if len(pairs) == 1 else {}
        return words

    def find_programs(self, frame: Frame) -> list[ComposedProgram]:
        """The programs that demonstrations show for a frame, or for one that it differs from in a known way."""
        if own := self._programs.get(frame):
            return list(own)
        for place, word in enumerate(frame.words):
            opposite = unify_word(word, turned=True)
            if opposite == word:
                # Demonstrations show only of other words than comparisons what turns them round.
                opposite = self._opposites.get(word, word)
            words = (*frame.words[:place], opposite, *frame.words[place + 1 :])
            turned = [
                (p, p.derivation.removeprefix(COUNT_OF)) for p in self._programs.get(frame._replace(words=words), ())
            ]
            if opposite != word and turned:
                return [
                    replace(p, derivation=p.derivation.replace(own, OPPOSITES[own]))
                    for p, own in turned
                    if own in OPPOSITES
                ]
        if frame.words[:2] == COUNTING and self._counts:
            listed = self.find_programs(frame._replace(words=frame.words[2:]))
            counted = {ALL: COUNT, **{name: COUNT_OF + name for name in FILTERS}}
            return [replace(p, derivation=counted[p.derivation]) for p in listed if p.derivation in counted]
        return []

    def list_readings(self, question: str) -> list[tuple[FramedQuestion, ComposedProgram]]:
        """The readings of a question whose frames demonstrations show, the one with the longest phrases first."""
        readings = []
        for framed in frame_question(question, self._world):
            for program in self.find_programs(framed.frame):
                filled = self._fill(program, framed)
                readings += [(framed, filled)] if filled is not None else []
        return readings

    def _fill(self, program: ComposedProgram, framed: FramedQuestion) -> ComposedProgram | None:
        """The program with the relations that the question names; None if they are not of the kind of those shown."""
        chosen: dict[int, str] = {}
        for place, (meanings, (shown, relation)) in enumerate(zip(framed.relations, program.relations, strict=True)):
            if relation is None:
                if meanings != shown:
                    return None
                continue
            fitting = [own for own in sorted(meanings) if self._is_like(own, relation, program, framed)]
            if len(fitting) != 1 and relation not in fitting:
                return None
            # A word of several meanings means here what it meant there.
            chosen[place] = relation if relation in fitting else fitting[0]
        leaves = tuple(
            None
            if paths is None
            else tuple(tuple(chosen.get(s, str(s)) if isinstance(s, int) else s for s in path) for path in paths)
            for paths in program.leaves
        )
        return replace(program, leaves=leaves)

    def _is_like(self, relation: str, shown: str, program: ComposedProgram, framed: FramedQuestion) -> bool:
        """Whether a relation leads to the kind of what is compared, or to dates as that of the demonstration does."""
        kinds = self._world.value_kinds(relation)
        given = [p.name for p, paths in zip(framed.phrases, program.leaves, strict=True) if paths is None]
        if given and program.derivation.removeprefix(COUNT_OF) == "equal":
            return all(self._world.kinds_of(name) & kinds for name in given)
        return (DATE in kinds) == (DATE in self._world.value_kinds(shown))


def observe(framed: FramedQuestion, program: ComposedProgram, lookups: UnitedLookUps) -> ReplayMoves:
    """The things of a question with the values of the program's paths; Mismatch if a look-up is not complete."""
    members: Members = []
    rows: MemberRows = []
    for phrase, paths in zip(framed.phrases, program.leaves, strict=True):
        things = [] if paths is None else (yield from lookups.find_things(phrase))
        members.append(things)
        own: list[list[tuple[ReplayValue, Values]]] = []
        for path in paths or ():
            values = []
            for thing in things:
                values.append((yield from lookups.follow([thing], [str(s) for s in path])))  # noqa: PERF401 - it yields
            own.append(list(zip(things, values, strict=True)))
        rows.append(None if paths is None else own)
    return Observed(framed.phrases, *_unite_ids(members, rows))


def describe_program(framed: FramedQuestion, program: ComposedProgram) -> dict[str, Any]:
    """The phrases of the demonstration with those here, and how the answer follows."""
    pairs = zip(program.phrases, framed.phrases, strict=True)
    return {
        "alignment": {
            "program": program.key,
            "slots": [{"there": there, "here": here.text, "relation": False} for there, here in pairs],
            "derivation": program.derivation,
        },
        "demonstrations": [{"id": program.key, "question": program.question}],
    }


def _unite_ids(members: Members, rows: MemberRows) -> tuple[Members, MemberRows]:
    """The same with the id of a thing at each place, if it is known at one."""
    paths = [path for own in rows for path in own or ()]
    values = [v for path in paths for member, own in path for v in (member, *own)]
    known = {value_key(v): v for v in (*(m for own in members for m in own), *values) if v.id is not None}

    def unite(value: ReplayValue) -> ReplayValue:
        return known.get(value_key(value), value)

    return [list(map(unite, own)) for own in members], [
        None if own is None else [[(unite(m), list(map(unite, vs))) for m, vs in path] for path in own] for own in rows
    ]
