"""The decorators that declare tools: one for each kind of executor.

A decorated function still works as before. Its declaration is in its attribute ``__toolgate__``.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Literal, TypeVar, overload

from ._declaration import Tool
from .call import Risk, Seconds

Function = TypeVar("Function", bound=Callable[..., Any])

_SWITCHES = ("requires_approval", "streaming", "durable", "never_evict")
_registered: dict[tuple[str, str], Tool] = {}


def registered() -> list[Tool]:
    """The tools declared so far, in order."""
    return list(_registered.values())


def _register(executor: str, function: Callable[..., Any] | None, given: dict[str, Any]) -> Any:
    given = {name: value for name, value in given.items() if value is not None}
    for switch in _SWITCHES:
        if given.get(switch) is False:
            del given[switch]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function) or not hasattr(function, "__code__"):
            raise TypeError(f"a tool must be a function, not {function!r}")
        declared = Tool(executor, function, given)
        # A reloaded module declares its tools again. This does not count as a second declaration.
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
    durable: bool = False,
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
    remove_after_days: int | None = None,
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
    recovery: Literal["retry", "ask", "fail"] | None = None,
    durable: bool = False,
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
    remove_after_days: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A tool that the function implements, in the host's sandbox.

    Args:
        function: The function, if the decorator is used without parentheses.
        name: The tool's name; by default the function's name.
        description: The description for the model; by default the docstring.
        title: A name for people.
        requires_approval: A person must approve each call first.
        streaming: The tool reports progress before its result.
        timeout: The most seconds of one run.
        recovery: How the host continues a call that was running when the host was killed. In a durable tool, what it does about
        an HTTP request that was begun and whose answer was lost; by default, the call then ends `in_doubt`.
        durable: A call may wait in the middle of the function: ``Call.ask`` and the module ``toolgate.durable``. It needs
        ``durable = true`` in ``[tool.toolgate]`` of ``pyproject.toml``.
        expires: The most seconds of a wait for people.
        on_expiry: The outcome of an approval that nobody answers in time.
        prompt: The text that a person sees: ``{name}`` is an argument, ``{/json/pointer}`` a value in one, ``{{`` a
        brace.
        editable: The arguments that an approver may change: names, ``"all"`` or ``"none"``.
        context_keys: The members of the turn's context that the asked people see; by default all.
        risk: The possible harm of a wrong call.
        read_only: A hint: the tool changes nothing.
        destructive: A hint: the tool may destroy data.
        idempotent: A hint: a repeated call with the same arguments has no further effect.
        open_world: A hint: the tool deals with an open world, such as the web.
        keep_for_turns: Results are useful in a model's context for this many turns.
        keep_latest: Only this many of the latest results are useful.
        remove_after_days: The host may remove a turn with a call of it this many days after its end, if its operator
        allows it.
        never_evict: Results must stay in a model's context.

    Raises:
        TypeError: It decorates something that is not a function. All other mistakes are found by the build and by
        ``toolgate.testing.check``, which raise ``DeclarationError``.
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
    remove_after_days: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A tool that the program at the user's end runs, such as a page or a device. The function's body never runs. Its
    parameters are those of the tool, and its return annotation describes the client's result. The decorator's arguments are
    as for ``tool``.

    Raises:
        TypeError: As for ``tool``.
    """
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
    remove_after_days: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A question to a person, whose answer is the result. The function's body never runs. Its return annotation
    describes the answer.

    Args:
        responses: The decisions to choose from. The result is then ``{"decision": choice, "data": answer}``.
        answer_on_expiry: The answer if nobody answers in time.

    The other arguments are as for ``tool``. A question is never gated, because approving a question would be circular.

    Raises:
        TypeError: As for ``tool``.
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
    remove_after_days: int | None = None,
    never_evict: bool = False,
) -> Any:
    """A tool that the model's provider runs inside its own stream. The function's body never runs. The arguments are as
    for ``tool``. It cannot be gated, because the host cannot stop such a call.

    Raises:
        TypeError: As for ``tool``.
    """
    given = dict(locals())
    return _register("provider", given.pop("function"), given)
