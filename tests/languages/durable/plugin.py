"""A durable tool that counts, draws a random number, sends a request, asks and sleeps in each round. A kill of the host changes
none of its results."""

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
    """Counts, draws, sends, asks and sleeps in each round."""
    results = []
    for number in range(rounds):
        count = keyvalue.open().increment(key)
        drawn = secrets.token_hex(8)
        answer = http.post(url, body=f"{key} {number} {count} {drawn}")
        given = call.ask(f"{key} {number}", Given)
        time.sleep(1)
        results.append({"count": count, "sent": answer.text, "given": given.word})
    return results
