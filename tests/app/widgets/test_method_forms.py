"""The forms of methods: drawn from the steps at every moment of a run, complete at its end, fast for long runs."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from showhow.app.widgets.form_cards import CardLine, FormCard, MethodForm
from showhow.app.widgets.method_forms import FORMS, build_method_form
from showhow.db.models import SPAN_SKILL, Question, Step
from showhow.db.run_spec import RunLimits
from showhow.db.traces.recording import NewStep, StepResult, build_step
from showhow.fiction.universe.options import GenerationOptions
from showhow.reasoners.atomr.skills import PlanReply
from showhow.reasoners.base import Task
from showhow.reasoners.pdrr.skills import PRUNE_TRIPLES
from showhow.reasoners.registry import REASONERS, make_reasoner
from showhow.reasoners.skills.skill import read_reply
from showhow.runs.recorders import MemoryRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.registry import available_tools
from tests.oracles.test_skills import Ground, is_short, make_ground

OPTIONS = GenerationOptions(people=80, seed=9, depth=4, per_template=1)
METHOD_OPTIONS: dict[str, dict[str, Any]] = {"geek": {"explore": 3, "rounds": 3}}


@dataclass
class Watching(MemoryRecorder):
    """A recorder that builds the form after each change of a step."""

    method: str
    seen: list[MethodForm] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def begin(self, new: NewStep) -> Step:
        step = super().begin(new)
        self.look()
        return step

    def complete(self, step: Step, observed: StepResult) -> Step:
        completed = super().complete(step, observed)
        self.look()
        return completed

    def look(self) -> None:
        form = build_method_form(self.method, self.steps)
        self.seen += [form] if form is not None else []


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield from make_ground(OPTIONS, sampled=500)


def watch(ground: Ground, method: str, question: Question, **options: Any) -> Watching:
    context = ground.gold.context
    task = Task(question.text, context, available_tools(context.world), responder=ground.oracle(question))
    recorder = Watching(method)
    reasoner = make_reasoner(method, METHOD_OPTIONS.get(method, {}) | options)
    outcome = run_reasoner(reasoner, task, recorder, RunControl(RunLimits(steps=None, seconds=None)))
    assert outcome.ending == "answered", outcome.failure
    return recorder


def cards_of(form: MethodForm) -> list[FormCard]:
    return [card for group in form.groups for card in group.cards]


def question_of(ground: Ground, kind: str) -> Question:
    """A question of this kind with an answer and at most as many triples as a walk has hops."""
    return next(question for question in ground.questions if question.kind == kind and is_short(question))


@pytest.mark.parametrize("method", FORMS)
def test_a_form_fills_while_the_run_goes_on_and_is_complete_at_its_end(ground: Ground, method: str):
    recorder = watch(ground, method, question_of(ground, "composition"))
    finished = [sum(card.state == "done" for card in cards_of(form)) for form in recorder.seen]
    assert finished == sorted(finished)
    assert finished[0] < finished[-1]
    last = recorder.seen[-1]
    assert {card.state for card in cards_of(last)} == {"done"}
    keys = [card.key for card in cards_of(last)]
    assert len(set(keys)) == len(keys)
    positions = {step.position for step in recorder.steps}
    assert {card.position for card in cards_of(last)} - {None} <= positions
    # The answer of the run stands in the form.
    assert recorder.result is not None
    assert recorder.result.answers is not None
    texts = " ".join([card.answer for card in cards_of(last)] + [line.text for line in last.summary])
    assert all(part in texts for part in recorder.result.answers.final_answer.split(", "))


def test_the_tree_of_atomr_is_that_of_its_plan_with_the_references_filled(ground: Ground):
    recorder = watch(ground, "atomr", question_of(ground, "composition"))
    plan = PlanReply.model_validate(read_reply(recorder.steps[0]))
    cards = {card.key: card for card in cards_of(recorder.seen[-1])}
    assert cards.keys() == {str(node.id) for node in plan.nodes}
    for node in plan.nodes:
        card, span = cards[str(node.id)], next(step for step in recorder.steps if step.node == str(node.id))
        assert card.answer == span.observation
        assert "[" not in card.title[0].text
        assert node.op is None or str(node.op) in card.marks[0]
        if node.op == "Relate":
            assert [line.label for line in card.lines][:2] == ["with", "asked"]


def test_independent_triples_stand_in_columns_with_the_values_they_have_in_common(ground: Ground):
    recorder = next(
        watched
        for question in ground.questions
        if question.kind == "conjunction" and len((watched := watch(ground, "pdrr", question)).seen[-1].groups) > 1
    )
    form = recorder.seen[-1]
    common = [line for line in form.summary if line.label.startswith("in common: ")]
    assert common
    assert all(line.text and line.text != "not known yet" for line in common)
    chips = [part for card in cards_of(form) for part in card.title if part.is_chip]
    assert chips
    assert all(chip.values for chip in chips)
    assert any(line.label == "relation" and "score" in line.text for card in cards_of(form) for line in card.lines)
    assert any(line.label == "pruned" and line.grey for card in cards_of(form) for line in card.lines)
    first = recorder.seen[0]
    assert not any(part.values for card in cards_of(first) for part in card.title)


@pytest.mark.parametrize("mode", ["published", "beam"])
def test_chains_are_rows_and_facts_that_were_pruned_are_grey(ground: Ground, mode: str):
    question = question_of(ground, "how many")
    recorder = watch(ground, "pdrr", question, mode=mode, best_chain="on", triples=1, width=1)
    form = recorder.seen[-1]
    lines = [line for card in cards_of(form) for line in card.lines]
    pruned = [step for step in recorder.steps if step.skill == PRUNE_TRIPLES.reference]
    assert pruned
    for step in pruned:
        chosen = {choice["number"] for choice in (read_reply(step) or {})["facts"]}
        for fact in step.arguments["facts"]:
            text = f"{step.arguments['known']['text']}: {fact['relation']} {fact['other']['text']}"
            shown = [line for line in lines if text in line.text and line.label in {"fact", "pruned"}]
            assert [line.grey for line in shown] == [fact["number"] not in chosen], text
    assert {line.grey for line in lines if line.label == "chain"} <= ({False, True} if mode == "beam" else {False})
    for card in cards_of(form):
        assert sum(line.label == "chain" and not line.grey for line in card.lines) == 1
    best = list(watch(ground, "pdrr", question, mode=mode, best_chain="on").seen[-1].summary)
    assert [line.text.startswith("chain 1: ") for line in best if line.label == "best chain"] == [True]


def test_each_strategy_of_geek_has_a_lane_and_a_vote(ground: Ground):
    recorder = next(
        watched
        for question in ground.questions
        if len((watched := watch(ground, "geek", question)).seen[-1].groups) > 1
    )
    form = recorder.seen[-1]
    assert sum(entry.count for entry in form.tally) == len(form.groups)
    assert [entry.is_elected for entry in form.tally] == [True, *[False] * (len(form.tally) - 1)]
    for group in form.groups:
        numbers = [card.key.rpartition("/")[2] for card in group.cards]
        assert numbers == [*map(str, range(1, len(numbers))), "end"]
        assert all(line.label != "guess" or line.text for card in group.cards for line in card.lines)


@pytest.mark.parametrize("method", ["tog", "pog", "tog-2", "structgpt"])
def test_a_walk_shows_each_hop_with_what_it_kept_and_what_it_pruned(ground: Ground, method: str):
    """Counted again in the data of the steps, by a second route."""
    compositions = [question for question in ground.questions if question.kind == "composition" and is_short(question)]
    pruned = [check_walk(watch(ground, method, question)) for question in compositions[:3]]
    assert any(pruned)


def check_walk(recorder: Watching) -> bool:
    """Check each hop; whether each has pruned something."""
    form, pruned = recorder.seen[-1], []
    hops = [step for step in recorder.steps if re.fullmatch(r"hop/\d+", step.node or "")]
    assert [group.title for group in form.groups] == [f"Hop {number}" for number in range(1, len(hops) + 1)]
    for group, hop in zip(form.groups, hops, strict=True):
        places = re.compile(rf"{hop.node}/(\d+/)?r\d+")
        trails = [step for step in recorder.steps if step.skill == SPAN_SKILL and places.fullmatch(step.node or "")]
        facts = [entry for step in trails for entry in (step.data or {})["facts"]]
        kept = [entry for entry in facts if not entry["pruned"]]
        lines = [line for card in group.cards for line in card.lines]
        shown = [line.text for line in lines if line.label == "fact"]
        assert len(shown) == len(kept)
        for text, entry in zip(shown, kept, strict=True):
            assert entry["fact"]["other"]["text"] in text
            assert text.partition(", score ")[2] == (f"{entry['score']:g}" if entry["score"] else "")
        pruned.append(any(line.label == "pruned" and line.grey for line in lines))
        assert any(entry["pruned"] for entry in facts) <= pruned[-1]
        assert not any(line.grey for line in lines if line.label in ("relation", "fact"))
        reached = " ".join(card.answer for card in group.cards if not card.key.endswith(("enough", "reason")))
        frontier = [value["text"] for value in (hop.data or {})["frontier"]]
        # A date ends a walk; only things are followed.
        assert frontier or hop is hops[-1]
        assert all(text in reached for text in frontier[:5])
        scored = [step for step in recorder.steps if (step.node or "").startswith(f"{hop.node}/") and step.tool is None]
        assert {card.position for card in group.cards} <= {step.position for step in [*scored, *recorder.steps[-1:]]}
    return all(pruned)


def test_a_vote_that_ends_tog2_is_its_form(ground: Ground):
    recorder = watch(ground, "tog-2", question_of(ground, "composition"), samples=5)
    form = recorder.seen[-1]
    assert form.title == "Votes"
    assert [entry.count for entry in form.tally if entry.is_elected] == [5]


def test_what_a_person_wrote_is_marked(ground: Ground):
    recorder = watch(ground, "atomr", question_of(ground, "composition"))
    operate = next(step for step in recorder.steps if step.skill == "operate/3")
    for step in (recorder.steps[0], operate):
        step.data = {**(step.data or {}), "written_by": "ada"}
    form = build_method_form("atomr", recorder.steps)
    assert form is not None
    assert [line.text for line in form.summary] == ["written by ada"]
    assert [card.changeable for card in cards_of(form) if "written by ada" in card.marks] == [operate.position]


def test_the_words_that_a_reply_quotes_are_on_its_card(ground: Ground):
    recorder = watch(ground, "atomr", question_of(ground, "composition"))
    call = next(step for step in recorder.steps if step.skill == "operate/3")
    reply = {**(read_reply(call) or {}), "quotes": [{"id": "4.1", "text": "mother | Ada Reed"}]}
    call.data = {**(call.data or {}), "reply": reply}
    form = build_method_form("atomr", recorder.steps)
    assert form is not None
    lines = [line for card in cards_of(form) for line in card.lines if line.label == "quoted"]
    assert lines == [CardLine("quoted", "“mother | Ada Reed”", steps=(4,))]


def test_stored_replies_of_another_form_leave_the_steps_and_a_sentence(ground: Ground):
    recorder = watch(ground, "atomr", question_of(ground, "composition"))
    plan = recorder.steps[0]
    for broken in ({"nodes": [{"question": "?"}]}, {"nodes": [{"id": 1, "question": "?"}]}):
        plan.data = {"reply": broken}
        form = build_method_form("atomr", recorder.steps)
        assert form is not None
        assert (form.groups, form.legend) == ((), "The stored replies do not have the form that this method has now.")


def test_a_form_of_a_long_run_is_built_in_milliseconds(ground: Ground):
    recorder = watch(ground, "atomr", question_of(ground, "composition"))
    span = next(step for step in recorder.steps if step.skill == SPAN_SKILL and step.node != "0")
    more = [
        build_step(
            uuid4(),
            len(recorder.steps) + n,
            NewStep("", "read", {"title": "x"}, parent=span.id, node=f"1/text/read{n}"),
        )
        for n in range(1, 1001)
    ]
    steps = [*recorder.steps, *more]
    started = time.process_time()
    for _ in range(10):
        assert build_method_form("atomr", steps) is not None
    assert (time.process_time() - started) / 10 < 0.1


def test_a_reasoner_without_a_form_and_an_empty_run_have_none():
    assert FORMS.keys() <= REASONERS.keys()
    assert build_method_form("humaniq", []) is None
    assert [name for name in FORMS if build_method_form(name, []) is not None] == []
