"""Answers to waits: their JSON Schema, and their conversion to a type."""

from __future__ import annotations

import json
from typing import Any

from ._annotations import Misfit, Reader
from ._shape import Problems, Shape
from .durable import Malformed
from .failure import Failed


def with_defs(shape: Shape) -> dict[str, Any]:
    """The JSON Schema of a shape, with the schemas that it refers to."""
    defs: dict[str, Any] = {}
    schema = shape.schema(defs)
    return {**schema, "$defs": defs} if defs else schema


def schema_of(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of an annotation."""
    return with_defs(_shape(annotation))


def read(text: str, annotation: Any) -> Any:
    """Converts the text of an answer to this type. Raises ``Malformed`` if it does not fit."""
    problems = Problems()
    try:
        value = _shape(annotation).decode(json.loads(text), "", problems)
    except ValueError as error:
        raise Malformed(f"the answer is not JSON: {error}") from None
    if problems:
        raise Malformed("the answer cannot be read: " + "; ".join(problems.lines()))
    return value


def _shape(annotation: Any) -> Shape:
    try:
        return Reader().shape(annotation)
    except Misfit as misfit:
        raise Failed(f"no answer can have this type: {misfit}") from None
