"""The error of a tool call, in its own module so that every module of tools can import it."""

from worlds.source import ErrorKind


class ToolError(Exception):
    """A tool call failed; the message is one sentence with the reason and what to do next."""

    def __init__(self, message: str, kind: ErrorKind = ErrorKind.OTHER) -> None:
        super().__init__(message)
        self.kind = kind
