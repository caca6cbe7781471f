"""The configuration of a trace or run as attributes: read with from_json, written with to_json.

    configuration = TraceConfiguration.from_json(trace.configuration)
    configuration.library, configuration.limits, configuration.agreement
    trace.configuration = replace(configuration, worker=worker_id).to_json()

A trace begins with the configuration of its run; details that the run finds out join it. The stored JSON is what it has
always been, and from_json(document).to_json() == document: a value that has not the form expected here, a key that is
not known here, and an explicit null stay in `extra`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple
from uuid import UUID


@dataclass(frozen=True, slots=True)
class DemonstrationReference:
    """A demonstration that a run was given: the id of its trace, and its question."""

    id: UUID
    question: str


@dataclass(frozen=True, slots=True)
class StoredAgreement:
    """How far the sources agreed: a state, a sentence, the answer of each source, and the sources that agree."""

    state: str
    words: str
    answers: Mapping[str, str | None] = field(default_factory=dict)
    agreeing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceConfiguration:
    """The settings of a run and its findings beside its steps; None or empty where they are not recorded."""

    reasoner: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the reasoner, by name."""
    library: str | None = None
    """The library version of the demonstrations as NAME:NUMBER."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The limits of the run by name; one that is missing does not hold."""
    worker: str = ""
    """The id of the process that works on the trace."""
    model: str | None = None
    demonstrations: tuple[DemonstrationReference, ...] | None = None
    """Those that were selected, in order; None before the selection."""
    prompt_format: str | None = None
    """The format that the prompts really had: chat or text."""
    demonstrations_shown: int | None = None
    """How many of the demonstrations fitted into the prompt."""
    response: str | None = None
    """The written response to the question."""
    links: tuple[Mapping[str, Any], ...] = ()
    """The links of the response to steps."""
    response_error: str | None = None
    """Why no response was written."""
    agreement: StoredAgreement | None = None
    replay: Mapping[str, Any] | None = None
    """Which demonstration a replay followed, and how its question was aligned."""
    project_id: UUID | None = None
    """Of a verification: its project."""
    questions: tuple[UUID, ...] = ()
    """Of a verification: its questions in order."""
    question_limit: int | None = None
    """Of a verification: how many questions it was limited to."""
    repeats: UUID | None = None
    """Of a verification: the one whose failures it repeats."""
    generated: bool = False
    """The trace follows the gold reasoning of a generated world."""
    world_hash: str | None = None
    """Of a gold run: the hash of its world."""
    needs: tuple[str, ...] = ()
    """Of a gold trace: the sources it needs."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Of an imported trace: the definitions of its tools."""
    is_nested: bool = True
    """Reasoner, options and library are stored under "way", as of single questions; of a verification they are not."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Everything else, by its key."""

    @property
    def followed_demonstrations(self) -> frozenset[str]:
        """The ids of the demonstrations that a replay followed."""
        entries = (self.replay or {}).get("demonstrations", ())
        return frozenset(entry["id"] for entry in entries)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "TraceConfiguration":
        """Read a stored configuration; never fails, since traces come from elsewhere too."""
        rest = dict(document)
        values: dict[str, Any] = {}
        for name, stored in _STORED_FIELDS.items():
            if stored.key in rest and stored.matches(rest[stored.key]):
                value = stored.decode(rest[stored.key])
                if value != _DEFAULTS[name]:
                    values[name] = value
                    del rest[stored.key]
        nested = rest.get("way")
        if isinstance(nested, Mapping) and nested.keys() == set(_RUN_CONFIG) and _is_run_config(nested):
            values |= rest.pop("way")
        elif rest.keys() >= {"reasoner"} and _is_run_config(rest):
            values |= {name: rest.pop(name) for name in _RUN_CONFIG if name in rest}
            values["is_nested"] = False
        return cls(**values, extra=rest)

    def to_json(self) -> dict[str, Any]:
        """Write the stored form; a None or empty value is written only where it was read."""
        document: dict[str, Any] = dict(self.extra)
        if self.reasoner is not None:
            run_config = {"reasoner": self.reasoner, "options": dict(self.options), "library": self.library}
            document |= {"way": run_config} if self.is_nested else run_config
        for name, stored in _STORED_FIELDS.items():
            value = getattr(self, name)
            if value != _DEFAULTS[name]:
                document[stored.key] = stored.encode(value)
        return document


class _StoredField(NamedTuple):
    """How an attribute stands in the JSON: under which key, in which form."""

    key: str
    matches: Callable[[Any], bool]
    decode: Callable[[Any], Any] = lambda value: value
    encode: Callable[[Any], Any] = lambda value: value


_RUN_CONFIG = ("reasoner", "options", "library")


def _is_run_config(values: Mapping[str, Any]) -> bool:
    return (
        isinstance(values.get("reasoner"), str)
        and isinstance(values.get("options", {}), Mapping)
        and isinstance(values.get("library"), str | None)
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_null(value: Any) -> bool:
    return isinstance(value, str | None)


def _is_count_or_null(value: Any) -> bool:
    return value is None or type(value) is int


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_object_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value
    except ValueError:
        return False


def _is_id_list(value: Any) -> bool:
    return isinstance(value, list) and all(_is_id(entry) for entry in value)


def _is_demonstration_list(value: Any) -> bool:
    return _is_object_list(value) and all(
        entry.keys() == {"id", "question"} and _is_id(entry["id"]) and isinstance(entry["question"], str)
        for entry in value
    )


def _is_agreement(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and value.keys() == {"state", "words", "answers", "agreeing"}
        and all(isinstance(value[name], str) for name in ("state", "words"))
        and isinstance(value["answers"], Mapping)
        and _is_text_list(value["agreeing"])
    )


def _decode_demonstrations(value: Any) -> tuple[DemonstrationReference, ...]:
    return tuple(DemonstrationReference(UUID(entry["id"]), entry["question"]) for entry in value)


def _encode_demonstrations(value: Any) -> list[dict[str, str]]:
    return [{"id": str(entry.id), "question": entry.question} for entry in value]


def _decode_agreement(value: Any) -> StoredAgreement:
    return StoredAgreement(value["state"], value["words"], value["answers"], tuple(value["agreeing"]))


def _encode_agreement(value: Any) -> dict[str, Any]:
    agreeing = list(value.agreeing)
    return {"state": value.state, "words": value.words, "answers": dict(value.answers), "agreeing": agreeing}


def _decode_ids(value: Any) -> tuple[UUID, ...]:
    return tuple(UUID(entry) for entry in value)


def _encode_ids(value: Any) -> list[str]:
    return [str(entry) for entry in value]


_STORED_FIELDS = {
    "limits": _StoredField("limits", _is_object, dict, dict),
    "worker": _StoredField("worker", _is_text),
    "model": _StoredField("model", _is_text_or_null),
    "demonstrations": _StoredField(
        "demonstrations", _is_demonstration_list, _decode_demonstrations, _encode_demonstrations
    ),
    "prompt_format": _StoredField("form", _is_text_or_null),
    "demonstrations_shown": _StoredField("demonstrations_shown", _is_count_or_null),
    "response": _StoredField("response", _is_text_or_null),
    "links": _StoredField("links", _is_object_list, tuple, list),
    "response_error": _StoredField("unwritten", _is_text_or_null),
    "agreement": _StoredField("agreement", _is_agreement, _decode_agreement, _encode_agreement),
    "replay": _StoredField("replay", _is_object, dict, dict),
    "project_id": _StoredField("project_id", _is_id, UUID, str),
    "questions": _StoredField("questions", _is_id_list, _decode_ids, _encode_ids),
    "question_limit": _StoredField("most", _is_count_or_null),
    "repeats": _StoredField("again_of", _is_id, UUID, str),
    "generated": _StoredField("generated", lambda value: isinstance(value, bool)),
    "world_hash": _StoredField("hash", _is_text_or_null),
    "needs": _StoredField("needs", _is_text_list, tuple, list),
    "tools": _StoredField("tools", _is_object_list, tuple, list),
}
_DEFAULTS = {entry.name: getattr(TraceConfiguration(), entry.name) for entry in fields(TraceConfiguration)}
