"""What models make of JSON that they are asked for: functions from a good reply to what is sent in its place."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

Habit = Callable[[BaseModel], str]


def say_well(reply: BaseModel) -> str:
    """Write the reply in the form that was asked for."""
    return reply.model_dump_json(exclude_none=True)


def fence(reply: BaseModel) -> str:
    """Put the JSON between fences, as in Markdown."""
    return f"```json\n{reply.model_dump_json(exclude_none=True, indent=2)}\n```"


def talk(reply: BaseModel) -> str:
    """Write sentences before and after it, with braces of their own."""
    return (
        f"Sure! I filled in the {{form}} that you gave:\n\n{say_well(reply)}\n\nI hope this {{helps}}; ask me for more."
    )


def leave_out(reply: BaseModel) -> str:
    """Leave out every optional field."""
    return reply.model_dump_json(exclude_defaults=True)


def write_null(reply: BaseModel) -> str:
    """Write null for every optional field."""
    given = reply.model_dump(exclude_defaults=True)
    return json.dumps(dict.fromkeys(type(reply).model_fields) | given)


def _change_objects(value: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Change each object, the inner ones first."""
    if isinstance(value, list):
        return [_change_objects(item, change) for item in value]
    if isinstance(value, dict):
        return change({name: _change_objects(field, change) for name, field in value.items()})
    return value


def write_texts(reply: BaseModel) -> str:
    """Write a text for an object that has one, the item for a list that has one, and whole numbers as texts."""

    def flatten(fields: dict[str, Any]) -> Any:
        flat = {
            name: field[0] if isinstance(field, list) and len(field) == 1 else field for name, field in fields.items()
        }
        texts = {name: str(field) if type(field) is int else field for name, field in flat.items()}
        return texts["text"] if [*texts] == ["text"] else texts

    document = json.loads(leave_out(reply))
    return json.dumps({name: _change_objects(field, flatten) for name, field in document.items()})


def write_json_in_json(reply: BaseModel) -> str:
    """Write lists and objects as texts of JSON."""
    document = json.loads(say_well(reply))
    return json.dumps(
        {name: json.dumps(field) if isinstance(field, list | dict) else field for name, field in document.items()}
    )


def spell_otherwise(reply: BaseModel) -> str:
    """Write the names of all fields in another case and number."""

    def change(name: str) -> str:
        first, *words = name.split("_")
        camel = first + "".join(map(str.title, words))
        return camel.removesuffix("s") if camel.endswith("s") else f"{camel}s"

    document = json.loads(say_well(reply))
    return json.dumps(_change_objects(document, lambda fields: {change(name): field for name, field in fields.items()}))


def name_otherwise(reply: BaseModel) -> str:
    """Give the first field that is asked for a name that nobody asked for."""
    first = next((name for name, field in type(reply).model_fields.items() if field.is_required()), "")
    document = json.loads(say_well(reply))
    return json.dumps({f"my_{name}_are" if name == first else name: field for name, field in document.items()})


def forget(reply: BaseModel) -> str:
    """Leave out the first field that is asked for."""
    first = next((name for name, field in type(reply).model_fields.items() if field.is_required()), "")
    return json.dumps({name: field for name, field in json.loads(say_well(reply)).items() if name != first})


HABITS: Mapping[str, Habit] = {
    "fences": fence,
    "prose": talk,
    "missing optional fields": leave_out,
    "null for optional fields": write_null,
    "texts for objects and lists": write_texts,
    "JSON in JSON": write_json_in_json,
    "fields in another case and number": spell_otherwise,
    "a field of another name": name_otherwise,
}
"""Habits whose meaning leaves no choice."""
