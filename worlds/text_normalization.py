"""Normalize names for comparison, and texts for the indexes; stop words of questions."""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    """What two spellings of one name share: Unicode form, case, underscores and runs of spaces do not count."""
    return " ".join(unicodedata.normalize("NFC", replace_surrogates(name)).replace("_", " ").casefold().split())


def replace_surrogates(text: str) -> str:
    """The text with a question mark for every half of a surrogate pair, which a command line may hand over."""
    return text.encode("utf-8", "replace").decode("utf-8")


def replace_unstorable(text: str) -> str:
    """The text with U+FFFD in place of NUL and of lone surrogates.

    Databases cannot store them.
    """
    return _UNSTORABLE_PATTERN.sub("\ufffd", text)


def build_analyzer() -> tantivy.TextAnalyzer:
    """The words of a text: runs of letters and digits, lower-cased, without accents."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(60), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()):
        builder = builder.filter(step)
    return builder.build()


@contextmanager
def translate_write_errors(folder: Path) -> Iterator[None]:
    """Tantivy calls everything that stops its writing a ValueError; what it means is an OSError."""
    try:
        yield
    except ValueError as failed:
        raise OSError(f"{folder.name} index: {failed}") from failed
