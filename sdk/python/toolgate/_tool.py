"""Declaring tools: a decorator over a typed function, for each of the four that may produce a result.

The function stays what it was and can be called as before; what is declared hangs on it as ``__toolgate__``.
"""

from __future__ import annotations

import datetime
from typing import Any, Callable, Iterable, Literal, TypeVar, overload

from ._declaration import Tool

Function = TypeVar("Function", bound=Callable[..., Any])
Seconds = float | datetime.timedelta
Risk = Literal["low", "medium", "high", "critical"]

_SWITCHES = ("requires_approval", "streaming", "never_evict")
_registered: dict[tuple[str, str], Tool] = {}


def registered() -> list[Tool]:
    """The tools that were declared so far, in order."""
    return list(_registered.values())


def _register(executor: str, function: Callable[..., Any] | None, given: dict[str, Any]) -> Any:
    given = {name: value for name, value in given.items() if value is not None}
    for switch in _SWITCHES:
        if given.get(switch) is False:
            del given[switch]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function) or not hasattr(function, "__code__"):
            raise TypeError(f"a tool is a function, and {function!r} is none")
        declared = Tool(executor, function, given)
        # A module that is loaded again declares its tools again, and does not declare them twice.
        _registered[(function.__module__, function.__qualname__ + "/" + str(given.get("name", "")))] = declared
        function.__toolgate__ = declared  # type: ignore[attr-defined]
        return function

    return decorate if function is None else decorate(function)


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    requires_approval: bool = False,
    streaming: bool = False,
    timeout: Seconds | None = None,
    recovery: Literal["retry", "ask", "fail"] | None = None,
    expires: Seconds | None = None,
    on_expiry: Literal["error", "deny", "approve"] | None = None,
    prompt: str | None = None,
    editable: Literal["all", "none"] | Iterable[str] | None = None,
    context_keys: Iterable[str] | None = None,
    risk: Risk | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    keep_for_turns: int | None = None,
    keep_latest: int | None = None,
    never_evict: bool = False,
) -> Callable[[Function], Function]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    requires_approval: bool = False,
    streaming: bool = False,
    timeout: Seconds | None = None,
    recovery: str | None = None,
    expires: Seconds | None = None,
    on_expiry: str | None = None,
    prompt: str | None = None,
    editable: str | Iterable[str] | None = None,
    context_keys: Iterable[str] | None = None,
    risk: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    keep_for_turns: int | None = None,
    keep_latest: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A tool that the function carries out, in the host's sandbox.

    Args:
        function: The function, where the decorator stands without brackets.
        name: The function's name, if absent.
        description: For the model; the docstring, if absent.
        title: A name for people.
        requires_approval: A person must approve each call first.
        streaming: It reports progress before its one result.
        timeout: Seconds that one run may take.
        recovery: What becomes of a call that was running when the host was killed.
        expires: Seconds that a wait for approval may take.
        on_expiry: What ends a wait for approval that nobody gave.
        prompt: What a person is shown: ``{name}`` is an argument, ``{/json/pointer}`` one within, ``{{`` a brace.
        editable: What an approver may change: arguments' names, ``"all"`` or ``"none"``.
        context_keys: The members of the turn's context that approvers see; without it, all.
        risk: The possible harm of a wrong call.
        read_only: A hint: it changes nothing.
        destructive: A hint: what it changes may be lost.
        idempotent: A hint: a second call with the same arguments changes nothing more.
        open_world: A hint: it deals with a world that nobody can list, like the web.
        keep_for_turns: A result is worth keeping in a model's context for so many turns.
        keep_latest: Only so many of the latest results are worth keeping.
        never_evict: Results are never dropped from a model's context.
    """
    given = dict(locals())
    return _register("server", given.pop("function"), given)


def client_tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    requires_approval: bool = False,
    streaming: bool = False,
    expires: Seconds | None = None,
    on_expiry: Literal["error", "deny", "approve"] | None = None,
    prompt: str | None = None,
    editable: str | Iterable[str] | None = None,
    context_keys: Iterable[str] | None = None,
    risk: Risk | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    keep_for_turns: int | None = None,
    keep_latest: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A tool that the program at the user's end carries out: a page, a device. The function's body never runs; its
    parameters are those of the tool, and what it returns is what the client has to return. Arguments as for ``tool``."""
    given = dict(locals())
    return _register("client", given.pop("function"), given)


def human_tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    prompt: str | None = None,
    responses: Iterable[str] | None = None,
    expires: Seconds | None = None,
    answer_on_expiry: Any = None,
    context_keys: Iterable[str] | None = None,
    risk: Risk | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    keep_for_turns: int | None = None,
    keep_latest: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A question: a person answers, and the answer is the result. The function's body never runs; what it returns is what
    the person has to answer.

    Args:
        responses: The decisions to choose from; the result is then ``{"decision": choice, "data": answer}``.
        answer_on_expiry: The answer when nobody answers in time.

    The others as for ``tool``. A question is never gated: approving a question would be circular.
    """
    given = dict(locals())
    return _register("human", given.pop("function"), given)


def provider_tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    risk: Risk | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    keep_for_turns: int | None = None,
    keep_latest: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A tool that the model's provider runs inside its own stream. The function's body never runs. Arguments as for
    ``tool``; nothing can be gated, since there is no moment before the call at which it could be stopped."""
    given = dict(locals())
    return _register("provider", given.pop("function"), given)
