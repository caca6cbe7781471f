"""Questions that need two sources: one states who is meant, the other what is asked of that person.

The construction is that of BlendQA (AtomR, section 4.1.2) over the facts of a generated world: two sub-questions from
two sources share a bridging person, whom the question itself does not name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
from showhow.fiction.questions.expressions import Expression, Fact, Having, Named, Related
from showhow.fiction.questions.names import NameFormatter
from showhow.fiction.questions.question import GeneratedQuestion, GoldBuilder
from showhow.fiction.questions.walk import RandomWalk
from showhow.fiction.questions.wording import FACT_LABELS, FACT_QUESTIONS, VALUE_QUESTIONS, noun_phrase
from showhow.fiction.universe.relations import RELATIONS, get_relation
from showhow.fiction.universe.universe import NONE, FactSources, Universe

BLEND_KINDS = {"kg-text": ("graph", "text"), "kg-web": ("graph", "web"), "text-web": ("text", "web")}
"""The kinds of BlendQA, and the sources that a question of each needs."""
MAX_DRAWS = 2_000
"""Draws for one question, before a kind is given up."""
_QUESTIONS = {**FACT_QUESTIONS, "birthplace": "In which town was {} born?"}
_STARTS = ("birth", *VALUE_QUESTIONS)
"""Facts by which a person is described who is the only one with that value."""


@dataclass(frozen=True, slots=True)
class BlendedQuestion:
    """A question with the person that its parts share, and each part with the one source that states it."""

    question: GeneratedQuestion
    bridge: dict[str, str | None]
    """The bridging person: {"text", "entity"}."""
    parts: tuple[tuple[str, str], ...]
    """(question, source) of each part."""

    def to_row(self) -> dict[str, Any]:
        """The JSON object of a question file, as of a world's own questions."""
        parts = [{"question": question, "source": source} for question, source in self.parts]
        return {**self.question.to_row(), "bridge": self.bridge, "sub_questions": parts}


class QuestionBlender:
    """Draws the blended questions of a world; the same seed gives the same questions."""

    def __init__(self, universe: Universe, fact_sources: FactSources, names: NameFormatter, generator: int) -> None:
        self._universe, self._names = universe, names
        self._gold = GoldBuilder(universe, fact_sources, names, generator)

    def draw(self, kind: str, count: int, seed: int) -> Iterator[BlendedQuestion]:
        """At most this many distinct questions of a kind, fewer where the facts have no more."""
        used: set[str] = set()
        for number in range(count):
            walk = RandomWalk(self._universe, seed, crc32(kind.encode()), number)
            for attempt in range(MAX_DRAWS):
                # Every other question is about a relative, as long as one can be found.
                by_relation = bool((number + attempt // (MAX_DRAWS // 2)) % 2)
                blended = self._draw_once(walk, kind, by_relation=by_relation)
                if blended is not None and blended.question.text not in used:
                    used.add(blended.question.text)
                    id_ = f"blend-{kind}-{number + 1:04d}"
                    yield replace(blended, question=replace(blended.question, id=id_))
                    break
            else:
                return

    def _draw_once(self, walk: RandomWalk, kind: str, *, by_relation: bool) -> BlendedQuestion | None:
        start = walk.random_person()
        bridge_people = self._describe(walk, start, by_relation=by_relation)
        people = [] if bridge_people is None else walk.evaluate_people(bridge_people).tolist()
        if bridge_people is None or len(people) != 1:
            # Only one person may be meant.
            return None
        bridge = people[0]
        asked = self._ask_about(walk, bridge_people, bridge, start)
        if asked is None:
            return None
        whole, alone = asked
        parts = (bridge_people, alone)
        sources = [self._only_source(part) for part in parts]
        if None in sources or sorted(map(str, sources)) != sorted(BLEND_KINDS[kind]):
            return None
        phrase, template = self._word_bridge(bridge_people)
        question = self._gold.build(
            0, whole, self._word_question(alone, phrase), (kind, self._word_question(alone, template))
        )
        if [sorted(sources) for sources in question.needs] != [sorted(BLEND_KINDS[kind])] or not question.answers:
            return None
        (named,) = self._gold.build(0, bridge_people, "", (kind, "")).answers
        texts = [f"Who is {phrase}?", self._word_question(alone, self._names.person_title(bridge))]
        return BlendedQuestion(question, named, tuple(zip(texts, map(str, sources), strict=True)))

    def _describe(self, walk: RandomWalk, start: int, *, by_relation: bool) -> Having | Related | None:
        """A description of somebody: a relative of a named person, or who has a value."""
        if by_relation:
            relation = walk.choose(sorted(RELATIONS))
            return Related(relation, Named(start))
        fact = walk.choose(_STARTS)
        value = walk.fact_value(fact, start)
        return Having(fact, value) if value > NONE else None

    def _ask_about(
        self, walk: RandomWalk, people: Having | Related, bridge: int, start: int
    ) -> tuple[Fact | Related, Fact | Related] | None:
        """What is asked of the bridging person, as a part of the question and alone; None if it has no answer."""
        if walk.random_below(3) == 0:
            relation = walk.choose(sorted(RELATIONS))
            alone = Related(relation, Named(bridge))
            relatives = walk.evaluate_people(alone).tolist()
            # Nobody is to be named by the question who answers it, or whom it describes.
            is_new = relatives and not {start, bridge} & {*relatives}
            return (Related(relation, people), alone) if is_new else None
        described_by = people.fact if isinstance(people, Having) else ""
        facts = [fact for fact in FACT_LABELS if fact != described_by and walk.fact_value(fact, bridge) > NONE]
        if not facts:
            return None
        fact = walk.choose(sorted(facts))
        return Fact(fact, people), Fact(fact, Named(bridge))

    def _word_bridge(self, people: Having | Related) -> tuple[str, str]:
        """How a question describes the bridging person, who is one, and the same without names and values."""
        if isinstance(people, Having):
            value = self._names.question_text(FACT_VALUE_KINDS[people.fact], people.value)
            start = f"the person whose {FACT_LABELS[people.fact]} is"
            return f"{start} {value}", f"{start} <value>"
        start = f"the {self._names.relation_noun(get_relation(people.relation))} of"
        return f"{start} {noun_phrase(people.of, self._names)}", f"{start} <name>"

    def _word_question(self, alone: Fact | Related, phrase: str) -> str:
        """What is asked, of the person whom the phrase describes or names."""
        if isinstance(alone, Fact):
            return _QUESTIONS[alone.fact].format(phrase)
        is_one = len(self._gold.build(0, alone, "", ("", "")).answers) == 1
        noun = self._names.relation_noun(get_relation(alone.relation), plural=not is_one)
        return f"Who {'is' if is_one else 'are'} the {noun} of {phrase}?"

    def _only_source(self, part: Expression) -> str | None:
        """The one source that states a part, if no other does."""
        needs = self._gold.build(0, part, "", ("", "")).needs
        return needs[0][0] if len(needs) == 1 and len(needs[0]) == 1 else None
