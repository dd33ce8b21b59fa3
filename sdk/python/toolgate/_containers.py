"""Shapes with parts: lists, tuples, dicts, objects with named members, and bounds on any shape."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any, Callable

from ._shape import BAD, Problems, Shape, kind_of, show, step
from .failure import InvalidArguments
from .field import Field


class Array(Shape):
    """``list[T]``, ``tuple[T, ...]``, ``set[T]``. ``build`` makes the Python value from the decoded items."""

    kind = "array"

    def __init__(self, item: Shape, build: Callable[[list[Any]], Any] = list, unique: bool = False):
        self.item, self.build, self.unique = item, build, unique

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        items = self.item.schema(defs)
        schema: dict[str, Any] = {"type": "array", **({"items": items} if items else {})}
        if self.unique:
            schema["uniqueItems"] = True
        return schema

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        if not isinstance(value, list):
            return self.wrong(value, at, problems)
        if self.unique and not _distinct(value):
            return problems.add(at, "has an item twice")
        items = [self.item.decode(item, step(at, index), problems) for index, item in enumerate(value)]
        if any(item is BAD for item in items):
            return BAD
        try:
            return self.build(items)
        except TypeError as error:
            return problems.add(at, str(error))


class Tuple(Shape):
    """``tuple[A, B]``: a fixed number of items, each with its own shape."""

    kind = "array"

    def __init__(self, items: list[Shape]):
        self.items = items

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        count = len(self.items)
        schema: dict[str, Any] = {"type": "array", "minItems": count, "maxItems": count}
        if self.items:
            schema["prefixItems"] = [item.schema(defs) for item in self.items]
        return schema

    def words(self) -> str:
        return f"an array of {len(self.items)}"

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        if not isinstance(value, list) or len(value) != len(self.items):
            return self.wrong(value, at, problems)
        pairs = enumerate(zip(self.items, value))
        items = [shape.decode(item, step(at, index), problems) for index, (shape, item) in pairs]
        return BAD if any(item is BAD for item in items) else tuple(items)


class Mapping(Shape):
    """``dict[str, T]``. ``key`` is set if the keys are an ``Enum`` or a ``Literal``."""

    kind = "object"

    def __init__(self, value: Shape, key: Shape | None = None):
        self.value, self.key = value, key

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object"}
        if self.key is not None:
            schema["propertyNames"] = self.key.schema(defs)
        members = self.value.schema(defs)
        return {**schema, **({"additionalProperties": members} if members else {})}

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, problems)
        decoded = {}
        for name, member in value.items():
            key = name if self.key is None else self.key.decode(name, step(at, name), problems)
            decoded[key] = self.value.decode(member, step(at, name), problems)
        return BAD if BAD in decoded or any(member is BAD for member in decoded.values()) else decoded


class Member:
    """One member of an object. ``name`` is its Python name, if its JSON name is an alias."""

    def __init__(self, shape: Shape, required: bool, description: str | None = None, default: Any = BAD,
                 name: str | None = None):
        self.shape, self.required, self.description, self.default, self.name = shape, required, description, default, name

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        schema = self.shape.schema(defs)
        if self.description and "description" not in schema:
            schema = {**schema, "description": self.description}
        if self.default is not BAD:
            schema = {**schema, "default": self.default}
        return schema


class Object(Shape):
    """Members by name: the parameters of a function, a dataclass, a TypedDict.

    ``build`` makes the Python value from the given members. If it raises ``ValueError``, the whole object has a problem.
    ``name`` is set if the object contains itself. Its schema is then a ``$ref``.
    """

    kind = "object"

    def __init__(self, build: Callable[[dict[str, Any]], Any], is_open: bool = False):
        self.members: dict[str, Member] = {}
        self.build, self.is_open = build, is_open
        self.name: str | None = None
        self.description: str | None = None

    def add(self, name: str, member: Member) -> None:
        """Adds a member under its JSON name."""
        if name in self.members:
            raise ValueError(f"`{name}` is the name of two members")
        self.members[name] = member

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        if self.name is None:
            return self._written_out(defs)
        if self.name not in defs:
            defs[self.name] = {}
            defs[self.name] = self._written_out(defs)
        return {"$ref": f"#/$defs/{self.name}"}

    def _written_out(self, defs: dict[str, Any]) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object"}
        if self.description:
            schema["description"] = self.description
        schema["properties"] = {name: member.schema(defs) for name, member in self.members.items()}
        required = [name for name, member in self.members.items() if member.required]
        if required:
            schema["required"] = required
        if not self.is_open:
            schema["additionalProperties"] = False
        return schema

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, problems)
        before = (len(problems.found), problems.more)
        given = {}
        for name, member in value.items():
            known = self.members.get(name)
            if known is not None:
                given[known.name or name] = known.shape.decode(member, step(at, name), problems)
            elif self.is_open:
                given[name] = member
            else:
                problems.add(step(at, name), f"is not known here{self._nearest(name)}")
        for name, known in self.members.items():
            if known.required and name not in value:
                problems.add(step(at, name), "is missing")
        if (len(problems.found), problems.more) != before:
            return BAD
        try:
            return self.build(given)
        except (ValueError, TypeError, InvalidArguments) as error:
            return problems.add(at, str(error) or type(error).__name__)

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, self.members, 1)
        names = ", ".join(self.members) or "none"
        return f"; did you mean `{near[0]}`?" if near else f" (known are: {names})"


_KEYWORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "format": "format",
    "unique_items": "uniqueItems",
}
_SIZES = {"string": "Length", "array": "Items", "object": "Properties"}
_UNITS = {"string": "character", "array": "item", "object": "member"}
_FITS = {"string": {"pattern", "format"}, "array": {"unique_items"}}
_NUMERIC = {"minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of"}


class Bounded(Shape):
    """A shape with the bounds and notes of a ``Field``."""

    def __init__(self, inner: Shape, field: Field):
        self.inner, self.field, self.kind = inner, field, inner.kind

    @staticmethod
    def misfits(kind: str | None, field: Field) -> list[str]:
        """The bounds that do not apply to values of this kind."""
        fits = set(_FITS.get(kind or "", ()))
        if kind in _SIZES:
            fits |= {"min_length", "max_length"}
        if kind in ("integer", "number"):
            fits |= _NUMERIC
        return [name for name in field.bounds if name not in fits]

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        schema = dict(self.inner.schema(defs))
        for name, value in self.field.bounds.items():
            if name in ("min_length", "max_length"):
                schema[name[:3] + _SIZES[self.kind or ""]] = value
            else:
                schema[_KEYWORDS[name]] = value
        return {**schema, **self.field.notes, **self.field.extra}

    def words(self) -> str:
        return self.inner.words()

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        decoded = self.inner.decode(value, at, problems)
        if decoded is BAD:
            return BAD
        bad = [what for name, bound in self.field.bounds.items() if (what := self._broken(name, bound, value))]
        for what in bad:
            problems.add(at, what)
        return BAD if bad else decoded

    def _broken(self, name: str, bound: Any, value: Any) -> str | None:
        if name in ("min_length", "max_length"):
            short = name == "min_length"
            if len(value) < bound if short else len(value) > bound:
                unit = _UNITS[self.kind or ""] + ("" if bound == 1 else "s")
                return f"must have at {'least' if short else 'most'} {bound} {unit}, not {len(value)}"
            return None
        if name == "unique_items":
            return "has an item twice" if bound and not _distinct(value) else None
        if name == "pattern":
            return None if re.search(bound, value) else f"must match {bound}, which {show(value)} does not"
        if name == "format":
            return None
        words, holds = _RULES[name]
        return None if holds(value, bound) else f"must be {words} {show(bound)}, not {show(value)}"


def _is_multiple(value: float, of: float) -> bool:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    ratio = value / of
    return abs(ratio - round(ratio)) < 1e-9


_RULES: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusive_minimum": ("more than", lambda value, bound: value > bound),
    "exclusive_maximum": ("less than", lambda value, bound: value < bound),
    "multiple_of": ("a multiple of", _is_multiple),
}


def _distinct(items: list[Any]) -> bool:
    """Whether all items differ as JSON values: ``1`` equals ``1.0`` but not ``true``. Takes linear time."""
    return len({_canonical(item) for item in items}) == len(items)


def _canonical(item: Any) -> Any:
    if isinstance(item, (list, dict)):
        return json.dumps(item, sort_keys=True)
    return (kind_of(item), item)
