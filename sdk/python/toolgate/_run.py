"""Runs one call, from the text of its arguments to the text of its result. Exceptions become failures here."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from typing import Any, Callable

from . import _host, call as calls
from ._declaration import Tool
from ._encode import to_json
from .call import Call
from .failure import Failed, InvalidArguments, ToolError, Unavailable

MAX_TRACEBACK = 4000
"""The characters of a traceback that are logged. Its end is the most useful part."""


class CallLog(logging.Handler):
    """Writes the records of ``logging`` to the call's log."""

    def emit(self, record: logging.LogRecord) -> None:
        levels = ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info"))
        level = next((name for least, name in levels if record.levelno >= least), "debug")
        try:
            _host.current().log(level, _host.clean(self.format(record)))
        except Exception:
            self.handleError(record)


def run(tools: Callable[[str], Tool | None], call: Call, arguments: str) -> str:
    """Runs a call and returns its result as JSON, or raises one of the three failures."""
    tool = tools(call.tool)
    if tool is None or tool.executor != "server":
        raise Failed(f"this plugin has no tool `{call.tool}` to run")
    before = calls.enter(call)
    try:
        return to_json(tool.run(_read(arguments), call))
    except (InvalidArguments, Unavailable, Failed, _host.Killed):
        raise
    except ToolError as error:
        raise Failed(str(error)) from error
    except BaseException as error:
        _host.current().log("error", _host.clean(_trace(error)))
        raise Failed(describe(error)) from error
    finally:
        calls.enter(before)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()


def describe(error: BaseException) -> str:
    """The type of an exception with its message."""
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, ModuleNotFoundError):
        text += "; a component has no files: import at the top of a module, which happens while it is built"
    if isinstance(error, SystemExit):
        return f"the tool called exit({text}), which only ends a program"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _trace(error: BaseException) -> str:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()
    return text if len(text) <= MAX_TRACEBACK else "…" + text[-MAX_TRACEBACK:]


def _read(arguments: str) -> Any:
    try:
        return json.loads(arguments, parse_constant=_no_constant)
    except ValueError as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
