"""Descriptions and bounds in annotations: ``Annotated[int, Field(description="…", minimum=1)]``."""

from __future__ import annotations

from typing import Any

_ALIASES = {"ge": "minimum", "le": "maximum", "gt": "exclusive_minimum", "lt": "exclusive_maximum"}
_NUMBERS = ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of")
_SIZES = ("min_length", "max_length")
_TEXTS = ("pattern", "format")


class Field:
    """Describes and bounds one value. Every argument is optional. The short names ``ge``, ``le``, ``gt``, ``lt`` work
    too.

    ``min_length`` and ``max_length`` bound a string's characters, a list's items or a dict's members. ``pattern``
    matches anywhere in the string: anchor it with ``^`` and ``$``. ``unique_items`` is for lists. ``extra`` is merged
    into the JSON Schema unchecked; the host checks it. ``alias`` sets the only JSON name of a parameter or of a
    dataclass's field, for names such as ``from`` that Python does not allow.

    Raises:
        TypeError: A bound was given by both of its names.
    """

    def __init__(
        self,
        description: str | None = None,
        *,
        alias: str | None = None,
        title: str | None = None,
        examples: list[Any] | None = None,
        minimum: float | None = None,
        maximum: float | None = None,
        exclusive_minimum: float | None = None,
        exclusive_maximum: float | None = None,
        multiple_of: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        pattern: str | None = None,
        format: str | None = None,  # noqa: A002: the keyword of JSON Schema
        unique_items: bool | None = None,
        extra: dict[str, Any] | None = None,
        ge: float | None = None,
        le: float | None = None,
        gt: float | None = None,
        lt: float | None = None,
    ):
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        for short, long in _ALIASES.items():
            if short in given:
                if long in given:
                    raise TypeError(f"Field: `{short}` and `{long}` are the same: give one")
                given[long] = given.pop(short)
        self.notes = {name: given[name] for name in ("title", "description", "examples") if name in given}
        self.extra = given.get("extra", {})
        self.alias: str | None = given.get("alias")
        self.bounds = {
            name: given[name] for name in (*_NUMBERS, *_SIZES, *_TEXTS, "unique_items") if name in given
        }

    def __repr__(self) -> str:
        shown = {**({"alias": self.alias} if self.alias else {}), **self.notes, **self.bounds, **({"extra": self.extra} if self.extra else {})}
        return "Field(" + ", ".join(f"{name}={value!r}" for name, value in shown.items()) + ")"
