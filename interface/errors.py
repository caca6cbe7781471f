"""The one error of the interface."""

from collections.abc import Iterator
from contextlib import contextmanager

from showhow.guard.user_errors import user_error_types


class ShowhowError(Exception):
    """What was asked for is not possible; the message is one sentence: what, where, what to do next.

    Other exceptions are defects of Showhow.
    """


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Raise ShowhowError for the errors that are written for the user."""
    try:
        yield
    except user_error_types() as error:
        raise ShowhowError(str(error)) from error
