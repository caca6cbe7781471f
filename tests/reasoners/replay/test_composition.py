"""Composed look-ups unite text, graph and web: their values are those of the world's own facts, or there is a gap."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.db.models import Project
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.unanswerable import read_unanswerable
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.metrics import score_answer
from showhow.evaluation.scoring.gold_demonstrations import make_demonstrations
from showhow.fewshot_library.encoder import SentenceEncoder
from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
from showhow.oracles.gold_traces.traces import GoldWorld
from showhow.reasoners.mentions import WorldWords
from showhow.reasoners.replay.phrases import frame_question
from showhow.reasoners.replay.statements import SentenceReader, Statement
from showhow.tools.tool import ToolContext
from showhow.worlds.open import open_world
from tests.fixtures.real_world import answer_by_replay
from tests.fixtures.town import Town

SPLIT = "text=50,graph=35,web=15"
OPTIONS = {
    "shown": GenerationOptions(people=300, seed=11, depth=6, per_template=2, split=SPLIT),
    "asked": GenerationOptions(people=300, seed=12, depth=6, per_template=1, split=SPLIT),
}


class TwoWorlds:
    """Demonstrations of one world, and another with its questions; both spread their facts."""

    def __init__(self, folder: Path, encoder: SentenceEncoder) -> None:
        for name, options in OPTIONS.items():
            generate_world(folder, name, options)
        self.contexts = {name: ToolContext(open_world(folder, name), encoder) for name in OPTIONS}
        gold, shown = GoldWorld(folder / "shown", self.contexts["shown"]), folder / "shown" / "questions.jsonl"
        project = Project(name="shown", world="shown")
        self.shown: list[TraceRecord] = list(make_demonstrations(read_questions(shown), gold, project, 40))
        file = folder / "asked" / "questions.jsonl"
        self.asked = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def close(self) -> None:
        for context in self.contexts.values():
            context.world.graph.close()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory, meaning: SentenceEncoder) -> Iterator[TwoWorlds]:
    own = TwoWorlds(tmp_path_factory.mktemp("two"), meaning)
    yield own
    own.close()


@pytest.mark.long
def test_of_a_world_that_spreads_its_facts_two_fifths_of_the_questions_are_answered_and_none_wrongly(
    worlds: TwoWorlds,
) -> None:
    """The world's own facts are the oracle; every fourth question is asked."""
    asked = [row for row in worlds.asked if row["answers"]][::4]
    outcomes = [(row, answer_by_replay(row["text"], worlds.contexts["asked"], worlds.shown)[0]) for row in asked]
    answered = [(row, outcome.answers.final_answer) for row, outcome in outcomes if outcome.answers]
    assert [(row["text"], own) for row, own in answered if score_answer(own, row["answers"]) != 1.0] == []
    assert len(answered) >= 0.4 * len(asked)


def test_what_is_absent_is_told_only_after_all_sources(worlds: TwoWorlds) -> None:
    row = next(row for row in worlds.asked if row["kind"] == "no answer" and row["text"].startswith("When did"))
    outcome, recorder = answer_by_replay(row["text"], worlds.contexts["asked"], worlds.shown)
    if outcome.answers is not None:
        assert read_unanswerable(outcome.answers.final_answer) == "not in the sources"
        assert {"read", "runQuery", "websearch"} <= {step.tool for step in recorder.steps} | {"runQuery"}


def test_a_refusal_is_one_sentence_that_names_one_demonstration(worlds: TwoWorlds) -> None:
    outcome, _ = answer_by_replay("Who is the best friend of nobody?", worlds.contexts["asked"], worlds.shown)
    assert outcome.ending == "refused"
    assert (outcome.failure or "").count(": the nearest asks ") == 1


@pytest.mark.parametrize(
    ("question", "words", "relations"),
    [
        ("Who was born earlier, {0} or the father of {1}?", ("R", "earlier", "X", "X"), [(), ("father",)]),
        ("Which friends of the husband of {0} died last?", ("X", "R", "last"), [("husband", "friend")]),
        ("Are the residences of {0} and {1} in the same country?", ("X", "X", "same", "R"), [("residence",)] * 2),
        ("What is the hobby of {0}?", ("X",), [("hobby",)]),
    ],
)
def test_a_question_is_framed_by_its_longest_phrases(
    town: Town, meaning: SentenceEncoder, question: str, words: tuple[str, ...], relations: list[tuple[str, ...]]
) -> None:
    names = [article.title for article in town.context.world.text.list_articles(2)]  # type: ignore[union-attr]
    framed = frame_question(question.format(*names), WorldWords(town.context.world, meaning))[0]
    assert framed.frame.words == words
    assert [phrase.relations for phrase in framed.phrases] == relations


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("Her mother is {1}.", [("mother", "{1}")]),
        ("{1} is the father of {0}.", [("father", "{1}")]),
        ("The father of {1} is Mr {0}.", [("child", "{1}")]),
        ("{0} was the wife of {1}.", [("spouse", "{1}")]),
        ("{0} and {1} became friends.", [("friend", "{1}")]),
        ("On 3 May 1901, {0} married; she lived long.", [("date of marriage", "3 May 1901")]),
        ("{0} admired {1}.", []),
        # single values of long sentences, by the words right before them
        (
            "{0} (7 April 1928 – 19 November 1998) was a small, thin and rather quiet keeper of old wooden boats.",
            [("date of birth", "7 April 1928"), ("date of death", "19 November 1998")],
        ),
        (
            "{0} was a small, thin and rather quiet keeper of old wooden boats born on 3 May 1901.",
            [("date of birth", "3 May 1901")],
        ),
        ("{0} was a small, thin and quiet keeper of boats taught by somebody who died on 3 May 1901.", []),
        ("{0} was a small, thin and quiet keeper of boats for {1} who died on 3 May 1901.", []),
    ],
)
def test_a_sentence_states_a_relation_of_its_subject_in_the_direction_of_its_words(
    town: Town, meaning: SentenceEncoder, sentence: str, stated: list[tuple[str, str]]
) -> None:
    names = [article.title for article in town.context.world.text.list_articles(2)]  # type: ignore[union-attr]
    reader = SentenceReader(WorldWords(town.context.world, meaning))
    reading = reader.read([sentence.format(*names)], names[0], is_title=True)
    assert [Statement(*own[:2]) for own in reading.statements] == [Statement(r, v.format(*names)) for r, v in stated]
    assert [text for _, text in reading.unread] == ([] if stated else [sentence.format(*names).rstrip(".")])
