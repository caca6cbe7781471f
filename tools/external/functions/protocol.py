"""The messages between Showhow and the process that runs users' functions; each is one line of JSON."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from showhow.tools.external.output import JsonObject, ToolOutput
from showhow.tools.external.schema import ToolDescription
from showhow.worlds.source import ErrorKind

MAX_REPLY_BYTES = 16_000_000
"""Maximum size of one reply."""
MAX_PROCESSES = 64
"""Processes that a call may have at the same time."""
LOAD_TIMEOUT_SECONDS = 15.0
"""Seconds that importing and describing a function may take."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


class WorkOrder(_Message):
    """What one fork of the process has to do, sent with the socket for its arguments and its reply."""

    task: Literal["describe", "call"]
    name: str
    """The tool's name, for messages."""
    place: str
    seconds: float
    """After these, the fork is killed."""
    megabytes: int
    """Memory that it may use beyond that of the imported modules."""


class CallArguments(_Message):
    """The arguments of a call, and how many characters of its result are used."""

    arguments: JsonObject
    argument_schema: JsonObject
    characters: int


class Failure(_Message):
    """Why a call failed, or why a tool cannot be loaded."""

    sentence: str = ""
    """The whole message."""
    exception: str = ""
    """The exception of the tool, if there is no sentence."""
    is_cut: bool = False
    """Whether the exception is longer."""
    kind: ErrorKind = ErrorKind.OTHER
    is_denied: bool = False
    """Whether the system refused to open something."""


class ForkEnd(_Message):
    """How a fork ended; of use if it sent no reply."""

    limit: Literal["seconds", "processes", "memory"] | None = None
    """The limit for which it was killed."""
    status: int
    """Its exit status, or minus the number of the signal that killed it."""


class Reply(_Message):
    """A reply has one of these fields."""

    description: ToolDescription | None = None
    output: ToolOutput | None = None
    failure: Failure | None = None
    end: ForkEnd | None = None
