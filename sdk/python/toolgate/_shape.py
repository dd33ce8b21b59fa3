"""Shapes: the JSON form of an annotation. Each has a JSON Schema and decodes JSON values into Python values.

Decoding never raises. It records every problem with its position, a JSON Pointer, and returns ``BAD`` for a wrong value.
"""

from __future__ import annotations

import json
from typing import Any

BAD: Any = object()
"""The result for a value that could not be decoded."""


class Problems:
    """The problems of a value, in order. At most ``LIMIT`` are kept, because a model corrects them one by one."""

    LIMIT = 10

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.more = 0

    def add(self, at: str, what: str) -> Any:
        if len(self.found) < self.LIMIT:
            self.found.append((at, what))
        else:
            self.more += 1
        return BAD

    def extend(self, others: Problems) -> None:
        for at, what in others.found:
            self.add(at, what)
        self.more += others.more

    def lines(self) -> list[str]:
        lines = [f"{at or '/'}: {what}" for at, what in self.found]
        return lines + ([f"and {self.more} more"] if self.more else [])

    def __bool__(self) -> bool:
        return bool(self.found)


def step(at: str, name: str | int) -> str:
    """The position of a member or item of the value at ``at``."""
    return f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}"


def show(value: Any) -> str:
    """A value for a message: JSON, shortened if it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def kind_of(value: Any) -> str:
    """The type of a JSON value, as JSON Schema names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    names = {float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), type(value).__name__)


_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}


def a(kind: str) -> str:
    """The name of a type with its article."""
    return _ARTICLES.get(kind, f"a {kind}")


class Shape:
    """The JSON form of an annotation."""

    kind: str | None = None
    """The JSON type, if there is exactly one."""

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        """The JSON Schema. Schemas that are referred to by name are added to ``defs``."""
        raise NotImplementedError

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        """The Python value, or ``BAD`` after at least one recorded problem."""
        raise NotImplementedError

    def words(self) -> str:
        """The expected values, for a message."""
        return a(self.kind) if self.kind else "a value"

    def wrong(self, value: Any, at: str, problems: Problems) -> Any:
        return problems.add(at, f"must be {self.words()}, not {show(value)}")


class Anything(Shape):
    """``Any`` and ``object``: every JSON value, unchanged."""

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        return {}

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        return value


class Null(Shape):
    """``None``."""

    kind = "null"

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        return {"type": "null"}

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        return None if value is None else self.wrong(value, at, problems)


class Boolean(Shape):
    """``bool``. 0 and 1 are not accepted."""

    kind = "boolean"

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        return {"type": "boolean"}

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        return value if isinstance(value, bool) else self.wrong(value, at, problems)


class Integer(Shape):
    """``int``, of any size. ``3.0`` is accepted, as in JSON Schema."""

    kind = "integer"

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        return {"type": "integer"}

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        if kind_of(value) != "integer":
            return self.wrong(value, at, problems)
        return int(value)


class Number(Shape):
    """``float``."""

    kind = "number"

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        return {"type": "number"}

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        if kind_of(value) not in ("integer", "number"):
            return self.wrong(value, at, problems)
        try:
            return float(value)
        except OverflowError:
            return problems.add(at, "is too large for a number")


class String(Shape):
    """``str``."""

    kind = "string"

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        return {"type": "string"}

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        return value if isinstance(value, str) else self.wrong(value, at, problems)


class Parsed(Shape):
    """A string that encodes another value: a date, a UUID, an exact number."""

    kind = "string"

    def __init__(self, name: str, parse: Any, form: str | None = None, pattern: str | None = None):
        self.name, self.parse, self.form, self.pattern = name, parse, form, pattern

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        schema = {"type": "string"}
        if self.form:
            schema["format"] = self.form
        if self.pattern:
            schema["pattern"] = self.pattern
        return schema

    def words(self) -> str:
        return self.name

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        if not isinstance(value, str):
            return self.wrong(value, at, problems)
        try:
            return self.parse(value)
        except (ValueError, ArithmeticError):
            return self.wrong(value, at, problems)


class Choice(Shape):
    """``Literal`` and ``Enum``: one of several scalars. Types matter: ``true`` is not ``1``."""

    def __init__(self, choices: list[tuple[Any, Any]]):
        self.choices = choices
        kinds = {kind_of(value) for value, _ in choices}
        self.kind = kinds.pop() if len(kinds) == 1 else None

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        values = [value for value, _ in self.choices]
        keyword = {"const": values[0]} if len(values) == 1 else {"enum": values}
        return {"type": self.kind, **keyword} if self.kind else keyword

    def words(self) -> str:
        shown = [show(value) for value, _ in self.choices]
        return shown[0] if len(shown) == 1 else "one of " + ", ".join(shown)

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        for known, member in self.choices:
            if kind_of(known) == kind_of(value) and known == value:
                return member
        return self.wrong(value, at, problems)


class Union(Shape):
    """``A | B``: the first member that the value fits, in the order of the annotation."""

    def __init__(self, members: list[Shape]):
        self.members = members

    def schema(self, defs: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [member.schema(defs) for member in self.members]}

    def words(self) -> str:
        return " or ".join(member.words() for member in self.members)

    def decode(self, value: Any, at: str, problems: Problems) -> Any:
        closest: Problems | None = None
        for member in self.members:
            tried = Problems()
            decoded = member.decode(value, at, tried)
            if not tried:
                return decoded
            inside = member.kind == kind_of(value) and member.kind in ("array", "object", "string", "integer")
            if inside and (closest is None or _rank(tried) < _rank(closest)):
                closest = tried
        if closest is None:
            return self.wrong(value, at, problems)
        problems.extend(closest)
        return BAD


def _rank(problems: Problems) -> int:
    return len(problems.found) + problems.more
