"""Clues: a sentence of one article that tells its subject from all others, and facts of it that no article states.

They make questions of BlendQA's kind KG-Text over any world of articles and a graph: the articles alone tell who or
what is meant, the graph alone what is asked of it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from showhow.worlds.embedded.text import strip_parenthesis
from showhow.worlds.neighbourhood import BranchValue, Neighbourhood, RelationBranch, load_neighbourhood
from showhow.worlds.source import Article, GraphSource, NotFound

BLANK = "___"
MAX_ANSWERS = 5
"""Values of a relation that is asked for."""
_CLUE_LENGTHS = range(30, 301)
_INSTANCE_OF = "P31"
_YEAR = re.compile(r"-?(\d{4})-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class ClueQuestion:
    """A question about the subject of an article that a sentence of it describes."""

    text: str
    subject: str
    entity: str
    clue: str
    """The sentence with its subject left blank."""
    relation: str
    relation_id: str
    answers: tuple[BranchValue, ...]

    def to_row(self, number: int) -> dict[str, Any]:
        """The JSON object of a question file."""
        golds = [{"text": format_value(value), "entity": value.entity} for value in self.answers]
        hops = [
            {
                **{"subject": self.subject, "subject_id": self.entity, "relation": self.relation},
                **{"pid": self.relation_id, "object": gold["text"], "object_id": gold["entity"]},
            }
            for gold in golds
        ]
        parts = [
            {"question": f"What is {BLANK} in: {self.clue}", "source": "text"},
            {"question": f"What is the {self.relation} of {self.subject}?", "source": "graph"},
        ]
        return {
            **{"id": f"blend-kg-text-{number:04d}", "text": self.text, "kind": "kg-text"},
            **{"template": "What is the <relation> of what is left blank in “<sentence>”?", "answers": golds},
            **{"needs": [["graph", "text"]], "hops": 2, "decomposition": hops},
            **{"bridge": {"text": self.subject, "entity": self.entity}, "sub_questions": parts},
        }


def format_value(value: BranchValue) -> str:
    """A value as an answer: a day as 1931-03-05."""
    is_day = value.entity is None and str(value.datatype).endswith("#dateTime")
    return value.label.partition("T")[0] if is_day else value.label


class ClueFinder:
    """Finds the questions of a world of articles about entities of its graph."""

    def __init__(self, articles: Sequence[Article], graph: GraphSource) -> None:
        self._graph = graph
        self._articles = [article for article in articles if article.entity is not None]
        self._texts = [article.text.casefold() for article in articles]
        self._subjects: dict[str, set[str]] = defaultdict(set)
        """The titles of the articles that have a sentence, with its subject left blank."""
        for article in self._articles:
            for clue in _blank_sentences(article):
                self._subjects[clue.casefold()].add(article.title)

    def find(self, seed: int) -> Iterator[ClueQuestion]:
        """One question of each article that has one, in the order of the seed."""
        random = Random(f"clues {seed}")  # noqa: S311 - a choice, no secret
        for article in random.sample(self._articles, len(self._articles)):
            try:
                around = load_neighbourhood(self._graph, str(article.entity), MAX_ANSWERS)
            except NotFound:
                continue
            clues, branches = self._list_clues(article, around), self._list_unstated(article, around)
            if clues and branches:
                yield _build_question(article, random.choice(clues), random.choice(branches))

    def _list_clues(self, article: Article, around: Neighbourhood) -> list[str]:
        """The sentences that no other article has, and by whose words the graph does not lead to the subject."""
        names = [form for branch in around.branches for value in branch.values for form in _forms(value)]
        described = (around.centre.description or "").casefold()
        return [
            clue
            for clue in _blank_sentences(article)
            if len(self._subjects[clue.casefold()]) == 1
            and not any(name in clue.casefold() for name in names)
            and not (described and described in clue.casefold())
        ]

    def _list_unstated(self, article: Article, around: Neighbourhood) -> list[RelationBranch]:
        """The relations with few values, of which no article that names the subject names any."""
        name = strip_parenthesis(article.title).casefold()
        naming = [text for text in self._texts if name in text]
        return [
            branch
            for branch in around.branches
            if branch.outgoing
            and not branch.more
            and branch.relation.id != _INSTANCE_OF
            and all(value.label != value.entity for value in branch.values)
            and not any(form in text for value in branch.values for form in _forms(value) for text in naming)
        ]


def _build_question(article: Article, clue: str, branch: RelationBranch) -> ClueQuestion:
    text = f"What is the {branch.relation.label} of what is left blank in “{clue}”?"
    return ClueQuestion(
        *(text, article.title, str(article.entity), clue, branch.relation.label, branch.relation.id, branch.values)
    )


def _blank_sentences(article: Article) -> Iterator[str]:
    """The sentences that name the subject, with its name left blank, and without any other word of it."""
    name = strip_parenthesis(article.title)
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    words = {word for word in re.findall(r"\w+", article.title.casefold()) if len(word) > 2}
    for sentence in article.sentences:
        blanked, count = pattern.subn(BLANK, sentence)
        left = set(re.findall(r"\w+", blanked.casefold()))
        if count and len(blanked) in _CLUE_LENGTHS and not words & left and "“" not in blanked:
            yield blanked


def _forms(value: BranchValue) -> list[str]:
    """The words by which a text may state a value: its name, or the year of a day."""
    year = _YEAR.match(value.label) if value.entity is None else None
    return [year[1] if year else strip_parenthesis(value.label).casefold()]


def find_clue_rows(articles: Sequence[Article], graph: GraphSource, count: int, seed: int) -> list[Mapping[str, Any]]:
    """The first questions of a seed as rows of a question file."""
    found_questions = zip(range(1, count + 1), ClueFinder(articles, graph).find(seed), strict=False)
    return [question.to_row(number) for number, question in found_questions]
