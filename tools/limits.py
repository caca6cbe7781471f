"""The limits of a call of an external tool; built-in tools are limited by the sources of the world."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from threading import Thread
from typing import TypeVar

from pydantic import ValidationError

from tools.errors import ToolError
from worlds.source import ErrorKind

ResultT = TypeVar("ResultT")
DEFAULT_SECONDS = 30.0
DEFAULT_CHARACTERS = 20_000
MAX_ERROR_CHARACTERS = 300
"""Characters of an external error that a message quotes."""


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
