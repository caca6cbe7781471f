"""The configuration of a trace or run as attributes: read with from_json, written with to_json.

    configuration = TraceConfiguration.from_json(trace.configuration)
    configuration.library, configuration.limits, configuration.agreement
    trace.configuration = replace(configuration, worker=worker_id).to_json()

A trace begins with the configuration of its run; the run adds details. The form of the stored JSON does not change, and
from_json(document).to_json() == document: values of another form, unknown keys and explicit nulls stay in `extra`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple
from uuid import UUID

MODEL_SKILLS = "model"
"""The language model as what replies to skills."""


@dataclass(frozen=True, slots=True)
class DemonstrationReference:
    """A demonstration of a run: the id of its trace, and its question."""

    id: UUID
    question: str


@dataclass(frozen=True, slots=True)
class StoredAgreement:
    """The agreement of the sources: a state, a sentence, the answer of each source, and the sources that agree."""

    state: str
    words: str
    answers: Mapping[str, str | None] = field(default_factory=dict)
    agreeing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceConfiguration:
    """The settings of a run and its results besides the steps; None or empty if they are not recorded."""

    reasoner: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the reasoner by name."""
    library: str | None = None
    """The library version of the demonstrations as NAME:NUMBER."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """The limits of the run by name; a missing limit does not apply."""
    worker: str = ""
    """The id of the process that works on the trace."""
    model: str | None = None
    profile: Mapping[str, Any] | None = None
    """The profile of the model as it was when the run was started, by field, with its name and without its key."""
    skills: str = MODEL_SKILLS
    """What replies to the skills that no person plays: the model, or gold reasoning (evaluation/skill_sources.py)."""
    person_skills: tuple[str, ...] = ()
    """The names of the skills whose replies a person writes during the run."""
    demonstrations: tuple[DemonstrationReference, ...] | None = None
    """The selected demonstrations, in order; None before the selection."""
    date_notation: str | None = None
    """The notation in which the answers of a single question are stored that are days; None for that of the model."""
    prompt_format: str | None = None
    """The format of the prompts that were sent: chat or text."""
    demonstrations_shown: int | None = None
    """The number of demonstrations that fitted into the prompt."""
    prompt_versions: Mapping[str, str] = field(default_factory=dict)
    """The version of each prompt by the purpose of its requests (reasoners/prompting/tool_declarations.py)."""
    answers: tuple[str, ...] = ()
    """The final answer as a list, if the run gave one; `final_answer` of the trace is its text."""
    cited_steps: tuple[int, ...] = ()
    """The positions of the steps that show the answer, as the run says."""
    response: str | None = None
    """The written response to the question."""
    links: tuple[Mapping[str, Any], ...] = ()
    """The links of the response to steps."""
    response_error: str | None = None
    """The reason why no response was written."""
    agreement: StoredAgreement | None = None
    calls: Mapping[str, Any] = field(default_factory=dict)
    """The calls of models and tools, as counted and as expected, and the seconds that the run waited for them."""
    reuses_parent_steps: bool = False
    """Whether the run takes the results of the later steps of the trace that it was forked from, where they apply."""
    replay: Mapping[str, Any] | None = None
    """Replay only: the demonstration that was followed, and the alignment of its question."""
    project_id: UUID | None = None
    """Verification only: its project."""
    questions: tuple[UUID, ...] = ()
    """Verification only: its questions in order."""
    question_limit: int | None = None
    """Verification only: the maximum number of questions."""
    repetitions: int = 1
    """Verification only: the number of times that each question is asked."""
    repeats: UUID | None = None
    """Verification only: the verification whose failures it repeats."""
    generated: bool = False
    """Whether the trace follows the gold reasoning of a generated world."""
    world_hash: str | None = None
    """Gold run only: the hash of its world."""
    needs: tuple[str, ...] = ()
    """Gold trace only: the sources that it needs."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Imported trace only: the definitions of its tools."""
    is_nested: bool = True
    """Whether reasoner, options and library are stored under "way", as for single questions, not for verifications."""
    absent_keys: frozenset[str] = frozenset()
    """Those of reasoner, options and library that an imported configuration lacks; they are not written."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """All other values, by key."""

    @property
    def followed_demonstrations(self) -> frozenset[str]:
        """The ids of the demonstrations that a replay followed."""
        entries = (self.replay or {}).get("demonstrations", ())
        return frozenset(entry["id"] for entry in entries)

    @property
    def model_label(self) -> str | None:
        """The model with its profile, such as "local (openai:qwen3:8b)"; None for a run without a model."""
        if self.profile is None or self.model is None:
            return self.model
        return f"{self.profile['name']} ({self.model})"

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "TraceConfiguration":
        """Read a stored configuration; never fails, since traces are also imported."""
        rest = dict(document)
        values: dict[str, Any] = {}
        for name, field_form in _STORED_FIELDS.items():
            if field_form.key in rest and field_form.matches(rest[field_form.key]):
                value = field_form.decode(rest[field_form.key])
                if value != _DEFAULTS[name]:
                    values[name] = value
                    del rest[field_form.key]
        nested = rest.get("way")
        if isinstance(nested, Mapping) and nested.keys() == set(_RUN_CONFIG) and _is_run_config(nested):
            values |= rest.pop("way")
        elif rest.keys() >= {"reasoner"} and _is_run_config(rest):
            values |= {name: rest.pop(name) for name in _RUN_CONFIG if name in rest}
            values |= {"is_nested": False, "absent_keys": frozenset(_RUN_CONFIG) - values.keys()}
        return cls(**values, extra=rest)

    def to_json(self) -> dict[str, Any]:
        """Write the stored form; a None or empty value is written only if it was read."""
        document: dict[str, Any] = dict(self.extra)
        if self.reasoner is not None:
            run_config = {"reasoner": self.reasoner, "options": dict(self.options), "library": self.library}
            stored = {name: value for name, value in run_config.items() if value or name not in self.absent_keys}
            document |= {"way": stored} if self.is_nested else stored
        for name, field_form in _STORED_FIELDS.items():
            value = getattr(self, name)
            if value != _DEFAULTS[name]:
                document[field_form.key] = field_form.encode(value)
        return document


class _StoredField(NamedTuple):
    """The JSON key of an attribute, and the check, decoder and encoder of its value."""

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


def _is_count(value: Any) -> bool:
    return type(value) is int


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_text_object(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(entry, str) for entry in value.values())


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_count_list(value: Any) -> bool:
    return isinstance(value, list) and all(type(entry) is int for entry in value)


def _is_object_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value
    except ValueError:
        return False


def _is_id_list(value: Any) -> bool:
    return isinstance(value, list) and all(_is_id(entry) for entry in value)


def _is_profile(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)


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
    "profile": _StoredField("profile", _is_profile, dict, dict),
    "skills": _StoredField("skills", _is_text),
    "person_skills": _StoredField("person_skills", _is_text_list, tuple, list),
    "demonstrations": _StoredField(
        "demonstrations", _is_demonstration_list, _decode_demonstrations, _encode_demonstrations
    ),
    "date_notation": _StoredField("date_notation", _is_text_or_null),
    "prompt_format": _StoredField("form", _is_text_or_null),
    "demonstrations_shown": _StoredField("demonstrations_shown", _is_count_or_null),
    "prompt_versions": _StoredField("prompts", _is_text_object, dict, dict),
    "answers": _StoredField("answers", _is_text_list, tuple, list),
    "cited_steps": _StoredField("cited", _is_count_list, tuple, list),
    "response": _StoredField("response", _is_text_or_null),
    "links": _StoredField("links", _is_object_list, tuple, list),
    "response_error": _StoredField("unwritten", _is_text_or_null),
    "agreement": _StoredField("agreement", _is_agreement, _decode_agreement, _encode_agreement),
    "calls": _StoredField("calls", _is_object, dict, dict),
    "reuses_parent_steps": _StoredField("reuses_parent_steps", lambda value: isinstance(value, bool)),
    "replay": _StoredField("replay", _is_object, dict, dict),
    "project_id": _StoredField("project_id", _is_id, UUID, str),
    "questions": _StoredField("questions", _is_id_list, _decode_ids, _encode_ids),
    "question_limit": _StoredField("most", _is_count_or_null),
    "repetitions": _StoredField("repetitions", _is_count),
    "repeats": _StoredField("again_of", _is_id, UUID, str),
    "generated": _StoredField("generated", lambda value: isinstance(value, bool)),
    "world_hash": _StoredField("hash", _is_text_or_null),
    "needs": _StoredField("needs", _is_text_list, tuple, list),
    "tools": _StoredField("tools", _is_object_list, tuple, list),
}
_DEFAULTS = {entry.name: getattr(TraceConfiguration(), entry.name) for entry in fields(TraceConfiguration)}
