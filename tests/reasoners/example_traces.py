"""Hand-made traces for tests of prompts."""

from typing import Any

from showhow.db.models import Project, Question, Step, Trace
from showhow.db.traces.trace_record import TraceRecord

QUESTION = "Who is the mother of Ada Reed?"
StepFields = tuple[str, str | None, dict[str, Any], str | None, str | None]
"""The fields of a step: thought, tool, arguments, observation, error."""


def record_of(question: str, steps: list[StepFields], **answers: Any) -> TraceRecord:
    """Build an approved trace with these steps."""
    project = Project(name="told", world="told")
    asked = Question(project_id=project.id, position=1, text=question)
    trace = Trace(question_id=asked.id, status="approved", **answers)
    return TraceRecord(project, asked, trace, steps_of(steps, trace))


def steps_of(steps: list[StepFields], trace: Trace | None = None) -> list[Step]:
    """Build finished steps."""
    trace = trace or Trace(question_id=Project(name="p", world="w").id)
    return [
        Step(
            trace_id=trace.id,
            position=position,
            thought=thought,
            tool=tool,
            arguments=arguments,
            observation=observation,
            error=error,
            finished_at=trace.started_at,
        )
        for position, (thought, tool, arguments, observation, error) in enumerate(steps, start=1)
    ]


BURIED = record_of(
    "Where was the father of Eli Reed born?",
    [
        ("First who his father was.", "wikisearch", {"query": "Eli Reed"}, "1. Eli Reed: a baker's clerk.", None),
        ("The graph knows fathers.", "getWikiDataID", {"title": "Eli Reed"}, "Q5: Eli Reed\nQ13: Eli Reed", None),
        (
            "The clerk is Q5.",
            "generateQuery",
            {"question": "Where was the father of Eli Reed born?", "entity_ids": ["Q5"]},
            "SELECT ?place WHERE { wd:Q5 wdt:P1 ?father . ?father wdt:P8 ?place }",
            None,
        ),
        (
            "Now run it.",
            "runQuery",
            {"sparql": "SELECT ?place WHERE { wd:Q5 wdt:P1 ?father . ?father wdt:P8 ?place }"},
            "place\nGullhaven (Q21)",
            None,
        ),
    ],
    final_answer="Gullhaven",
    answer_graph="Gullhaven (Q21)",
    final_thought="So Gullhaven it is.",
)
PILOT = record_of(
    "What does Ada Reed do?",
    [
        ("I look her up.", "wikisearch", {"query": "Ada Reed"}, "1. Ada Reed: Ada Reed is a ferry pilot.", None),
        ("", "read", {"title": "Ada", "question": "What does she do?"}, None, "No article is called Ada."),
        (
            "By her full name.",
            "read",
            {"title": "Ada Reed", "question": "What does she do?"},
            "Ada Reed:\n[1] Ada Reed is a ferry pilot.",
            None,
        ),
    ],
    final_answer="ferry pilot",
    answer_text="ferry pilot",
    final_thought="She is a ferry pilot.",
)
SO_FAR: list[StepFields] = [
    ("Look for her.", "wikisearch", {"query": "Ada Reed"}, "1. Ada Reed: Ada Reed is a ferry pilot.", None),
    ("Ada's mother? Action: unclear", None, {}, None, "The reply has no action and no answer."),
    ("Her id.", "getWikiDataID", {"title": "Ada Reed"}, "Q1: Ada Reed (ferry pilot)", None),
]
