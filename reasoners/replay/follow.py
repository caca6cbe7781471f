"""From a question that fits the frame of a demonstration to its answer."""

from dataclasses import dataclass
from typing import Any

from reasoners.replay import operations
from reasoners.replay.asks import BLANK
from reasoners.replay.english import NAME, join_names, plain
from reasoners.replay.entities import FoundEntity, merge_entities
from reasoners.replay.fitting import FrameFit
from reasoners.replay.lessons import ReplayKnowledge
from reasoners.replay.lookups import SourceLookups
from reasoners.replay.operations import LookupValues, UndecidedAnswer
from reasoners.replay.phrases import (
    NameReference,
    NounPhrase,
    PropertyReference,
    parse_phrase,
    parse_ranking,
    widen_phrase,
)
from reasoners.replay.walk import ReplayBroken, ReplayGenerator, ReplaySession, ToolCallFailed

MAX_TITLES = 12


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """An answer, and how it was come to."""

    answers: list[str]
    is_empty: bool
    """Whether the sources tell that there is nothing."""
    details: dict[str, Any]


class DemonstrationReplayer:
    """Follows demonstrations through one question."""

    def __init__(self, walk: ReplaySession, lessons: ReplayKnowledge) -> None:
        self._lookups, self._lessons = SourceLookups(walk, lessons), lessons

    def follow(self, fit: FrameFit) -> ReplayGenerator:
        """The answer by one demonstration; Broken where it cannot be followed."""
        looked = []
        known: dict[str, FoundEntity] = {}
        value = ""
        for hole, text, phrase, asks in zip(fit.frame.holes, fit.hole_texts, fit.phrases, fit.asks, strict=True):
            if phrase is None:
                value = text if hole.kind == "value" else value
                continue
            things = yield from self._reach(phrase, what=fit.frame.text.startswith("What "))
            known.update((thing.text, thing) for thing in things)
            values = []
            for thing in things:
                entity = []
                for template in asks:
                    results = yield from self._lookups.look_up(template, thing, on_the_way=len(things) > 1)
                    known.update((one.text, one) for one in results)
                    entity.append(tuple(one.text for one in results))
                values.append(tuple(entity))
            looked.append(LookupValues(tuple(thing.text for thing in things), tuple(values) if asks else ()))
        try:
            answers = operations.apply_operation(fit.operation, looked, value)
        except UndecidedAnswer as undecided:
            raise ReplayBroken(str(undecided)) from undecided
        if fit.frame.counted:
            return ReplayResult([str(len(answers))], is_empty=False, details=_describe_fit(fit))
        titles = yield from self._titles([known.get(entity, FoundEntity(entity)) for entity in answers])
        return ReplayResult(titles, not titles, _describe_fit(fit))

    def _titles(self, things: list[FoundEntity]) -> ReplayGenerator:
        """What the things are called where several have one name; of many answers it is not asked."""
        titles = []
        for thing in things:
            title = thing.text
            if len(things) <= MAX_TITLES and NAME.fullmatch(thing.text) and " " in thing.text:
                title = yield from self._lookups.names.find_title(thing)
            titles.append(title)
        return titles

    def follow_own_words(self, question: str) -> ReplayGenerator:
        """The answer by asking with the question's own words of the one that it speaks of, as a demonstration does."""
        begun = question.index(" ") if " " in question else 0
        spans = [widen_phrase(question, *match.span()) for match in NAME.finditer(question, begun)]
        phrase = parse_phrase(question[slice(*spans[0])]) if len(spans) == 1 else None
        if phrase is None or not self._lessons.own_words:
            raise ReplayBroken("its wording is that of no demonstration")
        template = question[: spans[0][0]] + BLANK + question[spans[0][1] :]
        things = yield from self._reach(phrase, what=False)
        results: dict[str, None] = {}
        for thing in things:
            stated = yield from self._lookups.look_up(template, thing)
            results.update(dict.fromkeys(one.text for one in stated))
        return ReplayResult(list(results), not results, {"alignment": {"asked": template}, "demonstrations": []})

    def _reach(self, phrase: NounPhrase, *, what: bool) -> ReplayGenerator:
        """Whom or what a phrase means: from its start along its relations."""
        start = phrase.start
        things = yield from (
            self._resolve_name(start) if isinstance(start, NameReference) else self._resolve_property(start)
        )
        for place, relation in reversed(list(enumerate(phrase.relations))):
            if picked := parse_ranking(relation):
                things = yield from self._pick(things, *picked)
                continue
            template = self._lessons.wordings.template_for(relation, what=what and place == 0)
            reached: list[FoundEntity] = []
            for thing in things:
                results = yield from self._lookups.look_up(template, thing, on_the_way=place > 0 or len(things) > 1)
                reached = merge_entities(reached, results)
            if not reached and place > 0 and self._lookups.facts_are_spread:
                raise ReplayBroken(
                    f"no source tells who is the {relation} of {join_names([entity.text for entity in things[:3]])}"
                )
            things = reached
        return things

    def _pick(self, things: list[FoundEntity], order: str, event: str) -> ReplayGenerator:
        """Those of several of whom something is true first or last, as demonstrations decide it between things."""
        template = self._lessons.wordings.find_similar(event, "When")
        operation = operations.FIRST if order in ("first", "earliest") else operations.LAST
        if template is None or not {operations.FIRST, operations.LAST} & self._lessons.operations:
            raise ReplayBroken(f"no demonstration shows who is the {order}-{event} of several")
        days = []
        for thing in things:
            results = yield from self._lookups.look_up(template, thing, on_the_way=True)
            days.append((tuple(day.text for day in results),))
        try:
            places = operations.apply_operation(
                operation, [LookupValues(tuple(map(str, range(len(things)))), tuple(days))]
            )
        except UndecidedAnswer as undecided:
            raise ReplayBroken(str(undecided)) from undecided
        return [things[int(place)] for place in places]

    def _resolve_name(self, start: NameReference) -> ReplayGenerator:
        results = yield from self._lookups.names.resolve(start.text)
        return [results]

    def _resolve_property(self, start: PropertyReference) -> ReplayGenerator:
        """Everybody who has the first of the values that demonstrations search by, and then the others."""
        facts = sorted(start.facts, key=lambda fact: fact[0] not in self._lessons.backward)
        things = yield from self._lookups.find_having(*facts[0])
        for fact, value in facts[1:]:
            kept = []
            untold = False
            for thing in things:
                template = self._lessons.wordings.template_for(fact, what=True)
                results = yield from self._lookups.look_up(template, thing, on_the_way=True)
                untold = untold or not results
                if plain(value) in (plain(one.text) for one in results):
                    kept.append(thing)
            if untold and not kept and self._lookups.facts_are_spread:
                raise ReplayBroken(f"no source tells the {fact} of all who may be meant")
            things = kept
        return things


def _describe_fit(fit: FrameFit) -> dict[str, Any]:
    shown = fit.frame.demonstration
    pairs = [{"there": hole.text, "here": text} for hole, text in zip(fit.frame.holes, fit.hole_texts, strict=True)]
    asks = sorted({template for asks in fit.asks for template in asks})
    return {
        "alignment": {"holes": pairs, "asked": asks, "operation": fit.operation, "counted": fit.frame.counted},
        "demonstrations": [{"id": str(shown.record.trace.id), "question": shown.question}],
    }


__all__ = ["DemonstrationReplayer", "ReplayBroken", "ReplayResult", "ToolCallFailed"]
