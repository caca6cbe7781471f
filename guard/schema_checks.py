"""The checks of guard/schemas.py, which a bounded worker runs: the process that serves checks nothing itself."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from showhow.guard.schemas import TOO_DEEP, UncheckedValue

_MAX_MESSAGE_CHARACTERS = 300


def find_violation(schema_text: str, value_text: str, newest: bool) -> tuple[list[str | int], str, str] | None:  # noqa: FBT001
    """As guard.schemas.find_violation, with the JSON texts; path, json_path and message of the violation."""
    with _describing_failure():
        schema, value = json.loads(schema_text), json.loads(value_text)
        kind = Draft202012Validator if newest else validator_for(schema, default=Draft202012Validator)
        violation = best_match(kind(schema, registry=Registry()).iter_errors(value))
    if violation is None:
        return None
    return list(violation.absolute_path), violation.json_path, violation.message[:_MAX_MESSAGE_CHARACTERS]


def find_schema_error(schema_text: str, newest: bool) -> str | None:  # noqa: FBT001
    """As guard.schemas.find_schema_error, with the JSON text."""
    with _describing_failure():
        schema = json.loads(schema_text)
        kind = Draft202012Validator if newest else validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            return str(error.message)[:_MAX_MESSAGE_CHARACTERS]
    return None


@contextmanager
def _describing_failure() -> Iterator[None]:
    """UncheckedValue for what the library raises for schemas that it does not expect: anything."""
    try:
        yield
    except MemoryError:
        raise
    except Unresolvable as error:
        raise UncheckedValue(f"the schema refers to {error}, which it lacks") from error
    except RecursionError as error:
        raise UncheckedValue(TOO_DEEP) from error
    except ArithmeticError as error:
        raise UncheckedValue(f"it or its schema has a number that is too large ({error})") from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:_MAX_MESSAGE_CHARACTERS]
        raise UncheckedValue(f"the schema cannot be used ({text})") from error
