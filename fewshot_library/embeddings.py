"""The embeddings of a library version's questions: computed once, kept beside it, checked before they are believed."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Rows]
_BLOCK = 4096
"""Texts that are encoded at once, so that the memory for them does not grow with the library."""


def embedded(file: Path, model: str, texts: Sequence[str], encode: Encode) -> Rows:
    """A row of unit length a text, shape (len(texts), dimensions); from the file when it holds those of this model for
    these texts, else computed and written there.
    """
    key = _key(model, texts)
    kept = _read(file, key)
    if kept is None:
        kept = np.concatenate([encode(texts[at : at + _BLOCK]) for at in range(0, max(len(texts), 1), _BLOCK)])
        _write(file, key, kept)
    return kept


def _key(model: str, texts: Sequence[str]) -> str:
    told = hashlib.sha256(model.encode())
    for text in texts:
        told.update(b"\0" + text.encode())
    return told.hexdigest()


def _read(file: Path, key: str) -> Rows | None:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
            if str(kept["key"]) != key:
                return None
            found: Rows = kept["rows"]
            return found
    except (FileNotFoundError, BadZipFile, ValueError, KeyError, EOFError):
        # Not there yet, or cut off while it was written by a machine that stopped: it is computed again.
        return None


def _write(file: Path, key: str, rows: Rows) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            np.savez(stream, key=np.array(key), rows=rows)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
