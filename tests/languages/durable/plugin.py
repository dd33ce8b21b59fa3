"""A durable tool. In each round it counts, draws a random number, reads the clock, sends two requests, waits and sleeps. Each kind
of wait has its turn. A kill of the host changes none of its results."""

import secrets
import time
from dataclasses import dataclass
from typing import Any

from toolgate import Call, http, keyvalue, tool


@dataclass
class Given:
    word: str


@tool(name="work_python", durable=True)
def work(key: str, rounds: int, url: str, call: Call) -> list[dict[str, Any]]:
    """Counts, draws, sends, waits and sleeps in each round."""
    results = []
    for number in range(rounds):
        count = keyvalue.open().increment(key)
        drawn, now = secrets.token_hex(8), time.time_ns()
        read = http.get(url).text
        answer = http.post(url, body=f"{key} {number} {count} {drawn} {now} {read}")
        given = wait(key, number, url, call)
        time.sleep(1)
        results.append({"count": count, "sent": answer.text, "given": given})
    return results


def wait(key: str, number: int, url: str, call: Call) -> Any:
    prompt = f"{key} {number}"
    match number % 4:
        case 0:
            return call.ask(prompt, Given).word
        case 1:
            return call.approve(prompt, Given(f"go on with {prompt}")).word
        case 2:
            return call.await_external(prompt, Given).word
    (nested,) = call.call_tools(("work_python", {"key": f"{key}+", "rounds": 1, "url": url}))
    return nested.result
