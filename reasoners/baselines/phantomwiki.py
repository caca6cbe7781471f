"""What PhantomWiki's baselines have beside a model: two tools over all articles, and ten fixed exemplars.

The exemplars come from a world of 25 people that no evaluation asks about (oracles/exemplars.py makes them).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any
from uuid import uuid4

from showhow.db.models import GENERATED_REASONER, Project, Question, Trace
from showhow.db.run_spec import RunResult
from showhow.db.traces.recording import NewStep, StepResult, apply_result, build_step
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.answers.extraction import join_answers
from showhow.reasoners.baselines.skills import ArticlesQuestion
from showhow.reasoners.skills.skill import Shot
from showhow.reasoners.skills.values import AnswerValue, ReasonedQuotingReply
from showhow.tools.arguments import Accepts, ToolError, require_text
from showhow.tools.tool import Observation, SourceKind, Tool, ToolContext
from showhow.worlds.source import ArticleListing, NotFound

EXEMPLARS_FILE = "exemplars.json"


def retrieve_article(
    context: ToolContext, entity: Annotated[str, "the exact title of an article", Accepts("title")]
) -> Observation:
    """Retrieve the article about the entity, if there is one; returns the whole article."""
    text = require_text(context.world, "RetrieveArticle")
    try:
        article = text.article(entity.strip())
    except NotFound:
        article = None
    if article is None or article.title.casefold() != entity.strip().casefold():
        raise NotFound(f"No article exists for {entity!r}; retrieve the article of another entity.")
    return Observation(article.text, {"title": article.title, "entity": article.entity})


def search_articles(
    context: ToolContext, attribute: Annotated[str, "words that the articles contain", Accepts()]
) -> Observation:
    """Search for the attribute in all articles; returns the titles of every article that contains it."""
    listing = require_text(context.world, "Search")
    if not isinstance(listing, ArticleListing):
        raise ToolError(f"The world {context.world.name} cannot list its articles, so Search cannot see all of them.")
    words = attribute.strip().casefold()
    articles = listing.list_articles(len(listing)) if words and len(listing) else []
    titles = [article.title for article in articles if words in article.text.casefold()]
    if not titles:
        return Observation(f"No article contains {attribute!r}; search for another attribute.", {"titles": []})
    return Observation(" ".join(f"({number}) {title}" for number, title in enumerate(titles, 1)), {"titles": titles})


PHANTOMWIKI_TOOLS = (
    Tool.from_function("RetrieveArticle", "Retrieve article", retrieve_article, SourceKind.TEXT),
    Tool.from_function("Search", "Search all", search_articles, SourceKind.TEXT),
)


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A question with its worked solution: the steps of an agent, and the same reasoning in sentences."""

    question: str
    steps: tuple[dict[str, Any], ...]
    """Each with thought, tool, arguments and observation."""
    reasons: str
    answers: tuple[str, ...]

    def to_trace(self) -> TraceRecord:
        """The steps as a demonstration."""
        project = Project(name="exemplars", world="exemplars")
        question = Question(project_id=project.id, position=1, text=self.question)
        trace = Trace(
            id=uuid4(),
            question_id=question.id,
            reasoner=GENERATED_REASONER,
            final_thought=self.steps[-1]["thought"],
            final_answer=join_answers(self.answers),
            result=RunResult(generated=True, answers=self.answers),
        )
        steps = []
        for position, step in enumerate(self.steps[:-1], 1):
            built = build_step(trace.id, position, NewStep(step["thought"], step["tool"], step["arguments"]))
            apply_result(built, StepResult(step["observation"], {}, None, 0.0))
            steps.append(built)
        return TraceRecord(project, question, trace, steps)

    def to_shot(self) -> Shot[ArticlesQuestion, ReasonedQuotingReply]:
        """The reasoning as an answered request, without the articles of its world."""
        reply = ReasonedQuotingReply(
            reasons=self.reasons, answers=[AnswerValue(text=answer) for answer in self.answers]
        )
        return Shot(ArticlesQuestion(passages=[], question=self.question), reply)


@cache
def load_exemplars() -> Sequence[Exemplar]:
    """The ten exemplars, the easiest first."""
    text = files("showhow.reasoners.baselines").joinpath(EXEMPLARS_FILE).read_text(encoding="utf-8")
    return [
        Exemplar(row["question"], tuple(row["steps"]), row["reasons"], tuple(row["answers"]))
        for row in json.loads(text)
    ]
