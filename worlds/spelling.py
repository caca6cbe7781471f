"""How names are compared, and how texts are cut into words and written for the indexes."""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tantivy

ANALYZER = "folded"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def key(name: str) -> str:
    """What two spellings of one name share: Unicode form, case, underscores and runs of spaces do not count."""
    return " ".join(unicodedata.normalize("NFC", encodable(name)).replace("_", " ").casefold().split())


def encodable(text: str) -> str:
    """The text with a question mark for every half of a surrogate pair, which a command line may hand over."""
    return text.encode("utf-8", "replace").decode("utf-8")


def storable(text: str) -> str:
    """The text with the sign for what is no character instead of NUL and halves of surrogate pairs.

    No database keeps them.
    """
    return _UNSTORABLE.sub("\ufffd", text)


def analyzer() -> tantivy.TextAnalyzer:
    """The words of a text: runs of letters and digits, lower-cased, without accents."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(60), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()):
        builder = builder.filter(step)
    return builder.build()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Tantivy calls everything that stops its writing a ValueError; what it means is an OSError."""
    try:
        yield
    except ValueError as failed:
        raise OSError(f"{folder.name} index: {failed}") from failed
