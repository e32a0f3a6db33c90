"""The description of each parameter, read from the docstring below its field."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel


def field_descriptions(kind: type[BaseModel]) -> dict[str, str]:
    """Return the description of each field: the docstring below it, else its `description`.

    The description of a field that has neither is empty.
    """
    docstrings: dict[str, str] = {}
    for base in reversed(kind.__mro__[: kind.__mro__.index(BaseModel)]):
        docstrings.update(_field_docstrings(base))
    return {
        name: docstrings.get(name, field.description or "")
        for name, field in kind.model_fields.items()
    }


@cache
def _field_docstrings(kind: type[Any]) -> Mapping[str, str]:
    """Return the docstrings below the fields of one class."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # the source is not available
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
