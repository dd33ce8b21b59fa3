"""Descriptions from docstrings: Google, NumPy and Sphinx style. Not a parser of any of them, only of what they share."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_GOOGLE = re.compile(
    r"^(Args|Arguments|Parameters|Params|Attributes|Fields|Keyword Args|Keyword Arguments|Other Parameters"
    r"|Returns|Return|Yields|Raises|Examples?|Notes?|Warnings?|See Also|References|Todo):\s*$"
)
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_SPHINX = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword|attribute)\s+(?:[^:]+\s)?\*{0,2}(\w+):\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(?:returns?|rtype|raises?|type|yields?)\b[^:]*:")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_NAMED = {"Args", "Arguments", "Parameters", "Params", "Attributes", "Fields"}
_NAMED |= {"Keyword Args", "Keyword Arguments", "Other Parameters"}


class Doc(NamedTuple):
    """What a docstring says: what the thing is, and what each of its parameters is."""

    description: str
    parameters: dict[str, str]


def parse(text: str | None) -> Doc:
    """Reads a docstring, whatever its style; an absent one says nothing."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    section: str | None = None
    at = 0
    while at < len(lines):
        heading, skip = _heading(lines, at)
        if heading:
            section, at = heading, at + skip
            if section in _NAMED:
                at = _entries(lines, at, parameters, numpy=skip == 2)
            continue
        line = lines[at]
        sphinx = _SPHINX.match(line)
        if sphinx:
            at = _block(lines, at + 1, 0, into := [sphinx[2]])
            parameters[sphinx[1]] = into
            continue
        if _SPHINX_OTHER.match(line):
            section = "Returns"
        elif section is None:
            description.append(line)
        at += 1
    named = {name: text for name, words in parameters.items() if (text := _joined(words))}
    return Doc("\n".join(description).strip(), named)


def _heading(lines: list[str], at: int) -> tuple[str | None, int]:
    """The section that begins here, and how many lines its heading has."""
    google = _GOOGLE.match(lines[at])
    if google:
        return google[1], 1
    if at + 1 < len(lines) and lines[at].strip() and not lines[at][0].isspace() and _UNDERLINE.match(lines[at + 1]):
        return lines[at].strip(), 2
    return None, 0


def _entries(lines: list[str], at: int, parameters: dict[str, list[str]], numpy: bool) -> int:
    """Reads the entries of a section and gives the line after it."""
    base: int | None = None
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        indent = len(line) - len(line.lstrip())
        if base is None:
            base = indent
        if _heading(lines, at)[0] or indent < base or (indent == 0 and not numpy):
            return at
        entry = (_NUMPY_ENTRY if numpy else _ENTRY).match(line.strip()) if indent == base else None
        if entry is None:
            return at if indent == base and numpy else _block(lines, at + 1, base, [])
        into = [] if numpy else [entry[2]]
        at = _block(lines, at + 1, base, into)
        for name in re.split(r"\s*,\s*", entry[1]):
            parameters[name] = into
    return at


def _block(lines: list[str], at: int, indent: int, into: list[str]) -> int:
    """Takes the lines that are indented more than ``indent``, blank ones between them included."""
    while at < len(lines):
        line = lines[at]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        into.append(line.strip())
        at += 1
    return at


def _joined(lines: list[str]) -> str:
    """Lines as one paragraph; a blank line between words stays as a line break."""
    paragraphs = "\n".join(lines).strip().split("\n\n")
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())
