"""Runs tools natively, without a host: ``check()`` tests declarations, ``run()`` runs a tool."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator

from . import _host
from ._declaration import Tool, all_findings
from ._encode import to_json
from ._host import Killed
from ._run import CallLog, run as _run
from .call import Call, Scope, read_scope
from .failure import DeclarationError, Failed, ToolError
from .http import Request, RequestDenied, Response
from .keyvalue import StoreUnavailable
from ._tool import registered
from ._waits import End, Script, Wait, answered, approved, approved_as, denied, expired, received, returned

__all__ = [
    "Attempt",
    "End",
    "Killed",
    "Memory",
    "Run",
    "Update",
    "Wait",
    "answered",
    "approved",
    "approved_as",
    "check",
    "declarations",
    "denied",
    "expired",
    "received",
    "returned",
    "run",
]


def check() -> None:
    """Checks the declarations of the loaded modules.

    The host's own check, ``toolgate check FILE``, needs the built component.

    Raises:
        DeclarationError: All mistakes in the declarations.
    """
    findings = all_findings(registered())
    if findings:
        raise DeclarationError(findings)


def declarations() -> list[dict[str, Any]]:
    """The declarations in the form of the host, with schemas and options as dicts.

    Raises:
        ValueError: A schema is not JSON. ``check`` says which one.
    """
    wire = [tool.to_wire() for tool in registered()]
    return [{**one, "parameters": json.loads(one["parameters"]), "options": json.loads(one["options"])} for one in wire]


def run(tool: str | Callable[..., Any], arguments: dict[str, Any] | None = None, **options: Any) -> Run:
    """Runs a server tool once, by its name or its function, with an invented call.

    The options are those of ``Attempt``: ``run(fetch, {...}, answers=lambda request: Response(200))``.

    Raises:
        LookupError: The tool is not declared. This is a mistake in the test, not an outcome.
        Killed: ``Memory.kill_after`` killed the attempt.
    """
    return Attempt(tool, arguments or {}, **options).run()


@dataclass(frozen=True)
class Update:
    """One report of progress."""

    message: str
    """One line for people."""
    fraction: float | None = None
    """0.0 to 1.0, if it is known."""
    data: Any = None
    """A value for the user interface."""


@dataclass
class Run:
    """The result of an attempt: ``result``, or ``failure`` with the reason."""

    failure: ToolError | None = None
    """The failure, if the call has no result."""
    updates: list[Update] = field(default_factory=list)
    """The reported progress, in order."""
    logs: list[tuple[str, str]] = field(default_factory=list)
    """Level and line, in order, from ``Call.log``, ``logging`` and ``print``."""
    waits: list[Wait] = field(default_factory=list)
    """The waits of a durable tool, in order."""
    _result: Any = None

    @property
    def result(self) -> Any:
        """The result after its way through JSON.

        Raises:
            ToolError: The failure, if there is one.
        """
        if self.failure is not None:
            raise self.failure
        return self._result


class Memory:
    """A key-value store for tests. Attempts share its data, and it can kill one at a write."""

    pairs: dict[str, bytes]
    """The stored bytes, by key."""
    interfere: Callable[[str], None] | None
    """Called before each swap with the key. A test can write here as another call would."""

    def __init__(self) -> None:
        self.pairs = {}
        self._left: int | None = None
        self.interfere = None

    def kill_after(self, writes: int | None) -> None:
        """Allows this many more writes, and kills the attempt at the next one. ``None`` cancels this."""
        self._left = writes

    def write(self, key: str, value: bytes | None) -> None:
        """Writes or removes a value, as an attempt does.

        Raises:
            Killed: ``kill_after`` allows no more writes.
        """
        if self._left is not None:
            if self._left == 0:
                raise Killed(f"killed at the write of {key}")
            self._left -= 1
        if value is None:
            self.pairs.pop(key, None)
        else:
            self.pairs[key] = value

    def values(self) -> dict[str, Any]:
        """All stored values, decoded.

        Raises:
            ValueError: A value is not JSON.
        """
        return {key: json.loads(value) for key, value in self.pairs.items()}


@dataclass
class Attempt:
    """One attempt at a call of a server tool."""

    tool: str | Callable[..., Any]
    """The tool: its name, or its function."""
    arguments: Any = field(default_factory=dict)
    """The arguments: an object that fits the parameters of the tool."""
    id: str = "call-1"
    """The id that the caller gave the call."""
    idempotency_key: str = "key-1"
    """The idempotency key of the call."""
    attempt: int = 1
    """The number of the attempt."""
    scope: Scope | dict[str, Any] = field(default_factory=lambda: Scope("c", "t", "tester"))
    """The origin of the call, and the people behind it."""
    memory: Memory = field(default_factory=Memory)
    """The key-value store."""
    answers: Callable[[Request], Response] | None = None
    """Returns the responses to requests. Without it, all requests are denied."""
    config: dict[str, str] = field(default_factory=dict)
    """The operator's configuration."""
    stop_after: int | None = None
    """How many times ``stop_requested`` is false before it becomes true. Without it, it is always false."""
    waits: list[End] = field(default_factory=list)
    """The ends of a durable tool's waits for people, external systems and other tools, in order. Sleeps end at once and need none."""

    def again(self) -> Attempt:
        """The next attempt at the same call, with the same store."""
        return replace(self, attempt=self.attempt + 1)

    def run(self) -> Run:
        """Runs the attempt. The outcome is that of a host, including the checks of arguments and result.

        Raises:
            LookupError: The tool is not declared. This is a mistake in the test, not an outcome.
            Killed: ``Memory.kill_after`` killed the attempt.
        """
        tool = _find(self.tool)
        scope = read_scope(to_json(self.scope))
        call = Call(self.id, tool.name, self.idempotency_key, self.attempt, scope)
        outcome = Run()
        host = _TestHost(self, outcome, tool.is_durable)
        with _installed(host):
            try:
                text = _run(lambda name: tool if name == tool.name else None, call, to_json(self.arguments))
            except ToolError as failure:
                outcome.failure = failure
                return outcome
        outcome._result = json.loads(text)
        wrong = tool.result_problems(outcome._result)
        if wrong:
            outcome.failure = Failed("the result breaks the tool's own annotation: " + "; ".join(wrong))
        return outcome


def _find(tool: str | Callable[..., Any]) -> Tool:
    if isinstance(tool, str):
        known = {one.name: one for one in registered()}
        if tool not in known:
            raise LookupError(f"no tool `{tool}` is declared; there are: " + (", ".join(known) or "none"))
        return known[tool]
    declared = getattr(tool, "__toolgate__", None)
    if declared is None:
        raise LookupError(f"{tool!r} is not declared as a tool")
    return declared


class _Printed(io.TextIOBase):
    """Standard output as in a host: each line goes to the call's log."""

    def __init__(self, level: str):
        self.level, self.rest = level, ""

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            _host.current().log(self.level, line)
        return len(text)

    def close_line(self) -> None:
        if self.rest:
            self.write("\n")


@contextlib.contextmanager
def _installed(host: _host.Host) -> Iterator[None]:
    before, handler, root = _host.install(host), CallLog(), logging.getLogger()
    level, out, err = root.level, _Printed("info"), _Printed("warn")
    root.addHandler(handler)
    root.setLevel(min(level, logging.INFO))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):  # type: ignore[type-var]
            yield
    finally:
        out.close_line()
        err.close_line()
        root.removeHandler(handler)
        root.setLevel(level)
        _host.install(before)


class _TestHost:
    """A host that collects a call's output."""

    def __init__(self, attempt: Attempt, outcome: Run, durable: bool):
        self.attempt, self.outcome = attempt, outcome
        self.asked = 0
        self.script = Script(attempt.waits, outcome.waits, durable)

    def progress(self, message: str, fraction: float | None, data: str | None) -> None:
        known = fraction if fraction is not None and 0.0 <= fraction <= 1.0 else None
        self.outcome.updates.append(Update(message, known, None if data is None else json.loads(data)))

    def log(self, level: str, message: str) -> None:
        self.outcome.logs.append((level, message))

    def stop_requested(self) -> bool:
        self.asked += 1
        return self.attempt.stop_after is not None and self.asked > self.attempt.stop_after

    def wait(self, kind: str, question: str) -> str:
        return self.script.wait(kind, question)

    def sleep(self, milliseconds: int) -> None:
        self.script.sleep(milliseconds)

    def open_bucket(self, name: str) -> Any:
        return _MemoryBucket(self.attempt.memory, name)

    def send(self, request: Request) -> Response:
        if self.attempt.answers is None:
            raise RequestDenied("the host does not allow the request; the call's log names the missing grant (toolgate logs)")
        return self.attempt.answers(request)

    def config(self, name: str) -> str | None:
        return self.attempt.config.get(name)

    def config_all(self) -> dict[str, str]:
        return dict(self.attempt.config)


class _MemoryBucket:
    def __init__(self, memory: Memory, name: str):
        self.memory, self.prefix = memory, "" if name == "default" else f"{name}/"

    def get(self, key: str) -> bytes | None:
        return self.memory.pairs.get(self.prefix + key)

    def set(self, key: str, value: bytes) -> None:
        self.memory.write(self.prefix + key, value)

    def delete(self, key: str) -> None:
        self.memory.write(self.prefix + key, None)

    def exists(self, key: str) -> bool:
        return self.prefix + key in self.memory.pairs

    def increment(self, key: str, by: int) -> int:
        try:
            total = int(self.get(key) or b"0") + by
        except ValueError:
            raise StoreUnavailable("the value is not a number") from None
        self.set(key, str(total).encode())
        return total

    def list_keys(self, cursor: str | None) -> tuple[list[str], str | None]:
        keys = sorted(key[len(self.prefix) :] for key in self.memory.pairs if key.startswith(self.prefix))
        at = int(cursor or 0)
        return keys[at : at + 256], str(at + 256) if at + 256 < len(keys) else None

    def cas(self, key: str) -> _MemorySwap:
        return _MemorySwap(self, key)


class _MemorySwap:
    def __init__(self, bucket: _MemoryBucket, key: str):
        self.bucket, self.key, self.before = bucket, key, bucket.get(key)

    def current(self) -> bytes | None:
        return self.before

    def swap(self, value: bytes) -> _MemorySwap | None:
        if self.bucket.memory.interfere is not None:
            self.bucket.memory.interfere(self.key)
        if self.bucket.get(self.key) != self.before:
            return _MemorySwap(self.bucket, self.key)
        self.bucket.set(self.key, value)
        return None
