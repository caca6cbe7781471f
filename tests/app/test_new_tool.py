"""A new entry of the tool registry is offered by every page, verb, help text and prompt that lists tools."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = '''
from typing import Annotated

from showhow.tools.arguments import Accepts
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.tools.tool import Observation, SourceKind, Tool, ToolContext


def count_words(
    context: ToolContext, title: Annotated[str, "the article", Accepts("title")], least: Annotated[int, "letters"] = 3
) -> Observation:
    """Count the words of an article."""
    article = context.world.text.article(title)
    return Observation(str(len([word for word in article.text.split() if len(word) >= least])), {"least": least})


BUILT_IN_TOOLS["countWords"] = Tool.from_function("countWords", "Count", count_words, SourceKind.TEXT)

from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from showhow.app.cli.main import build_command_line
from showhow.app.services import current_services
from showhow.reasoners.base import Task
from showhow.reasoners.humaniq.options import AgentOptions
from showhow.reasoners.humaniq.agent import find_tool_source, restrict_to_sources
from showhow.reasoners.prompting.builder import PromptBuilder
from showhow.reasoners.prompting.react_format import ReActFormat


def run(*words):
    result = CliRunner(env={"COLUMNS": "400"}).invoke(build_command_line(words[0]), list(words))
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.output


assert "countWords" in run("tool", "--help")
assert "countWords" in run("tool", "--list")
assert "countWords(title: text, least: whole number?)" in run("tools", "list")
assert run("tool", "countWords", "--world", "quay", "title=Ada").strip() == "4"
assert run("tool", "countWords", "--world", "quay", "title=Ada", "least=5").strip() == "2"
run("project", "tools", "P", "--set", "countWords,read")

services = current_services()
world = services.open_world("quay")
offered = services.tool_registry().offered_tools(world, ["countWords", "read"])
assert [tool.title for tool in offered] == ["Count", "Read"]
task = Task("Who?", services.tool_context("quay"), services.tool_registry().offered_tools(world, []))
assert "countWords" in [tool.name for tool in restrict_to_sources(task, "text").tools]
assert find_tool_source("countWords") == "text"
prompt = PromptBuilder(ReActFormat(), task, AgentOptions()).build_messages([], task.tools)
assert "countWords" in str(prompt)


def show_choice():
    from showhow.app.services import current_services
    from showhow.app.widgets.choices import choose_tools
    from showhow.db.questions.projects import find_project

    with current_services().database.read() as session:
        project = find_project(session, "P")
    choose_tools(current_services(), project)


page = AppTest.from_function(show_choice, default_timeout=60).run()
assert not page.exception, page.exception
assert "Count" in page.multiselect[0].options
assert page.multiselect[0].value == ["countWords", "read"]
print("offered")
'''


def test_a_new_tool_is_offered_by_pages_verbs_help_and_prompts(tmp_path: Path):
    home = {"SHOWHOW_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")} | home
    articles, questions = tmp_path / "articles.jsonl", tmp_path / "questions.jsonl"
    articles.write_text('{"title": "Ada", "text": "Ada built the quay."}\n')
    questions.write_text('{"question": "Who built it?", "answer": "Ada"}\n')
    showhow = Path(sys.executable).with_name("showhow")
    for words in (
        ("world", "import", "quay", "--articles", str(articles)),
        ("questions", "import", str(questions), "--project", "P", "--world", "quay"),
    ):
        subprocess.run([showhow, *words], env=environ, check=True)
    script = tmp_path / "join.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().endswith("offered"), done.stderr[-3000:]
