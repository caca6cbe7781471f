"""A live world added to a folder of worlds: its description, beside which its answers will be recorded."""

import os
from pathlib import Path

from worlds.folder import ABOUT, WorldError, WorldExists, world_folder
from worlds.live.description import Description, read_description


def add_live(worlds: Path, name: str, written: str, file: str, *, replace: bool = False) -> Description:
    """The world of that name with this description; `replace` describes a live world anew and keeps its answers.

    WrongDescription for a wrong field, WorldExists for a name that is taken; nothing is left of either.
    """
    description = read_description(written, file)
    folder = world_folder(worlds, name)
    about = folder / ABOUT
    if about.is_file() and not (replace and _is_live(about)):
        again = ", or describe it anew with --replace" if _is_live(about) else ""
        raise WorldExists(f"There is a world {name!r} already; choose another name{again}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{ABOUT}.new"
        with fresh.open("w", encoding="utf-8") as stream:
            stream.write(written)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(about)
    except OSError as failed:
        raise WorldError(
            f"The world {name} cannot be written to {worlds} ({failed}); see that there is room and that you may write."
        ) from failed
    return description


def _is_live(about: Path) -> bool:
    try:
        read_description(about.read_text(encoding="utf-8"))
    except (WorldError, ValueError):
        return False
    return True
