"""The host of a component: the bindings that componentize-py generates. Only ``component`` imports this."""

from __future__ import annotations

import importlib
from typing import Any

from componentize_py_types import Err
from wit_world.imports import host, tool_types

from . import _host, _wit_http, _wit_keyvalue
from .config import ConfigUnavailable
from .durable import Cancelled, Denied, Expired, NotGranted, WaitError


def optional(*names: str, having: str) -> Any:
    """The bindings of an interface, if the component's world contains it.

    Two interfaces are called ``store``. If the world contains both, their names include the package.
    """
    for name in names:
        try:
            module = importlib.import_module(f"wit_world.imports.{name}")
        except ImportError:
            continue
        if hasattr(module, having):
            return module
    return None


_config = optional("wasi_config_store", "store", having="get_all")
_store = optional("wasi_keyvalue_store", "store", having="Bucket")
_atomics = optional("atomics", having="Cas")
_http = optional("types", having="OutgoingRequest")
_handler = optional("outgoing_handler", having="handle")
_streams = optional("streams", having="InputStream")
_durable = optional("durable", having="ask")
# A component that was built against 0.1.0 does not have this.
_stop_requested = getattr(host, "stop_requested", None)

_LEVELS = {"debug": host.Level.DEBUG, "info": host.Level.INFO, "warn": host.Level.WARN, "error": host.Level.ERROR}
_EXECUTORS = {name.lower(): member for name, member in tool_types.Executor.__members__.items()}


def _missing(what: str, table: str) -> RuntimeError:
    return RuntimeError(
        f"this component was built without {what}: write `[wants.{table}]` in toolgate-plugin.toml and build it again"
    )


def _waits() -> Any:
    if _durable is None:
        raise NotGranted(_host.NOT_DURABLE)
    return _durable


def _unanswered(error: Any) -> WaitError:
    """Converts an error of the interface ``durable``."""
    if isinstance(error, _durable.WaitError_Denied):
        return Denied(error.value)
    if isinstance(error, _durable.WaitError_Expired):
        return Expired()
    if isinstance(error, _durable.WaitError_Cancelled):
        return Cancelled()
    return NotGranted(error.value)


def durable_findings(durable: list[str]) -> list[str]:
    """The mistakes of a plugin with these durable tools: the component imports the interface exactly if it has some."""
    key = "`durable = true` in `[tool.toolgate]` of pyproject.toml"
    if durable and _durable is None:
        return [f"{', '.join(durable)}: durable tools need {key}"]
    if not durable and _durable is not None:
        return [f"no tool is durable: remove {key}, or declare one with `@tool(durable=True)`"]
    return []


class ComponentHost:
    """The functions of the host, through the interface."""

    def progress(self, message: str, fraction: float | None, data: str | None) -> None:
        host.progress(host.Update(message, fraction, data))

    def log(self, level: str, message: str) -> None:
        host.log(_LEVELS[level], message)

    def stop_requested(self) -> bool:
        return bool(_stop_requested()) if _stop_requested else False

    def wait(self, kind: str, question: str) -> str:
        try:
            return str(getattr(_waits(), kind)(question))
        except Err as error:
            raise _unanswered(error.value) from None

    def sleep(self, milliseconds: int) -> None:
        _waits().sleep(milliseconds)

    def open_bucket(self, name: str) -> Any:
        if _store is None:
            raise _missing("the key-value store", "keyvalue")
        return _wit_keyvalue.Bucket(_store, _atomics, name)

    def send(self, request: Any) -> Any:
        if _http is None:
            raise _missing("HTTP", "http")
        return _wit_http.send(_http, _handler, _streams, request)

    def config(self, name: str) -> str | None:
        return self._config("get", name)

    def config_all(self) -> dict[str, str]:
        return dict(self._config("get_all"))

    def _config(self, function: str, *arguments: str) -> Any:
        if _config is None:
            raise _missing("configuration", "config")
        try:
            return getattr(_config, function)(*arguments)
        except Err as error:
            raise ConfigUnavailable(f"the configuration cannot be read now: {error.value.value}") from None


def install() -> None:
    """Makes the interface the host of all calls."""
    _host.install(ComponentHost())


def to_tool(declared: dict[str, Any]) -> tool_types.Tool:
    """Converts a declaration to the interface's record."""
    gated = declared["approval"] == "requires-approval"
    return tool_types.Tool(
        name=declared["name"],
        description=declared["description"],
        parameters=declared["parameters"],
        executor=_EXECUTORS[declared["executor"]],
        approval=tool_types.Approval.REQUIRES_APPROVAL if gated else tool_types.Approval.AUTO,
        streaming=declared["streaming"],
        options=declared["options"],
    )


def failure(case: str, error: Exception) -> Err[Any]:
    """Converts a failure to the form of the interface."""
    return Err(getattr(tool_types, f"Failure_{case}")(_host.clean(str(error))))
