"""The limits of a call of an external tool; the sources of the world limit the built-in tools."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Overdue
from dataclasses import dataclass
from threading import Thread
from typing import TypeVar

from pydantic import ValidationError

from tools.errors import ToolError
from worlds.source import ErrorKind

ResultT = TypeVar("ResultT")
DEFAULT_SECONDS = 30.0
DEFAULT_CHARACTERS = 20_000
_MAX_ERROR_CHARACTERS = 300
"""Characters of an external error that a message quotes."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """The seconds that a call may take, and the characters that its text and its data may have."""

    seconds: float = DEFAULT_SECONDS
    characters: int = DEFAULT_CHARACTERS

    def run_limited(self, name: str, work: Callable[[], ResultT]) -> ResultT:
        """Run the work and return its result; ToolError if it fails or exceeds its seconds."""
        done: Future[ResultT] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as failed:  # noqa: BLE001 - any exception of external code is a failed call
                done.set_exception(failed)

        # In its own thread, since work that hangs cannot be ended, only abandoned.
        Thread(target=run, name=f"tool {name}", daemon=True).start()
        try:
            return done.result(self.seconds)
        except ToolError:
            raise
        except Overdue as late:
            if done.done():
                raise to_tool_error(name, late) from late
            raise ToolError(
                f"{name} gave no answer within its limit of {self.seconds:g} s; ask it for less, or use another tool.",
                ErrorKind.TIME_LIMIT,
            ) from None
        except BaseException as failed:
            raise to_tool_error(name, failed) from failed

    def truncate(self, text: str) -> str:
        """The text, cut at the limit with a note of how much was left out."""
        left = len(text) - self.characters
        if left <= 0:
            return text
        return f"{text[: self.characters]}\n… cut at {self.characters:,} characters; {left:,} more were left out."

    def fits(self, value: object) -> bool:
        """Whether a JSON value is within the limit."""
        return len(json.dumps(value, ensure_ascii=False)) <= self.characters


def to_tool_error(name: str, failure: BaseException) -> ToolError:
    """Convert an exception of an external tool to a ToolError of one sentence."""
    if isinstance(failure, ValidationError):
        places = (f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in failure.errors())
        return ToolError(f"{name} cannot run: {'; '.join(places)}.", ErrorKind.WRONG_ARGUMENTS)
    sentence = f"{name} failed with {summarize_exception(failure)}; try other arguments, or another tool."
    return ToolError(sentence, ErrorKind.OTHER)


def first_exception(failed: BaseException) -> BaseException:
    """The exception itself, or the first of an exception group."""
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return failed


def summarize_exception(failed: BaseException) -> str:
    """The type of an exception and the start of its message, in one line."""
    failed = first_exception(failed)
    try:
        words = " ".join(str(failed).split())
    except Exception:  # noqa: BLE001 - __str__ of an external exception may raise
        words = ""
    words = f"{words[:_MAX_ERROR_CHARACTERS]} …" if len(words) > _MAX_ERROR_CHARACTERS else words
    return f"{type(failed).__name__}: {words}" if words else type(failed).__name__
