"""One redaction: removes secrets from texts in every form in which programs write them.

    redactor = redactor_of(("sk-0123456789abcdef",))
    redactor.redact('{"url": "https://host/?key=sk%2D0123456789abcdef"}')

Each character of a secret matches in every escape of JSON, URLs, HTML, Python and Markdown, in any mixture and several
times over; the whole matches in hexadecimal, and in base64 wherever it begins there, so in basic authentication too.
All secrets are one pattern of RE2, which reads a text once, in linear time. A form that somebody invents is not found.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from html.entities import html5
from typing import Any
from urllib.parse import unquote, urlsplit

MIN_SECRET_CHARACTERS = 8
"""Shorter values, such as "1" or "none", are not secrets, and may occur in any text."""
MIN_WORD_SECRET_CHARACTERS = 16
"""Shorter values of lower-case letters, capitals or digits alone are words or numbers, such as "postgres"."""
REMOVED = "[key removed]"
"""Stands in place of a secret."""
_PIECE_CHARACTERS = 64
_MAX_ESCAPED_CHARACTERS = 4096
"""Of a longer secret no escaped forms are sought, since the pattern would take too much memory."""
_MAX_JSON_DEPTH = 400
_MAX_PATTERN_BYTES = 1 << 30
# A character that begins an escape, with what may follow before the escape is complete.
_UNFINISHED_ESCAPE = r"(?:\\+(?:[ux][0-9A-Fa-f]{0,4})?|[%&=][%&=#;A-Za-z0-9]{0,24})"
_JOINERS = str.maketrans("", "", "-_. ")
_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def is_secret(value: str) -> bool:
    """Whether a value is removed from texts: not if it is short, or one plain word or number.

    Everybody can guess a word, and each text that has it would be garbled.
    """
    letters = value.translate(_JOINERS)
    is_word = letters.isdigit() or (letters.isalpha() and (letters[1:].islower() or letters.isupper()))
    return len(value) >= (MIN_WORD_SECRET_CHARACTERS if is_word else MIN_SECRET_CHARACTERS)


class Redactor:
    """Removes these secrets; with none of them, each method returns what it is given. Thread-safe."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._pieces = [piece for secret in sorted(set(secrets)) for piece in _list_pieces(secret)]
        self._shortest = min(map(len, self._pieces), default=0)
        joined = "|".join(sorted({"".join(piece) for piece in self._pieces}))
        self._pattern = _compile(f"(?:{joined})+") if self._pieces else None

    @cached_property
    def _opening(self) -> Any:
        """The beginning of a secret, at the beginning of a text."""
        return _compile("|".join(sorted({_match_beginning(piece) for piece in self._pieces})))

    @cached_property
    def _beginning(self) -> Any:
        """What may begin a secret at the end of a text."""
        beginnings = "|".join(sorted({_match_beginning(piece) for piece in self._pieces}))
        return _compile(rf"(?:(?:{beginnings})(?:{_UNFINISHED_ESCAPE})?|{_UNFINISHED_ESCAPE})\z")

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything to remove."""
        return self._pattern is not None

    def finds(self, text: str) -> bool:
        """Whether the text has a secret."""
        if self._pattern is None or len(text) < self._shortest:
            return False
        return self._pattern.search(text.encode("utf-8", "surrogatepass")) is not None

    def redact(self, text: str) -> str:
        """The text without secrets."""
        if not self.finds(text):
            return text
        return self.redact_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def redact_bytes(self, data: bytes) -> bytes:
        """The bytes of a text in UTF-8, or in another code that has ASCII in it, without secrets."""
        if self._pattern is None or self._pattern.search(data) is None:
            return data
        parts, end = [], 0
        for match in self._pattern.finditer(data):
            parts += [data[end : match.start()], REMOVED.encode()]
            end = match.end()
        return b"".join([*parts, data[end:]])

    def redact_cut(self, text: str) -> str:
        """The text, whose end was cut off, without secrets and without the beginning of one at its end."""
        shown, _ = self.split_unfinished(text)
        return shown

    def redact_end(self, text: str) -> str:
        """The end of a text, split off since a secret may begin there, without a secret or the half of one."""
        if self._pattern is None or len(text) < MIN_SECRET_CHARACTERS:
            return text
        opening = self._opening.match(text.encode("utf-8", "surrogatepass"))
        is_half = opening is not None and opening.end() >= MIN_SECRET_CHARACTERS
        return REMOVED if is_half else self.redact(text)

    def redact_json(self, value: Any, depth: int = 0) -> Any:
        """The JSON value with the secrets removed from its texts and keys; itself if it has none."""
        if self._pattern is None or depth > _MAX_JSON_DEPTH:
            # What is nested deeper cannot be stored.
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            changed = {self.redact_json(key): self.redact_json(inner, depth + 1) for key, inner in value.items()}
            return changed if changed != value else value
        if isinstance(value, list | tuple):
            items = [self.redact_json(inner, depth + 1) for inner in value]
            return items if items != [*value] else value
        return value

    def split_unfinished(self, text: str) -> tuple[str, str]:
        """The text without secrets up to where one may begin that goes on after its end, and the text from there."""
        if self._pattern is None:
            return text, ""
        data = text.encode("utf-8", "surrogatepass")
        rest = 0
        for match in self._pattern.finditer(data):
            # A secret at the very end may be the beginning of a longer one.
            rest = match.end() if match.end() < len(data) else match.start()
        beginning = self._beginning.search(data[rest:])
        start = len(data) if beginning is None else rest + beginning.start()
        while start < len(data) and data[start] & 0xC0 == 0x80:
            start -= 1
        shown = self.redact_bytes(data[:start]).decode("utf-8", "surrogatepass")
        return shown, data[start:].decode("utf-8", "surrogatepass")


@lru_cache(maxsize=64)
def redactor_of(secrets: tuple[str, ...]) -> Redactor:
    """The redactor of these secrets, built once."""
    return Redactor(secrets)


NOTHING_SECRET = Redactor()


class RedactingStream:
    """Removes secrets from a text that arrives in parts; only what may begin a secret waits for the next part."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._waiting = ""

    def feed(self, text: str) -> str:
        """What may be shown now."""
        shown, self._waiting = self.redactor.split_unfinished(self._waiting + text)
        return shown

    def finish(self) -> str:
        """The rest, when nothing more arrives; a secret that is not complete is removed too."""
        shown, self._waiting = self.redactor.redact_end(self._waiting), ""
        return shown


def _compile(pattern: str) -> Any:
    # Imported where there is a secret, since verbs and functions without one need not load it.
    import re2  # noqa: PLC0415

    options = re2.Options()
    # Texts are matched as bytes, so that lone surrogates and damaged texts are read too.
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MAX_PATTERN_BYTES
    options.longest_match = True
    options.never_capture = True
    return re2.compile(pattern.encode("ascii"), options)


def _list_pieces(secret: str) -> Iterator[Sequence[str]]:
    """The patterns of the characters of each piece of each form of the secret."""
    for part in sorted(_list_parts(secret)):
        is_escaped = len(part) <= _MAX_ESCAPED_CHARACTERS
        yield from _split_evenly([_match_character(c) if is_escaped else _match_plainly(c) for c in part])
        data = part.encode("utf-8", "surrogatepass")
        for core in _encode_base64(data):
            yield from _split_evenly([_match_base64(c) for c in core])
        yield from _split_evenly([_match_hex(byte) for byte in data])


def _list_parts(secret: str) -> set[str]:
    """The secret without blanks round it, and of a header or an address what is secret by itself."""
    whole = secret.strip()
    parts = {whole}
    words = whole.split()
    if len(words) == 2:
        # A header's value: "Bearer KEY", or "Basic" with the user and the password.
        parts.add(words[1])
        if words[0].lower() == "basic":
            parts |= _read_basic(words[1])
    try:
        address = urlsplit(whole)
        password = address.password
    except ValueError:
        password = None
    if password:
        parts |= {password, unquote(password), address.netloc.rpartition("@")[0]}
    return {part for part in parts if is_secret(part)}


def _read_basic(word: str) -> set[str]:
    try:
        user, _, password = base64.b64decode(word, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return set()
    return {f"{user}:{password}", password}


def _split_evenly(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """The tokens in equal pieces, so that a part of a long secret is found too."""
    count = -(-len(tokens) // _PIECE_CHARACTERS)
    for number in range(count):
        yield tokens[number * len(tokens) // count : (number + 1) * len(tokens) // count]


@cache
def _match_character(character: str) -> str:
    """A pattern of the character as it is, and in each of its escapes."""
    data = character.encode("utf-8", "surrogatepass")
    units = character.encode("utf-16-be", "surrogatepass")
    code = ord(character)
    names = [name for name, value in html5.items() if value == character and name.endswith(";")]
    numbers = "|".join(["#0{0,6}" + f"{code};", "#[xX]0{0,6}" + f"{_either_case(f'{code:x}')};", *names])
    forms = [
        _match_plainly(character),
        # URLs, Quoted-Printable, Python's bytes; each also escaped again.
        "".join(f"(?:%(?:25){{0,3}}|=|\\\\+x){_match_hex(byte)}" for byte in data),
        "".join(f"\\\\+u{_match_hex(units[place])}{_match_hex(units[place + 1])}" for place in range(0, len(units), 2)),
        f"&(?:amp;){{0,3}}(?:{numbers})",
    ]
    if character == "\\":
        forms.append(r"\\+")
    if character in _SHORT_ESCAPES:
        forms.append(rf"\\+{_SHORT_ESCAPES[character]}")
    if character != "\\" and code < 128 and not character.isalnum():
        forms.append(rf"\\+{_match_plainly(character)}")
    if character == " ":
        forms.append(r"\+")
    return f"(?:{'|'.join(forms)})"


def _match_plainly(character: str) -> str:
    data = character.encode("utf-8", "surrogatepass")
    return character if character.isascii() and character.isalnum() else "".join(f"\\x{byte:02x}" for byte in data)


def _match_hex(byte: int) -> str:
    return _either_case(f"{byte:02x}")


def _either_case(digits: str) -> str:
    return re.sub("[a-f]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", digits)


def _match_base64(character: str) -> str:
    """Of the two characters that the alphabet of URLs replaces, a pattern of both and of their escapes."""
    pairs = {"+": "-", "/": "_"}
    if character not in pairs:
        return character
    return f"(?:{_match_character(character)}|{_match_character(pairs[character])})"


def _encode_base64(data: bytes) -> Iterator[str]:
    """What the data is in base64 at each place; characters that depend on its neighbours are left out."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        first = -(-before * 8 // 6)
        yield encoded[first : (before + len(data)) * 8 // 6]


def _match_beginning(tokens: Sequence[str]) -> str:
    """A pattern of every beginning of these tokens that is not all of them, or all."""
    pattern = ""
    for token in reversed(tokens):
        pattern = f"{token}(?:{pattern})?" if pattern else token
    return pattern
