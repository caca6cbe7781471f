"""The form of each reasoner's method, from the typed data of its steps: a tree, triples, lanes, follow-ups, votes.

    form = build_method_form("atomr", steps)        # None for a reasoner without a form, or before its plan
    asdict(form)                                    # drawn by static/method_form.js, above the steps

A form is cards in groups (form_cards.py). A new one is a function from the steps to a MethodForm, and one line in
FORMS. It is built anew for each refresh of a run, so it must be linear in the number of steps.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from showhow.app.widgets.form_cards import (
    CardGroup,
    CardLine,
    FormCard,
    MethodForm,
    TallyEntry,
    TitlePart,
    author_marks,
    build_call_card,
    build_final_card,
    build_span_card,
    join_some,
    list_sources,
    read_values,
)
from showhow.db.models import SPAN_SKILL, Step
from showhow.evaluation.value_format import format_count
from showhow.reasoners.answers.normalization import answers_equal
from showhow.reasoners.atomr.skills import PLAN, PlanNode, PlanReply
from showhow.reasoners.baselines.graph_skills import (
    ANSWER_WALK,
    ENOUGH,
    MEMORY,
    REASON_WALK,
    MemoryReply,
    WalkVerdict,
    WeighedFact,
    WeighedRelation,
)
from showhow.reasoners.baselines.single_call import vote_over_sets
from showhow.reasoners.baselines.skills import COT_ANSWER, REASON_SENTENCE, SELF_ASK
from showhow.reasoners.geek.skills import CONCLUDE
from showhow.reasoners.pdrr.skills import ANSWER_TRIPLES, BEST_CHAIN, PRUNE_TRIPLES, RELATIONS, TRIPLES, TriplesReply
from showhow.reasoners.pdrr.triples import ScheduledTriple, Triple, is_unknown, schedule_triples
from showhow.reasoners.skills.skill import SkillSteps, read_reply, skill_name
from showhow.reasoners.skills.values import AnswersReply, ReasonedReply, fill_references, format_values

MAX_KEPT = 20
"""Facts of a walk that a card lists one by one."""
MAX_PRUNED = 12
"""The chains that a triple shows."""


def build_method_form(reasoner: str, steps: Sequence[Step]) -> MethodForm | None:
    """The form of a reasoner's run; None for a reasoner without one, or as long as there is nothing to draw."""
    build = FORMS.get(reasoner)
    try:
        form = build(SkillSteps(steps)) if build is not None else None
    except (ValidationError, LookupError):
        # The trace was imported, or is of another version of the method.
        return MethodForm("Steps only", "The stored replies do not have the form that this method has now.", ())
    return form if form is not None and any(group.cards for group in form.groups) else None


HOW_MARKS = {
    "operator": "retrieved",
    "wider search": "found by a wider search",
    "code": "combined by code",
    "model": "concluded by the model",
    "fallback": "fallback: read again for the whole question",
    "own knowledge": "own knowledge of the model",
    "nothing to ask": "nothing to ask about",
    "unknown": "unknown",
}


def build_atomr_form(steps: SkillSteps) -> MethodForm | None:
    """The tree of questions with operators, filled references, answers, sources and citations."""
    planned = steps.reply(PLAN.name)
    if planned is None:
        return None
    nodes = PlanReply.model_validate(planned[1]).by_id
    cards: list[FormCard] = []
    stack = [(0, 0)]
    while stack:
        number, depth = stack.pop()
        cards.append(_build_node_card(steps, nodes[number], depth))
        stack += [(child, depth + 1) for child in reversed(nodes[number].children)]
    return MethodForm(
        "Plan",
        "Each question is answered by its operator, or from the questions below it; [3] stands for the answers of 3.",
        (CardGroup("", tuple(cards)),),
        summary=tuple(CardLine("plan", mark) for mark in author_marks(planned[0])),
        plan=planned[0].position,
    )


def _build_node_card(steps: SkillSteps, node: PlanNode, depth: int) -> FormCard:
    span = steps.spans.get(str(node.id))
    data = steps.result(span)
    how, cited = str(data.get("how", "")), tuple(data.get("cited", ()))
    operator = f"DR: {node.how}" if node.how else node.op
    known = {
        number: read_values(steps.result(steps.spans.get(str(number))).get("answers", ())) for number in node.references
    }
    references = {number: values for number, values in known.items() if values}
    arguments = [argument.text or fill_references(f"[{argument.ref}]", references) for argument in node.args]
    return build_span_card(
        steps,
        span,
        str(node.id),
        f"{node.id}. {data.get('question', node.question)}",
        depth=depth,
        marks=(*([operator] if operator else []), *([HOW_MARKS.get(how, how)] if how else [])),
        lines=(
            *([CardLine("with", " · ".join(arguments))] if node.op not in (None, "DR") else []),
            *list_sources(steps, span),
            *([CardLine("stated in", "", steps=cited)] if cited else []),
        ),
    )


def build_pdrr_form(steps: SkillSteps) -> MethodForm | None:
    """The triples with their unknowns as chips; independent ones in columns, with what they have in common."""
    decomposed = steps.reply(TRIPLES.name)
    if decomposed is None:
        return None
    reply = TriplesReply.model_validate(decomposed[1])
    columns, column_of = _split_into_columns(schedule_triples(reply.triples))
    values = _final_values(steps)
    shared = [unknown for unknown, numbers in column_of.items() if len(numbers) > 1]
    groups = [
        CardGroup(
            "" if len(columns) == 1 else f"Column {number}",
            tuple(_build_triple_card(steps, entry.number, entry.triple) for entry in column),
        )
        for number, column in enumerate(columns, 1)
    ]
    asked_for = values.get(reply.answer)
    return MethodForm(
        "Triples",
        "The unknowns of a triple are filled in from the facts of a relation; independent triples stand side by side.",
        tuple(groups),
        summary=(
            *(CardLine(f"in common: {unknown}", values.get(unknown, "not known yet")) for unknown in shared),
            CardLine("asked for", f"{reply.answer} = {asked_for}" if asked_for is not None else reply.answer),
            *(
                CardLine("best chain", step.observation or "not chosen yet")
                for step in steps.calls.get(BEST_CHAIN.name, ())
            ),
            *(CardLine("triples", mark) for mark in author_marks(decomposed[0])),
        ),
        plan=decomposed[0].position,
    )


def _split_into_columns(
    scheduled: Sequence[ScheduledTriple],
) -> tuple[list[list[ScheduledTriple]], dict[str, set[int]]]:
    """Triples that continue from each other, and the columns in which each unknown stands."""
    columns: list[list[ScheduledTriple]] = []
    column_of: dict[str, set[int]] = {}
    for entry in scheduled:
        known_end = entry.triple.subject if entry.from_subject else entry.triple.object
        column = min(column_of.get(known_end, {len(columns)}))
        if column == len(columns):
            columns.append([])
        columns[column].append(entry)
        for unknown in entry.triple.unknowns:
            column_of.setdefault(unknown, set()).add(column)
    return columns, column_of


def _final_values(steps: SkillSteps) -> dict[str, str]:
    """The values of the unknowns with which all triples hold; until then as the triple completed last left them."""
    if answered := steps.calls.get(ANSWER_TRIPLES.name):
        completed: list[Mapping[str, Any]] = [answered[-1].arguments]
    else:
        spans = [span for place, span in steps.spans.items() if place.startswith("triple/") and span.finished_at]
        completed = [steps.result(span) for span in sorted(spans, key=lambda span: span.finished_at or span.started_at)]
    return {end: format_values(read_values(values)) for data in completed for end, values in data["values"].items()}


def _build_triple_card(steps: SkillSteps, number: int, triple: Triple) -> FormCard:
    place = f"triple/{number + 1}"
    span = steps.latest_span(place)
    data = steps.result(span)
    values = {end: read_values(bound) for end, bound in data.get("values", {}).items()}
    first = steps.spans.get(place)
    scored = dict.fromkeys(line for step in steps.below(first) if read_reply(step) for line in _scored_lines(step))
    source = "from the graph" if data.get("from_graph", True) else "from texts"
    has_nothing = any(not bound for bound in values.values())
    card = build_span_card(
        steps,
        span,
        place,
        "",
        marks=(source,) if data else (),
        answer="no value" if has_nothing else "",
        lines=(*scored, *_list_chains(data.get("chains", ()))),
    )
    subject, object_ = (
        TitlePart(
            end, is_unknown(end), (format_values(values[end]) if values[end] else "none") if end in values else ""
        )
        for end in (triple.subject, triple.object)
    )
    title = (subject, TitlePart(triple.relation), object_)
    return replace(card, title=title, state="unknown" if has_nothing else card.state)


def _scored_lines(step: Step) -> Iterator[CardLine]:
    """What a call has chosen with its scores, then in grey what it was offered and did not choose."""
    reply, asked = read_reply(step) or {}, step.arguments
    offered: dict[Any, str] = {}
    if skill_name(step) == RELATIONS.name:
        offered = {(entry["id"], entry["direction"]): entry["label"] for entry in asked["relations"]}
        for choice in reply["relations"]:
            label = offered.pop((choice["id"], choice["direction"]), choice["id"])
            yield CardLine("relation", f"{label} ({choice['id']} as {choice['direction']}), score {choice['score']:g}")
    elif skill_name(step) == PRUNE_TRIPLES.name:
        known = asked["known"]["text"]
        offered = {fact["number"]: f"{known}: {fact['relation']} {fact['other']['text']}" for fact in asked["facts"]}
        for choice in reply["facts"]:
            yield CardLine("fact", f"{offered.pop(choice['number'])}, score {choice['score']:g}")
    if offered:
        yield CardLine("pruned", join_some(dict.fromkeys(offered.values())), grey=True)


def _list_chains(chains: Sequence[Mapping[str, Any]]) -> Iterator[CardLine]:
    """A row for each chain of facts, in grey for those that were cut; of many chains the first."""
    for chain in chains[:MAX_PRUNED]:
        yield CardLine("chain", f"{chain['facts']}, score {chain['score']:g}", grey=chain["pruned"])


def build_geek_form(steps: SkillSteps) -> MethodForm | None:
    """A lane for each strategy: sub-questions with pseudo-answer and fact; the answers of the lanes vote."""
    places = {node: span for node, span in steps.spans.items() if "/" in node}
    lanes = list(dict.fromkeys(place.rpartition("/")[0] for place in places))
    ends = [lane for lane in lanes if not any(other.startswith(f"{lane}.") for other in lanes)]
    conclusions = {
        (step.node or "").split("/")[0]: AnswersReply.model_validate(reply)
        for step in steps.calls.get(CONCLUDE.name, ())
        if (reply := read_reply(step)) is not None
    }
    groups = []
    for number, lane in enumerate(ends, 1):
        cards = [
            _build_fact_card(steps, place, span, is_shared=place.rpartition("/")[0] != lane, lane=lane)
            for place, span in places.items()
            if f"{lane}.".startswith(f"{place.rpartition('/')[0]}.")
        ]
        if lane in conclusions:
            cards.append(build_final_card(f"{lane}/end", "The answer of this strategy", conclusions[lane]))
        groups.append(CardGroup(f"Strategy {number}" if len(ends) > 1 else "", tuple(cards)))
    return MethodForm(
        "Sub-questions" if len(ends) < 2 else f"{len(ends)} strategies",
        "Each sub-question has a guess first; the fact that was looked up or concluded replaces it.",
        tuple(groups),
        tally=_tally_lanes(list(conclusions.values())) if len(ends) > 1 else (),
    )


def _tally_lanes(replies: Sequence[AnswersReply]) -> tuple[TallyEntry, ...]:
    votes = Counter(str(reply) for reply in replies)
    return tuple(
        TallyEntry(text, count, len(replies), is_elected=number == 0)
        for number, (text, count) in enumerate(votes.most_common())
    )


def _build_fact_card(steps: SkillSteps, place: str, span: Step, *, is_shared: bool, lane: str) -> FormCard:
    data = steps.result(span)
    guess, how = str(data.get("pseudo", "")), str(data.get("how", ""))
    is_confirmed = bool(guess) and answers_equal(guess, format_values(read_values(data.get("answers", ()))))
    support = tuple(sorted({int(id_.partition(".")[0]) for id_ in data.get("support", ())}))
    guessed = CardLine("guess", guess if is_confirmed else f"{guess} → replaced by the fact", grey=not is_confirmed)
    lines = (
        *([guessed] if guess else []),
        *([CardLine("fact", str(data["fact"]))] if data else []),
        *list_sources(steps, span),
        *([CardLine("stated in", "", steps=support)] if support else []),
    )
    title = f"{place.rpartition('/')[2]}. {data.get('question', span.thought)}"
    marks = (*(["shared with other strategies"] if is_shared else []), *([how] if how else []))
    return build_span_card(steps, span, f"{lane}:{place}", title, marks=marks, lines=() if is_shared else lines)


def build_self_ask_form(steps: SkillSteps) -> MethodForm | None:
    """The follow-up questions with their intermediate answers, then the final answer."""
    cards = [
        build_span_card(
            steps, span, place, f"{place.rpartition('/')[2]}. {span.thought}", lines=tuple(list_sources(steps, span))
        )
        for place, span in steps.spans.items()
    ]
    last = next((read_reply(step) for step in reversed(steps.calls.get(SELF_ASK.name, ()))), None)
    if last is not None and last.get("final"):
        cards.append(build_final_card("final", "Final answer", AnswersReply.model_validate(last["final"])))
    legend = "Each follow-up is looked up; its intermediate answer leads to the next one, or to the final answer."
    return MethodForm("Follow-up questions", legend, (CardGroup("", tuple(cards)),))


def build_ircot_form(steps: SkillSteps) -> MethodForm | None:
    """The sentences of the reasoning, each with the titles that were retrieved before it."""
    cards = []
    known: set[str] = set()
    for number, step in enumerate(steps.calls.get(REASON_SENTENCE.name, ()), 1):
        reply = read_reply(step) or {}
        titles = list(dict.fromkeys(passage["title"] for passage in step.arguments.get("passages", ())))
        retrieved = CardLine("read before", ", ".join(title for title in titles if title not in known) or "nothing new")
        known |= set(titles)
        final = AnswersReply.model_validate(reply["final"]) if reply.get("final") else None
        sentence = f"{number}. {reply.get('sentence', 'The next sentence is being written.')}"
        cards.append(build_call_card(step, f"sentence/{number}", sentence, final, retrieved))
    legend = "Each sentence is written from what was read so far, and is the next search."
    return MethodForm("Sentences of the reasoning", legend, (CardGroup("", tuple(cards)),))


def build_cot_sc_form(steps: SkillSteps) -> MethodForm | None:
    """The samples with their answers, and the votes."""
    calls = steps.calls.get(COT_ANSWER.name, ())
    replies = [(step, read_reply(step)) for step in calls]
    samples = [(step, None if reply is None else ReasonedReply.model_validate(reply)) for step, reply in replies]
    cards = [
        build_call_card(
            step,
            f"sample/{number}",
            f"Sample {number}",
            answers,
            CardLine("because", answers.reasons) if answers is not None else None,
        )
        for number, (step, answers) in enumerate(samples, 1)
    ]
    _, votes = vote_over_sets([answers for _, answers in samples if answers])
    tally = [TallyEntry(text, count, len(calls), count > len(calls) // 2) for text, count in votes.most_common()]
    legend = f"{format_count(len(calls), 'sample')} of a chain of thought; an answer in more than half is elected."
    return MethodForm("Votes", legend, (CardGroup("", tuple(cards)),), tuple(tally))


def build_walk_form(steps: SkillSteps) -> MethodForm | None:
    """The hops of a walk through the graph: its entities with relations and facts; those that were pruned are grey."""
    verdicts = {
        (step.node or "").rpartition("/")[0]: step
        for skill in (ENOUGH, REASON_WALK)
        for step in steps.calls.get(skill.name, ())
    }
    hops = [(place, span) for place, span in steps.spans.items() if re.fullmatch(r"hop/\d+", place)]
    groups = []
    for place, span in hops:
        cards = [_build_walk_card(steps, child) for child in steps.below(span) if child.skill == SPAN_SKILL]
        if place in verdicts:
            cards.append(_build_verdict_card(verdicts[place]))
        groups.append(CardGroup(f"Hop {place.rpartition('/')[2]}", tuple(cards)))
    if groups and (answered := steps.reply(ANSWER_WALK.name)) is not None:
        step, reply = answered
        card = build_call_card(step, "answer", "The answer", ReasonedReply.model_validate(reply), None)
        groups[-1] = replace(groups[-1], cards=(*groups[-1].cards, card))
    return MethodForm(
        "Walk",
        "Each hop scores the relations of its entities and keeps the best facts, which lead to the next hop.",
        tuple(groups),
        summary=tuple(_list_objectives(steps)),
    )


def _build_walk_card(steps: SkillSteps, span: Step) -> FormCard:
    """The card of an entity of a hop, or of a relation that was followed from all its entities at once."""
    is_entity = (span.node or "").rpartition("/")[2].isdecimal()
    relations = [WeighedRelation.model_validate(entry) for entry in steps.result(span).get("relations", ())]
    trails = [child for child in steps.below(span) if child.skill == SPAN_SKILL] if is_entity else [span]
    facts = [[WeighedFact.model_validate(entry) for entry in steps.result(trail).get("facts", ())] for trail in trails]
    reached = [entry.fact.other for entries in facts for entry in entries if not entry.pruned]
    pruned = [f"{relation.label} as {relation.direction}" for relation in relations if relation.pruned]
    lines = (
        *(
            CardLine("relation", f"{relation.label} ({relation.id} as {relation.direction}), score {relation.score:g}")
            for relation in relations
            if not relation.pruned
        ),
        *([CardLine("pruned", join_some(pruned), grey=True)] if pruned else []),
        *(
            line
            for trail, entries in zip(trails, facts, strict=True)
            for line in _list_fact_lines(trail, entries, steps.result(trail).get("sample"))
        ),
    )
    answer = format_values(reached) if reached else ""
    return build_span_card(steps, span, span.node or "", span.thought, answer=answer, lines=lines)


def _list_fact_lines(trail: Step, facts: Sequence[WeighedFact], sample: Mapping[str, int] | None) -> Iterator[CardLine]:
    """The kept facts of a followed relation with their scores, then in grey what was pruned or not drawn."""
    kept = [entry for entry in facts if not entry.pruned]
    for entry in kept[:MAX_KEPT]:
        passage = entry.fact.passage
        # Where no skill scores facts, all of them have the score 0.
        score = f", score {entry.score:g}" if entry.score > 0 else ""
        yield CardLine("fact", f"{passage.text}{score}", steps=(passage.step,))
    if len(kept) > MAX_KEPT:
        yield CardLine("facts", f"{len(kept) - MAX_KEPT} others were kept")
    if pruned := [entry.fact.passage.text for entry in facts if entry.pruned]:
        yield CardLine("pruned", join_some(pruned), grey=True)
    if sample is not None:
        yield CardLine("drawn", f"{sample['drawn']} of {sample['of']} facts of {trail.thought}", grey=True)


def _build_verdict_card(step: Step) -> FormCard:
    """The card of the call that ends a hop: whether the facts suffice, or their answers."""
    reply = read_reply(step)
    verdict = WalkVerdict.model_validate(reply) if reply is not None and skill_name(step) == REASON_WALK.name else None
    card = build_call_card(step, step.node or "", "Do the facts suffice?", None, None)
    answer = (str(verdict) if verdict is not None else step.observation) or ""
    reasons = (CardLine("because", verdict.reasons),) if verdict is not None and verdict.reasons else ()
    return replace(card, answer=answer, lines=reasons)


def _list_objectives(steps: SkillSteps) -> Iterator[CardLine]:
    """What the walk has shown of each objective so far."""
    replies = [reply for step in steps.calls.get(MEMORY.name, ()) if (reply := read_reply(step)) is not None]
    for entry in MemoryReply.model_validate(replies[-1]).objectives if replies else ():
        yield CardLine("objective", f"{entry.objective} {entry.finding or '(open)'}", grey=not entry.done)


def build_tog2_form(steps: SkillSteps) -> MethodForm | None:
    """The walk; before it, or where the samples agree, their votes."""
    walk = build_walk_form(steps)
    return walk if walk is not None and walk.groups else build_cot_sc_form(steps)


FORMS: Mapping[str, Callable[[SkillSteps], MethodForm | None]] = {
    "atomr": build_atomr_form,
    "pdrr": build_pdrr_form,
    "geek": build_geek_form,
    "self-ask": build_self_ask_form,
    "ircot": build_ircot_form,
    "cot-sc": build_cot_sc_form,
    "tog": build_walk_form,
    "pog": build_walk_form,
    "tog-2": build_tog2_form,
    "structgpt": build_walk_form,
}
"""The forms by the name of the reasoner."""
