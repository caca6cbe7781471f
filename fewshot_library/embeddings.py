"""The embeddings of a library version's questions: computed once, kept beside it, checked before they are believed."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

EmbeddingMatrix = npt.NDArray[np.float32]
TextEncoding = Callable[[Sequence[str]], EmbeddingMatrix]
_ENCODING_BATCH_SIZE = 4096
"""Texts that are encoded at once, so that the memory for them does not grow with the library."""


def load_or_encode(file: Path, model: str, texts: Sequence[str], encode: TextEncoding) -> EmbeddingMatrix:
    """A row of unit length a text, shape (len(texts), dimensions); from the file when it holds those of this model for
    these texts, else computed and written there.
    """
    key = _cache_key(model, texts)
    kept = _read_cache(file, key)
    if kept is None:
        kept = np.concatenate(
            [encode(texts[at : at + _ENCODING_BATCH_SIZE]) for at in range(0, max(len(texts), 1), _ENCODING_BATCH_SIZE)]
        )
        _write_cache(file, key, kept)
    return kept


def _cache_key(model: str, texts: Sequence[str]) -> str:
    told = hashlib.sha256(model.encode())
    for text in texts:
        told.update(b"\0" + text.encode())
    return told.hexdigest()


def _read_cache(file: Path, key: str) -> EmbeddingMatrix | None:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
            if str(kept["key"]) != key:
                return None
            found: EmbeddingMatrix = kept["rows"]
            return found
    except (FileNotFoundError, BadZipFile, ValueError, KeyError, EOFError):
        # Not there yet, or cut off while it was written by a machine that stopped: it is computed again.
        return None


def _write_cache(file: Path, key: str, rows: EmbeddingMatrix) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as stream:
            np.savez(stream, key=np.array(key), rows=rows)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
