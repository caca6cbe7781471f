"""The form of a verb: fields from its options, and command arguments from the fields."""

from typing import Annotated, Any

import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from app.cli.world import app as worlds
from app.cli.world import generate, import_
from app.pages.worlds import create_world as generate_world
from app.pages.worlds.create_world import build_command_arguments, read_verb_options

SEEN: list[dict[str, Any]] = []


def make(
    name: str,
    people: Annotated[int, typer.Option(help="How many.", min=1, max=9)] = 3,
    friends: Annotated[float, typer.Option(help="On average.")] = 2.5,
    split: Annotated[str | None, typer.Option("--shares", help="Where.")] = None,
    *,
    plain: Annotated[bool, typer.Option("--plain", help="Plainly.")] = False,
) -> None:
    SEEN.append({"people": people, "friends": friends, "split": split, "plain": plain})


def test_fields_have_the_types_bounds_and_texts_of_the_options():
    fields = read_verb_options(make)
    assert list(fields) == ["people", "friends", "split", "plain"]
    assert (fields["people"].kind, fields["people"].minimum, fields["people"].maximum) == (int, 1, 9)
    assert (fields["split"].kind, fields["split"].flag, fields["split"].help) == (str, "--shares", "Where.")
    assert (fields["plain"].kind, fields["plain"].default) == (bool, False)


@given(
    people=st.integers(1, 9),
    friends=st.floats(0, 100),
    split=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    plain=st.booleans(),
)
def test_command_arguments_give_the_verb_the_values_of_the_form(people, friends, split, plain):
    app = typer.Typer()
    app.command()(make)
    given_values = {"people": people, "friends": friends, "split": split, "plain": plain}
    SEEN.clear()
    done = CliRunner().invoke(app, ["mine", *build_command_arguments(given_values, read_verb_options(make))])
    assert done.exit_code == 0, done.output
    assert [given_values] == SEEN


def test_defaults_need_no_argument():
    options = read_verb_options(generate)
    assert build_command_arguments({name: field.default for name, field in options.items()}, options) == []


def test_every_option_of_generate_and_import_has_a_help_text():
    for verb in (generate, import_):
        for field in read_verb_options(verb).values():
            assert field.help, f"{verb.__name__} {field.flag} has no explanation"
    # Every option that the form names exists in the verb.
    named = {
        *generate_world.BASIC_OPTIONS,
        *generate_world.OPTION_LABELS,
        *generate_world.OPTION_CHOICES,
        *generate_world.EXCLUDED_OPTIONS,
    }
    assert named <= set(read_verb_options(generate))
    assert {command.name or command.callback.__name__ for command in worlds.registered_commands} >= {"generate"}
