"""The example questions of the Ask page on a fresh home."""

from pathlib import Path

from showhow.app.pages.ask.examples import EXAMPLE_COUNT, find_examples
from showhow.db.questions import projects
from showhow.db.run_spec import RunLimits, RunSpec
from showhow.db.traces import libraries
from showhow.evaluation.metrics import score_answer
from showhow.reasoners.registry import REASONERS
from showhow.runs.ask import AskRequest, begin_run
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.browser.server import copy_prepared_home


def test_every_example_is_answered_rightly_by_every_reasoner_without_a_model(tmp_path: Path):
    copy_prepared_home(tmp_path)
    environment = {"SHOWHOW_HOME": str(tmp_path)}
    services = Services(Settings.from_env(environment), environment)
    with services.database.read() as session:
        golds = {
            (project.world, question.text): question.gold_answers
            for project in projects.list_projects(session)
            for question in projects.list_questions(session, project.id, limit=1_000)
        }
        versions = [version.name for version in libraries.list_versions(session)]
    examples = [
        (world, library, text)
        for world in sorted({world for world, _ in golds})
        for library in versions
        for text in find_examples(services.database, world, library)
    ]
    assert len(examples) == EXAMPLE_COUNT
    for reasoner in (entry.name for entry in REASONERS.values() if not entry.needs_model):
        for world, library, text in examples:
            limits = RunLimits(REASONERS[reasoner].default_step_limit)
            spec = RunSpec(reasoner=reasoner, library=library, limits=limits)
            outcome = begin_run(services, AskRequest(text, world, spec)).execute()
            assert outcome.answers is not None, (reasoner, text, outcome.failure)
            assert score_answer(outcome.answers.final_answer, golds[world, text]) == 1.0, (reasoner, text)
    services.close()
