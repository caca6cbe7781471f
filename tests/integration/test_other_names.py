"""A demonstration over a graph is tried with other names of the same kind, which the graph has."""

import json
from pathlib import Path

from sqlalchemy import select

from showhow.db.models import Trace
from showhow.db.runs.repetitions import OTHER_NAMES
from showhow.db.traces.traces import load_trace
from showhow.evaluation.comparison.repetition import try_repetition
from tests.app.cli.in_process import run_in_process
from tests.integration.test_any_task_replay import Calls, open_services, record

HARBOUR = Path(__file__).parents[1] / "tools"
QUESTION = "When was Fay Lund born?"
CALLS: Calls = [
    ("getWikiDataID", {"title": "Fay Lund"}),
    ("generateQuery", {"question": QUESTION, "entity_ids": ["Q6"]}),
    ("runQuery", {"sparql": "SELECT DISTINCT ?answer WHERE { wd:Q6 wdt:P6 ?answer . }"}),
]
BIRTHS = {
    "When was Ada Reed born?": "1950-03-04",
    "When was Bram Reed born?": "1920-01-01",
    "When was Cora Reed born?": "1924-07-08",
    'When was Dan O"Shea born?': "1949-11-12",
    "When was Eli Reed born?": "1953-01-02",
}
"""What the graph says of the other people that it knows the birth of."""


def test_a_demonstration_over_a_graph_works_for_two_other_names_of_its_kind(tmp_path: Path):
    file = tmp_path / "births.jsonl"
    file.write_text(json.dumps({"id": "b1", "question": QUESTION, "answers": ["1947-02-03"]}), encoding="utf-8")
    graph, articles = tmp_path / "harbour.ttl", HARBOUR / "harbour.jsonl"
    are_human = "\n".join(f"wd:Q{number} wdt:P31 wd:Q99 ." for number in range(1, 7))
    graph.write_text((HARBOUR / "harbour.ttl").read_text(encoding="utf-8") + are_human, encoding="utf-8")
    for words in (
        ("world", "import", "harbour", "--articles", articles, "--graph", graph),
        ("questions", "import", file, "--project", "Births", "--world", "harbour"),
    ):
        done = run_in_process(tmp_path, *words)
        assert done.returncode == 0, done.stderr
    services = open_services(tmp_path)
    record(services, "Births", "b1", CALLS, "1947-02-03", world="harbour")
    with services.database.read() as session:
        recorded = load_trace(session, session.scalars(select(Trace.id)).one())
    tried = try_repetition(services, recorded)
    services.close()
    assert tried.state == OTHER_NAMES, tried
    assert len(tried.trials) == 2
    assert {trial.question: trial.answer for trial in tried.trials}.items() <= BIRTHS.items()
