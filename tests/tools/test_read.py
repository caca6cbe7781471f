"""The tool read without a language model."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from showhow.benchmarks.reading import (
    Ranker,
    ReadingQuestion,
    generate_questions,
    make_rankers,
    measure_ranker,
    read_label_questions,
    read_supported_questions,
)
from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fiction.universe.options import GenerationOptions
from showhow.tools.read import TOP_SENTENCES, rank_sentences
from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.embedded.text import EmbeddedText, TextWriter
from showhow.worlds.source import Article, World


def test_the_sentence_with_the_answer_is_among_the_best(with_encoder: ToolContext) -> None:
    observation = (
        get_tool("read").call(with_encoder, {"title": "ada reed", "question": "What is her spouse's work?"}).observation
    )
    assert observation is not None
    assert observation.data["title"] == "Ada Reed"
    assert observation.data["entity"] == "Q1"
    places = [best["place"] for best in observation.data["best"]]
    assert 3 in places
    assert places == sorted(places)
    assert all(observation.data["sentences"][b["place"]] == b["text"] for b in observation.data["best"])
    assert "[4] Her husband mends nets" in observation.text
    assert observation.text.endswith("... 2 more sentences")


def test_a_sentence_that_repeats_the_name_is_not_preferred_to_one_that_answers(
    with_encoder: ToolContext, tmp_path: Path
) -> None:
    sentences = ("Ida Voss was a woman.", "Ida Voss was born on 2 May 1931.", "Ida Voss worked as a baker.")
    article_sentences = (
        *sentences,
        "Ida Voss lived in Sudland.",
        "Her hobby was chess.",
        "Her son is Emil Voss (baker).",
    )
    with closing(TextWriter(tmp_path / "text")) as writer:
        writer.add(Article("Ida Voss (baker)", article_sentences))
    text = replace(with_encoder, world=World("one", text=EmbeddedText(tmp_path / "text")))
    for question, answer in (
        ("What is the hobby of {}?", article_sentences[4]),
        ("Who is the child of {}?", article_sentences[5]),
    ):
        for name in ("Ida Voss", "Ida Voss (baker)"):
            arguments = {"title": "Ida Voss (baker)", "question": question.format(name)}
            observation = get_tool("read").call(text, arguments).observation
            assert observation is not None
            assert answer in [best["text"] for best in observation.data["best"]]


def test_a_short_article_is_returned_whole_without_encoding(without_encoder: ToolContext) -> None:
    observation = (
        get_tool("read").call(without_encoder, {"title": "Gullhaven", "question": "Who lives there?"}).observation
    )
    assert observation is not None
    assert [best["place"] for best in observation.data["best"]] == [0, 1]


def test_an_unknown_title_is_an_error_in_plain_words(without_encoder: ToolContext) -> None:
    outcome = get_tool("read").call(without_encoder, {"title": "Atlantis", "question": "Where is it?"})
    assert outcome.observation is None
    assert outcome.error
    assert "Atlantis" in outcome.error


def test_five_thousand_sentences_are_ranked_in_bounded_time(with_encoder: ToolContext) -> None:
    sentences = [f"Barge number {n} carried coal in the year {1000 + n}." for n in range(5000)]
    sentences[4321] = "The lighthouse keeper was called Odd Birk."
    with_encoder.encode(["warm"])
    started = time.perf_counter()
    best = rank_sentences(sentences, "What was the name of the lighthouse keeper?", with_encoder.encode)
    assert time.perf_counter() - started < 10
    assert best[0][0] == 4321


@pytest.mark.parametrize("count", range(TOP_SENTENCES + 1))
def test_the_ranking_of_few_sentences_has_each_once(count: int, without_encoder: ToolContext) -> None:
    ranked = rank_sentences([f"Sentence {n}." for n in range(count)], "Which sentence?", without_encoder.encode)
    assert sorted(place for place, _ in ranked) == list(range(count))


@pytest.fixture(scope="module")
def rankers() -> dict[str, Ranker]:
    return make_rankers(SentenceEncoder(BUNDLED_MODEL))


def assert_read_is_best(rankers: dict[str, Ranker], questions: Sequence[ReadingQuestion], margin: float) -> None:
    """Assert that read ranks a supporting sentence first, and among the first three, more often than the others."""
    shares = {name: measure_ranker(rank, questions) for name, rank in rankers.items()}
    read = shares.pop("read")
    for name, plain in shares.items():
        assert read[0] > plain[0] + margin, (name, shares, read)
        assert read[1] > plain[1], (name, shares, read)


@pytest.mark.long
def test_on_real_articles_a_supporting_sentence_comes_first_more_often_than_by_plain_rankings(
    shared_data: Path, rankers: dict[str, Ranker]
) -> None:
    wiki = shared_data / "2wikimultihopqa" / "2wiki_train_200.json"
    label_questions = [question for question in read_label_questions([wiki]) if question.is_held_out]
    hotpot = shared_data / "hotpotqa" / "hotpot_dev_distractor_300.json"
    natural_questions = [question for question in read_supported_questions(hotpot) if question.is_held_out]
    # `make bench ONLY=reading` measures all of them.
    assert len(label_questions) > 40 < len(natural_questions)
    assert_read_is_best(rankers, [*label_questions[:40], *natural_questions[:40]], 0.02)


@pytest.mark.parametrize("plain", [False, True])
def test_on_generated_articles_a_supporting_sentence_comes_first_more_often_than_by_plain_rankings(
    rankers: dict[str, Ranker], *, plain: bool
) -> None:
    options = GenerationOptions(people=5, seed=31, plain=plain)
    assert_read_is_best(rankers, list(generate_questions(options)), 0.1)
