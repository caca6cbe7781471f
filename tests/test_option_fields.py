"""Dataclasses from which verbs and forms are drawn, and which jobs get as JSON."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import typer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from typer.testing import CliRunner

from showhow.app.cli.drawn_options import draw_options
from showhow.option_fields import group, list_options, option
from showhow.tasks.backup import MakeBackup
from showhow.tasks.library import FreezeLibrary
from showhow.tasks.questions import ImportQuestions
from showhow.tasks.scores import JudgeRun, ScoreRun
from showhow.tasks.traces import ImportTraces, RepeatTraces, ReplayTraces
from showhow.tasks.worlds import ExportWorld, GenerateWorld, ImportWorld, VerifyWorld

SEEN: list[Any] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """A group of options."""

    people: int = option(3, "How many.", minimum=1, maximum=9)
    friends: float = option(2.5, "On average.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeSomething:
    """A request with every type of field."""

    name: str = option(is_argument=True)
    crowd: Crowd = group(Crowd, "Crowd")
    split: str | None = option(None, "Where.", flag="--shares")
    kept: tuple[str, ...] = option((), "Which.")
    file: Path | None = option(None, "From.")
    plain: bool = option(default=False, help="Plainly.")
    exchange: bool = option(default=True, help="Exchanged.")
    made_by: str = "nobody"


def call(*words: str) -> Any:
    @draw_options
    def make(request: MakeSomething) -> None:
        SEEN.append(request)

    app = typer.Typer()
    app.command()(make)
    SEEN.clear()
    return CliRunner().invoke(app, list(words))


@given(
    people=st.integers(1, 9),
    friends=st.floats(0, 100),
    split=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    kept=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), max_size=3),
    plain=st.booleans(),
)
def test_a_verb_and_a_job_get_the_dataclass_that_was_written(people, friends, split, kept, plain):
    exchange = not plain
    request = MakeSomething(
        name="mine",
        crowd=Crowd(people=people, friends=friends),
        split=split,
        kept=tuple(kept),
        plain=plain,
        exchange=exchange,
    )
    words = [f"--people={people}", f"--friends={friends}", f"--shares={split}", *(f"--kept={text}" for text in kept)]
    words += (["--plain"] if plain else []) + ([] if exchange else ["--no-exchange"])
    done = call("mine", *words)
    assert done.exit_code == 0, done.output
    assert [request] == SEEN
    adapter = TypeAdapter(MakeSomething)
    assert adapter.validate_json(adapter.dump_json(request)) == request


def test_a_verb_takes_the_defaults_of_the_dataclass_and_refuses_what_is_out_of_bounds():
    assert call("mine").exit_code == 0
    assert [MakeSomething(name="mine")] == SEEN
    refused = call("mine", "--people=10")
    assert (refused.exit_code, SEEN) == (2, [])
    assert "or equal to 9" in refused.output
    assert call().exit_code == 2, "the name is required"
    assert call("mine", "--made-by=me").exit_code == 2, "a field without an option is not drawn"


def test_every_option_of_a_task_has_a_help_text_and_a_name_of_its_own():
    requests = (
        *(GenerateWorld, ImportWorld, ExportWorld, VerifyWorld, ImportQuestions, ImportTraces, ReplayTraces),
        *(RepeatTraces, FreezeLibrary, ScoreRun, JudgeRun, MakeBackup),
    )
    for request in requests:
        entries = list_options(request)
        assert len({entry.name for entry in entries}) == len({entry.flag for entry in entries}) == len(entries)
        assert all(entry.help for entry in entries if not entry.note.is_argument), request
        assert all(not entry.is_required or entry.kind in (str, Path, UUID) for entry in entries)
