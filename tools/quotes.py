"""Where a quotation stands in a text: only white space and the kind of quotation marks may differ."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

SHORTEST = 8
"""Letters and digits; anything shorter stands in nearly every text."""
_MARKS = str.maketrans({**dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("‘’‚‛`´′", "'")})
_AROUND = " \t\n\"'"
_NUMBER = re.compile(r"\A\s*\[\d+\]\s+")
"""The number before a sentence, as it was shown; it is no part of the text."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words as they stand in a text, and the place of the sentence in which they begin."""

    place: int
    text: str


def find_quote(words: str, sentences: Sequence[str]) -> Quote | None:
    """The quotation as the text has it; None where it does not stand there word for word, or is too short to tell."""
    wanted = _NUMBER.sub("", words.translate(_MARKS), count=1).strip(_AROUND).split()
    letters = sum(map(str.isalnum, "".join(wanted)))
    if not wanted or (letters < SHORTEST and wanted not in [s.translate(_MARKS).split() for s in sentences]):
        return None
    whole = " ".join(sentences)
    before, after = (r"(?<!\w)" if _cased(wanted[0][0]) else ""), (r"(?!\w)" if _cased(wanted[-1][-1]) else "")
    pattern = before + r"\s+".join(map(re.escape, wanted)) + after
    # Marks are replaced one by one, so that places in both texts are the same.
    found = re.search(pattern, whole.translate(_MARKS))
    return Quote(_place(found.start(), sentences), whole[found.start() : found.end()]) if found else None


def _cased(letter: str) -> bool:
    """Whether it is of a script that puts spaces between words, so that a quotation cannot begin or end within one."""
    return letter.isdigit() or letter.lower() != letter.upper()


def _place(start: int, sentences: Sequence[str]) -> int:
    end = 0
    for place, sentence in enumerate(sentences):
        end += len(sentence) + 1
        if start < end:
            return place
    return len(sentences) - 1
