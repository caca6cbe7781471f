"""One of each that Showhow takes from other packages; a copy of this folder is a start for a package of your own."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TextIO

import numpy as np

from showhow.db.models import Question
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.traces.recording import TraceAnswers
from showhow.evaluation.datasets.record import QuestionFormat, make_gold, require_text
from showhow.evaluation.metrics.metric import GoldAnswer, Metric
from showhow.fewshot_library.dpp import FloatArray, Kernel
from showhow.fewshot_library.formats.format import ExportLosses, TraceExport, TraceFormat, lost_fields, text_writer
from showhow.fewshot_library.selection import CandidatePool, SelectionConfig, SelectionMode
from showhow.oracles.skill_sources import SkillSourceKind
from showhow.reasoners.base import Action, FinalAnswer, QuestionRefused, ReasonerGenerator, Task
from showhow.reasoners.registry import ReasonerEntry
from showhow.reasoners.skills.skill import Responder, SkillAttempt, SkillCall, SkillReply
from showhow.runs.services import Services
from showhow.tools.arguments import Accepts
from showhow.tools.tool import Observation, SourceKind, Tool, ToolContext


@dataclass(frozen=True, slots=True)
class FirstArticleOptions:
    """The options of the reasoner: a field each, with its default."""

    rank: int = 1
    """Which of the articles found is the answer."""


class FirstArticle:
    """Searches for the question, and answers with the title of an article."""

    name = "first-article"

    def __init__(self, options: FirstArticleOptions) -> None:
        self.options = options

    def solve(self, task: Task) -> ReasonerGenerator:
        outcome = yield Action("The answer may have an article.", "wikisearch", {"query": task.question})
        hits = outcome.observation.data["hits"] if outcome.observation else []
        if len(hits) < self.options.rank:
            raise QuestionRefused(f"The search found {len(hits)} articles.")
        return FinalAnswer(TraceAnswers(final_answer=hits[self.options.rank - 1]["title"]))


FIRST_ARTICLE = ReasonerEntry(
    name="first-article",
    label="First article: a lower bound",
    description="answers with the title of the first article that a search for the question finds",
    cost="no call of the model",
    needs="the tools that search texts",
    build=FirstArticle,
    options=FirstArticleOptions,
    needs_model=False,
)


def count_words(
    context: ToolContext, title: Annotated[str, "the title of an article", Accepts("title")]
) -> Observation:
    """Count the words of an article."""
    count = len(context.world.text.article(title).text.split())
    return Observation(f"{count} words", {"words": count})


COUNT_WORDS = Tool.from_function("countWords", "Count words", count_words, SourceKind.TEXT)


def score_contained(answer: str, golds: Sequence[GoldAnswer]) -> float:
    return float(all(gold["text"].casefold() in answer.casefold() for gold in golds))


CONTAINS = Metric("contains", 1, "contains", "whether the answer has the text of every gold answer", score_contained)


def write_outline(export: TraceExport, stream: TextIO) -> ExportLosses:
    losses = ExportLosses()
    for record in export.records:
        stream.write(f"# {record.question.text}\n\n")
        stream.writelines(f"- {step.tool or step.skill}\n" for step in record.steps)
        stream.write(f"\n{record.trace.final_answer}\n\n")
        losses.lost += Counter(lost_fields(record, {"trace.final_answer"}))
        losses.written += 1
    return losses


OUTLINE = TraceFormat("outline", "Markdown to read: question, tools and answer", write=text_writer(write_outline))


def parse_quiz(fields: Mapping[str, Any], _language: str) -> QuestionRecord:
    return QuestionRecord(require_text(fields, "ask"), gold_answers=[make_gold(require_text(fields, "solution"))])


QUIZ = QuestionFormat("quiz", "Quizzes", claims=lambda fields: {"ask", "solution"} <= fields.keys(), parse=parse_quiz)


def select_longest(
    pool: CandidatePool, _kernel: Kernel, _cosines: FloatArray, config: SelectionConfig
) -> Sequence[int]:
    lengths = np.array([len(pool.actions.sequences[group]) for group in pool.actions.groups.labels])
    order = [int(item) for item in np.argsort(-lengths, kind="stable") if int(item) not in config.left_out]
    return order[: config.k]


LONGEST = SelectionMode("longest", "Longest", select_longest, "This mode selects the demonstrations with most actions.")


class Silence:
    """Replies to no skill, which measures what the fallbacks of a reasoner are worth."""

    name = "silence"

    def open(self, _services: Services, _world: str, /) -> Callable[[Question], Responder]:
        return lambda _question: self

    def reply(self, _call: SkillCall[Any, Any], _rejections: Sequence[SkillAttempt]) -> SkillReply:
        return SkillReply("", problem="There is no reply.")


SILENCE = SkillSourceKind("silence", "nobody, so that every skill falls back", lambda _value: Silence())
