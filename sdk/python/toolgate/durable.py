"""Waits in the middle of a call: the reasons why a wait has no answer, and the answers that have no type of the tool.

``Call.ask``, ``Call.choose``, ``Call.approve``, ``Call.await_external``, ``Call.call_tools`` and ``Call.sleep`` wait, and
so does ``time.sleep``. Only a tool with ``@tool(durable=True)`` may use them, and ``pyproject.toml`` must contain
``durable = true`` in ``[tool.toolgate]``. While a call waits, it has no instance, and the host may be stopped. Then the
host runs the function again from its beginning and answers each wait that has ended with the same answer. So the function must do the same each time: clocks and random
numbers do, and a function that keeps its data in its arguments and local variables does too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .failure import Failed


class WaitError(Failed):
    """A wait has no answer. If the tool does not catch it, the call fails with its message."""


class Denied(WaitError):
    """Somebody denied it."""

    comment: str | None
    """The comment of that person."""

    def __init__(self, comment: str | None = None):
        self.comment = comment
        super().__init__("a person denied it" if comment is None else f"a person denied it: {comment}")


class Expired(WaitError):
    """Nobody answered in time."""

    def __init__(self) -> None:
        super().__init__("nobody answered in time")


class Cancelled(WaitError):
    """The call is being cancelled."""

    def __init__(self) -> None:
        super().__init__("the call is being cancelled")


class NotGranted(WaitError):
    """The call may not wait. The message is for the author of the plugin."""


class Malformed(WaitError):
    """The answer is not a value of the type."""


@dataclass(frozen=True)
class Choice:
    """The answer to a question with choices."""

    decision: str
    """One of the choices."""
    data: Any = None
    """Anything that the person added: any JSON, or ``None``."""


class NotCarriedOut(Failed):
    """A call of another tool has no result. If the tool does not catch it, the call fails with its message."""

    code: str
    """How the call ended, such as ``denied`` or ``expired``, or the code of a failure, such as ``invalid_arguments``."""
    message: str
    """A sentence for a model."""

    def __init__(self, code: str, message: str):
        self.code, self.message = code, message
        super().__init__(message)


@dataclass(frozen=True)
class Returned:
    """The end of a call of another tool, from ``Call.call_tools``."""

    value: Any = None
    """The result: any JSON. ``None`` if there is an error."""
    trusted: bool = True
    """Whether the host controls the result. It does not control that of a client, a provider or an external system."""
    error: NotCarriedOut | None = None
    """Why there is no result."""

    @property
    def result(self) -> Any:
        """The result: any JSON.

        Raises:
            NotCarriedOut: The call has no result.
        """
        if self.error is not None:
            raise self.error
        return self.value
