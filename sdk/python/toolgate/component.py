"""The entry of a component: connects the author's module ``plugin`` with the interface's two exports.

``componentize-py … componentize toolgate.component`` loads this module during the build, together with everything that
a
call will need, because a component has no files to import from. A wrong declaration ends the build.
"""

from __future__ import annotations

import logging
import sys

from . import _preload, _wit
from ._declaration import Tool, all_findings
from ._run import CallLog, run
from .call import Call, read_scope
from .failure import DeclarationError, InvalidArguments, ToolError, Unavailable
from ._tool import registered

_wit.install()
logging.basicConfig(level=logging.INFO, handlers=[CallLog()], format="%(message)s")
# The following imports are the author's. Python must not write `__pycache__` beside them.
sys.dont_write_bytecode = True

import plugin as _plugin  # noqa: E402: the log must be set up first

_TOOLS: dict[str, Tool] = {}


def _declare() -> list[dict[str, object]]:
    tools = registered()
    findings = all_findings(tools) or _wit.durable_findings([tool.name for tool in tools if tool.is_durable])
    if findings:
        raise DeclarationError(findings)
    _TOOLS.update({tool.name: tool for tool in tools})
    return [tool.to_wire() for tool in tools]


_DECLARED = _declare()
_preload.finish()


class Catalog:
    """``toolgate:plugin/catalog``."""

    def tools(self) -> list[_wit.tool_types.Tool]:
        return [_wit.to_tool(declared) for declared in _DECLARED]


class Server:
    """``toolgate:plugin/server``."""

    def run(self, request: _wit.tool_types.Call) -> str:
        scope = read_scope(request.scope)
        call = Call(request.id, request.tool, request.idempotency_key, request.attempt, scope)
        _preload.begin()
        try:
            return run(_TOOLS.get, call, request.arguments)
        except InvalidArguments as failure:
            raise _wit.failure("InvalidArguments", failure) from None
        except Unavailable as failure:
            raise _wit.failure("Unavailable", failure) from None
        except ToolError as failure:
            raise _wit.failure("Failed", failure) from None
