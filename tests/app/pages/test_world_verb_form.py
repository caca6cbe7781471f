"""The form of a verb says what the verb says: every option, and back again as words of a command line."""

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


def test_the_fields_are_the_options_with_their_words_and_bounds():
    found = read_verb_options(make)
    assert list(found) == ["people", "friends", "split", "plain"]
    assert (found["people"].kind, found["people"].minimum, found["people"].maximum) == (int, 1, 9)
    assert (found["split"].kind, found["split"].flag, found["split"].help) == (str, "--shares", "Where.")
    assert (found["plain"].kind, found["plain"].default) == (bool, False)


@given(
    people=st.integers(1, 9),
    friends=st.floats(0, 100),
    split=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    plain=st.booleans(),
)
def test_the_words_bring_the_values_to_the_verb(people, friends, split, plain):
    app = typer.Typer()
    app.command()(make)
    given_values = {"people": people, "friends": friends, "split": split, "plain": plain}
    SEEN.clear()
    done = CliRunner().invoke(app, ["mine", *build_command_arguments(given_values, read_verb_options(make))])
    assert done.exit_code == 0, done.output
    assert [given_values] == SEEN


def test_what_is_left_as_it_is_needs_no_word():
    known = read_verb_options(generate)
    assert build_command_arguments({name: field.default for name, field in known.items()}, known) == []


def test_every_option_of_generate_and_import_is_explained():
    for verb in (generate, import_):
        for field in read_verb_options(verb).values():
            assert field.help, f"{verb.__name__} {field.flag} has no explanation"
    # What the form names by itself is named as the verb has it.
    named = {
        *generate_world.BASIC_OPTIONS,
        *generate_world.OPTION_LABELS,
        *generate_world.OPTION_CHOICES,
        *generate_world.EXCLUDED_OPTIONS,
    }
    assert named <= set(read_verb_options(generate))
    assert {command.name or command.callback.__name__ for command in worlds.registered_commands} >= {"generate"}
