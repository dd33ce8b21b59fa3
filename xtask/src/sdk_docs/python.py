"""Prints the public names of the Python SDK as JSON, for `cargo xtask sdk-docs`. It runs in the folder of the SDK."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import re
import sys
import textwrap
from typing import Any, Iterator

MODULES = ("toolgate", "toolgate.config", "toolgate.durable", "toolgate.http", "toolgate.keyvalue", "toolgate.testing")
WIDTH = 100


class Source:
    """An annotation as it is written, because `inspect` would quote it."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def main() -> None:
    sys.path.insert(0, ".")
    entries = []
    for name in MODULES:
        module = importlib.import_module(name)
        entries.append(entry(2, name, f"import {name}", module.__doc__))
        for public in public_names(module):
            value = getattr(module, public)
            if inspect.isclass(value):
                entries += of_class(public, value)
            elif callable(value):
                entries.append(of_function(3, public, value))
            else:
                raise unknown(f"{name}.{public}", value)
    json.dump(entries, sys.stdout)


def unknown(name: str, value: Any) -> TypeError:
    """A public name must not be missing on the page because this reader does not know its kind."""
    return TypeError(f"`cargo xtask sdk-docs` does not know this kind of public name: {name}, a {type(value).__name__}")


def public_names(module: Any) -> list[str]:
    """The names in `__all__`, or those that the module defines. Modules have entries of their own."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    here = module.__name__
    # A constant has no module.
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", here) == here)
    return [name for name in own if not name.startswith("_") and not inspect.ismodule(vars(module)[name])]


def of_class(name: str, cls: type) -> Iterator[dict[str, Any]]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    signature = f"class {name}({bases})" if bases else f"class {name}"
    if dataclasses.is_dataclass(cls):
        frozen = "(frozen=True)" if cls.__dataclass_params__.frozen else ""
        signature = f"@dataclass{frozen}\n{signature}"
    elif "__init__" in vars(cls) and list(parameters(cls.__init__))[1:]:
        signature += ":\n" + textwrap.indent(written("__init__", cls.__init__), "    ")
    yield {**entry(3, name, signature, vars(cls).get("__doc__")), "fails": "def __init__" in signature}
    yield from fields(name, cls)
    annotated = inspect.get_annotations(cls)
    for method, value in vars(cls).items():
        # `fields` has the annotated members.
        if method.startswith("_") or method in annotated:
            continue
        if not inspect.isfunction(value) and not isinstance(value, property):
            raise unknown(f"{name}.{method}", value)
        yield of_function(4, f"{name}.{method}", value)


def fields(owner: str, cls: type) -> Iterator[dict[str, Any]]:
    """The annotated members of the class. The text of a member is the string after it."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body
    for member, after in zip(body, [*body[1:], None]):
        if isinstance(member, ast.AnnAssign) and not member.target.id.startswith("_"):
            described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = after.value.value if described else ""
            if isinstance(member.value, ast.Call):
                member.value = None
            yield entry(5, f"{owner}.{member.target.id}", ast.unparse(member), text)


def of_function(depth: int, name: str, function: Any) -> dict[str, Any]:
    is_property = isinstance(function, property)
    function = function.fget if is_property else function
    signature = written(name.rpartition(".")[2], function)
    signature = f"@property\n{signature}" if is_property else signature
    described = entry(depth, name, signature, function.__doc__)
    # A property that only computes something has no section about errors.
    return {**described, "fails": not is_property}


def parameters(function: Any) -> Iterator[str]:
    """The parameters as they are written, with the signs between them. Private ones are for the SDK."""
    kinds = inspect.Parameter
    before = None
    for one in inspect.signature(function).parameters.values():
        if before == kinds.POSITIONAL_ONLY != one.kind:
            yield "/"
        if one.kind == kinds.KEYWORD_ONLY and before not in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL):
            yield "*"
        before = one.kind
        if not one.name.startswith("_"):
            has_none = one.annotation is kinds.empty
            yield str(one if has_none else one.replace(annotation=Source(one.annotation)))


def written(name: str, function: Any) -> str:
    returned = inspect.signature(function).return_annotation
    arrow = "" if returned is inspect.Signature.empty else f" -> {returned}"
    given = list(parameters(function))
    line = f"def {name}({', '.join(given)}){arrow}"
    if len(line) <= WIDTH:
        return line
    return f"def {name}(\n" + "".join(f"    {one},\n" for one in given) + f"){arrow}"


def entry(depth: int, name: str, signature: str, doc: str | None) -> dict[str, Any]:
    text, errors = divided(inspect.cleandoc(doc or "").replace("``", "`"))
    return {"depth": depth, "name": name, "signature": signature, "text": text, "errors": errors}


def divided(doc: str) -> tuple[str, str]:
    """The text with its arguments as a list, and the list of errors."""
    errors, blocks = "", []
    for block in doc.split("\n\n"):
        if block.startswith("Raises:\n"):
            errors = rows(block)
        elif block.startswith("Args:\n"):
            blocks.append(rows(block))
        else:
            blocks.append(block)
    return "\n\n".join(blocks), errors


def rows(block: str) -> str:
    found: list[str] = []
    for line in block.splitlines()[1:]:
        begin = re.match(r"^    (\w+): (.*)", line)
        if begin:
            found.append(f"- `{begin[1]}`: {begin[2]}")
        else:
            found[-1] += " " + line.strip()
    return "\n".join(found)


main()
