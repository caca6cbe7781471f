"""Libraries from the store: freezing a version, and opening one with its embeddings, once in a process."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from uuid import UUID

from app.resources import database, encoder, settings
from db.libraries import Demonstration, Wanted, candidates, demonstrations, freeze, split_questions, version
from db.models import Library
from fewshot_library.card import Terms, card
from fewshot_library.leakage import leaks
from fewshot_library.library import OpenLibrary

_open: dict[UUID, OpenLibrary] = {}
_opening = Lock()


def freeze_version(name: str, wanted: Wanted, terms: Terms) -> Library:
    """The library's next version with every approved trace that fits; Leaking unless forced, Conflict without any."""
    with database().read() as session:
        chosen = candidates(session, wanted)
    return freeze_these(name, chosen, wanted, terms)


def freeze_these(name: str, chosen: Sequence[Demonstration], wanted: Wanted, terms: Terms) -> Library:
    """The library's next version with exactly these; Leaking unless forced, Conflict without any."""
    with database().read() as session:
        tested = split_questions(session, terms.test_split)
    # Encoding takes seconds, in which others go on writing.
    told = card(chosen, wanted, terms, leaks(chosen, tested, encoder()))
    with database().begin() as session:
        return freeze(session, name, [each.trace_id for each in chosen], told)


def open_library(reference: str) -> tuple[Library, OpenLibrary]:
    """The version that NAME or NAME:NUMBER names, ready to choose from."""
    with database().read() as session:
        found = version(session, reference)
        with _opening:
            if found.id not in _open:
                kept = embeddings_file(found.name, found.number)
                _open[found.id] = OpenLibrary(demonstrations(session, found.id), encoder(), kept)
            return found, _open[found.id]


def embeddings_file(name: str, number: int) -> Path:
    """Where a version's embeddings are kept once they are computed."""
    return settings().home / "libraries" / name / f"{number}.npz"
