"""Declarations of decorators, and their mistakes. A new mistake is a row."""

from __future__ import annotations

import dataclasses
import datetime
import textwrap
import unittest
from typing import Annotated, Any, Callable, TypedDict

import toolgate
from toolgate import Call, DeclarationError, Field, testing
from toolgate import _docstring, _tool as tools


def declared(decorate: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """The declaration of a function, which is then removed again."""
    before = dict(tools._registered)
    try:
        return decorate(function).__toolgate__
    finally:
        tools._registered.clear()
        tools._registered.update(before)


def pay(amount: int, note: str = "") -> str:
    """Pays."""
    return note


# decorator, options in the form of the host (without the result)
OPTIONS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (toolgate.tool, {}),
    (toolgate.tool(title="Pay", risk="high"), {"title": "Pay", "risk": "high"}),
    (toolgate.tool(read_only=True), {"hints": {"read_only": True}}),
    (toolgate.tool(destructive=False, idempotent=True), {"hints": {"destructive": False, "idempotent": True}}),
    (toolgate.tool(timeout=1.5, recovery="ask"), {"timeout_ms": 1500, "recovery": "ask"}),
    (toolgate.tool(durable=True, expires=9, context_keys=[]), {"durable": True, "expires_ms": 9000, "context_keys": []}),
    (toolgate.tool(durable=False), {}),
    (toolgate.tool(timeout=datetime.timedelta(minutes=1)), {"timeout_ms": 60000}),
    (toolgate.tool(keep_for_turns=2, keep_latest=3, remove_after_days=90), {"retention": {"max_age_turns": 2, "max_count": 3, "max_age_days": 90}}),
    (toolgate.tool(never_evict=True), {"retention": {"never_evict": True}}),
    (
        toolgate.tool(requires_approval=True, prompt="Pay {amount} {{now}} {/note}?", expires=60, on_expiry="deny"),
        {"prompt": "Pay {amount} {{now}} {/note}?", "expires_ms": 60000, "on_expiry": "deny"},
    ),
    (toolgate.tool(requires_approval=True, editable=("amount",)), {"editable": ["amount"]}),
    (toolgate.tool(requires_approval=True, editable="all", context_keys=[]), {"editable": "all", "context_keys": []}),
    (toolgate.client_tool(expires=5, context_keys=["a"]), {"expires_ms": 5000, "context_keys": ["a"]}),
    (toolgate.human_tool(responses=["yes", "no"]), {"responses": ["yes", "no"]}),
    (toolgate.human_tool(answer_on_expiry="no", prompt="{amount}"), {"on_expiry": {"answer": "no"}, "prompt": "{amount}"}),
    (toolgate.human_tool(answer_on_expiry=False), {"on_expiry": {"answer": False}}),
    (toolgate.provider_tool(open_world=True), {"hints": {"open_world": True}}),
]

GATED = {"requires_approval": True}
# decorator, a part of the finding
WRONG: list[tuple[Callable[..., Any], str]] = [
    (toolgate.tool(name="no spaces"), "1 to 64 letters"),
    (toolgate.tool(title="x" * 129), "`title`"),
    (toolgate.tool(risk="huge"), '`risk` is one of "low"'),  # type: ignore[arg-type]
    (toolgate.tool(recovery="never"), "`recovery` is one of"),  # type: ignore[arg-type]
    (toolgate.tool(timeout=0), "`timeout` is 0.001 to 86400 seconds"),
    (toolgate.tool(timeout="1s"), "number of seconds"),  # type: ignore[arg-type]
    (toolgate.tool(timeout=100_000), "`timeout` is 0.001"),
    (toolgate.tool(keep_latest=0), "`keep_latest` is an integer from 1"),
    (toolgate.tool(never_evict=True, keep_latest=1), "contradicts"),
    (toolgate.tool(read_only=True, destructive=True), "both"),
    (toolgate.tool(read_only="yes"), "`read_only` is True or False"),  # type: ignore[arg-type]
    (toolgate.tool(editable=["amount"]), "`editable` is for tools with `requires_approval=True`"),
    (toolgate.tool(on_expiry="deny"), "`on_expiry` is for tools with"),
    (toolgate.tool(prompt="Pay?"), "nobody is asked otherwise"),
    (toolgate.tool(expires=1), "nobody is asked otherwise"),
    (toolgate.tool(durable=True, prompt="Pay?"), "`prompt` is for tools with `requires_approval=True`"),
    (toolgate.tool(durable="yes"), "`durable` is True or False"),  # type: ignore[arg-type]
    (toolgate.client_tool(prompt="Pay?"), "nobody is asked otherwise"),
    (toolgate.tool(**GATED, editable=["sum"]), "`editable` names `sum`, which is not an argument"),
    (toolgate.tool(**GATED, editable=[]), "at least one argument"),
    (toolgate.tool(**GATED, editable="some"), '"all", "none" or a list'),
    (toolgate.tool(**GATED, on_expiry="later"), "`on_expiry` is one of"),
    (toolgate.tool(**GATED, prompt="{sum}"), "`prompt` shows `sum`, which is not an argument"),
    (toolgate.tool(**GATED, prompt="{/sum/0}"), "`prompt` shows `sum`"),
    (toolgate.tool(**GATED, prompt="{amount"), "a `{` without a `}`"),
    (toolgate.tool(**GATED, prompt="amount}"), "a `}` without a `{`"),
    (toolgate.tool(**GATED, prompt="{a b}"), "neither an argument's name nor a JSON Pointer"),
    (toolgate.tool(**GATED, prompt="x" * 4097), "over 4096 bytes"),
    (toolgate.tool(**GATED, context_keys=["a", "a"]), "distinct names"),
    (toolgate.human_tool(responses=[]), "1 to 16 distinct texts"),
    (toolgate.human_tool(responses=["open"]), "which the host uses itself"),
    (toolgate.human_tool(answer_on_expiry=float("nan")), "`answer_on_expiry`"),
]


def no_annotation(a):  # type: ignore[no-untyped-def]
    """Does."""


def no_description() -> None: ...


def many(*rest: int) -> None:
    """Does."""


def named(**rest: int) -> None:
    """Does."""


def positional(a: int, /) -> None:
    """Does."""


async def waits() -> None:
    """Does."""


def generates() -> Any:
    """Does."""
    yield 1


def unknown(a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Does."""


def bytes_back() -> bytes:
    """Does."""
    return b""


def misdescribed(a: int) -> None:
    """Does.

    Args:
        b: Something else.
    """


def bad_bound(a: Annotated[str, Field(minimum=1)]) -> None:
    """Does."""


WRONG_FUNCTIONS: list[tuple[Callable[..., Any], str]] = [
    (no_annotation, "parameter `a`: has no annotation"),
    (no_description, "has no description: write a docstring"),
    (many, "no `*args`"),
    (named, "no `**kwargs`"),
    (positional, "arguments come by name"),
    (waits, "is async"),
    (generates, "is a generator"),
    (unknown, "name 'Nowhere' is not defined"),
    (bytes_back, "the result: JSON has no bytes"),
    (misdescribed, "the docstring describes `b`, which is not a parameter"),
    (bad_bound, "parameter `a`: `minimum` means nothing"),
    (lambda: None, "1 to 64 letters"),
]

GOOGLE = """Does it.

    In two
    paragraphs.

    Args:
        a: The first,
            which is long.
        b (int): The second.

    Returns:
        Nothing: really.
    """
NUMPY = """Does it.

    Parameters
    ----------
    a : int
        The first,
        which is long.
    b, c : str
        The others.

    Returns
    -------
    int
        Nothing.
    """
SPHINX = """Does it.

    :param a: The first,
        which is long.
    :param int b: The second.
    :returns: Nothing.
    """


class Declarations(unittest.TestCase):
    def test_options(self) -> None:
        for decorate, expected in OPTIONS:
            tool = declared(decorate, pay)
            result = "response" if tool.executor == "human" else "result"
            with self.subTest(expected=expected):
                self.assertEqual(tool.findings(), [])
                self.assertEqual(tool.options, {**expected, result: {"type": "string"}})

    def test_wrong_options(self) -> None:
        for decorate, part in WRONG:
            with self.subTest(part=part):
                findings = declared(decorate, pay).findings()
                self.assertTrue(any(part in line for line in findings), findings)

    def test_wrong_functions(self) -> None:
        for function, part in WRONG_FUNCTIONS:
            with self.subTest(function=function.__name__):
                findings = declared(toolgate.tool, function).findings()
                self.assertTrue(any(part in line for line in findings), findings)

    def test_a_question_cannot_be_gated(self) -> None:
        with self.assertRaises(TypeError):
            toolgate.human_tool(requires_approval=True)  # type: ignore[call-arg]
        with self.assertRaises(TypeError):
            toolgate.provider_tool(requires_approval=True)  # type: ignore[call-arg]

    def test_the_call_is_no_argument(self) -> None:
        def work(text: str, me: Call, limit: int = 3, colour: str | None = None) -> None:
            """Works."""

        tool = declared(toolgate.tool, work)
        self.assertEqual(list(tool.parameters["properties"]), ["text", "limit", "colour"])
        self.assertEqual(tool.parameters["required"], ["text"])
        self.assertEqual(tool.parameters["properties"]["limit"], {"type": "integer", "default": 3})
        self.assertNotIn("default", tool.parameters["properties"]["colour"])

    def test_names_that_python_has_not(self) -> None:
        @dataclasses.dataclass
        class Header:
            content_type: Annotated[str, Field(alias="content-type")]
            size: int = 0

        def send(from_: Annotated[str, Field("Who.", alias="from")], header: Header, to: str = "") -> Header:
            """Sends.

            Args:
                from_: Who sends it.
            """
            return Header(f"{from_}/{header.content_type}", 1)

        send.__annotations__.update(header=Header, **{"return": Header})
        tool = declared(toolgate.tool(requires_approval=True, prompt="From {from}?", editable=["from"]), send)
        self.assertEqual(tool.findings(), [])
        self.assertEqual(list(tool.parameters["properties"]), ["from", "header", "to"])
        self.assertEqual(tool.parameters["required"], ["from", "header"])
        self.assertEqual(list(tool.result["properties"]), ["content-type", "size"])
        run = testing.run(send, {"from": "a", "header": {"content-type": "b"}})
        self.assertEqual(run.result, {"content-type": "a/b", "size": 1})
        for wrong in ({"from_": "a"}, {"from": "a", "from_": "b"}):
            run = testing.run(send, {**wrong, "header": {"content-type": "b"}})
            self.assertIn("/from_: is not known here", str(run.failure))

    def test_aliases_that_mean_nothing(self) -> None:
        class Open(TypedDict):
            a: Annotated[int, Field(alias="b")]

        def within(a: list[Annotated[int, Field(alias="b")]]) -> None:
            """Works."""

        def twice(a: int, b: Annotated[int, Field(alias="a")]) -> None:
            """Works."""

        def opened(a: int) -> None:
            """Works."""

        opened.__annotations__["a"] = Open
        for function, part in ((within, "is said of a value within one"), (twice, "`a` is the name of two"), (opened, "a TypedDict's keys")):
            findings = declared(toolgate.tool, function).findings()
            self.assertTrue(any(part in line for line in findings), findings)

    def test_all_mistakes_are_reported_at_once(self) -> None:
        before = dict(tools._registered)
        tools._registered.clear()
        try:
            toolgate.tool(name="same", timeout=0)(no_description)
            toolgate.tool(name="same")(pay)
            with self.assertRaises(DeclarationError) as raised:
                testing.check()
        finally:
            tools._registered.clear()
            tools._registered.update(before)
        lines = raised.exception.findings
        self.assertEqual(len(lines), 3, lines)
        self.assertRegex(lines[0], r"^test_declarations\.py:\d+: same: `timeout`")
        self.assertIn("another tool of the plugin has the same name", lines[2])

    def test_a_plugin_without_tools_is_a_mistake(self) -> None:
        before = dict(tools._registered)
        tools._registered.clear()
        try:
            with self.assertRaisesRegex(DeclarationError, "declares no tool"):
                testing.check()
        finally:
            tools._registered.update(before)

    def test_only_functions_are_tools(self) -> None:
        with self.assertRaises(TypeError):
            toolgate.tool(3)  # type: ignore[call-overload]

    def test_the_wire_has_texts(self) -> None:
        wire = declared(toolgate.tool(requires_approval=True, streaming=True), pay).to_wire()
        self.assertEqual(wire["approval"], "requires-approval")
        self.assertIs(wire["streaming"], True)
        self.assertTrue(wire["parameters"].startswith('{"type":"object"'))

    def test_the_host_decides_about_the_size_of_a_schema(self) -> None:
        def work(a: Annotated[str, Field("x" * 200_000)]) -> None:
            """Works."""

        self.assertEqual(declared(toolgate.tool, work).findings(), [])


class Docstrings(unittest.TestCase):
    def test_styles(self) -> None:
        first = "The first, which is long."
        for text, description, parameters in [
            (GOOGLE, "Does it.\n\nIn two\nparagraphs.", {"a": first, "b": "The second."}),
            (NUMPY, "Does it.", {"a": first, "b": "The others.", "c": "The others."}),
            (SPHINX, "Does it.", {"a": first, "b": "The second."}),
            ("Note: not a section.", "Note: not a section.", {}),
            (None, "", {}),
            ("Does.\n\nArgs:\n    a: It.", "Does.", {"a": "It."}),
            ("Does.\n\nArgs:\n    a: It.\n\nReturns:\n    c: No parameter.", "Does.", {"a": "It."}),
            ("Does.\n\nParameters\n----------\na : int\n    It.\n\nNotes\n-----\nb : no parameter",
             "Does.\n\nNotes\n-----\nb : no parameter", {"a": "It."}),
            ("Does.\n\nExample:\n    >>> x\n\nMore", "Does.\n\nExample:\n    >>> x\n\nMore", {}),
            ("Adds.\n\nNote:\n  Deletes everything afterwards.\n\nArgs:\n  a: It.\n\nMore text",
             "Adds.\n\nNote:\n  Deletes everything afterwards.\n\nMore text", {"a": "It."}),
            ("Adds.\n\nWarning:\n  Costs money.\n\nReturns:\n  A sum.\n\n  Exact.\n\nNot twice.\nNever.",
             "Adds.\n\nWarning:\n  Costs money.\n\nNot twice.\nNever.", {}),
            ("Adds.\n\nDanger zone\n-----------\nDeletes.\n\nRaises\n------\nValueError\n    Where.\nOSError\n\nLast words.",
             "Adds.\n\nDanger zone\n-----------\nDeletes.\n\nLast words.", {}),
            ("Adds.\n\nParameters\n----------\na : int\n    It.\n\nb : int\n    Another.\n\nDangerous",
             "Adds.\n\nDangerous", {"a": "It.", "b": "Another."}),
            ("Adds.\n\nReturns\n-------\nint\n    A sum.\nWarnings\n--------\nCosts.", "Adds.\n\nWarnings\n--------\nCosts.", {}),
            ("Adds.\n\n:param a: It.\n:returns: A sum,\n    exact.\n:raises X: Y.\n\nDeletes.", "Adds.\n\nDeletes.", {"a": "It."}),
        ]:
            doc = _docstring.parse(textwrap.dedent(text) if text else text)
            with self.subTest(text=text):
                self.assertEqual((doc.description, doc.parameters), (description, parameters))


if __name__ == "__main__":
    unittest.main()
