"""What is on the other side of a call: the host's interface in a component, a made-up host in a test.

One at a time, because an instance runs one call and nothing else.
"""

from __future__ import annotations

from typing import Any, Protocol

LEVELS = ("debug", "info", "warn", "error")
"""How much a log line matters; `warning` is taken for `warn`."""


class Killed(BaseException):
    """The host was killed, in a test. No tool sees it, as none sees the end of its host."""


class Host(Protocol):
    """What a host offers to a call."""

    def progress(self, message: str, fraction: float | None, data: str | None) -> None: ...
    def log(self, level: str, message: str) -> None: ...
    def stop_requested(self) -> bool: ...
    def open_bucket(self, name: str) -> Any: ...
    def send(self, request: Any) -> Any: ...
    def config(self, name: str) -> str | None: ...
    def config_all(self) -> dict[str, str]: ...


_installed: Host | None = None


def install(host: Host | None) -> Host | None:
    """Puts a host in place and gives the one before."""
    global _installed
    before, _installed = _installed, host
    return before


def current() -> Host:
    """The host of this call."""
    if _installed is None:
        raise RuntimeError("there is no call here: in a test, run the tool with toolgate.testing.run")
    return _installed


def clean(text: str) -> str:
    """A text that the interface can carry: lone surrogates, which are not UTF-8, become U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text
