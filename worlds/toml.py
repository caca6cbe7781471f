"""Writing the flat tables that world.toml is made of; reading is the standard library's."""

import json
from collections.abc import Mapping
from typing import Any


def dump(table: Mapping[str, Any]) -> str:
    """The table as TOML: texts, numbers, truth values and lists of them; what is None is left out."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in table.items() if value is not None)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for the delete character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(each) for each in value)}]"
    raise TypeError(f"a {type(value).__name__} has no place in world.toml")
