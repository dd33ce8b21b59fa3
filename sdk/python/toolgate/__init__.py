"""Tools for agents in Python, as WebAssembly components for toolgate.

A plugin is a module ``plugin.py`` with decorated functions. ``toolgate build`` makes a component from it. The model
sees the parameters and the docstring of each function. The README explains the meaning of annotations.
"""

from . import config, durable, http, keyvalue
from .call import Call, Scope, current_call
from .failure import DeclarationError, Failed, InvalidArguments, ToolError, Unavailable
from .field import Field
from ._tool import client_tool, human_tool, provider_tool, tool

__all__ = [
    "Call",
    "DeclarationError",
    "Failed",
    "Field",
    "InvalidArguments",
    "Scope",
    "ToolError",
    "Unavailable",
    "client_tool",
    "config",
    "current_call",
    "durable",
    "http",
    "human_tool",
    "keyvalue",
    "provider_tool",
    "tool",
]
__version__ = "0.1.0"
