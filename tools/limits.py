"""The limits of a call of an external tool, and of what a step stores; the world's sources limit built-in tools.

A larger observation is cut and says so; the world still has the whole. The data then have "cut": [{"pointer", "stored",
"total"}], one for each list (items) or text (characters) that was cut.
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar

from pydantic import ValidationError

from showhow.tools.arguments import ToolError
from showhow.worlds.source import ErrorKind

ResultT = TypeVar("ResultT")
DEFAULT_SECONDS = 30.0
DEFAULT_CHARACTERS = 20_000
MAX_ERROR_CHARACTERS = 300
"""Characters of an external error that a message quotes."""
MAX_STORED_TEXT_CHARACTERS = 100_000
MAX_STORED_DATA_CHARACTERS = 1_000_000
"""Maximum length of the data as JSON."""
MAX_STORED_VALUE_CHARACTERS = 20_000
"""Maximum length of one text in data that are too long as a whole."""
_MAX_CUTS = 20
"""Cuts of single texts that are listed."""
Cut = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """The time limit of a call in seconds, and the length limit of its text and of its data in characters."""

    seconds: float = DEFAULT_SECONDS
    characters: int = DEFAULT_CHARACTERS

    def run_limited(self, name: str, work: Callable[[], ResultT]) -> ResultT:
        """Run the work and return its result; ToolError if it fails or exceeds its seconds."""
        done: Future[ResultT] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            # The tool's code may raise any exception; it is handed to the calling thread, which converts it below.
            except BaseException as error:  # noqa: BLE001
                done.set_exception(error)

        # In its own thread, since work that hangs cannot be stopped, only abandoned.
        Thread(target=run, name=f"tool {name}", daemon=True).start()
        try:
            return done.result(self.seconds)
        except ToolError:
            raise
        except FutureTimeout as error:
            if done.done():
                raise to_tool_error(name, error) from error
            raise ToolError(
                f"{name} did not answer within its limit of {self.seconds:g} s; request less, or use another tool.",
                ErrorKind.TIME_LIMIT,
            ) from None
        # Whatever the tool's code raised in its thread, also SystemExit, is a failed call with a kind.
        except BaseException as error:
            raise to_tool_error(name, error) from error

    def truncate(self, text: str, omitted: int = 0) -> str:
        """The text, cut at the limit with a note of how many characters were left out, with those omitted before."""
        excess = len(text) + omitted - self.characters
        if excess <= 0:
            return text
        return f"{text[: self.characters]}\n… cut at {self.characters:,} characters; {excess:,} more were left out."

    def fits(self, value: object) -> bool:
        """Whether a JSON value is within the limit."""
        return len(json.dumps(value, ensure_ascii=False)) <= self.characters


def to_tool_error(name: str, error: BaseException) -> ToolError:
    """Convert an exception of an external tool to a ToolError of one sentence."""
    if isinstance(error, ValidationError):
        problems = (f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in error.errors())
        return ToolError(f"{name} cannot run: {'; '.join(problems)}.", ErrorKind.WRONG_ARGUMENTS)
    message = f"{name} failed with {summarize_exception(error)}; try other arguments, or another tool."
    return ToolError(message, ErrorKind.OTHER)


def first_exception(error: BaseException) -> BaseException:
    """The exception itself, or the first of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def summarize_exception(error: BaseException) -> str:
    """The type of an exception and the start of its message, in one line."""
    error = first_exception(error)
    try:
        message = " ".join(str(error).split())
    # __str__ of an exception from external code may raise any exception itself; the type alone is then reported.
    except Exception:  # noqa: BLE001
        message = ""
    message = f"{message[:MAX_ERROR_CHARACTERS]} …" if len(message) > MAX_ERROR_CHARACTERS else message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def bound_text(text: str) -> str:
    """The text, cut at MAX_STORED_TEXT_CHARACTERS with a note."""
    excess = len(text) - MAX_STORED_TEXT_CHARACTERS
    if excess <= 0:
        return text
    return (
        f"{text[:MAX_STORED_TEXT_CHARACTERS]}\n… cut at {MAX_STORED_TEXT_CHARACTERS:,} characters; {excess:,} more "
        "were not stored."
    )


def bound_data(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The data within MAX_STORED_DATA_CHARACTERS, and a sentence for each part that was cut."""
    if _json_length(data) <= MAX_STORED_DATA_CHARACTERS:
        return data, []
    cuts: list[Cut] = []
    bounded: dict[str, Any] = _cut_texts(data, "", cuts)
    lengths = {field: _json_length(value) for field, value in bounded.items()}
    for field in sorted(lengths, key=lengths.__getitem__, reverse=True):
        excess = sum(lengths.values()) - MAX_STORED_DATA_CHARACTERS
        if excess <= 0:
            break
        value, available = bounded[field], max(0, lengths[field] - excess)
        if not isinstance(value, list):
            cuts.append({"pointer": f"/{field}", "stored": 0, "total": lengths[field]})
            del bounded[field]
            lengths[field] = 0
            continue
        stored = _fitting_items(value, available)
        cuts.append({"pointer": f"/{field}", "stored": stored, "total": len(value)})
        bounded[field] = value[:stored]
        lengths[field] = available
    texts = [cut for cut in cuts if cut["pointer"].count("/") > 1]
    lists = [cut for cut in cuts if cut["pointer"].count("/") == 1]
    return {**bounded, "cut": [*lists, *texts[:_MAX_CUTS]]}, [*map(_describe_cut, lists), *_describe_texts(texts)]


def cut_total(data: Mapping[str, Any], field: str) -> int | None:
    """How many items the list had before it was cut; None if it was not cut."""
    cuts = data.get("cut")
    totals = [cut["total"] for cut in cuts if cut["pointer"] == f"/{field}"] if isinstance(cuts, list) else []
    return totals[0] if totals else None


def _json_length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _cut_texts(value: Any, pointer: str, cuts: list[Cut]) -> Any:
    """The value with every text cut at MAX_STORED_VALUE_CHARACTERS."""
    if isinstance(value, str) and len(value) > MAX_STORED_VALUE_CHARACTERS:
        cuts.append({"pointer": pointer, "stored": MAX_STORED_VALUE_CHARACTERS, "total": len(value)})
        return f"{value[:MAX_STORED_VALUE_CHARACTERS]} …"
    if isinstance(value, dict):
        return {
            key: _cut_texts(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", cuts)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_cut_texts(inner, f"{pointer}/{index}", cuts) for index, inner in enumerate(value)]
    return value


def _fitting_items(items: list[Any], available: int) -> int:
    """How many of the first items fit into that many characters."""
    for count, item in enumerate(items):
        available -= _json_length(item) + 2
        if available < 0:
            return count
    return len(items)


def _describe_cut(cut: Cut) -> str:
    name = cut["pointer"][1:]
    if not cut["stored"]:
        return f"{name} is too long to be stored with this step."
    return f"Only the first {cut['stored']:,} of {cut['total']:,} {name} are stored with this step; the world has all."


def _describe_texts(texts: list[Cut]) -> list[str]:
    if not texts:
        return []
    counted = "one text was" if len(texts) == 1 else f"{len(texts):,} texts were"
    return [f"Of the data stored with this step, {counted} cut at {MAX_STORED_VALUE_CHARACTERS:,} characters."]
