"""The waits of a durable tool in a test: the ends that the test scripts, and a record of what the tool waited for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ._encode import to_json
from ._host import NOT_DURABLE
from .durable import Denied, Expired, NotGranted, Returned, WaitError

_AS_IT_IS: Any = object()


@dataclass(frozen=True)
class Wait:
    """One wait of a durable tool."""

    kind: str
    """``ask``, ``approve``, ``await_external``, ``call_tools`` or ``sleep``."""
    question: dict[str, Any] = field(default_factory=dict)
    """The question as the host gets it. It is empty for a sleep."""
    seconds: float | None = None
    """The time of a sleep."""


@dataclass(frozen=True)
class End:
    """The end of one wait other than a sleep, for ``Attempt.waits``."""

    kind: str
    """``ask``, ``approve``, ``await_external`` or ``call_tools``: the wait that it can end. Empty for an error, which can end all."""
    value: Any = None
    """The answer, the approved value, the result, the results of tools, or the error."""


def answered(value: Any) -> End:
    """A wait of ``Call.ask`` or ``Call.choose`` ends with this answer. It is converted to JSON."""
    return End("ask", value)


def approved() -> End:
    """A wait of ``Call.approve`` ends with an approval of the value as it is."""
    return End("approve", _AS_IT_IS)


def approved_as(value: Any) -> End:
    """A wait of ``Call.approve`` ends with an approval of this value. It is converted to JSON."""
    return End("approve", value)


def received(value: Any) -> End:
    """A wait of ``Call.await_external`` ends with this result. It is converted to JSON."""
    return End("await_external", value)


def returned(*ends: Returned) -> End:
    """A wait of ``Call.call_tools`` ends with these ends of its calls. Their values are converted to JSON."""
    return End("call_tools", [_given(each) for each in ends])


def denied(comment: str | None = None) -> End:
    """A wait for a person ends with a denial and this comment."""
    return End("", Denied(comment))


def expired() -> End:
    """A wait for a person or an external system ends without an answer."""
    return End("", Expired())


def _given(returned: Returned) -> dict[str, Any]:
    """The end of a call in the form in which a tool gets it."""
    if returned.error is not None:
        return {"ok": False, "error": {"code": returned.error.code, "message": returned.error.message}}
    return {"ok": True, "result": returned.value, **({} if returned.trusted else {"trusted": False})}


class Script:
    """The part of a test's host that waits."""

    def __init__(self, ends: list[End], waits: list[Wait], durable: bool):
        self.ends, self.waits, self.durable = iter(ends), waits, durable

    def wait(self, kind: str, question: str) -> str:
        asked = json.loads(question)
        self._record(Wait(kind, asked))
        end = next(self.ends, None)
        if end is not None and isinstance(end.value, WaitError):
            raise end.value
        if end is None or end.kind != kind:
            raise NotGranted(f"the test does not answer this question: {question}")
        return to_json(asked["subject"] if end.value is _AS_IT_IS else end.value)

    def sleep(self, milliseconds: int) -> None:
        self._record(Wait("sleep", seconds=milliseconds / 1000))

    def _record(self, wait: Wait) -> None:
        self.waits.append(wait)
        if not self.durable:
            raise NotGranted(NOT_DURABLE)
