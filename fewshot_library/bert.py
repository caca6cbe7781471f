"""A BERT encoder of sentences in NumPy: the models of sentence-transformers that average the tokens of a BERT.

It computes what sentence-transformers computes, and is ready in a fraction of a second: importing that takes five
seconds of CPU and hundreds of megabytes.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Encoding, Tokenizer

Floats = npt.NDArray[np.float32]
BATCH_TEXTS = 32
_MODULES = ["Transformer", "Pooling", "Normalize"]
_KINDS = ("weight", "bias")
_SQRT_HALF = np.float32(0.5**0.5)


class UnsupportedModel(ValueError):
    """The folder holds another kind of model."""


class BertSentenceEncoder:
    """Encodes texts to rows of unit length: the mean of the last hidden states of their tokens."""

    def __init__(self, folder: Path) -> None:
        config, length = _read_config(folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(length)
        self._tokenizer.no_padding()
        self._heads: int = config["num_attention_heads"]
        self._epsilon = np.float32(config["layer_norm_eps"])
        weights = load_file(folder / "model.safetensors")
        self._layers = [
            _read_layer(weights, f"encoder.layer.{number}.") for number in range(config["num_hidden_layers"])
        ]
        self._embeddings = {name: weight for name, weight in weights.items() if name.startswith("embeddings.")}

    @property
    def dimensions(self) -> int:
        """The length of a row."""
        return int(self._embeddings["embeddings.word_embeddings.weight"].shape[1])

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one row per text, shape (len(texts), dimensions)."""
        encodings = self._tokenizer.encode_batch(list(texts))
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = slice(start, start + BATCH_TEXTS)
            rows[batch] = self._encode_batch(encodings[batch])
        return rows

    def _encode_batch(self, encodings: Sequence[Encoding]) -> Floats:
        """Encode texts whose tokens follow one another, so that no time goes into filling short ones up."""
        lengths = np.array([len(encoding.ids) for encoding in encodings])
        ends = np.cumsum(lengths)
        starts = ends - lengths
        texts = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        states = self._embed(encodings)
        for layer in self._layers:
            states = self._apply_layer(layer, states, texts)
        means = np.add.reduceat(states, starts) / lengths[:, None].astype(np.float32)
        rows: Floats = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return rows

    def _embed(self, encodings: Sequence[Encoding]) -> Floats:
        weights = self._embeddings
        states = weights["embeddings.word_embeddings.weight"][np.concatenate([one.ids for one in encodings])]
        positions = weights["embeddings.position_embeddings.weight"]
        states += np.concatenate([positions[: len(one.ids)] for one in encodings])
        states += weights["embeddings.token_type_embeddings.weight"][0]
        return self._normalize(states, weights, "embeddings.LayerNorm")

    def _apply_layer(self, layer: dict[str, Floats], states: Floats, texts: Sequence[slice]) -> Floats:
        tokens, width = states.shape
        joined = _apply_linear(states, layer, "joined").reshape(tokens, 3, self._heads, width // self._heads)
        query, key, value = joined.transpose(1, 2, 0, 3)
        query *= np.float32((width // self._heads) ** -0.5)
        attended = np.empty((self._heads, tokens, width // self._heads), dtype=np.float32)
        for text in texts:
            scores = query[:, text] @ key[:, text].transpose(0, 2, 1)
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            np.matmul(scores, value[:, text], out=attended[:, text])
        mixed = attended.transpose(1, 0, 2).reshape(tokens, width)
        states = states + _apply_linear(mixed, layer, "attention.output.dense")
        states = self._normalize(states, layer, "attention.output.LayerNorm")
        inner = _apply_linear(states, layer, "intermediate.dense")
        gate = inner * _SQRT_HALF
        erf(gate, out=gate)
        gate += 1
        gate *= 0.5
        inner *= gate
        return self._normalize(states + _apply_linear(inner, layer, "output.dense"), layer, "output.LayerNorm")

    def _normalize(self, states: Floats, weights: dict[str, Floats], name: str) -> Floats:
        states -= states.mean(axis=-1, keepdims=True)
        variance = np.einsum("...i,...i->...", states, states)[..., None] / states.shape[-1]
        states /= np.sqrt(variance + self._epsilon)
        states *= weights[f"{name}.weight"]
        states += weights[f"{name}.bias"]
        return states


def _read_layer(weights: dict[str, Floats], prefix: str) -> dict[str, Floats]:
    """The weights of a layer by the rest of their name; those of query, key and value are one matrix."""
    layer = {name[len(prefix) :]: weight for name, weight in weights.items() if name.startswith(prefix)}
    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
    joined = {f"joined.{kind}": np.concatenate([layer.pop(f"{part}.{kind}") for part in parts]) for kind in _KINDS}
    return layer | joined


def _apply_linear(states: Floats, weights: dict[str, Floats], name: str) -> Floats:
    matrix = weights[f"{name}.weight"]
    product: Floats = states @ matrix.T
    product += weights[f"{name}.bias"]
    return product


def _read_config(folder: Path) -> tuple[dict[str, int], int]:
    """The configuration of the BERT and the most tokens of a text; UnsupportedModel for another kind of model."""
    names = ("config.json", "sentence_bert_config.json", "modules.json", "1_Pooling/config.json")
    try:
        config, sentences, modules, pooling = (json.loads((folder / name).read_bytes()) for name in names)
    except FileNotFoundError as error:
        raise UnsupportedModel(f"{folder} has no {Path(error.filename).name}") from error
    used = [key for key, value in pooling.items() if key.startswith("pooling_mode") and value is True]
    is_bert = config.get("model_type") == "bert" and config.get("hidden_act") == "gelu"
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    if not is_bert or kinds != _MODULES or used != ["pooling_mode_mean_tokens"] or sentences.get("do_lower_case"):
        raise UnsupportedModel(f"{folder} is no BERT whose tokens are averaged")
    return config, sentences["max_seq_length"]
