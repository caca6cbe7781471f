"""What components send: foreign input, which is read here and ignored where it is not of its form."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

ANY_NUMBER = range(2**31)
_log = logging.getLogger(__name__)

ValueForm = Mapping[str, type | range]
"""The fields of a value: a type, or the range of a whole number; a field whose name ends in "?" may be missing."""


def read_action(key: str, trigger: str, forms: Mapping[str, ValueForm]) -> dict[str, Any] | None:
    """The action that a component sent: its "kind" and the fields of that form; None if it sent no such action."""
    value = _sent_value(key, trigger)
    action = parse_action(value, forms)
    if action is None and value is not None:
        _log.warning("a value of the component %r was ignored: its page sends no such value", key)
    return action


def read_target(key: str, trigger: str, targets: Collection[str]) -> str | None:
    """The target that was clicked in a component; None if it is none of those on the page."""
    value = _sent_value(key, trigger)
    action = parse_action({"kind": "go", **value} if isinstance(value, dict) else None, {"go": {"to": str}})
    return action["to"] if action is not None and action["to"] in targets else None


def read_picks(key: str, trigger: str, targets: Collection[str]) -> list[str] | None:
    """Those of the targets on the page that are marked in a component; None if it sent no such list."""
    value = _sent_value(key, trigger)
    action = parse_action({"kind": "pick", **value} if isinstance(value, dict) else None, {"pick": {"ids": list}})
    return None if action is None else [target for target in targets if target in action["ids"]]


def _sent_value(key: str, trigger: str) -> object:
    return getattr(st.session_state.get(key), trigger, None)


def parse_action(value: object, forms: Mapping[str, ValueForm]) -> dict[str, Any] | None:
    """The "kind" of the value and the fields of that kind's form; None if the value is of no form."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in forms:
        return None
    action: dict[str, Any] = {"kind": kind}
    for name, accepted in forms[kind].items():
        field_name = name.removesuffix("?")
        field = value.get(field_name)
        if field is None and name.endswith("?"):
            continue
        # True is an int in Python.
        if type(field) is not (int if isinstance(accepted, range) else accepted):
            return None
        if isinstance(accepted, range) and field not in accepted:
            return None
        action[field_name] = field
    return action
