"""The sentence encoder with its real model."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from showhow.fewshot_library import encoder as encoder_module
from showhow.fewshot_library.bert import BertSentenceEncoder
from showhow.fewshot_library.encoder import (
    BUNDLED_MODEL,
    EncoderUnavailable,
    SentenceEncoder,
    bundled_model_folder,
    load_model,
    verify_weights,
)

TEXTS = ["Where was Ada born?", "The baker lives by the harbour.", "", "Ünïcode 🙂"]


@pytest.fixture(scope="module")
def encode() -> SentenceEncoder:
    return SentenceEncoder(BUNDLED_MODEL)


def test_rows_are_float32_of_unit_length(encode: SentenceEncoder) -> None:
    rows = encode(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


@pytest.fixture(scope="module")
def plain() -> SentenceTransformer:
    """The bundled model as sentence-transformers runs it."""
    return SentenceTransformer(str(bundled_model_folder()), device="cpu")


def test_rows_equal_those_of_sentence_transformers_itself(encode: SentenceEncoder, plain: SentenceTransformer) -> None:
    words = re.findall(r"\S+", (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    # Several batches, all lengths, and texts with more tokens than the model reads.
    texts = [
        *TEXTS,
        *(" ".join(words[start : start + start % 90]) for start in range(80)),
        " ".join(words),
        "日本 " * 300,
    ]
    assert np.abs(encode(texts) - plain.encode(texts, normalize_embeddings=True)).max() < 1e-6


def link_model(folder: Path, **pooling: bool) -> Path:
    """A folder with the bundled model, whose tokens are pooled in another way."""
    shutil.copytree(bundled_model_folder(), folder, copy_function=os.symlink)
    config = folder / "1_Pooling" / "config.json"
    changed = json.loads(config.read_text(encoding="utf-8")) | pooling
    config.unlink()
    config.write_text(json.dumps(changed), encoding="utf-8")
    return folder


def test_a_folder_with_another_kind_of_model_is_run_by_sentence_transformers(tmp_path: Path, plain) -> None:
    folder = link_model(tmp_path / "first", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
    rows = SentenceEncoder(str(folder))(TEXTS)
    assert np.allclose(rows, SentenceTransformer(str(folder), device="cpu").encode(TEXTS, normalize_embeddings=True))
    assert np.abs(rows - plain.encode(TEXTS, normalize_embeddings=True)).max() > 0.1


def test_a_folder_with_the_same_kind_of_model_needs_no_torch(tmp_path: Path, encode: SentenceEncoder) -> None:
    folder = link_model(tmp_path / "same")
    assert isinstance(load_model(str(folder)), BertSentenceEncoder)
    assert np.array_equal(SentenceEncoder(str(folder))(TEXTS), encode(TEXTS))


def test_repeated_texts_keep_their_order_and_their_rows(encode: SentenceEncoder) -> None:
    first, second = encode(["left"])[0], encode(["right"])[0]
    rows = encode(["right", "left", "right", "new", "left"])
    assert np.array_equal(rows[[0, 1, 2, 4]], np.stack([second, first, second, first]))


def test_no_texts_give_an_empty_matrix_of_the_right_width(encode: SentenceEncoder) -> None:
    assert encode([]).shape == (0, 384)


def test_similar_sentences_are_nearer_than_others(encode: SentenceEncoder) -> None:
    question, near, far = encode(["Who is her boss?", "employer", "place of birth"])
    assert question @ near > question @ far


def test_concurrent_threads_get_the_same_rows_from_one_model() -> None:
    shared, rows, models = SentenceEncoder(BUNDLED_MODEL), {}, set()

    def ask(number: int) -> None:
        rows[number] = shared([f"text {number % 2}"])[0]
        models.add(id(shared._model))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(models) == 1
    for number in range(6):
        assert np.allclose(rows[number], rows[number % 2], atol=1e-6)


@pytest.mark.parametrize("long", [3, 200])
def test_concurrent_callers_get_the_rows_of_their_own_texts(encode: SentenceEncoder, long: int) -> None:
    shared, rows_by_thread = SentenceEncoder(BUNDLED_MODEL), {}
    wanted = {
        n: [f"of all {place % 5}" if place % 2 else f"of {n}: {place}" for place in range(long)] for n in range(4)
    }
    wanted |= {n: [f"only of {n}"] for n in range(4, 24)}
    threads = [threading.Thread(target=lambda n=n: rows_by_thread.update({n: shared(wanted[n])})) for n in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, texts in wanted.items():
        assert np.allclose(rows_by_thread[n], encode(texts), atol=1e-5)


def test_every_waiting_caller_gets_the_error_of_a_missing_model(tmp_path: Path) -> None:
    shared, failed = SentenceEncoder(str(tmp_path / "nothing-here")), []

    def ask(n: int) -> None:
        with pytest.raises(EncoderUnavailable, match="cannot be loaded"):
            shared([f"text {n}"])
        failed.append(n)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(failed) == list(range(8))


def test_more_texts_than_the_cache_holds_are_encoded_correctly(encode: SentenceEncoder) -> None:
    small = SentenceEncoder(BUNDLED_MODEL)
    small._model = load_model(BUNDLED_MODEL)
    small._cache.update({f"old {n}": np.zeros(384, dtype=np.float32) for n in range(encoder_module.CACHED_TEXTS)})
    rows = small(["old 0", "fresh"])
    assert not rows[0].any()
    assert np.allclose(rows[1], encode(["fresh"])[0], atol=1e-5)
    assert len(small._cache) == encoder_module.CACHED_TEXTS
    assert "old 0" in small._cache
    assert "old 1" not in small._cache


def test_damaged_weights_are_refused_in_one_sentence(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"other")
    with pytest.raises(EncoderUnavailable, match=r"damaged or another model: its sha256 is \w+, expected"):
        verify_weights(weights)


def test_an_unknown_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailable, match="cannot be loaded"):
        SentenceEncoder(str(tmp_path / "nothing-here"))(["text"])


def test_the_bundled_encoder_does_not_import_torch() -> None:
    code = (
        "import sys; from showhow.fewshot_library.encoder import SentenceEncoder; "
        "SentenceEncoder('all-MiniLM-L6-v2')(['text']); "
        "assert not {'torch', 'sentence_transformers', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.long
def test_the_objects_of_torch_are_excluded_from_garbage_collection(tmp_path: Path) -> None:
    folder = link_model(tmp_path / "first", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
    code = (
        "import gc, sys; from showhow.fewshot_library.encoder import SentenceEncoder; "
        "SentenceEncoder(sys.argv[1])(['text']); "
        "assert gc.get_freeze_count() > 100_000 > len(gc.get_objects())"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
