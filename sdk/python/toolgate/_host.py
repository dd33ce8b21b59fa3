"""The other side of a call: the host's interface in a component, or a simulated host in a test.

There is one at a time, because an instance runs only one call.
"""

from __future__ import annotations

from typing import Any, Protocol

LEVELS = ("debug", "info", "warn", "error")
"""The importance of a log line. `warning` is also accepted for `warn`."""

NOT_DURABLE = "only a durable tool can wait in the middle of a call: declare it with `@tool(durable=True)`"
"""The message for a tool that waits and may not."""


class Killed(BaseException):
    """The host was killed, in a test. A tool cannot catch it, just as it cannot notice the end of a real host."""


class Host(Protocol):
    """The functions that a host offers to a call."""

    def progress(self, message: str, fraction: float | None, data: str | None) -> None: ...
    def log(self, level: str, message: str) -> None: ...
    def stop_requested(self) -> bool: ...
    def wait(self, kind: str, question: str) -> str: ...
    def sleep(self, milliseconds: int) -> None: ...
    def open_bucket(self, name: str) -> Any: ...
    def send(self, request: Any) -> Any: ...
    def config(self, name: str) -> str | None: ...
    def config_all(self) -> dict[str, str]: ...


_installed: Host | None = None


def install(host: Host | None) -> Host | None:
    """Sets the host and returns the previous one."""
    global _installed
    before, _installed = _installed, host
    return before


def current() -> Host:
    """The host of this call."""
    if _installed is None:
        raise RuntimeError("no call is running: in a test, run the tool with toolgate.testing.run")
    return _installed


def clean(text: str) -> str:
    """Makes a text valid UTF-8: lone surrogates become U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text
