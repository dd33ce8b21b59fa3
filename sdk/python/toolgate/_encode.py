"""Converts Python values to JSON: results, progress, stored values, request bodies."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import json
import math
import typing
import uuid
from typing import Any

from ._annotations import alias_of
from ._shape import step
from .failure import Failed

MAX_DEPTH = 100
"""The deepest nesting, a little less than JSON readers accept. A deeper or recursive value is a mistake."""


class NoJson(Failed):
    """A value without a form in JSON. This is a mistake of the tool, so the call fails."""


def to_json(value: Any) -> str:
    """The JSON text of a value: compact, in UTF-8, with exact integers of any size.

    Dataclasses become objects, enums their values, sets and tuples arrays, dates ISO 8601, ``Decimal`` and ``UUID`` strings.
    All other values without a form in JSON, including NaN and infinity, raise ``NoJson`` with their position.
    """
    text = json.dumps(encode(value), ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NoJson(f"a text has a lone surrogate ({error.object[error.start]!a}), which is not UTF-8") from None
    return text


def encode(value: Any, at: str = "", depth: int = 0) -> Any:
    """Converts the value to dict, list, str, int, float, bool and None."""
    if depth > MAX_DEPTH:
        raise NoJson(f"{at[:60]}…: is nested deeper than {MAX_DEPTH} levels")
    depth += 1
    if value is None or isinstance(value, (str, bool, int)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoJson(f"{at or '/'}: {value} has no form in JSON; give `None` where there is no number")
        return value
    if isinstance(value, enum.Enum):
        return encode(value.value, at, depth)
    if isinstance(value, dict):
        return {_key(name, at): encode(member, step(at, name), depth) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item, step(at, index), depth) for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [encode(item, step(at, index), depth) for index, item in enumerate(_ordered(value))]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = _names(type(value))
        return {to: encode(getattr(value, name), step(at, to), depth) for name, to in names.items()}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    raise NoJson(f"{at or '/'}: {type(value).__name__} has no form in JSON")


@functools.cache
def _names(cls: type) -> dict[str, str]:
    """The JSON names of a dataclass's fields."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:  # declaring a tool with such a class reports types that cannot be found
        hints = {}
    fields = dataclasses.fields(cls)
    return {field.name: alias_of(hints.get(field.name)) or field.name for field in fields}


def _key(name: Any, at: str) -> str:
    if isinstance(name, enum.Enum):
        name = name.value
    if isinstance(name, str):
        return name
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    raise NoJson(f"{at or '/'}: a dict has the key {name!r}; names in JSON are strings")


def _ordered(items: Any) -> list[Any]:
    """A set in a fixed order, so that the same call gives the same text."""
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)
