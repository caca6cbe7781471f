"""The configurations of runs and traces that revisions before 0013 stored, as RunSpec and RunResult, and back.

A trace had a copy of its run's configuration, with results beside it. Values of another form, and keys that nobody
knows, are kept under `details`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from showhow.db.run_spec import RunResult, RunSpec, StoredValue

PINS: dict[str, Any] = {
    "model": None,
    "encoder": None,
    "world_hash": None,
    "code_version": None,
    "tools": None,
    "options": {},
}
"""The columns of a run that are part of its specification now, with their defaults."""
_ASK, _VERIFY = "ask", "verify"
_METHOD = ("reasoner", "options", "library")
_SPEC_NAMES = {
    **{name: name for name in ("limits", "profile", "skills", "person_skills", "project_id", "repetitions")},
    **{name: name for name in ("asked_by", "date_notation", "model")},
    "most": "sample",
    "answerable": "answerable_only",
    "again_of": "repeats",
    "prompts": "prompt_versions",
    "hash": "world_hash",
}
"""The fields of a RunSpec by the names that they had."""
_RESULT_NAMES = {
    **{name: name for name in RunResult.model_fields.keys() - {"limits", "details"}},
    "form": "prompt_format",
    "cited": "cited_steps",
    "unwritten": "response_error",
}
"""The fields of a RunResult by the names that they had."""


class FormerRun(NamedTuple):
    """A run as it was stored: its name, its configuration, and its columns of PINS."""

    name: str
    configuration: Mapping[str, Any]
    pins: Mapping[str, Any]


def read_run(former: FormerRun, asked_by: str | None = None) -> dict[str, Any]:
    """The stored form of the run's specification; `asked_by` is the person that its only trace names."""
    document = _flatten(former.configuration)
    values, details = _sort(RunSpec, document, _SPEC_NAMES | {name: name for name in _METHOD})
    values = {name: value for name, value in former.pins.items() if value != PINS[name]} | {
        name: value for name, value in values.items() if value is not None
    }
    if former.name == _ASK and asked_by is not None:
        values = {"asked_by": asked_by} | values
    return RunSpec.from_json({"limits": {}, **values, "details": details}).to_json()


def read_trace(configuration: Mapping[str, Any], run: FormerRun | None) -> dict[str, Any]:
    """The stored form of the trace's result, without what its run says too."""
    base: Mapping[str, Any] = {} if run is None else run.configuration
    own = {
        name: value
        for name, value in configuration.items()
        if name in _RESULT_NAMES or name not in base or value != base[name]
    }
    if run is not None and run.name == _ASK and isinstance(own.get("asked_by"), str) and "asked_by" not in base:
        del own["asked_by"]
    values, details = _sort(RunResult, _flatten(own), _RESULT_NAMES | {"limits": "limits"})
    details = {_SPEC_NAMES.get(name, name): value for name, value in details.items()}
    return RunResult.from_json({**values, "details": details}).to_json()


def read_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """An exported record of format version 1 in the form of version 2; ValueError for a configuration of no form."""
    run, trace = record["run"], record["trace"]
    for name, row in (("run", run), ("trace", trace)):
        if row is not None and not (isinstance(row, dict) and isinstance(row.get("configuration", {}), dict)):
            raise ValueError(f"the {name}'s configuration is not a JSON object")
    former = None
    if run is not None:
        pins = {name: run.get(name, default) for name, default in PINS.items()}
        former = FormerRun(run.get("name", ""), run.get("configuration", {}), pins)
        asked_by = trace.get("configuration", {}).get("asked_by")
        spec = read_run(former, asked_by if isinstance(asked_by, str) else None)
        run = {name: value for name, value in run.items() if name not in PINS and name != "configuration"}
        run["spec"] = spec
    result = read_trace(trace.get("configuration", {}), former)
    trace = {name: value for name, value in trace.items() if name != "configuration"} | {"result": result}
    return {**record, "run": run, "trace": trace, "version": 2}


def _flatten(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with reasoner, options and library beside the other values."""
    document = dict(configuration)
    nested = document.get("way")
    if isinstance(nested, Mapping) and nested.keys() <= set(_METHOD) and not nested.keys() & document.keys():
        return {**nested, **{name: value for name, value in document.items() if name != "way"}}
    return document


def _sort(
    kind: type[StoredValue], document: Mapping[str, Any], names: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of fields, by their names now, and the others."""
    values: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for key, value in document.items():
        name = names.get(key)
        if name is not None and name not in values and _fits(kind, name, value):
            values[name] = value
        else:
            details[key] = value
    return values, details


def _fits(kind: type[StoredValue], name: str, value: Any) -> bool:
    is_profile = value is None or (isinstance(value, Mapping) and isinstance(value.get("name"), str))
    return kind.fits(name, value) and (name != "profile" or is_profile)


def write_run(name: str, spec: Mapping[str, Any]) -> FormerRun:
    """The run as it was stored."""
    value = RunSpec.from_json(spec)
    pins = {pin: list(field) if isinstance(field := getattr(value, pin), tuple) else field for pin in PINS}
    plain = value.to_json()
    formerly = {now: key for key, now in _SPEC_NAMES.items() if now not in PINS}
    document = {formerly[field]: plain[field] for field in plain if field in formerly}
    method = {"reasoner": value.reasoner, "options": value.options, "library": value.library}
    document = {**value.details, **document}
    if name == _ASK:
        document |= {"way": method} | ({"model": value.model} if value.model is not None else {})
    elif value.reasoner:
        document |= method | ({"most": value.sample} if name == _VERIFY else {})
    if name != _VERIFY and not plain["limits"]:
        del document["limits"]
    return FormerRun(name, document, pins)


def write_trace(result: Mapping[str, Any], run: FormerRun | None) -> dict[str, Any]:
    """The configuration of the trace as it was stored."""
    formerly = {now: key for key, now in _RESULT_NAMES.items() if key != now}
    own = {formerly.get(name, name): value for name, value in result.items() if name != "details"}
    base = run.configuration if run is not None and run.name in (_ASK, _VERIFY) else {}
    return {**base, **result.get("details", {}), **own}
