"""Files that verbs write for their users."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from app.verbs.output import CommandFailed, emit, progress
from fewshot_library.formats.format import Losses


@contextmanager
def written_whole(file: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A file that takes its place only when all of it is written; one that is there is replaced only by force."""
    if file.is_dir() or (file.exists() and not force):
        raise CommandFailed(f"{file} is there already; name another file, or replace it with --force")
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            # Else a machine that stops right after the rename could leave an empty file under the name.
            os.fsync(stream.fileno())
        beside.replace(file)
    except OSError as failed:
        raise CommandFailed(f"{file} cannot be written ({failed.strerror}); name another place") from failed
    finally:
        beside.unlink(missing_ok=True)


def tell_losses(losses: Losses, file: Path, *, as_json: bool) -> None:
    """What was written, and on stderr what the format could not keep."""
    for line in losses.told():
        progress(line)
    value = {
        "written": losses.written,
        "lost": dict(losses.lost),
        "refused": [asdict(each) for each in losses.refused],
    }
    emit(value, f"{losses.written} traces written to {file}", as_json=as_json)
