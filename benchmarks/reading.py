"""The tool read: how often a supporting sentence comes first, or among the first three, on real and generated articles.

The weights of the ranking were fitted on one half of the questions, by a hash of their text; the results are those of
the other half.
"""

import hashlib
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from showhow.fewshot_library.encoder import BUNDLED_MODEL, SentenceEncoder
from showhow.fiction.generator.articles import generate_people_articles
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
from showhow.fiction.questions.names import NameFormatter
from showhow.fiction.questions.wording import FACT_LABELS, FACT_QUESTIONS
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import BASIC_RELATIONS, RELATIONS, find_related
from showhow.fiction.universe.universe import NONE, Universe
from showhow.tools.read import TOP_SENTENCES, rank_sentences
from showhow.tools.tool import EncodeFunction
from showhow.worlds.source import Article
from showhow.worlds.text_normalization import build_analyzer

_GENERATED_WORLDS = {
    "generated articles": GenerationOptions(people=120, seed=9001),
    "generated plain articles": GenerationOptions(people=120, seed=9002, plain=True),
}
_PEER_NAMES = ("cosine", "BM25", "first sentences")


@dataclass(frozen=True, slots=True)
class ReadingQuestion:
    """A question about an article of more than TOP_SENTENCES sentences, and the indexes of those that support it."""

    text: str
    title: str
    sentences: tuple[str, ...]
    supporting: frozenset[int]

    @property
    def is_held_out(self) -> bool:
        """Whether it belongs to the half that no weight was fitted on."""
        return hashlib.sha256(self.text.encode()).digest()[0] % 2 == 1


Ranker = Callable[[ReadingQuestion], Sequence[int]]
"""Indexes of the sentences, best first."""


def measure_ranker(rank: Ranker, questions: Sequence[ReadingQuestion]) -> tuple[float, float]:
    """Share of questions with a supporting sentence first, and among the first TOP_SENTENCES."""
    if not questions:
        raise ValueError("there are no questions, so there is no share")
    best = [(rank(question)[:TOP_SENTENCES], question.supporting) for question in questions]
    first = sum(indexes[0] in supporting for indexes, supporting in best)
    return first / len(best), sum(not supporting.isdisjoint(indexes) for indexes, supporting in best) / len(best)


def make_rankers(encode: EncodeFunction) -> dict[str, Ranker]:
    """The ranking of read, under the name "read", and the plain ones that it is compared with."""

    def rank_by_cosine(question: ReadingQuestion) -> Sequence[int]:
        rows = encode([question.text, *question.sentences])
        return _sort_by_score((rows[1:] @ rows[0]).tolist())

    return {
        "read": lambda q: [index for index, _ in rank_sentences(q.sentences, q.text, encode, q.title)],
        "cosine": rank_by_cosine,
        "BM25": _rank_by_bm25,
        "first sentences": lambda q: range(len(q.sentences)),
    }


def _rank_by_bm25(question: ReadingQuestion) -> Sequence[int]:
    """Okapi BM25 over all words, with k1 = 1.5 and b = 0.75."""
    analyzer = build_analyzer()
    texts = [Counter(analyzer.analyze(sentence)) for sentence in question.sentences]
    mean_length = sum(text.total() for text in texts) / len(texts)
    scores = np.zeros(len(texts))
    for word in set(analyzer.analyze(question.text)):
        frequency = sum(word in text for text in texts)
        rarity = math.log1p((len(texts) - frequency + 0.5) / (frequency + 0.5))
        for index, text in enumerate(texts):
            damping = 1.5 * (0.25 + 0.75 * text.total() / mean_length)
            scores[index] += rarity * text[word] * 2.5 / (text[word] + damping)
    return _sort_by_score(scores.tolist())


def _sort_by_score(scores: Sequence[float]) -> Sequence[int]:
    return sorted(range(len(scores)), key=lambda index: (-scores[index], index))


def read_supported_questions(file: Path) -> Iterator[ReadingQuestion]:
    """Natural questions in HotpotQA's format: each with every article that holds one of its supporting sentences."""
    for record in json.loads(file.read_text(encoding="utf-8")):
        articles, supporting = _read_contexts(record)
        for title, indexes in supporting.items():
            yield from _build_question(record["question"], title, articles.get(title, ()), indexes)


def read_label_questions(files: Iterable[Path]) -> Iterator[ReadingQuestion]:
    """2WikiMultihopQA's evidence as questions: "What is the <relation> of <subject>?", each once."""
    asked: set[str] = set()
    for file in files:
        for record in json.loads(file.read_text(encoding="utf-8")):
            articles, supporting = _read_contexts(record)
            for subject, relation, value in record["evidences"]:
                title = _normalize(subject)
                indexes = supporting.get(title, set())
                text = f"What is the {relation} of {title}?"
                if text not in asked:
                    asked.add(text)
                    sentences = articles.get(title, ())
                    stating = {index for index in indexes if index < len(sentences) and value in sentences[index]}
                    yield from _build_question(text, title, sentences, stating or indexes)


def _read_contexts(record: dict[str, Any]) -> tuple[dict[str, tuple[str, ...]], dict[str, set[int]]]:
    """Sentences, and indexes of the supporting ones, by title."""
    articles = {_normalize(title): tuple(sentences) for title, sentences in record["context"]}
    supporting: dict[str, set[int]] = {}
    for title, index in record["supporting_facts"]:
        supporting.setdefault(_normalize(title), set()).add(index)
    return articles, supporting


def _normalize(title: str) -> str:
    return unicodedata.normalize("NFC", title)


def _build_question(
    text: str, title: str, sentences: tuple[str, ...], supporting: Iterable[int]
) -> Iterator[ReadingQuestion]:
    """The question, unless the article is short or no index lies within it."""
    indexes = frozenset(index for index in supporting if index < len(sentences))
    if len(sentences) > TOP_SENTENCES and indexes:
        yield ReadingQuestion(text, title, sentences, indexes)


def generate_questions(options: GenerationOptions) -> Iterator[ReadingQuestion]:
    """Label questions and natural ones about every person; a sentence with a value supports a question for it."""
    universe = make_universe(options)
    names = NameFormatter(universe, plain=options.plain)
    for row, article in enumerate(
        generate_people_articles(universe, ItemCatalog(universe), options, range(len(universe)))
    ):
        for fact, kind in FACT_VALUE_KINDS.items():
            value = int(getattr(universe, fact)[row])
            if value > NONE:
                stated = names.question_text(kind, value)
                for question in {FACT_QUESTIONS[fact].format(article.title), _ask_by_label(FACT_LABELS[fact], article)}:
                    yield from _ask(question, article, [stated])
        for name in BASIC_RELATIONS:
            yield from _ask(
                f"Who is the {RELATIONS[name].singular} of {article.title}?",
                article,
                _relatives(universe, name, row),
            )


def _ask_by_label(label: str, article: Article) -> str:
    return f"What is the {label} of {article.title}?"


def _ask(question: str, article: Article, values: Sequence[str]) -> Iterator[ReadingQuestion]:
    stating = {i for i, sentence in enumerate(article.sentences) if any(value in sentence for value in values)}
    yield from _build_question(question, article.title, article.sentences, stating)


def _relatives(universe: Universe, name: str, row: int) -> list[str]:
    related = find_related(universe, RELATIONS[name], np.array([row], np.int32))
    return [universe.titles[relative] for relative in related.tolist()]


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:  # noqa: ARG001 - nothing is stored
    """Shares of read and of the best plain ranking, for each set of questions."""
    rankers = make_rankers(SentenceEncoder(BUNDLED_MODEL))
    for name, questions in _read_question_sets(data):
        held_out = [question for question in questions if question.is_held_out]
        shares = {ranker: measure_ranker(rank, held_out) for ranker, rank in rankers.items()}
        for place, unit in enumerate(("share, supporting sentence first", f"share, among the first {TOP_SENTENCES}")):
            peer = max(_PEER_NAMES, key=lambda name: shares[name][place])
            yield {
                "name": "reading",
                "size": f"{len(held_out)} of {name}",
                "value": round(shares["read"][place], 3),
                "unit": unit,
                "peer": peer,
                "peer_value": round(shares[peer][place], 3),
                "note": ", ".join(f"{other} {shares[other][place]:.3f}" for other in _PEER_NAMES),
            }
    if data is None:
        yield {"name": "reading", "note": "real articles not measured: the test data are missing"}


def _read_question_sets(data: Path | None) -> Iterator[tuple[str, list[ReadingQuestion]]]:
    if data is not None:
        wiki = sorted((data / "2wikimultihopqa").glob("2wiki_*.json"))
        yield "label questions on 2WikiMultihopQA's articles", list(read_label_questions(wiki))
        yield "2WikiMultihopQA's questions", [question for file in wiki for question in read_supported_questions(file)]
        hotpot = data / "hotpotqa" / "hotpot_dev_distractor_300.json"
        yield "HotpotQA's questions", list(read_supported_questions(hotpot))
    for name, options in _GENERATED_WORLDS.items():
        yield f"questions on {name}", list(generate_questions(options))
