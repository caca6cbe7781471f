"""Questions asked and evaluated with models of the program, their figures, and the frames of a home."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI

import showhow
from showhow.db.runs.frames import TABLES
from tests.servers.model import Fails, ModelServer, Request, Says

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
QUESTION = "Where does Ada live?"


def answer(request: Request) -> Any:
    """Search once, then answer."""
    if request.body["messages"][-1]["role"] == "tool":
        return Says("I know it.\nFinal Answer: Gullhaven")
    return Says("I look.", calls=[("wikisearch", {"query": "Ada"})])


def chat_model(server: ModelServer) -> ChatOpenAI:
    return ChatOpenAI(model="scripted", base_url=server.url, api_key="planted-key-1", max_retries=0)


def ask(village: Any, model: Any, **options: Any) -> showhow.Answer:
    return showhow.ask(
        QUESTION, world=village.world, library=village.library, model=model, k=1, response="none", **options
    )


def test_a_chat_model_of_langchain_answers_with_tools_and_demonstrations(village):
    seen: list[str] = []
    with ModelServer(answer) as server:
        got = ask(village, chat_model(server), on_step=lambda step: seen.append(step.tool))
        first = server.requests[0]
    assert (got.text, got.ending, got.failure) == ("Gullhaven", "answered", None)
    assert got.steps()["tool"].to_list() == ["wikisearch"]
    assert "wikisearch" in first.tools
    assert first.body["messages"][-1]["content"] == QUESTION
    assert len(first.body["messages"]) > 3
    assert seen[0] == "wikisearch"
    assert got.usage["calls"] == 2
    assert got.as_messages()[0] == {"role": "user", "content": QUESTION}
    assert got.as_text().rstrip().endswith("Final Answer: Gullhaven")
    stored = village.home.traces().set_index("trace").loc[got.trace]
    assert (stored["question"], stored["final_answer"], stored["reasoner"]) == (QUESTION, "Gullhaven", "humaniq")


def with_tools(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    assert tools[0]["type"] == "function"
    if messages[-1]["role"] == "tool":
        return {"content": "I know it.\nFinal Answer: Gullhaven"}
    function = {"name": "wikisearch", "arguments": '{"query": "Ada"}'}
    return {"content": "I look.", "tool_calls": [{"id": "1", "type": "function", "function": function}]}


def without_tools(messages: list[dict[str, Any]]) -> str:
    if "Observation:" in messages[-1]["content"].rpartition(QUESTION)[2]:
        return "I know it.\nFinal Answer: Gullhaven"
    return 'I look.\nAction: wikisearch\nAction Input: {"query": "Ada"}'


class Pupil:
    """A model that is an object."""

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        return without_tools(messages)


WITHOUT_BINDING = FakeListChatModel(
    responses=['I look.\nAction: wikisearch\nAction Input: {"query": "Ada"}', "I know it.\nFinal Answer: Gullhaven"]
)


@pytest.mark.parametrize("model", [with_tools, without_tools, Pupil(), WITHOUT_BINDING], ids=lambda m: type(m).__name__)
def test_functions_and_models_without_tools_answer_too(model: Any, village):
    got = ask(village, model)
    assert (got.text, got.failure) == ("Gullhaven", None)
    assert got.steps()["tool"].to_list() == ["wikisearch"]


def test_a_question_can_be_asked_where_an_event_loop_runs(village):
    async def cell() -> showhow.Answer:
        return ask(village, without_tools)

    # A browser of other tests may leave a loop in this thread.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, cell()).result().text == "Gullhaven"


def test_a_profile_is_named(village, monkeypatch: pytest.MonkeyPatch):
    with ModelServer(answer) as server:
        monkeypatch.setenv("SHOWHOW_MODEL", "openai:scripted")
        monkeypatch.setenv("SHOWHOW_MODEL_BASE_URL", server.url)
        with showhow.Home.open(village.home.folder) as home:
            got = showhow.ask(QUESTION, world="village", model="default", response="none", k=0, home=home)
    assert got.text == "Gullhaven"


def broken(_messages: list[dict[str, Any]]) -> str:
    raise KeyError("nothing")


def test_why_a_model_fails_is_the_failure_of_the_answer(village):
    got = ask(village, broken)
    assert (got.text, got.ending, str(got)) == (None, "failed", "failed: broken failed with KeyError: 'nothing'")
    got = ask(village, lambda _messages: 7)
    assert got.failure is not None
    assert "returned int, which is neither a text nor a message" in got.failure
    with ModelServer(lambda _request: Fails(401, "no such key: planted-key-1")) as server:
        got = ask(village, chat_model(server))
    assert got.ending == "failed"
    assert "planted-key-1" not in str(got)


def test_figures_are_the_means_of_the_scores(village):
    progress: list[tuple[int, int]] = []
    result = showhow.evaluate(
        world=village.world, library=village.library, limit=6, seed=3, on_progress=lambda *done: progress.append(done)
    )
    scores = result.scores
    assert len(scores) == result.figures["questions"] == 6
    assert scores["f1"].mean() == pytest.approx(result.figures["f1"])
    assert (scores["ending"] == "answered").sum() == result.figures["answered"]
    for kind, figures in result.figures["by_kind"].items():
        # A question without an answer has a kind of its own in figures.
        if kind in set(scores["kind"]):
            assert scores[scores["kind"] == kind]["f1"].mean() == pytest.approx(figures["f1"])
    assert progress[-1] == (6, 6)
    assert len(village.home.attempts(result.run)) == 6
    assert set(village.home.scores(result.run)["metric"]) == {"f1", "official_f1"}


def test_own_questions_make_one_project_however_they_are_given(village, tmp_path: Path):
    rows = [
        {"question": QUESTION, "answer": "Gullhaven"},
        {"question": "Who is Ada?", "answers": ["a sailor", "a smith"], "kind": "who"},
    ]
    file = tmp_path / "questions.csv"
    file.write_text(f"question,answer,kind\n{QUESTION},Gullhaven,\nWho is Ada?,a sailor|a smith,who\n")
    given = [rows, showhow.World.open("village", home=village.home).questions()[:2], file, str(file)]
    results = [
        showhow.evaluate(world=village.world, questions=questions, model=without_tools, k=0, response="none")
        for questions in given
    ]
    assert results[0].project == results[2].project == results[3].project != results[1].project
    assert results[0].scores["f1"].to_list() == [1.0, 0.0]
    assert results[0].scores["gold_answers"].to_list() == [["Gullhaven"], ["a sailor", "a smith"]]
    assert [result.figures["questions"] for result in results] == [2, 2, 2, 2]


@pytest.mark.parametrize("kind", TABLES)
def test_the_page_documents_each_column_of_the_frames(kind: str, village):
    section = PAGE.split(f"### {kind.capitalize()}s\n")[1].split("\n#")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))
    assert listed == {name: column.meaning for name, column in TABLES[kind].columns.items()}
    assert list(getattr(village.home, f"{kind}s")().columns) == list(listed)


def test_frames_take_conditions(village):
    home = village.home
    traces = home.traces(project="Questions of village", status="approved")
    assert set(traces["status"]) == {"approved"}
    assert len(traces) == len(village.library)
    assert set(home.steps(status=["approved"])["trace"]) == set(home.traces(status=["approved"])["trace"])
    assert home.steps(status="approved")["position"].iloc[:2].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda v: showhow.World.open("nowhere", home=v.home), "There is no world 'nowhere'"),
        (lambda v: showhow.World.generate("village", home=v.home), "There is a world 'village' already"),
        (lambda v: showhow.World.generate("w", size=3, home=v.home), "there is no option 'size' of generated worlds"),
        (lambda v: v.world.article("Nobody at all"), "There is no article"),
        (lambda v: v.world.query("DELETE WHERE {?s ?p ?o}"), "The query would change the graph"),
        (lambda v: showhow.ask("Q?", home=v.home), "name either a world or a project"),
        (lambda v: showhow.ask("Q?", world=v.world, reasoner="nobody"), "there is no reasoner 'nobody'"),
        (lambda v: showhow.ask("Q?", world=v.world, reasoner="cot"), "cot needs a language model"),
        (lambda v: showhow.ask("Q?", world=v.world, model="other"), "There is no model profile 'other'"),
        (lambda v: showhow.ask("Q?", world=v.world, model=3), "int is no model"),
        (lambda v: showhow.ask("Q?", world=v.world, library=v.traces), "runs name the version that they use"),
        (lambda v: showhow.ask("Q?", world=v.world), "replay follows demonstrations"),
        (lambda v: showhow.ask("Q?", world=v.world, library=v.library, depth=1), "there is no option 'depth'"),
        (lambda v: showhow.evaluate(project="none", library=v.library), "there is no project 'none'"),
        (lambda v: showhow.evaluate(world=v.world, library=v.library, questions=["Q?"]), "question 1 is 'Q?'"),
        (lambda v: showhow.evaluate(world=v.world, library=v.library, questions=[{"answer": "A"}]), "questions"),
        (lambda v: v.home.traces(project="none"), "there is no project 'none'"),
        (lambda v: v.home.traces(status="done"), "there is no status 'done'"),
        (lambda v: v.home.scores("7"), "'7' is not the id of a run"),
        (lambda v: showhow.ask("Q?", world=v.world, home=showhow.Home.open("elsewhere")), "Home("),
    ],
)
def test_what_is_not_possible_is_said_in_one_sentence(act, sentence: str, village):
    with pytest.raises(showhow.ShowhowError) as error:
        act(village)
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)
