"""The docstrings of the fields of a class, for forms and lists of options."""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic import BaseModel


def read_field_docstrings(described: type[Any]) -> Mapping[str, str]:
    """The docstrings below the fields of a model or dataclass and of its bases, by the name of the field.

    They are no part of the schema that is sent to models, so a better wording changes no request. A class that was not
    read from a file has none.
    """
    return _read_docstrings(described.__mro__)


@cache
def _read_docstrings(classes: tuple[type, ...]) -> Mapping[str, str]:
    docstrings: dict[str, str] = {}
    for base in reversed(classes):
        if base not in (BaseModel, object):
            try:
                source = inspect.getsource(base)
            except OSError:
                continue
            (definition,) = ast.parse(dedent(source)).body
            for field, text in pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                        docstrings[name] = inspect.cleandoc(docstring)
    return docstrings
