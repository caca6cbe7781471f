"""Check that every stored value can be read, and is what its column holds.

Only a database that was changed or made elsewhere has others: the program itself cannot store them.
"""

import json
from collections.abc import Callable, Iterator
from math import isfinite
from types import NoneType
from typing import Any, get_args, get_origin

from sqlalchemy import ColumnElement, Text, cast, select
from sqlalchemy.exc import DBAPIError

from showhow.db.database import Database
from showhow.db.models import User
from showhow.db.people.users import ROLES
from showhow.db.run_spec import StoredValue
from showhow.db.serialization import field_types
from showhow.db.types import MAX_JSON_CHARACTERS, Base, ExactJson, TagList, check_storable_json, check_storable_text
from showhow.guard.input_bounds import MEGABYTE, InputBoundExceeded
from showhow.guard.json_input import BYTES_OF_CONTAINER, BYTES_OF_FIELD, MAX_VALUE_MEGABYTES, check_json

_ROWS_AT_ONCE = 500


def find_invalid_values(database: Database) -> list[str]:
    """Describe the first value of each table that cannot be read, or that its column cannot hold."""
    kinds = sorted((mapper.class_ for mapper in Base.registry.mappers), key=lambda kind: kind.__tablename__)
    return [problem for kind in kinds for problem in _check_table(database, kind)]


def _check_table(database: Database, kind: type[Base]) -> Iterator[str]:
    table = kind.__table__
    types = field_types(kind)
    names = [name for name in types if name in table.c]
    checks = [_check_roles if table.c[name] is User.__table__.c.roles else _value_check(types[name]) for name in names]
    # As text, JSON is parsed here, with the limits of what can be stored.
    columns: list[ColumnElement[Any]] = [
        cast(table.c[name], Text) if isinstance(table.c[name].type, ExactJson | TagList) else table.c[name]
        for name in names
    ]
    try:
        with (
            database.engine.connect() as connection,
            connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(*columns)) as rows,
        ):
            for row in rows:
                for check, value in zip(checks, row, strict=True):
                    check(value)
    except (ValueError, TypeError, OverflowError, RecursionError, DBAPIError) as error:
        yield f"table {table}: a value cannot be read or stored ({' '.join(str(error).split())[:200]})"


def _value_check(types: tuple[Any, ...]) -> Callable[[Any], None]:
    """A function that raises ValueError for a value of none of the types."""
    if Any in types:
        return _check_any_json
    if issubclass(get_origin(types[0]) or types[0], StoredValue):
        return lambda value: types[0].from_json(_parse_json(value))
    json_types = tuple(get_origin(kind) for kind in types if get_origin(kind))
    allows_none = NoneType in types
    item_types = tuple(
        get_origin(kind) or kind for listed in types if get_origin(listed) is list for kind in get_args(listed)
    )

    def check(value: Any) -> None:
        if value is None and allows_none:
            return
        if json_types:
            parsed = _parse_json(value)
            if not isinstance(parsed, json_types) or (
                item_types and not all(isinstance(item, item_types) for item in parsed)
            ):
                raise ValueError(f"it is {value[:80]}")
        elif type(value) not in types:
            raise ValueError(f"it is a {type(value).__name__}")
        elif isinstance(value, str):
            check_storable_text(value)
        elif isinstance(value, float) and not isfinite(value):
            raise ValueError(f"it is {value}")

    return check


def _check_roles(value: str) -> None:
    roles = _parse_json(value)
    if not isinstance(roles, list) or any(role not in ROLES for role in roles):
        raise ValueError(f"{value[:80]} are no roles")


def _check_any_json(value: Any) -> None:
    if value is not None:
        _parse_json(value)


def _parse_json(value: str) -> Any:
    containers, fields = (sum(map(value.count, signs)) for signs in ("[{", ",:"))
    # Each takes some memory once it is parsed; texts have such signs too, which the check leaves out.
    if BYTES_OF_CONTAINER * containers + BYTES_OF_FIELD * fields > MAX_VALUE_MEGABYTES * MEGABYTE:
        try:
            check_json(value)
        except InputBoundExceeded as error:
            raise ValueError(f"its JSON would take more than {MAX_VALUE_MEGABYTES} MB of memory") from error
    parsed = json.loads(value, parse_constant=_refuse_number, parse_float=_parse_finite)
    if len(value) > MAX_JSON_CHARACTERS:
        check_storable_json(parsed)
    return parsed


def _parse_finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _refuse_number(text)


def _refuse_number(text: str) -> float:
    raise ValueError(f"it has the number {text[:20]}")
