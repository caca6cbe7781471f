"""The checks of guard/schemas.py, which a bounded worker runs: the process that serves checks nothing itself."""

import json

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from guard.schemas import TOO_DEEP, UncheckedValue

_MAX_MESSAGE_CHARACTERS = 300


def find_violation(schema_text: str, value_text: str, newest: bool) -> tuple[list[str | int], str, str] | None:  # noqa: FBT001
    """As guard.schemas.find_violation, with the JSON texts; path, json_path and message of the violation."""
    schema = json.loads(schema_text)
    kind = Draft202012Validator if newest else validator_for(schema, default=Draft202012Validator)
    try:
        violation = best_match(kind(schema, registry=Registry()).iter_errors(json.loads(value_text)))
    except Unresolvable as error:
        raise UncheckedValue(f"the schema refers to {error}, which it lacks") from error
    except RecursionError as error:
        raise UncheckedValue(TOO_DEEP) from error
    except ArithmeticError as error:
        raise UncheckedValue("it has a number that is too large for its schema") from error
    if violation is None:
        return None
    return list(violation.absolute_path), violation.json_path, violation.message[:_MAX_MESSAGE_CHARACTERS]


def find_schema_error(schema_text: str, newest: bool) -> str | None:  # noqa: FBT001
    """As guard.schemas.find_schema_error, with the JSON text."""
    schema = json.loads(schema_text)
    kind = Draft202012Validator if newest else validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return str(error.message)[:_MAX_MESSAGE_CHARACTERS]
    except RecursionError as error:
        raise UncheckedValue(TOO_DEEP) from error
    return None
