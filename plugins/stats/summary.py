"""Statistics of numbers. Sums are exact to the last bit (`fsum`), deviations are sample deviations."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass


@dataclass
class Summary:
    """The statistics of some numbers. `None` if there are too few for one."""

    count: int
    missing: int
    not_numbers: int
    sum: float | None = None
    mean: float | None = None
    stdev: float | None = None
    min: float | None = None
    quantiles: dict[str, float] | None = None
    max: float | None = None


@dataclass
class Bin:
    """Numbers from `low` to `high`. Only the last bin includes `high`."""

    low: float
    high: float
    count: int


def summarize(numbers: list[float], missing: int, other: int, quantiles: list[float]) -> Summary:
    """Summarizes numbers in any order."""
    summary = Summary(len(numbers), missing, other)
    if not numbers:
        return summary
    ordered = sorted(numbers)
    summary.sum = math.fsum(ordered)
    summary.mean = summary.sum / len(ordered)
    summary.stdev = statistics.stdev(ordered, summary.mean) if len(ordered) > 1 else None
    summary.min, summary.max = ordered[0], ordered[-1]
    summary.quantiles = {f"{q:g}": quantile(ordered, q) for q in quantiles}
    return summary


def quantile(ordered: list[float], q: float) -> float:
    """The value below which this part of the numbers lies, by linear interpolation between neighbours (type 7)."""
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def histogram(numbers: list[float], bins: int) -> list[Bin]:
    """Bins of the same width from the smallest number to the largest. One bin if all numbers are equal."""
    low, high = min(numbers), max(numbers)
    if low == high:
        return [Bin(low, high, len(numbers))]
    edges = [low + (high - low) * (step / bins) for step in range(bins)] + [high]
    counts = [0] * bins
    for number in numbers:
        at = min(int((number - low) / (high - low) * bins), bins - 1)
        counts[at] += 1
    return [Bin(edges[at], edges[at + 1], count) for at, count in enumerate(counts)]


def correlation(pairs: list[tuple[float, float]]) -> float | None:
    """Pearson's coefficient. `None` for fewer than two pairs, or if one side does not vary."""
    if len(pairs) < 2:
        return None
    try:
        return statistics.correlation(*zip(*pairs))
    except statistics.StatisticsError:
        return None


def slope(pairs: list[tuple[float, float]]) -> tuple[float, float] | None:
    """Slope and intercept of the least-squares line. `None` if it does not exist."""
    if len(pairs) < 2:
        return None
    try:
        line = statistics.linear_regression(*zip(*pairs))
    except statistics.StatisticsError:
        return None
    return line.slope, line.intercept
