"""Normalize names for comparison, and texts for the indexes; stop words of questions."""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import tantivy

STOP_WORDS = frozenset(
    (
        "a about after all also am an and any are as at be became because been before being between both but "
        "by can could did do does doing during each either else ever every find for from get give given go "
        "had has have having he her here hers him himself his how i if in into is it its itself just know "
        "known list many may me might more most much must my name named neither no nor not of off on once one "
        "only or other our out over own please s same shall she should show so some such t tell than that the "
        "their them then there these they this those through to too under until up upon us very was we were "
        "what when where which while who whom whose why will with would you your "
    ).split()
)

ANALYZER_NAME = "folded"
_UNSTORABLE_PATTERN = re.compile("[\x00\ud800-\udfff]")


def normalize_name(name: str) -> str:
    """The name in NFC, case-folded, with single spaces in place of underscores and whitespace."""
    return " ".join(unicodedata.normalize("NFC", replace_surrogates(name)).replace("_", " ").casefold().split())


def replace_surrogates(text: str) -> str:
    """The text with a question mark for every lone surrogate, which command line arguments may contain."""
    return text.encode("utf-8", "replace").decode("utf-8")


def replace_unstorable(text: str) -> str:
    """The text with U+FFFD in place of NUL and lone surrogates, which databases cannot store."""
    # Looking for each character takes a hundred times as long as this.
    return text if text.isascii() and "\0" not in text else _UNSTORABLE_PATTERN.sub("\ufffd", text)


def truncate_text(text: str, max_length: int) -> str:
    """The text with at most so many characters, an ellipsis included."""
    return text if len(text) <= max_length else text[: max_length - 1].rstrip() + "…"


def make_storable(value: Any) -> Any:
    """Replace characters that databases cannot store, and convert non-finite numbers to text, in a JSON value."""
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, dict):
        return {replace_unstorable(name): make_storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [make_storable(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def build_analyzer(*, stemmed: bool = False) -> tantivy.TextAnalyzer:
    """An analyzer that splits text into runs of letters and digits, in lower case, without accents.

    `stemmed` reduces English words to their stems.
    """
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    filters = [tantivy.Filter.remove_long(60), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()]
    for token_filter in [*filters, tantivy.Filter.stemmer("english")] if stemmed else filters:
        builder = builder.filter(token_filter)
    return builder.build()


@contextmanager
def translate_write_errors(folder: Path) -> Iterator[None]:
    """Raise OSError where Tantivy raises ValueError, which it does for every failure to write."""
    try:
        yield
    except ValueError as error:
        raise OSError(f"{folder.name} index: {error}") from error
