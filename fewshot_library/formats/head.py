"""How a file begins, in the words that formats know their own files by."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

# The last text may be cut off: it goes to the end, or its quotes would be tried one after the other.
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"|\\?\Z)|([{}\[\]:,])', re.DOTALL)


@dataclass(frozen=True)
class FileHead:
    """The first bytes of a file."""

    start: bytes

    @cached_property
    def text(self) -> str:
        """The bytes as text; a UnicodeDecodeError where they are none."""
        # The last character may be cut in two, which is no fault of the file's.
        return codecs.getincrementaldecoder("utf-8-sig")().decode(self.start)

    @cached_property
    def keys(self) -> dict[str, str]:
        """The keys of the JSON as paths like "[].messages[].role", each with its first value where that is a text."""
        first_values: dict[str, str] = {}
        try:
            for path, value in _iterate_keys(self.text):
                first_values[path] = first_values.get(path) or value
        except UnicodeDecodeError:
            # What is no text has no keys; a format that is none may know it all the same.
            return {}
        return first_values

    def has_keys(self, *paths: str) -> bool:
        """Whether all these keys are there, in the record that begins the file or in the list of records."""
        return any(all(prefix + path in self.keys for path in paths) for prefix in ("", "[]."))


def _iterate_keys(text: str) -> Iterator[tuple[str, str]]:
    """The keys of a JSON text that may be cut off, or be several texts one after the other."""
    # For each open bracket the path of what stands in it; for an object its last key as well.
    places: list[str] = [""]
    key = ""
    last: str | None = None
    for match in _TOKEN.finditer(text):
        word, sign = match.group(1), match.group(2)
        if sign is None:
            if key:
                yield key, word
            last, key = word, ""
        elif sign == ":" and last is not None:
            key = f"{places[-1]}.{last}".lstrip(".")
            yield key, ""
            last = None
        elif sign in "{[":
            inside = key or places[-1]
            places.append(inside + ("[]" if sign == "[" else ""))
            key, last = "", None
        elif sign in "}]" and len(places) > 1:
            places.pop()
            key, last = "", None
        else:
            key, last = "", None
