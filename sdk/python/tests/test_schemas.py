"""Every annotation with its schema, accepted values and refused values. A new case is a row."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import typing
import unittest
import uuid
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict, Union

from toolgate import Field, InvalidArguments
from toolgate._annotations import Misfit, Reader
from toolgate._read import with_defs
from toolgate._shape import Problems


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Grade(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Item:
    """One line of an order.

    Attributes:
        price: In cents.
    """

    name: str
    price: Annotated[int, Field(minimum=0)]
    colour: Colour = Colour.RED


@dataclasses.dataclass
class Node:
    value: int
    children: list[Node] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Span:
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("the end is before the start")


class Address(TypedDict):
    street: str


class Place(Address, total=False):
    zip: int


UserId = NewType("UserId", int)
STRING, INTEGER, NUMBER, NULL = ({"type": kind} for kind in ("string", "integer", "number", "null"))
ITEM = {
    "type": "object",
    "description": "One line of an order.",
    "properties": {
        "name": STRING,
        "price": {"type": "integer", "minimum": 0, "description": "In cents."},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    },
    "required": ["name", "price"],
    "additionalProperties": False,
}
RED, WHEN = Item("a", 1), datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)
KEY = uuid.UUID("12345678-1234-5678-1234-567812345678")

# annotation, schema, [(JSON, decoded)]
ACCEPTED: list[tuple[Any, Any, list[tuple[Any, Any]]]] = [
    (str, STRING, [("", ""), ("ü", "ü")]),
    (int, INTEGER, [(3, 3), (3.0, 3), (10**30, 10**30), (-1, -1)]),
    (float, NUMBER, [(3, 3.0), (2.5, 2.5)]),
    (bool, {"type": "boolean"}, [(True, True), (False, False)]),
    (None, NULL, [(None, None)]),
    (Any, {}, [(None, None), ([1], [1])]),
    (object, {}, [({"a": 1}, {"a": 1})]),
    (Literal["a"], {"type": "string", "const": "a"}, [("a", "a")]),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, [("b", "b")]),
    (Literal[1, "a", None], {"enum": [1, "a", None]}, [(1, 1), (None, None)]),
    (Literal[Colour.BLUE], {"type": "string", "const": "blue"}, [("blue", Colour.BLUE)]),
    (Colour, {"type": "string", "enum": ["red", "blue"]}, [("blue", Colour.BLUE)]),
    (Grade, {"type": "integer", "enum": [1, 2]}, [(2, Grade.HIGH)]),
    (Optional[int], {"anyOf": [INTEGER, NULL]}, [(None, None), (1, 1)]),
    (int | str, {"anyOf": [INTEGER, STRING]}, [(1, 1), ("a", "a")]),
    (Union[bool, int], {"anyOf": [{"type": "boolean"}, INTEGER]}, [(True, True), (1, 1)]),
    (list, {"type": "array"}, [([1, "a"], [1, "a"])]),
    (list[int], {"type": "array", "items": INTEGER}, [([], []), ([1], [1])]),
    (typing.Sequence[int], {"type": "array", "items": INTEGER}, [([1], [1])]),
    (tuple[int, ...], {"type": "array", "items": INTEGER}, [([1, 2], (1, 2))]),
    (
        tuple[int, str],
        {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [INTEGER, STRING]},
        [([1, "a"], (1, "a"))],
    ),
    (set[str], {"type": "array", "items": STRING, "uniqueItems": True}, [(["a", "b"], {"a", "b"})]),
    (frozenset[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [([1], frozenset([1]))]),
    (dict, {"type": "object"}, [({"a": 1}, {"a": 1})]),
    (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, [({"a": 1}, {"a": 1})]),
    (
        dict[Colour, int],
        {
            "type": "object",
            "propertyNames": {"type": "string", "enum": ["red", "blue"]},
            "additionalProperties": INTEGER,
        },
        [({"red": 1}, {Colour.RED: 1})],
    ),
    (UserId, INTEGER, [(7, 7)]),
    (datetime.date, {"type": "string", "format": "date"}, [("2026-01-02", datetime.date(2026, 1, 2))]),
    (datetime.datetime, {"type": "string", "format": "date-time"}, [("2026-01-02T03:04:00Z", WHEN)]),
    (datetime.time, {"type": "string", "format": "time"}, [("03:04:00", datetime.time(3, 4))]),
    (uuid.UUID, {"type": "string", "format": "uuid"}, [(str(KEY), KEY)]),
    (Item, ITEM, [({"name": "a", "price": 1}, RED), ({"name": "a", "price": 1, "colour": "red"}, RED)]),
    (Span, None, [({"start": 1, "end": 2}, Span(1, 2))]),
    (
        Place,
        {"type": "object", "properties": {"street": STRING, "zip": INTEGER}, "required": ["street"]},
        [({"street": "a"}, {"street": "a"}), ({"street": "a", "more": 1}, {"street": "a", "more": 1})],
    ),
    (Annotated[str, "What it is."], {"type": "string", "description": "What it is."}, [("a", "a")]),
    (
        Annotated[int, Field("Few.", ge=1, le=9, examples=[3])],
        {"type": "integer", "minimum": 1, "maximum": 9, "description": "Few.", "examples": [3]},
        [(1, 1), (9, 9)],
    ),
    (Annotated[float, Field(gt=0, lt=1)], {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [(0.5, 0.5)]),
    (Annotated[int, Field(multiple_of=5)], {"type": "integer", "multipleOf": 5}, [(10, 10)]),
    (Annotated[float, Field(multiple_of=0.1)], {"type": "number", "multipleOf": 0.1}, [(0.3, 0.3)]),
    (
        Annotated[str, Field(min_length=1, max_length=2, pattern="^a")],
        {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "^a"},
        [("ab", "ab")],
    ),
    (Annotated[list[int], Field(min_length=1)], {"type": "array", "items": INTEGER, "minItems": 1}, [([1], [1])]),
    (Annotated[list[int], Field(unique_items=True)], {"type": "array", "items": INTEGER, "uniqueItems": True}, [([1, 2], [1, 2])]),
    (
        Annotated[dict[str, int], Field(max_length=1)],
        {"type": "object", "additionalProperties": INTEGER, "maxProperties": 1},
        [({"a": 1}, {"a": 1})],
    ),
    (
        Annotated[Optional[int], Field("How many.", minimum=1)],
        {"anyOf": [{"type": "integer", "minimum": 1}, NULL], "description": "How many."},
        [(None, None), (1, 1)],
    ),
    (Annotated[str, Field(extra={"deprecated": True})], {"type": "string", "deprecated": True}, [("a", "a")]),
    (Annotated[str, Field(format="email")], {"type": "string", "format": "email"}, [("a@b", "a@b")]),
]

# annotation, JSON, problems
REFUSED: list[tuple[Any, Any, list[str]]] = [
    (str, 1, ["/: must be a string, not 1"]),
    (str, None, ["/: must be a string, not null"]),
    (int, True, ["/: must be an integer, not true"]),
    (int, 1.5, ["/: must be an integer, not 1.5"]),
    (int, "1", ['/: must be an integer, not "1"']),
    (float, True, ["/: must be a number, not true"]),
    (float, 10**400, ["/: is too large for a number"]),
    (bool, 1, ["/: must be a boolean, not 1"]),
    (None, 0, ["/: must be null, not 0"]),
    (Literal["a", "b"], "c", ['/: must be one of "a", "b", not "c"']),
    (Literal[1], True, ["/: must be 1, not true"]),
    (Grade, 3, ["/: must be one of 1, 2, not 3"]),
    (Optional[int], "a", ['/: must be an integer or null, not "a"']),
    (Optional[list[int]], ["a"], ['/0: must be an integer, not "a"']),
    (list[int], {}, ["/: must be an array, not {}"]),
    (list[int], [1, "a", None], ['/1: must be an integer, not "a"', "/2: must be an integer, not null"]),
    (tuple[int, str], [1], ["/: must be an array of 2, not [1]"]),
    (tuple[int, str], [1, 2], ["/1: must be a string, not 2"]),
    (set[int], [1, 1], ["/: has an item twice"]),
    (set[int], [1, 1.0], ["/: has an item twice"]),
    (dict[str, int], {"a/b~c": "x"}, ['/a~1b~0c: must be an integer, not "x"']),
    (dict[Colour, int], {"green": 1}, ['/green: must be one of "red", "blue", not "green"']),
    (datetime.date, "2026-02-30", ['/: must be a date, YYYY-MM-DD, not "2026-02-30"']),
    (datetime.datetime, "now", ['/: must be a date and time in ISO 8601, not "now"']),
    (uuid.UUID, "x", ['/: must be a UUID, not "x"']),
    (decimal.Decimal, "NaN", ['/: must be a number as a string, not "NaN"']),
    (decimal.Decimal, 1, ["/: must be a number as a string, not 1"]),
    (Item, [], ["/: must be an object, not []"]),
    (Item, {"name": "a"}, ["/price: is missing"]),
    (Item, {"name": "a", "price": -1}, ["/price: must be at least 0, not -1"]),
    (list[Item], [{"name": "a", "price": 1}, {"name": 2, "price": "x"}], ["/1/name: must be a string, not 2", '/1/price: must be an integer, not "x"']),
    (Item, {"name": "a", "price": 1, "color": "red"}, ["/color: is not known here; did you mean `colour`?"]),
    (Item, {"name": "a", "price": 1, "zzz": 1}, ["/zzz: is not known here (known are: name, price, colour)"]),
    (Span, {"start": 2, "end": 1}, ["/: the end is before the start"]),
    (list[Span], [{"start": 2, "end": 1}], ["/0: the end is before the start"]),
    (Node, {"value": 1, "children": [{"value": 1, "children": [{}]}]}, ["/children/0/children/0/value: is missing"]),
    (Place, {"zip": 1}, ["/street: is missing"]),
    (Annotated[int, Field(maximum=9)], 10, ["/: must be at most 9, not 10"]),
    (Annotated[float, Field(gt=0)], 0, ["/: must be more than 0, not 0"]),
    (Annotated[float, Field(lt=1)], 1.0, ["/: must be less than 1, not 1.0"]),
    (Annotated[int, Field(multiple_of=5)], 7, ["/: must be a multiple of 5, not 7"]),
    (Annotated[str, Field(min_length=1)], "", ["/: must have at least 1 character, not 0"]),
    (Annotated[str, Field(max_length=2)], "abc", ["/: must have at most 2 characters, not 3"]),
    (Annotated[list[int], Field(max_length=1)], [1, 2], ["/: must have at most 1 item, not 2"]),
    (Annotated[dict[str, int], Field(min_length=1)], {}, ["/: must have at least 1 member, not 0"]),
    (Annotated[str, Field(pattern="^a")], "b", ['/: must match ^a, which "b" does not']),
    (Annotated[Optional[int], Field(minimum=1)], 0, ["/: must be at least 1, not 0"]),
    (str, {"a": "x" * 80}, [f'/: must be a string, not {{"a": "{"x" * 50}…']),
]

# annotation, a part of the problem with the declaration
MISFITS: list[tuple[Any, str]] = [
    (bytes, "base64"),
    (complex, "two `float`s"),
    (datetime.timedelta, "seconds"),
    (type, "`type` has no form in JSON"),
    (typing.Callable[[int], int], "has no form in JSON"),
    (dict[int, str], "names in JSON are strings"),
    (list[bytes], "base64"),
    (Literal[b"a"], "not a scalar of JSON"),
    (Annotated[str, Field(minimum=1)], "`minimum` means nothing for values of type string"),
    (Annotated[int, Field(pattern="a")], "`pattern` means nothing for values of type integer"),
    (Annotated[Any, Field(min_length=1)], "values of several types"),
    (Annotated[Optional[bool], Field(minimum=1)], "means nothing"),
    (enum.Enum("Empty", {}), "has no members"),
    (enum.Enum("Pairs", {"a": (1, 2)}), "not a scalar of JSON"),
    (dataclasses.make_dataclass("Bad", [("raw", bytes)]), "Bad.raw: JSON has no bytes"),
    (typing.TypeVar("T"), "has no form in JSON"),
]


class Schemas(unittest.TestCase):
    def test_what_is_accepted(self) -> None:
        for annotation, schema, values in ACCEPTED:
            shape = Reader().shape(annotation)
            with self.subTest(annotation=annotation):
                if schema is not None:
                    self.assertEqual(with_defs(shape), schema)
                for value, expected in values:
                    problems = Problems()
                    decoded = shape.decode(value, "", problems)
                    self.assertEqual(problems.lines(), [])
                    self.assertEqual((decoded, type(decoded)), (expected, type(expected)))

    def test_what_is_refused(self) -> None:
        for annotation, value, lines in REFUSED:
            problems = Problems()
            Reader().shape(annotation).decode(value, "", problems)
            with self.subTest(annotation=annotation, value=value):
                self.assertEqual(problems.lines(), lines)

    def test_what_has_no_form_in_json(self) -> None:
        for annotation, part in MISFITS:
            with self.subTest(annotation=annotation), self.assertRaises(Misfit) as raised:
                Reader().shape(annotation)
            self.assertIn(part, str(raised.exception))

    def test_a_class_that_contains_itself_goes_by_name(self) -> None:
        ref = {"$ref": "#/$defs/Node"}
        node = {
            "type": "object",
            "properties": {"value": INTEGER, "children": {"type": "array", "items": ref}},
            "required": ["value"],
            "additionalProperties": False,
        }
        self.assertEqual(with_defs(Reader().shape(Node)), {**ref, "$defs": {"Node": node}})

    def test_no_more_than_ten_problems_are_listed(self) -> None:
        problems = Problems()
        Reader().shape(list[int]).decode(["x"] * 25, "", problems)
        self.assertEqual(len(problems.lines()), 11)
        self.assertEqual(problems.lines()[-1], "and 15 more")

    def test_a_field_takes_one_name_for_one_bound(self) -> None:
        with self.assertRaises(TypeError):
            Field(ge=1, minimum=2)

    def test_a_failure_of_post_init_may_be_of_the_sdk(self) -> None:
        @dataclasses.dataclass
        class Picky:
            a: int

            def __post_init__(self) -> None:
                raise InvalidArguments("never")

        problems = Problems()
        Reader().shape(list[Picky]).decode([{"a": 1}], "", problems)
        self.assertEqual(problems.lines(), ["/0: never"])


if __name__ == "__main__":
    unittest.main()
