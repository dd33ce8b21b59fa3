"""One call, as the function of a tool sees it."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Any, Iterable, Literal, TypeVar

from . import _host
from ._encode import encode, to_json
from ._read import read, schema_of
from .durable import Choice, NotCarriedOut, Returned

Answer = TypeVar("Answer")
Received = TypeVar("Received")
Subject = TypeVar("Subject")
Seconds = float | datetime.timedelta
Risk = Literal["low", "medium", "high", "critical"]


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

    def ask(
        self,
        prompt: str,
        response: type[Answer],
        *,
        expires: Seconds | None = None,
        risk: Risk | None = None,
        who: Iterable[str] | None = None,
    ) -> Answer:
        """Waits until a person answers a question. The tool must be durable, as for all waits.

        Args:
            prompt: The question, a text of 1 to 4096 bytes.
            response: The type of the answer: an annotation like those of parameters. The person sees a form for it.
            expires: The most seconds of the wait; by default, and at most, the option of the tool.
            risk: The possible harm of a wrong answer; by default that of the tool.
            who: The people who may answer: ``principal:NAME``, ``group:NAME`` or ``role:NAME``; by default any
                approver.

        Raises:
            WaitError: There is no answer. Its subclasses in ``toolgate.durable`` say why.
        """
        answer = _wait("ask", prompt, expires, risk=risk, who=_texts(who), response=schema_of(response) or None)
        return read(answer, response)

    def choose(
        self,
        prompt: str,
        choices: Iterable[str],
        *,
        expires: Seconds | None = None,
        risk: Risk | None = None,
        who: Iterable[str] | None = None,
    ) -> Choice:
        """Waits until a person chooses.

        Args:
            prompt: The question, a text of 1 to 4096 bytes.
            choices: 1 to 16 distinct texts of 1 to 64 characters.

        The other arguments are as for ``ask``.

        Raises:
            WaitError: There is no answer. Its subclasses in ``toolgate.durable`` say why.
        """
        answer = _wait("ask", prompt, expires, risk=risk, who=_texts(who), responses=list(choices))
        return read(answer, Choice)

    def approve(
        self,
        prompt: str,
        subject: Subject,
        *,
        editable: Literal["all", "none"] | Iterable[str] | None = None,
        quorum: int | None = None,
        expires: Seconds | None = None,
        risk: Risk | None = None,
        who: Iterable[str] | None = None,
    ) -> Subject:
        """Waits for a decision about a value, and returns the value as it was approved.

        The host cannot know whether later effects match it. To bind an approval to an effect, put the effect into a tool
        with ``requires_approval=True``.

        Args:
            prompt: The question, a text of 1 to 4096 bytes.
            subject: The value, which the approver sees in full. The result has the same type. A list, a tuple, a set or
                a dict gets plain JSON values as items.
            editable: The members of the value that the approver may change: names, ``"all"`` or ``"none"``.
            quorum: How many people must approve; by default one.

        The other arguments are as for ``ask``.

        Raises:
            WaitError: It is not approved. Its subclasses in ``toolgate.durable`` say why.
        """
        # A value that cannot be read again is refused before anybody is asked.
        schema_of(type(subject))
        several = editable is not None and not isinstance(editable, str)
        members = {"subject": encode(subject), "editable": list(editable) if several else editable, "quorum": quorum}
        answer = _wait("approve", prompt, expires, risk=risk, who=_texts(who), **members)
        return read(answer, type(subject))

    def await_external(
        self,
        prompt: str,
        result: type[Received],
        *,
        signal: str | None = None,
        metadata: Any = None,
        expires: Seconds | None = None,
    ) -> Received:
        """Waits for an external system, and returns the result that it sends.

        The sender is the caller, an admin, or the holder of a link to the wait. So the result is untrusted. The host has
        only checked that it fits the schema of the type.

        Args:
            prompt: What is awaited, for people: a text of 1 to 4096 bytes.
            result: The type of the result: an annotation like those of parameters.
            signal: The name of the signal that brings the result: 1 to 64 of the characters ``a-z A-Z 0-9 _ . -``. If
                another call of the conversation waits for this name, the call fails. By default no signal brings it.
            metadata: A value for the external system, of at most 4 KiB as JSON.
            expires: The most seconds of the wait; by default, and at most, the option of the tool.

        Raises:
            WaitError: There is no result. Its subclasses in ``toolgate.durable`` say why.
        """
        members = {"schema": schema_of(result) or None, "name": signal, "metadata": encode(metadata)}
        return read(_wait("await_external", prompt, expires, **members), result)

    def call_tools(self, *calls: tuple[str, Any]) -> list[Returned]:
        """Calls other tools, and returns their results in the order of the calls, when all of them have ended.

        The calls are a turn of their own, with the approvals, policies and people of any turn: each may take days, or be
        denied. A call without a result is no error here: ``Returned.result`` raises it. The plugin's manifest requests the
        tools under ``calls``, and the operator grants them.

        Args:
            calls: The name and the arguments of each call. All calls of one call together have a limit, 100 unless the
                operator sets another.

        Raises:
            WaitError: No tool was called. Its subclasses in ``toolgate.durable`` say why.
        """
        request = {"calls": [{"tool": tool, "arguments": arguments} for tool, arguments in calls]}
        return [_returned(each) for each in json.loads(_host.current().wait("call_tools", to_json(request)))]

    def sleep(self, seconds: Seconds) -> None:
        """Waits for this time. ``time.sleep`` does the same in a durable tool, but really sleeps in a native test.

        Raises:
            ValueError: The time is negative.
            NotGranted: The tool is not durable.
        """
        time = _milliseconds(seconds)
        if time < 0:
            raise ValueError("the time of a sleep must not be negative")
        _host.current().sleep(time)


def _milliseconds(time: Seconds) -> int:
    seconds = time.total_seconds() if isinstance(time, datetime.timedelta) else time
    return round(seconds * 1000)


def _texts(given: Iterable[str] | None) -> list[str] | None:
    return None if given is None else list(given)


def _wait(kind: str, prompt: str, expires: Seconds | None, **others: Any) -> str:
    """Asks a question of the interface ``durable``, and returns the text of the answer."""
    question = {"prompt": prompt, "expires_ms": None if expires is None else _milliseconds(expires), **others}
    # The value that is decided about can be null.
    given = {name: value for name, value in question.items() if value is not None or name == "subject"}
    return _host.current().wait(kind, to_json(given))


def _returned(given: dict[str, Any]) -> Returned:
    """Reads the result of another tool as the interface defines it."""
    error = given.get("error")
    return Returned(
        given.get("result"),
        given.get("trusted", True),
        None if error is None else NotCarriedOut(error["code"], error["message"]),
    )


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
