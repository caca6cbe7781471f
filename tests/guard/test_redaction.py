"""Redaction: every written form of a secret, in whole texts and in texts that arrive in parts."""

import base64
import html
import json
import re
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.guard.redaction import NOTHING_SECRET, REMOVED, RedactingStream, Redactor, is_secret

KEY = "sk-proj-4f1/aZ+9\"<ü>&'\\q=="
LONG_KEY = "-----BEGIN KEY-----\n" + "\n".join(base64.b64encode(bytes([n] * 45)).decode() for n in range(65, 85))


def twice(write: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: write(write(text))


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": in_json,
    "JSON without ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON of PHP": lambda text: in_json(text).replace("/", "\\/"),
    "JSON of Go": lambda text: in_json(text).replace("<", "\\u003c").replace(">", "\\u003E").replace("&", "\\u0026"),
    "JSON in JSON": twice(in_json),
    "JSON in JSON in JSON": lambda text: in_json(in_json(in_json(text))),
    "all escaped in JSON": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "a path": quote,
    "a query": lambda text: quote(text, safe=""),
    "a form": quote_plus,
    "an address in an address": twice(lambda text: quote(text, safe="")),
    "small letters": lambda text: re.sub("%..", lambda escape: escape[0].lower(), quote(text, safe="")),
    "all escaped in an address": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "HTML in HTML": twice(html.escape),
    "all numbers in HTML": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "HTML in JSON": lambda text: in_json(html.escape(text)),
    "Python": lambda text: repr(text)[1:-1],
    "Python's bytes": lambda text: repr(text.encode())[2:-1],
    "Markdown": lambda text: "".join(c if c.isalnum() else f"\\{c}" for c in text),
    "hexadecimal": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 of addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("key", [KEY, "sk-0123456789abcdefABCDEF", LONG_KEY], ids=["odd", "usual", "long"])
@pytest.mark.parametrize("form", FORMS)
def test_every_written_form_of_a_secret_is_removed(form: str, key: str):
    written = FORMS[form](key)
    redactor = Redactor([key])
    shown = redactor.redact(f"before {written} after")
    # Up to two characters of base64 depend on what stands beside them.
    assert len(shown) <= len(f"before {REMOVED} after") + 4
    assert shown.startswith("before [key")
    assert shown.endswith(" after")
    assert redactor.redact_bytes(f"«{written}»".encode()).decode().startswith(f"«{REMOVED}")


@pytest.mark.parametrize("user", ["", "u", "us", "user"])
def test_basic_authentication_hides_its_password_wherever_it_begins(user: str):
    key = "sk-0123456789abcdef"
    token = base64.b64encode(f"{user}:{key}".encode()).decode()
    shown = Redactor([key]).redact(f"Authorization: Basic {token}")
    kept = shown.removeprefix("Authorization: Basic ").replace(REMOVED, "")
    assert len(kept) <= len(token) - 20


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("  Qz7secretkey99\n", "Qz7secretkey99"),
        ("postgresql://bob:hunter2pass@db/x", "hunter2pass"),
        ("postgresql://bob:hunter%2F2pass@db/x", "bob:hunter%2F2pass"),
        ("Bearer sk-0123456789", "sk-0123456789"),
        ("Basic " + base64.b64encode(b"bob:hunter2pass").decode(), "hunter2pass"),
    ],
)
def test_what_is_secret_within_a_secret_is_removed_by_itself(secret: str, shown: str):
    assert Redactor([secret]).redact(f"bad key {shown}.") == f"bad key {REMOVED}."


def test_half_of_a_long_secret_is_removed_too():
    half = LONG_KEY[: len(LONG_KEY) // 2]
    assert len(Redactor([LONG_KEY]).redact(half)) < 100


@pytest.mark.parametrize("value", ["1", "none", "postgres", "password", "PASSWORD", "not-needed", "20261126", "Sesame"])
def test_a_short_value_and_a_plain_word_or_number_are_no_secret(value: str):
    assert not is_secret(value)
    assert Redactor([value]).redact(f"the word {value}") == f"the word {value}"


@pytest.mark.parametrize(
    "value", ["passw0rd", "correct horse battery staple", "abcdefghijklmnop", "Pa.ssWord", "長い秘密の鍵です!"]
)
def test_everything_else_is_a_secret(value: str):
    assert Redactor([value]).redact(f"the word {value}") == f"the word {REMOVED}"


def test_keys_and_values_of_json_are_redacted_and_numbers_stay():
    redactor = Redactor(["sk-0123456789", "1234567890123456"])
    value = {"sk-0123456789": [1234567890123456, {"a": ("x sk-0123456789",)}], "b": None}
    assert redactor.redact_json(value) == {REMOVED: [1234567890123456, {"a": [f"x {REMOVED}"]}], "b": None}
    untouched = {"a": ["b", 1, None, True, 0.5]}
    assert redactor.redact_json(untouched) is untouched


def test_lone_surrogates_and_other_text_stay_as_they_are():
    text = "\ud800 é 👩‍👩‍👧 \x00"
    assert Redactor([KEY]).redact(text) is text
    assert Redactor([KEY]).redact(text + KEY) == text + REMOVED


PARTS = st.lists(
    st.sampled_from(["sk", "-", "proj", "4f1", "ab", "é", " ", "\n", "%", "%2", "\\u00", "\\", "&#3", "x"])
)


@given(PARTS, PARTS, st.integers(1, 9), st.sampled_from([str, in_json, quote, html.escape]))
def test_a_text_in_parts_is_redacted_as_a_whole_one(before, after, size, write):
    redactor = Redactor([KEY])
    text = "".join(before) + write(KEY) + " " + "".join(after)
    stream = RedactingStream(redactor)
    shown = "".join(stream.feed(text[start : start + size]) for start in range(0, len(text), size)) + stream.finish()
    assert shown == redactor.redact(text)
    assert KEY not in shown


def test_only_what_may_begin_a_secret_waits():
    stream = RedactingStream(Redactor(["sk-0123456789"]))
    assert [stream.feed(part) for part in ("a line\n", "a word", " s", "un sk-01", "23456789 ", "50%")] == [
        "a line\n",
        "a word",
        " ",
        "sun ",
        f"{REMOVED} ",
        "50",
    ]
    assert stream.finish() == "%"


def test_the_half_of_a_secret_at_the_end_is_not_shown():
    stream = RedactingStream(Redactor(["sk-0123456789abcdef"]))
    assert stream.feed("key: sk-0123456789ab") + stream.finish() == f"key: {REMOVED}"
    assert stream.feed("x=12345678901234") + stream.finish() == "x=12345678901234"
    assert Redactor(["sk-0123456789abcdef"]).redact_cut("key: sk-0123") == "key: "


def test_nothing_is_looked_for_without_secrets():
    text = "any text"
    assert NOTHING_SECRET.redact(text) is text
    assert RedactingStream(NOTHING_SECRET).feed("sk-") == "sk-"


def test_many_secrets_cost_no_more_than_one_pass():
    secrets = [f"sk-{n:020}abcDEF" for n in range(30)]
    redactor = Redactor(secrets)
    text = "The quay was built by Ada Reed in 1901 (see &amp; \\u00e9 %20). " * 1600
    redactor.redact(text)
    started = time.perf_counter()
    for _ in range(20):
        assert redactor.redact(text) is text
    # 0.2 ms each; a busy machine may take longer.
    assert (time.perf_counter() - started) / 20 < 0.02
