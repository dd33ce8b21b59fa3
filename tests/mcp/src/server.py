"""An MCP server on the official SDK for Python, which a host has as an upstream: over a pipe, or with `http` over HTTP."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("python")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}"


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("no")


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        # The server prints the port that it gets.
        server.run("streamable-http", port=0)
    server.run()
