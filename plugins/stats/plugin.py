"""Statistics over tables in text: columns, summaries, groups, histograms, correlations.

The text is an argument, and nothing is stored. Large tables report progress. A call that is asked to stop returns the rows
read so far, with `complete` false.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

import summary
import table as tables
from summary import Bin, Summary
from toolgate import Call, Field, InvalidArguments, tool

Text = Annotated[str, Field("The table: comma-separated values or the like, a row a line, names in the first line.", min_length=1)]
Separator = Annotated[tables.Delimiter | None, Field("What is between two cells; found out where it is left out.")]
Decimal = Annotated[Literal[".", ","], Field("The decimal sign of its numbers.")]
Header = Annotated[bool, Field("Whether the first line has names; if not, columns are called 1, 2, 3.")]
Column = Annotated[str, Field("A column: its name, or its number from 1.", min_length=1)]
Aggregate = Literal["count", "sum", "mean", "median", "min", "max", "stdev"]
Quantile = Annotated[float, Field(ge=0, le=1)]
MAX_COLUMNS = 200


@dataclass
class About:
    """How much of the table was read."""

    rows: int
    complete: bool
    ragged: int


@dataclass
class ColumnInfo:
    """One column."""

    name: str
    type: tables.Kind
    missing: int
    distinct: int
    examples: list[str]


@dataclass
class Columns(About):
    """The columns of a table."""

    columns: list[ColumnInfo]


@dataclass
class Description(About):
    """Summaries by column."""

    columns: dict[str, Summary]


@dataclass
class Group:
    """One group: the value of each column that it is grouped by, and what was asked for."""

    key: list[str]
    values: dict[str, float | None]


@dataclass
class Groups(About):
    """Groups, those with the most rows first."""

    groups: list[Group]
    left_out: int


@dataclass
class Histogram(About):
    """How numbers are distributed."""

    bins: list[Bin]
    missing: int
    not_numbers: int
    chart: str


@dataclass
class Relation(About):
    """How two columns go together; `None` where one of them does not vary."""

    pairs: int
    correlation: float | None
    slope: float | None
    intercept: float | None


def _read(call: Call, table: str, delimiter: tables.Delimiter | None, has_header: bool, decimal: Literal[".", ","]) -> tables.Table:
    lines = table.count("\n") + 1

    def going(row: int) -> bool:
        if row:
            call.progress(f"{row} rows read", min(row / lines, 1.0))
        return not call.stop_requested()

    read = tables.read(table, delimiter, has_header, decimal, going)
    if len(read.columns) > MAX_COLUMNS:
        raise InvalidArguments(f"the table has {len(read.columns)} columns; {MAX_COLUMNS} are the most: cut it")
    if not read.complete:
        call.log("warn", f"asked to stop after {len(read.rows)} rows")
    return read


def _about(read: tables.Table) -> tuple[int, bool, int]:
    return len(read.rows), read.complete, read.ragged


@tool(streaming=True, read_only=True, idempotent=True, open_world=False)
def stats_columns(
    table: Text, call: Call, delimiter: Separator = None, decimal: Decimal = ".", has_header: Header = True
) -> Columns:
    """Says what columns a table has, of which type, and how complete they are. Use it first."""
    read = _read(call, table, delimiter, has_header, decimal)
    columns = []
    for at, name in enumerate(read.columns):
        cells = [row[at] for row in read.rows]
        present = [cell.strip() for cell in cells if not tables.is_missing(cell)]
        counted = Counter(present)
        examples = [cell[:80] for cell, _ in counted.most_common(3)]
        columns.append(ColumnInfo(name, read.kind(cells), len(cells) - len(present), len(counted), examples))
    return Columns(*_about(read), columns)


@tool(streaming=True, read_only=True, idempotent=True, open_world=False)
def stats_describe(
    table: Text,
    call: Call,
    columns: Annotated[list[Column] | None, Field("Which columns; all that have numbers, where it is left out.")] = None,
    quantiles: Annotated[list[Quantile] | None, Field("Which quantiles, 0 to 1.", max_length=20)] = None,
    delimiter: Separator = None,
    decimal: Decimal = ".",
    has_header: Header = True,
) -> Description:
    """Summarizes columns of numbers: count, sum, mean, standard deviation of a sample, least, largest, quantiles (0.25, 0.5
    and 0.75 where none are asked for; 0.5 is the median)."""
    read = _read(call, table, delimiter, has_header, decimal)
    wanted = [0.25, 0.5, 0.75] if quantiles is None else quantiles
    described = {}
    for name in columns if columns is not None else read.columns:
        at = read.columns[read.index(name)]
        numbers, missing, other = read.numbers(at)
        if columns is not None or len(numbers) > other:
            described[at] = summary.summarize(numbers, missing, other, wanted)
    if not described:
        raise InvalidArguments("no column has numbers; if they are written with a decimal comma, say so in `decimal`")
    return Description(*_about(read), described)


def _aggregated(what: Aggregate, numbers: list[float], rows: int) -> float | None:
    if what == "count":
        return rows
    if not numbers:
        return None
    of = summary.summarize(numbers, 0, 0, [0.5])
    return (of.quantiles or {})["0.5"] if what == "median" else getattr(of, what)


@tool(streaming=True, read_only=True, idempotent=True, open_world=False)
def stats_group(
    table: Text,
    by: Annotated[list[Column], Field("The columns whose values make the groups.", min_length=1, max_length=5)],
    call: Call,
    value: Annotated[Column | None, Field("The column of numbers; not needed to count.")] = None,
    aggregates: Annotated[list[Aggregate], Field("What to say about each group.", min_length=1, unique_items=True)] = ["count"],
    limit: Annotated[int, Field("The most groups to give, the largest first.", ge=1, le=1000)] = 100,
    delimiter: Separator = None,
    decimal: Decimal = ".",
    has_header: Header = True,
) -> Groups:
    """Groups rows by the values of columns, and counts, sums or averages another column in each group."""
    if value is None and any(what != "count" for what in aggregates):
        raise InvalidArguments("`value` is missing: which column is to be summed or averaged?")
    read = _read(call, table, delimiter, has_header, decimal)
    keys = [read.index(name) for name in by]
    at = read.index(value) if value is not None else None
    grouped: dict[tuple[str, ...], tuple[int, list[float]]] = {}
    for row in read.rows:
        key = tuple(row[index].strip() for index in keys)
        rows, numbers = grouped.get(key, (0, []))
        number = read.number(row[at]) if at is not None else None
        if number is not None:
            numbers.append(number)
        grouped[key] = (rows + 1, numbers)
    largest = sorted(grouped.items(), key=lambda item: (-item[1][0], item[0]))
    groups = [
        Group(list(key), {what: _aggregated(what, numbers, rows) for what in aggregates})
        for key, (rows, numbers) in largest[:limit]
    ]
    return Groups(*_about(read), groups, max(0, len(largest) - limit))


@tool(streaming=True, read_only=True, idempotent=True, open_world=False)
def stats_histogram(
    table: Text,
    column: Column,
    call: Call,
    bins: Annotated[int, Field("How many bins of the same width.", ge=1, le=100)] = 10,
    delimiter: Separator = None,
    decimal: Decimal = ".",
    has_header: Header = True,
) -> Histogram:
    """Counts the numbers of a column in bins of the same width, with a chart in text for people."""
    read = _read(call, table, delimiter, has_header, decimal)
    numbers, missing, other = read.numbers(column)
    if not numbers:
        raise InvalidArguments(f"the column `{column}` has no numbers")
    counted = summary.histogram(numbers, bins)
    most = max(one.count for one in counted)
    chart = "\n".join(f"{one.low:>12.6g} | {'#' * round(40 * one.count / most):<40} {one.count}" for one in counted)
    return Histogram(*_about(read), counted, missing, other, chart)


@tool(streaming=True, read_only=True, idempotent=True, open_world=False)
def stats_relation(
    table: Text,
    x: Column,
    y: Column,
    call: Call,
    delimiter: Separator = None,
    decimal: Decimal = ".",
    has_header: Header = True,
) -> Relation:
    """Says how two columns of numbers go together: Pearson's correlation, and the line y = slope * x + intercept of least
    squares. Rows where one of them has no number are left out."""
    read = _read(call, table, delimiter, has_header, decimal)
    both = zip(read.cells(x), read.cells(y))
    numbers = [(read.number(a), read.number(b)) for a, b in both]
    pairs = [(a, b) for a, b in numbers if a is not None and b is not None]
    line = summary.slope(pairs)
    slope, intercept = line if line is not None else (None, None)
    return Relation(*_about(read), len(pairs), summary.correlation(pairs), slope, intercept)
