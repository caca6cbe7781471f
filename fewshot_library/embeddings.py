"""The embeddings of a library version's questions, cached in a file with the hash of model and texts."""

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
"""Texts encoded at once, which bounds the memory."""


def load_or_encode(file: Path, model: str, texts: Sequence[str], encode: TextEncoding) -> EmbeddingMatrix:
    """One row of unit length per text, shape (len(texts), dimensions).

    Read from the file if it was written for this model and these texts, otherwise computed and written there.
    """
    key = _cache_key(model, texts)
    rows = _read_cache(file, key)
    if rows is None:
        rows = np.concatenate(
            [encode(texts[at : at + _ENCODING_BATCH_SIZE]) for at in range(0, max(len(texts), 1), _ENCODING_BATCH_SIZE)]
        )
        _write_cache(file, key, rows)
    return rows


def _cache_key(model: str, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(model.encode())
    for text in texts:
        digest.update(b"\0" + text.encode())
    return digest.hexdigest()


def _read_cache(file: Path, key: str) -> EmbeddingMatrix | None:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            if str(archive["key"]) != key:
                return None
            rows: EmbeddingMatrix = archive["rows"]
            return rows
    except (FileNotFoundError, BadZipFile, ValueError, KeyError, EOFError):
        # The file is missing or was not written to its end: compute it again.
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
