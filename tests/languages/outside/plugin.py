"""A tool that works in steps until it is asked to stop, one that counts the calls that were,
and the tool of the skeleton, whose result is greater by one."""

from typing import Annotated

from toolgate import Call, Field, keyvalue, tool


@tool(streaming=True)
def work(steps: Annotated[int, Field("Steps to take.", minimum=1)], call: Call) -> int:
    """Takes steps until it is asked to stop, and gives the number of those that it took."""
    for step in range(steps):
        if call.stop_requested():
            keyvalue.open().increment("stopped")
            return step
        call.progress("a step", step / steps)
        sum(range(100_000))
    return steps


@tool(read_only=True)
def stopped() -> int:
    """Gives the number of calls that were asked to stop and did."""
    return keyvalue.open().increment("stopped", 0)


@tool(name="hello_count", read_only=True)
def count(text: str) -> int:
    """Counts the words of a text, and one more."""
    return len(text.split()) + 1
