"""Reads a key as often as its arguments say, and then asks a person."""

from toolgate import Call, keyvalue, tool


@tool(durable=True)
def work(reads: int, asks: bool, call: Call) -> bool:
    """Works, and then asks."""
    bucket = keyvalue.open()
    for _ in range(reads):
        bucket.get("n")
    return call.ask("Go on?", bool)
