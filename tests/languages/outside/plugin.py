"""Host capabilities in one plugin. Its tools: one that works in steps until it is asked to stop, one that counts such calls, one
that uses every capability and every source of randomness, and the tool of the template with a result that is greater by one."""

import random
import secrets
import uuid
from typing import Annotated, Any

from toolgate import Call, Field, config, http, keyvalue, tool

random.random()  # while it is built: what is seeded then would be the same in every call


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


@tool
def reach(url: str) -> dict[str, Any]:
    """Reaches for everything, and says what came of it."""
    bucket = keyvalue.open()
    bucket.set("gone", {"a": "ü"})
    bucket.set("kept", [1, "ü"])
    bucket.delete("gone")
    count = bucket.update("count", lambda count: count + 1, default=0)
    answer = http.post(url, headers={"x-own": "mine"}, body="ping ü")
    return {
        "draws": [random.random(), uuid.uuid4().hex, secrets.token_hex()],
        "configured": [config.get("greeting"), config.get("nothing"), config.required("greeting")],
        "all": sorted(config.get_all()),
        "stored": [bucket.get("kept"), bucket.get("gone"), bucket.exists("kept"), bucket.increment("sum", 2)],
        "keys": bucket.keys(),
        "count": count,
        "answer": [answer.status, answer.header("x-answer"), answer.text],
    }


@tool(name="hello_count", read_only=True)
def count(text: Annotated[str, Field(format="email")]) -> int:
    """Counts the words of a text, and one more."""
    if text == "crash":
        raise RuntimeError("it broke\nin two lines")
    return len(text.split()) + 1
