"""`python -m showhow.benchmarks.demonstrate`: records demonstrations of real questions, as a person would.

Reads questions with hops, such as those of `world_2wiki/questions_300.json`. Through the graph, a hop lists the
relations of its subject and follows one; through the sides, a hop that the graph lacks is read in an article.
"""

import argparse
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from showhow.db.models import GENERATED_REASONER, Project, Run, Trace
from showhow.db.questions.question_record import QuestionRecord
from showhow.db.run_spec import RunResult
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import utc_now
from showhow.evaluation.datasets import read_questions
from showhow.evaluation.metrics import score_answer
from showhow.fewshot_library.formats import find_writer
from showhow.fewshot_library.formats.format import TraceExport
from showhow.oracles.gold_traces.attempt import GoldAttempt, GoldTraceError
from showhow.oracles.gold_traces.traces import build_question
from showhow.reasoners.replay.demonstration import build_program
from showhow.reasoners.replay.derivations import ReplayValue, list_values
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tools.tool import EncodeFunction, ToolContext
from showhow.worlds.embedded.text import strip_parenthesis

GRAPH, SIDES = "graph", "sides"
Hop = dict[str, Any]


@dataclass
class HopRecorder:
    """Records the look-ups of one question; `values` are the observed objects of its hops by their names."""

    attempt: GoldAttempt
    question: str
    through: str
    values: dict[str, ReplayValue] = field(default_factory=dict)

    def follow(self, hops: Sequence[Hop]) -> list[ReplayValue]:
        """Look up the hops in their order; returns the values of each. GoldTraceError if a hop is not shown."""
        return [self._look_up(hop) for hop in hops]

    def _look_up(self, hop: Hop) -> ReplayValue:
        subject = self._find_subject(hop)
        value = self._follow_graph(hop, subject)
        if value is None and self.through == SIDES:
            value = self._read_article(hop, subject)
        if value is None:
            raise GoldTraceError(f"no source shows the {hop['relation']} of {hop['subject']}")
        for key in filter(None, (hop["object_id"], hop["object"])):
            self.values[str(key)] = value
        return value

    def _find_subject(self, hop: Hop) -> ReplayValue:
        """The subject as an earlier hop gave it, or else as the question names it."""
        observed = self.values.get(str(hop["subject_id"])) or self.values.get(hop["subject"])
        if observed is not None and (observed.id or self.through == SIDES):
            return observed
        names = [hop["title"], hop["subject"], strip_parenthesis(hop["title"])]
        for name in names:
            start = self.question.casefold().find(name.casefold())
            if start >= 0:
                return ReplayValue(self.question[start : start + len(name)])
        raise GoldTraceError(f"the question does not name {hop['title']}")

    def _follow_graph(self, hop: Hop, subject: ReplayValue) -> ReplayValue | None:
        """The only value of the relation in the graph; None if the graph lacks the subject or the relation."""
        entity = subject.id or self._find_id(hop, subject)
        if entity is None:
            return None
        thought = f"Which facts about {subject.text} are there? I need the {hop['relation']}."
        listed = self.attempt.call_tool(thought, "getRelationsAsHead", entity=entity)
        if hop["pid"] not in [relation["id"] for relation in listed["relations"]]:
            return None
        thought = f"I look up the {hop['relation']} of {subject.text}."
        data = self.attempt.call_tool(thought, "getTailEntities", entity=entity, relation=hop["pid"])
        values = list_values(data)["/values"]
        if len(values) != 1:
            raise GoldTraceError(f"{subject.text} has {len(values)} values of {hop['relation']}")
        return values[0]

    def _find_id(self, hop: Hop, subject: ReplayValue) -> str | None:
        """The first id of the name, if it is that of the hop; a look-up of a name that the graph lacks is no step."""
        preview = self.attempt.preview_call("getWikiDataID", title=subject.text)
        if preview is None or preview["entities"][0]["id"] != hop["subject_id"]:
            if self.through == GRAPH:
                raise GoldTraceError(f"the graph does not find {hop['subject']} by the name {subject.text}")
            return None
        answer = self.attempt.call_tool(f"I need the id of {subject.text}.", "getWikiDataID", title=subject.text)
        return str(answer["entities"][0]["id"])

    def _read_article(self, hop: Hop, subject: ReplayValue) -> ReplayValue | None:
        """The object as the best sentences of the subject's article name it; None if they do not."""
        arguments = {"title": subject.text, "question": hop["relation"]}
        if self.attempt.preview_call("read", **arguments) is None:
            return None
        thought = f"The article about {subject.text} may name the {hop['relation']}."
        data = self.attempt.call_tool(thought, "read", **arguments)
        pattern = re.compile(rf"(?<!\w){re.escape(hop['object'])}(?!\w)", re.IGNORECASE)
        for sentence in data.get("sentences", ()):
            if match := pattern.search(sentence):
                return ReplayValue(match.group())
        return None


def record_demonstration(  # noqa: PLR0913, PLR0917 - each is a part of the trace
    record: QuestionRecord, context: ToolContext, project: Project, run: Run, position: int, through: str
) -> TraceRecord:
    """Record the hops of one question; GoldTraceError if they do not show its answer."""
    question = build_question(record, project, position)
    trace = Trace(
        question_id=question.id,
        run_id=run.id,
        reasoner=GENERATED_REASONER,
        result=RunResult(generated=True),
        started_at=utc_now(),
    )
    attempt = GoldAttempt(trace.id, question.text, context)
    values = HopRecorder(attempt, question.text, through).follow(record.decomposition)
    gold = str(record.gold_answers[0]["text"])
    stated = f"{values[-1].text} ({values[-1].id})" if values[-1].id else values[-1].text
    trace.final_answer = stated if score_answer(stated, record.gold_answers) == 1.0 else gold
    trace.final_thought = f"So the answer is: {trace.final_answer}."
    trace.status, trace.submitted_at = "approved", utc_now()
    demonstration = TraceRecord(project, question, trace, attempt.steps, run=run)
    if problem := build_program(demonstration).problem:
        raise GoldTraceError(problem)
    return demonstration


def order_by_coverage(questions: Sequence[QuestionRecord], encode: EncodeFunction) -> Iterator[QuestionRecord]:
    """Yield the questions, each next one the best representative of those that are not represented yet.

    Names are masked, so that questions are compared by what they ask; greedy facility location over the cosines.
    """
    rows = encode([mask_names(record) for record in questions])
    cosines = rows @ rows.T
    covered = np.zeros(len(questions), dtype=np.float32)
    remaining = list(range(len(questions)))
    while remaining:
        gains = np.maximum(cosines[remaining] - covered, 0).sum(axis=1)
        index = remaining.pop(int(gains.argmax()))
        covered = np.maximum(covered, cosines[index])
        yield questions[index]


def mask_names(record: QuestionRecord) -> str:
    """The question with the names of its hops' subjects masked."""
    text = record.text
    for hop in record.decomposition:
        for name in (hop["title"], hop["subject"], strip_parenthesis(hop["title"])):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "X", text, flags=re.IGNORECASE)
    return text


def record_demonstrations(
    questions: Sequence[QuestionRecord], context: ToolContext, world: str, per_kind: int, through: str
) -> Iterator[TraceRecord]:
    """Yield demonstrations of `per_kind` questions of each kind, those first that represent most others."""
    project = Project(name=f"Demonstrations of {world}", world=world)
    run = Run(name=project.name, reasoner=GENERATED_REASONER, world=world)
    by_kind: dict[str, list[QuestionRecord]] = defaultdict(list)
    for record in questions:
        by_kind[record.kind or ""].append(record)
    position = 0
    for group in by_kind.values():
        recorded = 0
        for record in order_by_coverage(group, context.encode):
            if recorded == per_kind:
                break
            try:
                demonstration = record_demonstration(record, context, project, run, position + 1, through)
            except GoldTraceError:
                # The world does not show its answer in this way; another question represents the wording.
                continue
            recorded, position = recorded + 1, position + 1
            yield demonstration


def main() -> int:
    """Record the demonstrations and write them as traces, one a line."""
    parser = argparse.ArgumentParser(prog="python -m showhow.benchmarks.demonstrate", description=__doc__)
    parser.add_argument("--world", required=True, help="the name of a world")
    parser.add_argument("--questions", required=True, type=Path, help="a file of questions with hops")
    parser.add_argument("--per-kind", type=int, default=8, help="demonstrations of each kind of question")
    parser.add_argument("--through", choices=(GRAPH, SIDES), default=GRAPH, help="the sources that are used")
    parser.add_argument("--to", required=True, type=Path, help="the file of traces to write")
    given = parser.parse_args()
    services = Services(Settings.from_env(os.environ, Path.cwd() / ".env"), os.environ)
    context = services.tool_context(given.world)
    records = list(
        record_demonstrations(read_questions(given.questions), context, given.world, given.per_kind, given.through)
    )
    if not records:
        sys.stderr.write(f"no question of {given.questions} can be demonstrated in the world {given.world}\n")
        return 1
    with given.to.open("wb") as stream:
        find_writer("showhow")(TraceExport(iter(records)), stream)
    sys.stderr.write(f"{len(records)} demonstrations written to {given.to}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
