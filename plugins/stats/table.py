"""Tables from text: comma-separated values in the variants that people and programs write."""

from __future__ import annotations

import csv
import datetime
import math
import re
from dataclasses import dataclass, field
from typing import Callable, Iterable, Literal

from toolgate import InvalidArguments

Delimiter = Literal[",", ";", "\t", "|"]
Kind = Literal["integer", "number", "date", "boolean", "text", "empty"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
"""Cells without a value, in upper or lower case."""
STEP = 2000
"""The rows between two checks whether to continue."""
_DELIMITERS: tuple[Delimiter, ...] = (",", ";", "\t", "|")
_NUMBER = re.compile(r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$", re.ASCII)
_GROUPED = {".": re.compile(r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$", re.ASCII), ",": re.compile(r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$", re.ASCII)}
_BOOLEANS = frozenset({"true", "false", "yes", "no"})

Going = Callable[[int], bool]
"""Called every ``STEP`` rows with the number of the row. Returns whether to continue."""


@dataclass
class Table:
    """Rows of cells under names. ``complete`` is false if reading was stopped early."""

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    decimal: Literal[".", ","] = "."
    ragged: int = 0
    """The number of rows with another length. They were cut, or filled with empty cells."""
    complete: bool = True

    def cells(self, name: str) -> list[str]:
        """The cells of a column, by its name or its number from 1."""
        at = self.index(name)
        return [row[at] for row in self.rows]

    def index(self, name: str) -> int:
        """The position of a column. An unknown one is a mistake in the arguments."""
        if name in self.columns:
            return self.columns.index(name)
        if name.isdecimal() and 1 <= int(name) <= len(self.columns):
            return int(name) - 1
        folded = [known for known in self.columns if known.casefold() == name.casefold()]
        if len(folded) == 1:
            return self.columns.index(folded[0])
        raise InvalidArguments(f"there is no column `{name}`; there are: " + ", ".join(self.columns[:50]))

    def number(self, cell: str) -> float | None:
        """The number of a cell, or ``None`` if it contains none."""
        text = cell.strip().replace("\u2212", "-").replace("\u00a0", "").rstrip("%").strip()
        if _GROUPED[self.decimal].match(text):
            text = text.replace("," if self.decimal == "." else ".", "")
        if self.decimal == ",":
            text = text.replace(",", ".")
        if not _NUMBER.match(text):
            return None
        number = float(text)
        return number if math.isfinite(number) else None

    def numbers(self, name: str) -> tuple[list[float], int, int]:
        """The numbers of a column, the number of missing cells, and of other cells."""
        found, missing, other = [], 0, 0
        for cell in self.cells(name):
            number = self.number(cell)
            if number is not None:
                found.append(number)
            elif is_missing(cell):
                missing += 1
            else:
                other += 1
        return found, missing, other

    def kind(self, cells: Iterable[str]) -> Kind:
        """The type of cells, without the missing ones."""
        kinds = {self._kind_of(cell) for cell in cells if not is_missing(cell)}
        if not kinds:
            return "empty"
        if kinds == {"integer", "number"}:
            return "number"
        return kinds.pop() if len(kinds) == 1 else "text"

    def _kind_of(self, cell: str) -> Kind:
        number = self.number(cell)
        if number is not None:
            return "integer" if number.is_integer() and not set(cell) & set(".,eE%") else "number"
        text = cell.strip()
        if text.casefold() in _BOOLEANS:
            return "boolean"
        try:
            datetime.datetime.fromisoformat(text)
        except ValueError:
            return "text"
        return "date"


def is_missing(cell: str) -> bool:
    """Whether a cell has no value."""
    return cell.strip().casefold() in MISSING


def read(
    text: str,
    delimiter: Delimiter | None = None,
    has_header: bool = True,
    decimal: Literal[".", ","] = ".",
    going: Going = lambda row: True,
) -> Table:
    """Reads a table. Without a delimiter, it is detected from the first lines."""
    text = text.removeprefix("\ufeff")
    lines = text.lstrip("\r\n").splitlines(keepends=True)
    if not lines or not lines[0].strip():
        raise InvalidArguments("the table is empty: its first line has the columns' names")
    reader = csv.reader(lines, delimiter=delimiter or _delimiter(lines), skipinitialspace=True, strict=True)
    try:
        head = next(reader)
        table = Table(_names(head) if has_header else [str(n + 1) for n in range(len(head))], decimal=decimal)
        if not has_header:
            table.rows.append(head)
        _fill(table, reader, going)
    except csv.Error as error:
        raise InvalidArguments(f"line {reader.line_num} of the table cannot be read: {error}") from None
    return table


def _delimiter(lines: list[str]) -> Delimiter:
    """The delimiter that occurs in each of the first lines, and most often in the first."""
    looked_at = [line for line in lines[:5] if line.strip()]
    return max(_DELIMITERS, key=lambda one: (min(line.count(one) for line in looked_at), lines[0].count(one)))


def _fill(table: Table, reader: Iterable[list[str]], going: Going) -> None:
    width = len(table.columns)
    for row in reader:
        if not row:
            continue
        if len(table.rows) % STEP == 0 and not going(len(table.rows)):
            table.complete = False
            return
        if len(row) != width:
            table.ragged += 1
            row = (row + [""] * width)[:width]
        table.rows.append(row)


def _names(head: list[str]) -> list[str]:
    """Makes names unique and not empty."""
    names: list[str] = []
    for number, name in enumerate(head, 1):
        name = base = name.strip() or f"column {number}"
        again = 1
        while name in names:
            again += 1
            name = f"{base} ({again})"
        names.append(name)
    return names
