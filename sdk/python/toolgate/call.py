"""One call, as the function of a tool sees it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _host
from ._encode import to_json


@dataclass(frozen=True)
class Scope:
    """The origin of a call, and the people behind it."""

    conversation: str = ""
    """The conversation that the call's turn belongs to."""
    turn: str = ""
    """The turn that contains the call."""
    caller: str = ""
    """The principal that submitted the turn."""
    approver: str | None = None
    """The principal that approved the call, if one did."""
    context: Any = None
    """The value that the caller passed with the turn: any JSON, or ``None``."""


@dataclass(frozen=True)
class Call:
    """One call. A function receives it in a parameter annotated with ``Call``, which is not an argument of the tool."""

    id: str
    """The id that the caller gave the call. It is the same for every attempt."""
    tool: str
    """The name of the tool."""
    idempotency_key: str
    """The same for every attempt at this call, and different for other calls. Pass it to services with side effects."""
    attempt: int
    """1 at first, and one more each time the host dispatches the call again after a crash."""
    scope: Scope
    """The origin of the call, and the people behind it."""

    def progress(self, message: str, fraction: float | None = None, data: Any = None) -> None:
        """Reports progress to the clients that follow the call.

        Args:
            message: One line for people.
            fraction: 0.0 to 1.0, if it is known. Other values count as unknown.
            data: A value for the user interface, such as a partial result.

        Raises:
            Failed: ``data`` has no form in JSON.
        """
        known = float(fraction) if fraction is not None else None
        text = None if data is None else to_json(data)
        _host.current().progress(_host.clean(str(message)), known, text)

    def log(self, level: str, message: str) -> None:
        """Writes a line to the call's log. ``print`` and ``logging`` write there too.

        Args:
            level: ``debug``, ``info``, ``warn`` or ``error``.
            message: The line.

        Raises:
            ValueError: The level does not exist.
        """
        level = "warn" if level == "warning" else level
        if level not in _host.LEVELS:
            raise ValueError(f"no such level: {level!r}; there are " + ", ".join(_host.LEVELS))
        _host.current().log(level, _host.clean(str(message)))

    def stop_requested(self) -> bool:
        """Whether the call should end, because it was cancelled or its time is nearly up.

        A tool that runs for long checks this between its steps. It then returns what it has, or a failure. On a host
        that does not support this it is always false.
        """
        return _host.current().stop_requested()


_current: Call | None = None


def current_call() -> Call:
    """The running call, for code that does not have it as a parameter.

    Raises:
        RuntimeError: No call is running.
    """
    if _current is None:
        raise RuntimeError("no call is running: in a test, run the tool with toolgate.testing.run")
    return _current


def enter(call: Call | None) -> Call | None:
    """Sets the current call and returns the previous one."""
    global _current
    before, _current = _current, call
    return before


def read_scope(text: str) -> Scope:
    """Reads the scope from its JSON text. Unknown keys are ignored, because later versions may add some."""
    given = json.loads(text)
    return Scope(**{name: given[name] for name in Scope.__dataclass_fields__ if name in given})
