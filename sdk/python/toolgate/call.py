"""One call, as the function of a tool sees it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _host
from ._encode import to_json


@dataclass(frozen=True)
class Scope:
    """Where a call belongs and who is behind it."""

    conversation: str = ""
    turn: str = ""
    caller: str = ""
    """The principal that submitted the turn."""
    approver: str | None = None
    """The principal that approved the call, if there was one."""
    context: Any = None
    """What the caller passed along with the turn: any JSON, ``None`` where it passed nothing."""


@dataclass(frozen=True)
class Call:
    """One call. A function gets it by a parameter that is annotated with ``Call``, which is not an argument of the tool."""

    id: str
    """The id that the caller gave the call, the same at every attempt."""
    tool: str
    idempotency_key: str
    """Stable over every attempt at this call and never used for another: pass it to services with side effects."""
    attempt: int
    """1, then one more each time that the call is dispatched again after a crash."""
    scope: Scope

    def progress(self, message: str, fraction: float | None = None, data: Any = None) -> None:
        """Reports progress to the clients that follow the call.

        Args:
            message: One line for people.
            fraction: 0.0 to 1.0 where it is known; anything else is taken as not known.
            data: A value for the user interface, such as a partial result.
        """
        known = float(fraction) if fraction is not None else None
        text = None if data is None else to_json(data)
        _host.current().progress(_host.clean(str(message)), known, text)

    def log(self, level: str, message: str) -> None:
        """Writes a line to the call's log. ``print`` and ``logging`` go there as well.

        Args:
            level: ``debug``, ``info``, ``warn`` or ``error``.
            message: The line.
        """
        level = "warn" if level == "warning" else level
        if level not in _host.LEVELS:
            raise ValueError(f"no such level: {level!r}; there are " + ", ".join(_host.LEVELS))
        _host.current().log(level, _host.clean(str(message)))

    def stop_requested(self) -> bool:
        """Whether the call should come to its end: nobody waits for its result any more, or its time is nearly up.

        A tool that works long asks between its steps, and ends with what it has or with a failure. On a host that is older
        than the question it is always false.
        """
        return _host.current().stop_requested()


_current: Call | None = None


def current_call() -> Call:
    """The call that runs now, for code that the call was not handed to."""
    if _current is None:
        raise RuntimeError("there is no call here: in a test, run the tool with toolgate.testing.run")
    return _current


def enter(call: Call | None) -> Call | None:
    """Makes a call the current one and gives the one before."""
    global _current
    before, _current = _current, call
    return before


def read_scope(text: str) -> Scope:
    """The scope from its JSON text. Unknown keys are ignored, since more may come."""
    given = json.loads(text)
    return Scope(**{name: given[name] for name in Scope.__dataclass_fields__ if name in given})
