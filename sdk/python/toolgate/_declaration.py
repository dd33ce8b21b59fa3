"""One declared tool: its schemas, its findings, and the run of a call."""

from __future__ import annotations

import functools
import inspect
import json
import re
import typing
from typing import Any, Callable

from . import _docstring
from ._annotations import Misfit, Reader, plain, put
from ._containers import Member, Object
from ._options import to_options
from ._read import with_defs
from ._shape import BAD, Anything, Problems, Shape
from .call import Call
from .failure import InvalidArguments

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_GATED = ("on_expiry", "editable")
_WAITS = ("expires", "context_keys")
_MAX_SCHEMA_DEPTH = 32


class Tool:
    """A function with its declaration. All properties are computed once, on first use."""

    def __init__(self, executor: str, function: Callable[..., Any], given: dict[str, Any]):
        self.executor, self.function, self.given = executor, function, given
        self.name: str = given.get("name") or function.__name__

    @property
    def where(self) -> str:
        """The file and line of the function."""
        code = self.function.__code__
        return f"{code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno}"

    @property
    def requires_approval(self) -> bool:
        return bool(self.given.get("requires_approval"))

    @property
    def is_durable(self) -> bool:
        """Whether a call may wait in the middle of the function."""
        return bool(self.given.get("durable"))

    @functools.cached_property
    def _doc(self) -> _docstring.Doc:
        return _docstring.parse(self.function.__doc__)

    @property
    def description(self) -> str:
        return self.given.get("description") or self._doc.description

    @functools.cached_property
    def _read(self) -> tuple[Object, Shape | None, str | None, list[str]]:
        """The shapes of arguments and result, the parameter for the call, and the mistakes in them."""
        found: list[str] = []
        reader, root = Reader(), Object(dict)
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
        except NameError as error:
            return root, None, None, [f"{error}; the types of a tool must be defined in its module"]
        except TypeError as error:
            return root, None, None, [str(error)]
        takes_call: str | None = None
        for name, parameter in inspect.signature(self.function).parameters.items():
            annotation = hints.get(name, parameter.annotation)
            if annotation is Call:
                takes_call = name
                continue
            try:
                put(root, name, annotation, self._member(reader, parameter, annotation))
            except Misfit as misfit:
                found.append(f"parameter `{name}`: {misfit}")
        names = {member.name or name for name, member in root.members.items()}
        found += [
            f"the docstring describes `{name}`, which is not a parameter"
            for name in self._doc.parameters
            if name not in names and name != takes_call and not found
        ]
        result = None
        if "return" in hints:
            try:
                result = reader.shape(hints["return"])
            except Misfit as misfit:
                found.append(f"the result: {misfit}")
        return root, result, takes_call, found

    def _member(self, reader: Reader, parameter: inspect.Parameter, annotation: Any) -> Member:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Misfit("a tool's arguments have names of their own: no `*args`, no `**kwargs`")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise Misfit("arguments come by name: no `/`")
        required = parameter.default is parameter.empty
        default = BAD if required else plain(parameter.default)
        return Member(reader.member(annotation), required, self._doc.parameters.get(parameter.name), default)

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return with_defs(self._read[0])

    @functools.cached_property
    def result(self) -> dict[str, Any] | None:
        """The JSON Schema of the return annotation, if it has one."""
        shape = self._read[1]
        return None if shape is None or isinstance(shape, Anything) else with_defs(shape)

    @functools.cached_property
    def _declared(self) -> tuple[dict[str, Any], list[str]]:
        found = list(self._read[3])
        options = to_options(self.given, self.parameters, found)
        if self.result is not None:
            options["response" if self.executor == "human" else "result"] = self.result
        return options, found

    @property
    def options(self) -> dict[str, Any]:
        """The options in the form of the interface."""
        return self._declared[0]

    def findings(self) -> list[str]:
        """The mistakes in the declaration, one line each, without the tool's name."""
        found = list(self._declared[1])
        if not _NAME.match(self.name):
            found.append("a name has 1 to 64 letters, digits, `_` and `-`")
        if not self.description.strip():
            found.append("has no description: write a docstring, which the model reads")
        if inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function):
            found.append("is async: write a plain function, because a call has nothing else to do while it waits")
        elif inspect.isgeneratorfunction(self.function):
            found.append("is a generator: return one result, and report what comes before it with `call.progress`")
        gated = self.requires_approval
        for name in _GATED:
            if name in self.given and not gated:
                found.append(f"`{name}` is for tools with `requires_approval=True`")
        asks = gated or self.executor == "human"
        if "prompt" in self.given and not asks:
            found.append("`prompt` is for tools with `requires_approval=True`, because nobody is asked otherwise")
        for name in _WAITS:
            if name in self.given and not (asks or self.executor == "client" or self.is_durable):
                found.append(
                    f"`{name}` is for tools with `requires_approval=True` or `durable=True`, because nobody is asked otherwise"
                )
        for what, schema in (("parameters", self.parameters), ("result", self.result)):
            found += _too_much(what, schema)
        return found

    def to_wire(self) -> dict[str, Any]:
        """The declaration with the fields of the interface's record ``tool``."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": _text(self.parameters),
            "executor": self.executor,
            "approval": "requires-approval" if self.requires_approval else "auto",
            "streaming": bool(self.given.get("streaming")),
            "options": _text(self.options),
        }

    def decode(self, arguments: Any) -> dict[str, Any]:
        """Decodes the arguments for the function. Raises ``InvalidArguments`` with every problem and its position."""
        problems = Problems()
        decoded = self._read[0].decode(arguments, "", problems)
        if problems:
            raise InvalidArguments("; ".join(problems.lines()))
        return decoded

    def run(self, arguments: Any, call: Call) -> Any:
        """Runs the function with decoded arguments and returns its result."""
        takes_call = self._read[2]
        own = {takes_call: call} if takes_call else {}
        return self.function(**self.decode(arguments), **own)

    def result_problems(self, value: Any) -> list[str]:
        """The ways in which a result, as a JSON value, breaks the return annotation."""
        problems, shape = Problems(), self._read[1]
        if shape is not None:
            shape.decode(value, "", problems)
        return problems.lines()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _too_much(what: str, schema: dict[str, Any] | None) -> list[str]:
    if schema is None:
        return []
    try:
        _text(schema)
    except (TypeError, ValueError) as error:
        return [f"the schema of its {what} is not JSON: {error}"]
    return [f"the schema of its {what} is deeper than 32 levels"] if _depth(schema) > _MAX_SCHEMA_DEPTH else []


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(member) for member in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0


def all_findings(tools: list[Tool]) -> list[str]:
    """The mistakes in all declarations, one line each: position, tool, mistake."""
    found, names = [], set()
    for tool in tools:
        lines = tool.findings()
        if tool.name in names:
            lines.append("another tool of the plugin has the same name")
        names.add(tool.name)
        found += [f"{tool.where}: {tool.name}: {line}" for line in lines]
    return found or ([] if tools else ["the plugin declares no tool: decorate a function with `@toolgate.tool`"])
