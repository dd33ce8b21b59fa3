"""Converts annotations to shapes. An unusable annotation raises ``Misfit`` with its position and a remedy."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import math
import types
import typing
import uuid
from typing import Any, Callable

from . import _docstring
from ._containers import Array, Bounded, Mapping, Member, Object, Tuple
from ._shape import BAD, Anything, Boolean, Choice, Integer, Null, Number, Parsed, Shape, String, Union
from .field import Field


class Misfit(Exception):
    """An annotation that no value of a tool can have."""


_OPTIONALITY = {
    getattr(typing, name): name == "Required" for name in ("Required", "NotRequired") if hasattr(typing, name)
}
_UNIONS = {typing.Union, getattr(types, "UnionType", typing.Union)}


def _zulu(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Also reads ISO 8601 with ``Z``, which ``fromisoformat`` supports only since Python 3.11."""
    return lambda text: parse(text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text)


def _decimal(text: str) -> decimal.Decimal:
    number = decimal.Decimal(text)
    if not number.is_finite():
        raise ValueError(text)
    return number


_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
_SCALARS: dict[Any, Callable[[], Shape]] = {
    Any: Anything,
    object: Anything,
    None: Null,
    type(None): Null,
    bool: Boolean,
    int: Integer,
    float: Number,
    str: String,
    datetime.datetime: lambda: Parsed("a date and time in ISO 8601", _zulu(datetime.datetime.fromisoformat), "date-time"),
    datetime.date: lambda: Parsed("a date, YYYY-MM-DD", datetime.date.fromisoformat, "date"),
    datetime.time: lambda: Parsed("a time in ISO 8601", _zulu(datetime.time.fromisoformat), "time"),
    uuid.UUID: lambda: Parsed("a UUID", uuid.UUID, "uuid"),
    decimal.Decimal: lambda: Parsed("a number as a string", _decimal, pattern=_DECIMAL),
}
_ADVICE: dict[Any, str] = {
    bytes: "JSON has no bytes: take a `str`, for instance base64",
    complex: "JSON has no complex numbers: take two `float`s",
    datetime.timedelta: "take a `float` of seconds",
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_LISTS += (collections.abc.MutableSequence,)
_SETS = {set: set, frozenset: frozenset, collections.abc.Set: frozenset, collections.abc.MutableSet: set}
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class Reader:
    """Reads the annotations of one tool. It detects classes that contain themselves and gives them a name."""

    def __init__(self) -> None:
        self.objects: dict[Any, Object] = {}
        self.open: list[Any] = []
        self.names: dict[str, Any] = {}

    def shape(self, annotation: Any) -> Shape:
        """The shape of an annotation; raises ``Misfit``."""
        if isinstance(annotation, str):
            raise Misfit(f"`{annotation}` is a text, not a type")
        alias = getattr(annotation, "__value__", None)
        if alias is not None and type(annotation).__name__ == "TypeAliasType":
            return self.shape(alias)
        if isinstance(annotation, typing.NewType):
            return self.shape(annotation.__supertype__)
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            return self._annotated(args[0], annotation.__metadata__)
        if origin is typing.Literal:
            return Choice([(_scalar(value, annotation), value) for value in args])
        if origin in _UNIONS:
            return Union([self.shape(arg) for arg in args])
        if origin in _OPTIONALITY or getattr(origin, "_name", "") == "ReadOnly":
            return self.shape(args[0])
        container = self._container(origin or annotation, args)
        return container if container is not None else self._plain(annotation)

    def _container(self, origin: Any, args: tuple[Any, ...]) -> Shape | None:
        if origin in _LISTS:
            return Array(self.shape(args[0]) if args else Anything())
        if origin in _SETS:
            return Array(self.shape(args[0]) if args else Anything(), _SETS[origin], unique=True)
        if origin is tuple:
            if not args:
                return Array(Anything(), tuple)
            if len(args) == 2 and args[1] is Ellipsis:
                return Array(self.shape(args[0]), tuple)
            return Tuple([self.shape(arg) for arg in args if arg != ()])
        if origin in _DICTS:
            return self._mapping(args)
        return None

    def _mapping(self, args: tuple[Any, ...]) -> Shape:
        if not args:
            return Mapping(Anything())
        key = self.shape(args[0])
        while isinstance(key, Bounded):
            key = key.inner
        if key.kind != "string":
            raise Misfit(f"the keys of a dict are `{_name(args[0])}`; names in JSON are strings: `dict[str, …]`")
        return Mapping(self.shape(args[1]), None if isinstance(key, String) and args[0] is str else self.shape(args[0]))

    def _plain(self, annotation: Any) -> Shape:
        try:
            make = _SCALARS.get(annotation)
        except TypeError:
            make = None
        if make is not None:
            return make()
        if isinstance(annotation, type):
            if issubclass(annotation, enum.Enum):
                return _enumeration(annotation)
            if dataclasses.is_dataclass(annotation):
                return self._class(annotation, _dataclass_members)
            if typing.is_typeddict(annotation):
                return self._class(annotation, _typed_dict_members, is_open=True)
            if hasattr(annotation, "model_json_schema"):
                raise Misfit(f"`{_name(annotation)}` is a pydantic model, and pydantic has no WebAssembly build: "
                             "write a dataclass")
        if annotation is inspect.Parameter.empty:
            raise Misfit("has no annotation; write its type, or `Any`")
        advice = next((text for known, text in _ADVICE.items() if annotation is known), None)
        raise Misfit(advice or f"`{_name(annotation)}` has no form in JSON; take a dataclass, a TypedDict, an Enum or a "
                     "built-in type")

    def _class(self, cls: type, members: Any, is_open: bool = False) -> Shape:
        known = self.objects.get(cls)
        if known is not None:
            if cls in self.open:
                known.name = self._unused(cls)
            return known
        build = dict if is_open else (lambda given: cls(**given))
        shape = self.objects[cls] = Object(build, is_open)
        written = cls.__doc__ if cls.__doc__ != dict.__doc__ else None
        doc = _docstring.parse(None if (written or "").startswith(f"{cls.__name__}(") else written)
        shape.description = doc.description or None
        self.open.append(cls)
        try:
            for name, annotation, required, default in members(cls):
                try:
                    if is_open and alias_of(annotation):
                        raise Misfit("a TypedDict's keys are the names in JSON: `alias` is for parameters and dataclasses")
                    member = Member(self.member(annotation), required, doc.parameters.get(name), default)
                    put(shape, name, annotation, member)
                except Misfit as misfit:
                    raise Misfit(f"{cls.__name__}.{name}: {misfit}") from None
        finally:
            self.open.pop()
        return shape

    def _unused(self, cls: type) -> str:
        known = self.objects[cls].name
        if known:
            return known
        name, number = cls.__name__, 1
        while name in self.names:
            number += 1
            name = f"{cls.__name__}{number}"
        self.names[name] = cls
        return name

    def member(self, annotation: Any) -> Shape:
        """The shape of a parameter or a field. Only these may have an alias."""
        if typing.get_origin(annotation) is typing.Annotated:
            return self._annotated(typing.get_args(annotation)[0], annotation.__metadata__, named=True)
        return self.shape(annotation)

    def _annotated(self, annotation: Any, metadata: tuple[Any, ...], named: bool = False) -> Shape:
        shape = self.shape(annotation)
        for note in metadata:
            if isinstance(note, Field) and note.alias is not None and not named:
                raise Misfit(f"`alias` names a parameter or a field, and `{note.alias}` is said of a value within one")
            if isinstance(note, str):
                shape = _bounded(shape, Field(note))
            elif isinstance(note, Field):
                shape = _bounded(shape, note)
        return shape


def alias_of(annotation: Any) -> str | None:
    """The JSON name in the annotation of a parameter or field, if it has one."""
    notes = getattr(annotation, "__metadata__", ()) if typing.get_origin(annotation) is typing.Annotated else ()
    return next((note.alias for note in notes if isinstance(note, Field) and note.alias is not None), None)


def put(into: Object, name: str, annotation: Any, member: Member) -> None:
    """Adds a member under its JSON name. ``name`` is the Python name."""
    alias = alias_of(annotation)
    if alias is not None:
        member.name = name
    try:
        into.add(name if alias is None else alias, member)
    except ValueError as error:
        raise Misfit(str(error)) from None


def _bounded(shape: Shape, field: Field) -> Shape:
    """Applies bounds to the members of a union that they fit, and notes to the whole union."""
    if isinstance(shape, Bounded) and isinstance(shape.inner, Union):
        whole = _bounded(shape.inner, field)
        return Bounded(whole.inner, _both(shape.field, whole.field)) if isinstance(whole, Bounded) else whole
    if isinstance(shape, Union) and field.bounds:
        fits = [not isinstance(member, Null) and not Bounded.misfits(member.kind, field) for member in shape.members]
        if any(fits):
            bounds = Field()
            bounds.bounds = field.bounds
            members = [Bounded(m, bounds) if fit else m for m, fit in zip(shape.members, fits)]
            notes = Field(extra=field.extra)
            notes.notes = field.notes
            return Bounded(Union(members), notes)
    misfits = Bounded.misfits(shape.kind, field)
    if misfits:
        what = f"values of type {shape.kind}" if shape.kind else "values of several types"
        raise Misfit(f"`{misfits[0]}` means nothing for {what}")
    return Bounded(shape, field)


def _both(first: Field, second: Field) -> Field:
    both = Field(extra={**first.extra, **second.extra})
    both.notes = {**first.notes, **second.notes}
    return both


def _scalar(value: Any, annotation: Any) -> Any:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, (str, bool, int)):
        return value
    raise Misfit(f"`{_name(annotation)}` has a value that is not a scalar of JSON")


def _enumeration(cls: type[enum.Enum]) -> Shape:
    members = list(cls)
    if not members:
        raise Misfit(f"`{cls.__name__}` has no members")
    for member in members:
        if not (member.value is None or isinstance(member.value, (str, bool, int, float))):
            raise Misfit(f"`{cls.__name__}.{member.name}` has a value that is not a scalar of JSON")
    return Choice([(member.value, member) for member in members])


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise Misfit(f"`{cls.__name__}`: {error}; its types have to be defined in the module") from None


def _dataclass_members(cls: Any) -> Any:
    hints = _hints(cls)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = BAD if field.default is dataclasses.MISSING else field.default
        yield field.name, hints[field.name], required, plain(default)


def _typed_dict_members(cls: Any) -> Any:
    for name, annotation in _hints(cls).items():
        origin = typing.get_origin(annotation)
        required = _OPTIONALITY.get(origin, name in cls.__required_keys__)
        yield name, annotation, required, BAD


def plain(default: Any) -> Any:
    """A default for the schema, or ``BAD`` if it has no plain JSON form. ``None`` is omitted too."""
    if isinstance(default, enum.Enum):
        default = default.value
    if isinstance(default, float) and not math.isfinite(default):
        return BAD
    return default if isinstance(default, (str, bool, int, float)) else BAD


def _name(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")
