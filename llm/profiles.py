"""Named profiles of language models: presets, checks, and the file of the home that stores them, without any key.

profiles = ProfileFile(home / PROFILES_FILE_NAME)
profiles.save(ModelProfile("openai:gpt-5-mini", key_variable="OPENAI_API_KEY", name="mini"))
profiles.load()["mini"]
"""

import json
import math
import os
import re
import runpy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from showhow.guard.files import partial_path
from showhow.llm.errors import ChatUnavailable
from showhow.llm.providers import find_address_problem
from showhow.llm.types import DEFAULT_PROFILE_NAME, ModelProfile
from showhow.llm.usage import TokenPrice

PROFILES_FILE_NAME = "models.json"
DEFAULT_CONTEXT_WINDOW = 16_000
"""The context window of a model that LangChain has no data about."""
DEFAULT_REPLY_LIMIT = 8_192
_MAX_REPLY_SHARE = 4
"""A default reply limit takes at most this part of the context window."""
REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
MAX_NAME_LENGTH = 40
_MAX_EXTRA_BODY_CHARACTERS = 10_000
_MAX_TEXT_LENGTH = 500
_LOCK_SECONDS = 10.0
_RESERVED_FIELDS = {
    *("model", "messages", "tools", "stream", "stream_options", "stop", "temperature", "reasoning_effort"),
    *("max_tokens", "max_completion_tokens"),
}
"""Fields of a request's body that the client sends itself."""
_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VARIABLE_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
"""Names of keys of models. Where each may go is a matter of guard/destinations.py."""
_NOT_STORED = {"name", "api_key", "key_refusal", "proxy"}


class ProfileError(ChatUnavailable):
    """A profile is unknown or invalid, or the file of profiles cannot be used."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A profile to begin with, and what to know about its server."""

    title: str
    profile: ModelProfile
    notes: str


PRESETS = {
    "openai": Preset(
        "OpenAI",
        ModelProfile("openai:gpt-5-mini", key_variable="OPENAI_API_KEY", name="openai"),
        "Prices are not looked up: copy them from OpenAI's price list, so that costs can be limited.",
    ),
    "ollama": Preset(
        "Ollama",
        ModelProfile("openai:qwen3:8b", "http://127.0.0.1:11434/v1", context_window=4_096, name="ollama"),
        "Ollama gives a model a small context window, often 4,096 tokens, and silently drops the beginning of a longer "
        "prompt. Start it with OLLAMA_CONTEXT_LENGTH=16384 and write the same number as context window here. With "
        "langchain-ollama installed, write ollama:NAME and the base URL without /v1: the context window is then sent "
        "with each request.",
    ),
    "vllm": Preset(
        "vLLM",
        ModelProfile("openai:Qwen/Qwen3-8B", "http://127.0.0.1:8000/v1", name="vllm"),
        "vLLM refuses tools unless it is started with --enable-auto-tool-choice and a --tool-call-parser of the model. "
        "The context window is its --max-model-len, and it refuses a prompt that leaves no room for the reply limit.",
    ),
    "llama.cpp": Preset(
        "llama.cpp",
        ModelProfile("openai:local", "http://127.0.0.1:8080/v1", concurrency=1, name="llama-cpp"),
        "llama-server needs --jinja for tools. It divides its context (-c) among its slots (-np): the context window "
        "is -c divided by -np, and more requests at once than slots only wait.",
    ),
}


@dataclass(frozen=True, slots=True)
class KnownLimits:
    """What LangChain's data says about a model, in tokens; None where it says nothing."""

    context_window: int | None = None
    reply_limit: int | None = None


def find_known_limits(model: str) -> KnownLimits:
    """The limits of a model, such as openai:gpt-5-mini, in LangChain's model profile data."""
    provider, _, name = model.partition(":")
    profiles = _read_model_data(f"langchain_{provider}")
    # Data is about models, not about their dated snapshots.
    entry = profiles.get(name) or profiles.get(re.sub(r"-\d{4}-?\d\d-?\d\d$", "", name)) or {}
    limits = (entry.get(key) for key in ("max_input_tokens", "max_output_tokens"))
    return KnownLimits(*(limit if type(limit) is int and limit > 0 else None for limit in limits))


@cache
def _read_model_data(package: str) -> Mapping[str, Any]:
    """LangChain's data about the models of a provider; empty if its package is not installed."""
    spec = find_spec(package) if package.isidentifier() else None
    for folder in (spec and spec.submodule_search_locations) or ():
        file = Path(folder) / "data" / "_profiles.py"
        if file.is_file():
            # Read without its package, whose import takes a second.
            data: Mapping[str, Any] = runpy.run_path(str(file)).get("_PROFILES", {})
            return data
    return {}


def with_known_limits(profile: ModelProfile) -> ModelProfile:
    """The profile with a context window and a reply limit: its own, else known ones, else the defaults."""
    known = find_known_limits(profile.model)
    window = profile.context_window or known.context_window or DEFAULT_CONTEXT_WINDOW
    default_limit = min(DEFAULT_REPLY_LIMIT, known.reply_limit or DEFAULT_REPLY_LIMIT, window // _MAX_REPLY_SHARE)
    return replace(profile, context_window=window, reply_limit=profile.reply_limit or max(1, default_limit))


def profile_to_json(profile: ModelProfile) -> dict[str, Any]:
    """The profile as stored, shown and recorded by runs: without its key and without what is not set."""
    values = {name: value for name, value in asdict(profile).items() if name not in _NOT_STORED}
    if profile.price is not None:
        values["price"] = {name: price for name, price in values["price"].items() if price is not None}
    return {name: value for name, value in values.items() if value not in (None, {})}


_REPLY_FIELDS = ("model", "base_url", "temperature", "reasoning_effort", "reply_limit", "context_window", "extra_body")
"""The fields that determine what a model is sent and what it replies."""


def list_changes(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """What changed of the fields that determine replies, between two results of profile_to_json."""
    return [
        f"{_LABELS[name].lower()} was {_quote(recorded.get(name))} and is {_quote(current.get(name))}"
        for name in _REPLY_FIELDS
        if recorded.get(name) != current.get(name)
    ]


def _quote(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


def profile_from_json(name: str, values: Mapping[str, Any]) -> ModelProfile:
    """Parse and check a stored profile; ProfileError names every wrong value."""
    unknown = sorted(values.keys() - _LABELS.keys())
    problems = [f"there is no field {unknown[0]!r}; the fields are {', '.join(_LABELS)}"] if unknown else []
    problems += [
        f"{_LABELS[field]} is {_quote(values[field])}; write {kind}"
        for field, (accepts, kind) in _TYPES.items()
        if values.get(field) is not None and not accepts(values[field])
    ]
    if "model" not in values:
        problems.append("the model is missing")
    if problems:
        raise ProfileError(_to_message(name, problems))
    given = {field: value for field, value in values.items() if value is not None}
    if "price" in given:
        given["price"] = TokenPrice(**given["price"])
    profile = ModelProfile(**given, name=name)
    if problem_by_field := _find_malformed(profile):
        raise ProfileError(_to_message(name, list(problem_by_field.values())))
    return profile


def _to_message(name: str, problems: list[str]) -> str:
    return f"The profile {name!r} cannot be used: {'; '.join(problem.rstrip('.') for problem in problems)}."


_LABELS = {
    "model": "Model",
    "base_url": "Base URL",
    "key_variable": "Environment variable of the key",
    "price": "Price",
    "temperature": "Temperature",
    "reasoning_effort": "Reasoning effort",
    "reply_limit": "Reply limit",
    "context_window": "Context window",
    "requests_per_minute": "Requests per minute",
    "tokens_per_minute": "Tokens per minute",
    "concurrency": "Requests at once",
    "seconds": "Seconds per reply",
    "extra_body": "Extra body",
}
"""The fields of a stored profile with their labels."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_TEXT_LENGTH


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_price(value: Any) -> bool:
    names = [field.name for field in fields(TokenPrice)]
    return (
        isinstance(value, Mapping)
        and {"input", "output"} <= value.keys() <= {*names}
        and all(_is_number(price) and price >= 0 for price in value.values())
    )


_TEXT = (_is_text, f"a text of 1 to {_MAX_TEXT_LENGTH} characters")
_COUNT = (_is_count, "a whole number above 0")
_POSITIVE = (lambda value: _is_number(value) and value > 0, "a number above 0")
_TYPES = {
    "model": _TEXT,
    "base_url": _TEXT,
    "key_variable": _TEXT,
    "price": (_is_price, "an object with input and output, and perhaps cached and cache_write, in US dollars"),
    "temperature": (lambda value: _is_number(value) and 0 <= value <= 2, "a number from 0 to 2"),
    "reasoning_effort": (lambda value: value in REASONING_EFFORTS, f"one of {', '.join(REASONING_EFFORTS)}"),
    "reply_limit": _COUNT,
    "context_window": _COUNT,
    "requests_per_minute": _POSITIVE,
    "tokens_per_minute": _COUNT,
    "concurrency": _COUNT,
    "seconds": _POSITIVE,
    "extra_body": (lambda value: isinstance(value, Mapping), "a JSON object"),
}


def find_problems(profile: ModelProfile, secrets: tuple[str, ...] = ()) -> dict[str, str]:
    """One sentence for each field that cannot be used, by the field's name; `secrets` must not occur in any."""
    problems = _find_malformed(profile)
    if profile.base_url is not None and "base_url" not in problems:
        # One that is stored already is refused when it is used, so that the other profiles of the file can be.
        problems |= {"base_url": problem} if (problem := find_address_problem(profile.base_url)) else {}
    stored = profile_to_json(profile)
    for name in ("model", "base_url", "extra_body"):
        text = json.dumps(stored.get(name, ""), ensure_ascii=False)
        if any(secret in text for secret in secrets):
            problems[name] = (
                f"{_LABELS[name]} contains a key of the environment; remove it, since profiles are no secret."
            )
    return problems


def _find_malformed(profile: ModelProfile) -> dict[str, str]:
    checks = {
        "name": _check_name(profile.name),
        "model": _check_model(profile),
        "base_url": _check_base_url(profile.base_url),
        "key_variable": _check_key_variable(profile),
        "reply_limit": _check_reply_limit(profile),
        "extra_body": _check_extra_body(profile),
    }
    return {name: problem for name, problem in checks.items() if problem}


def _check_name(name: str) -> str | None:
    if name == DEFAULT_PROFILE_NAME:
        return f"The name {DEFAULT_PROFILE_NAME} is that of the environment's settings; choose another name."
    if not _NAME_PATTERN.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        return (
            f"The name is {name!r}; write 1 to {MAX_NAME_LENGTH} letters, digits, dots, hyphens or underscores, with a "
            "letter or digit first."
        )
    return None


def _check_model(profile: ModelProfile) -> str | None:
    provider, _, name = profile.model.partition(":")
    if any(character.isspace() or not character.isprintable() for character in profile.model):
        return f"The model is {profile.model!r}; write its name without spaces."
    if not provider or (not name and profile.base_url is None):
        return f"The model is {profile.model!r}; write it as provider:model, such as openai:gpt-5-mini."
    return None


def _check_base_url(base_url: str | None) -> str | None:
    if base_url is None:
        return None
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f"The base URL {base_url!r} is no address; write one such as http://127.0.0.1:11434/v1."
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "The base URL contains a user, a password or a query; name the variable of the key instead."
    if not is_address or any(character.isspace() for character in base_url):
        return f"The base URL {base_url!r} is no address; write one such as http://127.0.0.1:11434/v1."
    if parts.path.rstrip("/").endswith(("/chat/completions", "/messages", "/responses")):
        return f"The base URL ends with {parts.path!r}; write the address before it, which mostly ends with /v1."
    return None


def _check_key_variable(profile: ModelProfile) -> str | None:
    variable = profile.key_variable
    if variable is None:
        return None
    # The value is not repeated, since it may be the key itself.
    if not _VARIABLE_PATTERN.fullmatch(variable):
        return (
            "The environment variable of the key is no name of capital letters, digits and underscores that ends with "
            "_API_KEY; write a name such as OPENAI_API_KEY, never the key itself."
        )
    return None


def _check_reply_limit(profile: ModelProfile) -> str | None:
    completed = with_known_limits(profile)
    limit, window = completed.reply_limit or 0, completed.context_window or 0
    if limit >= window:
        return (
            f"The reply limit is {limit:,} tokens and the context window {window:,}; the limit must be smaller, so "
            "that a prompt has room."
        )
    return None


def _check_extra_body(profile: ModelProfile) -> str | None:
    if not profile.extra_body:
        return None
    if not profile.is_openai_compatible:
        return f"The extra body is sent to OpenAI-compatible servers only, and {profile.model} is none; remove it."
    if reserved := sorted(_RESERVED_FIELDS & profile.extra_body.keys()):
        return f"The extra body has the field {reserved[0]!r}, which Showhow sends itself; remove it."
    try:
        text = json.dumps(profile.extra_body, allow_nan=False)
    except (TypeError, ValueError):
        return "The extra body has a value that JSON cannot express; write a JSON object."
    if len(text) > _MAX_EXTRA_BODY_CHARACTERS:
        return f"The extra body has {len(text):,} characters; write at most {_MAX_EXTRA_BODY_CHARACTERS:,}."
    return None


class ProfileFile:
    """The profiles of a home by name, in one JSON file that only its owner can read; safe for several processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[str, ModelProfile]:
        """The profiles in the order in which they were added; ProfileError if the file cannot be used."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(f"The profiles in {self.path} cannot be read ({error}); check the file.") from error
        try:
            document = json.loads(text)
        except ValueError as error:
            raise ProfileError(f"{self.path} is no JSON ({error}); correct or remove it.") from error
        profiles = document.get("profiles") if isinstance(document, dict) else None
        if not isinstance(profiles, dict) or not all(isinstance(values, dict) for values in profiles.values()):
            raise ProfileError(f'{self.path} has no object "profiles" with one object a profile; correct or remove it.')
        return {name: profile_from_json(name, values) for name, values in profiles.items()}

    def save(self, profile: ModelProfile, *, replaces: ModelProfile | None = None) -> None:
        """Store a new profile, or a changed one in the place of `replaces`, which must be as it was read."""
        if problems := find_problems(profile):
            raise ProfileError(" ".join(problems.values()))
        with self._locked() as profiles:
            if replaces is not None:
                _check_unchanged(profiles, replaces)
            if profile.name in profiles and (replaces is None or replaces.name != profile.name):
                raise ProfileError(f"There is already a profile {profile.name!r}; choose another name.")
            place = replaces.name if replaces is not None else profile.name
            kept = {name: profile if name == place else stored for name, stored in profiles.items()}
            self._write([*kept.values(), *([profile] if replaces is None else [])])

    def remove(self, profile: ModelProfile) -> None:
        """Remove the profile, which must be as it was read."""
        with self._locked() as profiles:
            _check_unchanged(profiles, profile)
            self._write([stored for stored in profiles.values() if stored.name != profile.name])

    @contextmanager
    def _locked(self) -> Iterator[dict[str, ModelProfile]]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_suffix(".lock"), timeout=_LOCK_SECONDS):
                yield self.load()
        except Timeout:
            raise ProfileError(f"Another process is changing {self.path}; try again.") from None
        except OSError as error:
            raise ProfileError(f"The profiles cannot be written to {self.path} ({error}); check the disk.") from error

    def _write(self, profiles: list[ModelProfile]) -> None:
        document = {"profiles": {profile.name: profile_to_json(profile) for profile in profiles}}
        partial = partial_path(self.path)
        try:
            # Readable by its owner only, and it stays so under its final name.
            partial.touch(mode=0o600, exist_ok=False)
            with partial.open("w", encoding="utf-8") as file:
                file.write(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
        finally:
            partial.unlink(missing_ok=True)


def _check_unchanged(profiles: Mapping[str, ModelProfile], seen: ModelProfile) -> None:
    if profiles.get(seen.name) != seen:
        state = "was changed" if seen.name in profiles else "was removed"
        raise ProfileError(f"The profile {seen.name!r} {state} meanwhile; open it again, then make your change.")
