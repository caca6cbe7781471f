"""The replay reasoner: re-runs the actions of a demonstration on a new question, or refuses the question."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from db.recording import TraceAnswers
from reasoners.base import FinalAnswer, QuestionRefused, ReasonerGenerator, Task
from reasoners.replay import english
from reasoners.replay.english import (
    NAME,
    LookupValues,
    NameReference,
    NounPhrase,
    PropertyReference,
    UndecidedAnswer,
    join_names,
    parse_phrase,
    parse_ranking,
    plain,
    widen_phrase,
)
from reasoners.replay.knowledge import ReplayKnowledge
from reasoners.replay.question_patterns import FrameFit
from reasoners.replay.recorded_lookups import BLANK
from reasoners.replay.session import (
    FoundEntity,
    ReplayBroken,
    ReplayGenerator,
    ReplaySession,
    ToolCallFailed,
    merge_entities,
)
from reasoners.replay.source_lookups import SourceLookups

MAX_TITLES = 12


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The answers of a replay, and how they were derived."""

    answers: list[str]
    is_empty: bool
    """Whether the sources state that there is no answer."""
    details: dict[str, Any]


class DemonstrationReplayer:
    """Replays demonstrations on one question."""

    def __init__(self, session: ReplaySession, knowledge: ReplayKnowledge) -> None:
        self._lookups, self._knowledge = SourceLookups(session, knowledge), knowledge

    def follow(self, fit: FrameFit) -> ReplayGenerator:
        """Answer the question by the fitted frame; ReplayBroken if that is not possible."""
        lookup_values = []
        entities_by_name: dict[str, FoundEntity] = {}
        value = ""
        for hole, text, phrase, asks in zip(fit.frame.holes, fit.hole_texts, fit.phrases, fit.asks, strict=True):
            if phrase is None:
                value = text if hole.kind == "value" else value
                continue
            things = yield from self._reach(phrase, what=fit.frame.text.startswith("What "))
            entities_by_name.update((thing.text, thing) for thing in things)
            values = []
            for thing in things:
                values_by_template = []
                for template in asks:
                    entities = yield from self._lookups.look_up(template, thing, on_the_way=len(things) > 1)
                    entities_by_name.update((found_entity.text, found_entity) for found_entity in entities)
                    values_by_template.append(tuple(found_entity.text for found_entity in entities))
                values.append(tuple(values_by_template))
            lookup_values.append(LookupValues(tuple(thing.text for thing in things), tuple(values) if asks else ()))
        try:
            answers = english.apply_operation(fit.operation, lookup_values, value)
        except UndecidedAnswer as undecided:
            raise ReplayBroken(str(undecided)) from undecided
        if fit.frame.counted:
            return ReplayResult([str(len(answers))], is_empty=False, details=_describe_fit(fit))
        titles = yield from self._titles([entities_by_name.get(answer, FoundEntity(answer)) for answer in answers])
        return ReplayResult(titles, not titles, _describe_fit(fit))

    def _titles(self, things: list[FoundEntity]) -> ReplayGenerator:
        """The article titles of entities, which tell namesakes apart; many answers keep their names."""
        titles = []
        for thing in things:
            title = thing.text
            if len(things) <= MAX_TITLES and NAME.fullmatch(thing.text) and " " in thing.text:
                title = yield from self._lookups.names.find_title(thing)
            titles.append(title)
        return titles

    def follow_own_words(self, question: str) -> ReplayGenerator:
        """Answer the question by using it as a template with its one entity as the subject, as a demonstration does."""
        first_space = question.index(" ") if " " in question else 0
        spans = [widen_phrase(question, *match.span()) for match in NAME.finditer(question, first_space)]
        phrase = parse_phrase(question[slice(*spans[0])]) if len(spans) == 1 else None
        if phrase is None or not self._knowledge.own_words:
            raise ReplayBroken("no demonstration in this library has this question pattern")
        template = question[: spans[0][0]] + BLANK + question[spans[0][1] :]
        things = yield from self._reach(phrase, what=False)
        answers: dict[str, None] = {}
        for thing in things:
            values = yield from self._lookups.look_up(template, thing)
            answers.update(dict.fromkeys(entity.text for entity in values))
        return ReplayResult(list(answers), not answers, {"alignment": {"asked": template}, "demonstrations": []})

    def _reach(self, phrase: NounPhrase, *, what: bool) -> ReplayGenerator:
        """Resolve a phrase to entities: from its start along its relations."""
        start = phrase.start
        things = yield from (
            self._resolve_name(start) if isinstance(start, NameReference) else self._resolve_property(start)
        )
        for place, relation in reversed(list(enumerate(phrase.relations))):
            if ranking := parse_ranking(relation):
                things = yield from self._pick(things, *ranking)
                continue
            template = self._knowledge.wordings.template_for(relation, what=what and place == 0)
            reached: list[FoundEntity] = []
            for thing in things:
                entities = yield from self._lookups.look_up(template, thing, on_the_way=place > 0 or len(things) > 1)
                reached = merge_entities(reached, entities)
            if not reached and place > 0 and self._lookups.facts_are_spread:
                raise ReplayBroken(
                    f"no source tells who is the {relation} of {join_names([entity.text for entity in things[:3]])}"
                )
            things = reached
        return things

    def _pick(self, things: list[FoundEntity], order: str, event: str) -> ReplayGenerator:
        """The entities for which the event happened first or last, if a demonstration shows such a comparison."""
        template = self._knowledge.wordings.find_similar(event, "When")
        operation = english.FIRST if order in ("first", "earliest") else english.LAST
        if template is None or not {english.FIRST, english.LAST} & self._knowledge.operations:
            raise ReplayBroken(f"no demonstration compares several people by who is {order}-{event}")
        dates_by_thing = []
        for thing in things:
            dates = yield from self._lookups.look_up(template, thing, on_the_way=True)
            dates_by_thing.append((tuple(day.text for day in dates),))
        try:
            indexes = english.apply_operation(
                operation, [LookupValues(tuple(map(str, range(len(things)))), tuple(dates_by_thing))]
            )
        except UndecidedAnswer as undecided:
            raise ReplayBroken(str(undecided)) from undecided
        return [things[int(index)] for index in indexes]

    def _resolve_name(self, start: NameReference) -> ReplayGenerator:
        entity = yield from self._lookups.names.resolve(start.text)
        return [entity]

    def _resolve_property(self, start: PropertyReference) -> ReplayGenerator:
        """The entities with all the values: searched by one value as demonstrations do, then filtered by the others."""
        facts = sorted(start.facts, key=lambda fact: fact[0] not in self._knowledge.backward)
        things = yield from self._lookups.find_having(*facts[0])
        for fact, value in facts[1:]:
            kept = []
            is_incomplete = False
            for thing in things:
                template = self._knowledge.wordings.template_for(fact, what=True)
                values = yield from self._lookups.look_up(template, thing, on_the_way=True)
                is_incomplete = is_incomplete or not values
                if plain(value) in (plain(one.text) for one in values):
                    kept.append(thing)
            if is_incomplete and not kept and self._lookups.facts_are_spread:
                raise ReplayBroken(f"no source has the {fact} of all candidates")
            things = kept
        return things


def _describe_fit(fit: FrameFit) -> dict[str, Any]:
    demonstration = fit.frame.demonstration
    pairs = [{"there": hole.text, "here": text} for hole, text in zip(fit.frame.holes, fit.hole_texts, strict=True)]
    asks = sorted({template for asks in fit.asks for template in asks})
    return {
        "alignment": {"holes": pairs, "asked": asks, "operation": fit.operation, "counted": fit.frame.counted},
        "demonstrations": [{"id": str(demonstration.record.trace.id), "question": demonstration.question}],
    }


__all__ = ["DemonstrationReplayer", "ReplayBroken", "ReplayResult", "ToolCallFailed"]

MAX_READINGS = 3
"""The number of interpretations of a question that are tried."""


class ReplayReasoner:
    """Answers questions by replaying demonstrations; caches what it has learned from the last set of them."""

    name = "replay"

    def __init__(self) -> None:
        self._cached_knowledge: tuple[list[tuple[UUID, int]], ReplayKnowledge] | None = None

    def solve(self, task: Task) -> ReasonerGenerator:
        """Replay the demonstrations with the values of this question; QuestionRefused if none can be replayed."""
        if not task.demonstrations:
            raise QuestionRefused(
                "I can't follow any demonstration here: there is none; choose a library with demonstrations."
            )
        knowledge = self._learn_demonstrations(task)
        session = ReplaySession(task)
        failures: list[str] = []
        for replay in self._candidate_replays(task, DemonstrationReplayer(session, knowledge), knowledge):
            try:
                result = yield from replay()
            except (ReplayBroken, ToolCallFailed) as stuck:
                failures.append(str(stuck))
                continue
            return _build_final_answer(result, session, knowledge)
        reasons = "; or ".join(dict.fromkeys(failures))
        raise QuestionRefused(f"I can't follow any demonstration here: {reasons}.")

    def _learn_demonstrations(self, task: Task) -> ReplayKnowledge:
        demonstrations = sorted(task.demonstrations, key=lambda record: record.trace.id)
        keys = [(record.trace.id, record.trace.version) for record in demonstrations]
        cached = self._cached_knowledge
        if cached is None or cached[0] != keys:
            self._cached_knowledge = cached = keys, ReplayKnowledge(demonstrations)
        return cached[1]

    def _candidate_replays(
        self, task: Task, replayer: DemonstrationReplayer, knowledge: ReplayKnowledge
    ) -> list[Callable[[], ReplayGenerator]]:
        """The distinct interpretations by question patterns; if there is none, the question's own words."""
        rank = {record.trace.id: index for index, record in enumerate(task.demonstrations)}
        fits: dict[object, FrameFit] = {}
        for fit in knowledge.fits(task.question, rank):
            fits.setdefault((fit.phrases, fit.asks, fit.operation, fit.frame.counted), fit)
        replays: list[Callable[[], ReplayGenerator]] = [
            partial(replayer.follow, fit) for fit in list(fits.values())[:MAX_READINGS]
        ]
        return replays or [partial(replayer.follow_own_words, task.question)]


def _build_final_answer(result: ReplayResult, session: ReplaySession, knowledge: ReplayKnowledge) -> FinalAnswer:
    answer = ", ".join(result.answers)
    if result.is_empty:
        if knowledge.no_answer_text is None:
            raise QuestionRefused(
                "I can't follow any demonstration here: nothing was found, and none shows the answer for that case."
            )
        answer = knowledge.no_answer_text
    answers = TraceAnswers(final_answer=answer, final_thought=session.compose_thought(f"So the answer is: {answer}."))
    return FinalAnswer(answers, details={"replay": result.details})
