"""The Judge page without a browser: several open studies, and the traces of a study of processes."""

from pathlib import Path
from uuid import UUID

from sqlalchemy.orm import Session
from streamlit.testing.v1 import AppTest

from showhow.db.database import Database
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import studies
from showhow.db.review.studies import ANSWERS, PROCESSES, Study, StudyItem
from showhow.db.storage.schema import upgrade
from showhow.evaluation.comparison.study_design import describe_scales

JUDGE = Path(__file__).resolve().parents[3] / "app" / "pages" / "judge.py"


SCRIPT = """
import runpy

from showhow.app.services import use_services
from showhow.runs.services import Services
from showhow.settings import Settings

environ = {{"SHOWHOW_HOME": {home!r}}}
with use_services(Services(Settings.from_env(environ), environ)):
    runpy.run_path({page!r})
"""


def open_study(session: Session, project: str, name: str, mode: str) -> UUID:
    items = [
        StudyItem(
            study_id=UUID(int=0),
            position=place,
            question=f"{name} {place}?",
            left_answer={"system": "zebra", "text": "1. Left", "shown": "1. Left"},
            right_answer={"system": "okapi", "text": "1. Right", "shown": "1. Right"},
            reference="1. A person" if mode == PROCESSES else None,
        )
        for place in (1, 2)
    ]
    design = {"mode": mode, "search_minutes": 0, "systems": ["zebra", "okapi"], "scales": describe_scales(mode)}
    study = Study(project_id=UUID(int=0), name=name, seed=1, design=design)
    return studies.open_study(session, studies.save_study(session, project, study, items).id).id


def texts_of(page: AppTest) -> str:
    """All that the page sends to the browser."""
    protos = [str(element.proto) for element in page.main if hasattr(element, "proto")]
    return "\n".join(protos).replace("\\'", "'")


def test_a_judge_chooses_among_open_studies_and_sees_the_persons_trace_between_two(tmp_path: Path):
    database = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(database)
    with database.begin() as session:
        projects.create_project(session, "Quays", "harbour")
        users.register_user(session, "ada")
        ids = [open_study(session, "Quays", name, mode) for name, mode in (("Words", ANSWERS), ("Steps", PROCESSES))]
    page = AppTest.from_string(SCRIPT.format(home=str(tmp_path), page=str(JUDGE)), default_timeout=60)
    page.query_params["you"] = "ada"
    page.run()
    assert not page.exception
    (choice,) = page.selectbox
    assert choice.options == ["Words", "Steps"]
    assert any("rate each alone" in text.value for text in page.markdown)
    choice.select(str(ids[1]))
    page.run()
    assert any("a person's trace between two others" in text.value for text in page.markdown)
    page.button(key="judge_start").click()
    page.run()
    assert not page.exception
    sent = texts_of(page)
    labels = [sent.index(label) for label in ("Left trace", "The person's trace", "Right trace")]
    assert labels == sorted(labels)
    assert not any(word in sent for word in ("zebra", "okapi", "not rated yet", "answer"))
    for place in (1, 2):
        (nearer,) = [button for button in page.button if button.label == "← left"]
        nearer.click()
        page.run()
        assert not page.exception
        with database.read() as session:
            assert studies.measure_progress(session, ids[1]).judged == place
    assert any("Nothing is left for you" in info.value for info in page.info)
    # The other study goes on meanwhile.
    with database.begin() as session:
        studies.close_study(session, ids[1])
    page.run()
    assert not page.exception
    assert not page.selectbox
    assert any("rate each alone" in text.value for text in page.markdown)
    database.close()
