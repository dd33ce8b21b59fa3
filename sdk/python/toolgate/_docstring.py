"""Descriptions from docstrings in Google, NumPy and Sphinx style. It parses only what these styles share."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_NAMED = {"Args", "Arguments", "Parameters", "Params", "Attributes", "Fields"}
_NAMED |= {"Keyword Args", "Keyword Arguments", "Other Parameters"}
_DROPPED = {"Returns", "Return", "Yields", "Yield", "Receives", "Raises"}
"""Sections that are omitted, because the schemas describe results. All others, such as warnings, are description."""
_GOOGLE = re.compile(r"^([A-Z][A-Za-z ]*):\s*$")
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_SPHINX = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword|attribute)\s+(?:[^:]+\s)?\*{0,2}(\w+):\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(?:returns?|rtype|raises?|type|yields?)\b[^:]*:")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")


class Doc(NamedTuple):
    """The content of a docstring: a description, and one for each parameter."""

    description: str
    parameters: dict[str, str]


def parse(text: str | None) -> Doc:
    """Reads a docstring of any of the styles. Without one, the descriptions are empty."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        section, skip = _heading(lines, at)
        sphinx = _SPHINX.match(lines[at])
        if section in _NAMED:
            at = _entries(lines, at + skip, parameters, numpy=skip == 2)
        elif section:
            at = _dropped(lines, at + skip, numpy=skip == 2)
        elif sphinx:
            at = _block(lines, at + 1, 0, into := [sphinx[2]])
            parameters[sphinx[1]] = into
        elif _SPHINX_OTHER.match(lines[at]):
            at = _block(lines, at + 1, 0, [])
        else:
            description.append(lines[at])
            at += 1
    named = {name: text for name, words in parameters.items() if (text := _joined(words))}
    return Doc(re.sub(r"\n{3,}", "\n\n", "\n".join(description)).strip(), named)


def _heading(lines: list[str], at: int) -> tuple[str | None, int]:
    """The section of parameters or results that begins at this line, and the number of lines of its heading."""
    google = _GOOGLE.match(lines[at])
    if google and google[1] in _NAMED | _DROPPED:
        return google[1], 1
    if at + 1 < len(lines) and lines[at].rstrip() in _NAMED | _DROPPED and _UNDERLINE.match(lines[at + 1]):
        return lines[at].rstrip(), 2
    return None, 0


def _ends(lines: list[str], at: int) -> bool:
    """Whether a section in NumPy style ends before this line. Its entries are not indented, so prose ends it too."""
    line, after = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
    if not line.strip() or line[0].isspace():
        return False
    return bool(_UNDERLINE.match(after)) or (not lines[at - 1].strip() and not after[:1].isspace())


def _dropped(lines: list[str], at: int, numpy: bool) -> int:
    """Skips a section and returns the next line."""
    at = _block(lines, at, 0, [])
    while numpy and at < len(lines) and not _heading(lines, at)[0] and not _ends(lines, at):
        at = _block(lines, at + 1, 0, [])
    return at


def _entries(lines: list[str], at: int, parameters: dict[str, list[str]], numpy: bool) -> int:
    """Reads the entries of a section and returns the next line."""
    base: int | None = None
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        indent = len(line) - len(line.lstrip())
        if base is None:
            base = indent
        if _heading(lines, at)[0] or indent < base or (_ends(lines, at) if numpy else indent == 0):
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
    """Reads the lines that are indented more than ``indent``, including blank lines between them."""
    while at < len(lines):
        line = lines[at]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        into.append(line.strip())
        at += 1
    return at


def _joined(lines: list[str]) -> str:
    """Joins lines into one paragraph. A blank line between them becomes a line break."""
    paragraphs = "\n".join(lines).strip().split("\n\n")
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())
