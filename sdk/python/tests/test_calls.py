"""Calls: results, failures, logs, progress, the store, requests, configuration."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import logging
import math
import sys
import unittest
import uuid
from typing import Any, TypedDict

import toolgate
from toolgate import Call, Failed, InvalidArguments, Unavailable, config, current_call, http, keyvalue, testing
from toolgate import _tool as tools
from toolgate._encode import NoJson, to_json
from toolgate._run import MAX_TRACEBACK


class Kind(enum.Enum):
    A = "a"


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


class Totals(TypedDict):
    total: int


cycle: list[Any] = []
cycle.append(cycle)

ENCODED: list[tuple[Any, str]] = [
    (None, "null"),
    ("ü\n", '"ü\\n"'),
    (10**30, "1" + "0" * 30),
    (1.5, "1.5"),
    (True, "true"),
    ((1, [2]), "[1,[2]]"),
    ({3, 1, 2}, "[1,2,3]"),
    ({1: "a", Kind.A: Kind.A}, '{"1":"a","a":"a"}'),
    (Point(1, datetime.date(2026, 1, 2)), '{"x":1,"when":"2026-01-02"}'),
    (decimal.Decimal("1.10"), '"1.10"'),
    (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    (datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.timezone.utc), '"2026-01-02T03:00:00+00:00"'),
]
NOT_ENCODED: list[tuple[Any, str]] = [
    ({"a": [1, math.nan]}, "/a/1: nan"),
    (math.inf, "/: inf"),
    (b"", "bytes has no form"),
    ({"a": object()}, "/a: object has no form"),
    ({(1, 2): 3}, "the key (1, 2)"),
    ({True: 1}, "the key True"),
    ("\ud800", "lone surrogate"),
    (Point, "type has no form"),
    (cycle, "nested deeper than 100 levels"),
]


@toolgate.tool
def work(what: str, call: Call) -> Any:
    """Does what the test wants."""
    return WORK[what](call)


@toolgate.tool
def sum_up(numbers: list[int]) -> Totals:
    """Sums up; wrongly, where a number is 13."""
    return {"total": "many" if 13 in numbers else sum(numbers)}  # type: ignore[typeddict-item]


def fail(error: BaseException) -> Any:
    def raises(_call: Call) -> Any:
        raise error

    return raises


def deep(_call: Call) -> Any:
    return deep(_call)


def speak(call: Call) -> None:
    print("one\ntwo", end="")
    print("wrong", file=sys.stderr)
    logging.getLogger("x").warning("careful %s", 1)
    logging.info("by the way")
    call.log("warning", "lone \ud800")
    call.log("debug", "detail")


def go_on(call: Call) -> int:
    steps = 0
    while not call.stop_requested():
        steps += 1
        call.progress(f"step {steps}", steps / 10, {"steps": steps})
    call.progress("done", 7)
    return steps


WORK: dict[str, Any] = {
    "call": lambda call: [call.id, call.idempotency_key, call.attempt, call.scope.caller, current_call() is call],
    "context": lambda call: [call.scope.context, call.scope.approver],
    "invalid": fail(InvalidArguments("no such day")),
    "failed": fail(Failed("no")),
    "unavailable": fail(Unavailable("later")),
    "bare": fail(toolgate.ToolError("bare")),
    "value": fail(ValueError("ü")),
    "silent": fail(KeyError()),
    "exit": fail(SystemExit(3)),
    "module": fail(ModuleNotFoundError("No module named 'x'")),
    "deep": deep,
    "speak": speak,
    "go_on": go_on,
    "nan": lambda call: math.nan,
    "level": lambda call: call.log("noisy", "x"),
}
FAILURES: list[tuple[str, type[Exception], str]] = [
    ("invalid", InvalidArguments, "no such day"),
    ("failed", Failed, "no"),
    ("unavailable", Unavailable, "later"),
    ("bare", Failed, "bare"),
    ("value", Failed, "ValueError: ü"),
    ("silent", Failed, "KeyError"),
    ("exit", Failed, "the tool called exit(3), which only ends a program"),
    ("deep", Failed, "RecursionError: maximum recursion depth exceeded"),
    ("nan", Failed, "/: nan has no form in JSON; give `None` where there is no number"),
    ("level", Failed, "ValueError: no such level: 'noisy'; there are debug, info, warn, error"),
]


class Encoding(unittest.TestCase):
    def test_what_has_a_form_in_json(self) -> None:
        for value, text in ENCODED:
            with self.subTest(value=value):
                self.assertEqual(to_json(value), text)
                json.loads(text)

    def test_what_has_none(self) -> None:
        for value, part in NOT_ENCODED:
            with self.subTest(part=part), self.assertRaises(NoJson) as raised:
                to_json(value)
            self.assertIn(part, str(raised.exception))


class Calls(unittest.TestCase):
    def test_a_call_knows_itself(self) -> None:
        run = testing.run(work, {"what": "call"}, id="c9", idempotency_key="k", attempt=2)
        self.assertEqual(run.result, ["c9", "k", 2, "tester", True])

    def test_unknown_keys_of_the_scope_are_ignored(self) -> None:
        scope = {"conversation": "c", "turn": "t", "caller": "x", "context": {"a": 1}, "newer": True}
        self.assertEqual(testing.run("work", {"what": "context"}, scope=scope).result, [{"a": 1}, None])

    def test_there_is_no_call_outside_of_one(self) -> None:
        for function in (current_call, keyvalue.open, config.get_all):
            with self.assertRaisesRegex(RuntimeError, "toolgate.testing.run"):
                function()

    def test_what_is_raised_becomes_a_failure(self) -> None:
        for what, kind, text in FAILURES:
            with self.subTest(what=what):
                failure = testing.run(work, {"what": what}).failure
                self.assertIs(type(failure) if kind is not Failed else Failed, kind)
                self.assertIsInstance(failure, kind)
                self.assertTrue(str(failure).startswith(text), failure)

    def test_a_traceback_goes_to_the_log_and_a_failure_does_not(self) -> None:
        logs = testing.run(work, {"what": "value"}).logs
        self.assertEqual([level for level, _ in logs], ["error"])
        self.assertIn("ValueError: ü", logs[0][1])
        self.assertIn("in raises", logs[0][1])
        self.assertEqual(testing.run(work, {"what": "failed"}).logs, [])

    def test_a_long_traceback_is_cut_in_front(self) -> None:
        ((_, text),) = testing.run(work, {"what": "deep"}).logs
        self.assertLessEqual(len(text), MAX_TRACEBACK + 1)
        self.assertIn("RecursionError", text[-200:])

    def test_a_missing_module_is_explained(self) -> None:
        self.assertIn("import at the top", str(testing.run(work, {"what": "module"}).failure))

    def test_the_result_raises_the_failure(self) -> None:
        with self.assertRaises(Unavailable):
            testing.run(work, {"what": "unavailable"}).result

    def test_everything_said_goes_to_the_log(self) -> None:
        logs = testing.run(work, {"what": "speak"}).logs
        expected = [
            ("info", "one"),
            ("warn", "wrong"),
            ("warn", "careful 1"),
            ("info", "by the way"),
            ("warn", "lone \ufffd\ufffd\ufffd"),
            ("debug", "detail"),
            ("info", "two"),
        ]
        self.assertEqual(logs, expected)

    def test_progress_and_the_wish_to_stop(self) -> None:
        run = testing.run(work, {"what": "go_on"}, stop_after=2)
        self.assertEqual(run.result, 2)
        self.assertEqual(run.updates[0], testing.Update("step 1", 0.1, {"steps": 1}))
        self.assertEqual(run.updates[-1], testing.Update("done", None, None))

    def test_arguments_are_checked_as_a_host_checks_them(self) -> None:
        failure = testing.run(sum_up, {"numbers": [1, "2"], "more": 1}).failure
        self.assertIsInstance(failure, InvalidArguments)
        self.assertEqual(str(failure), '/numbers/1: must be an integer, not "2"; /more: is not known here (known are: numbers)')

    def test_a_result_is_held_to_its_annotation(self) -> None:
        self.assertEqual(testing.run(sum_up, {"numbers": [2**53, 1]}).result, {"total": 2**53 + 1})
        failure = testing.run(sum_up, {"numbers": [13]}).failure
        self.assertEqual(str(failure), 'the result breaks the tool\'s own annotation: /total: must be an integer, not "many"')

    def test_a_tool_is_found_by_name_or_function(self) -> None:
        with self.assertRaisesRegex(LookupError, "there are: "):
            testing.run("nothing")
        with self.assertRaisesRegex(LookupError, "not declared"):
            testing.run(deep)

    def test_what_is_decorated_stays_a_function(self) -> None:
        self.assertEqual(sum_up([1, 2]), {"total": 3})


@toolgate.tool
def store(step: str) -> Any:
    """Uses the store."""
    return STORE[step](keyvalue.open())


def transfer(bucket: keyvalue.Bucket) -> int:
    done = bucket.get("done", [])
    if current_call().idempotency_key not in done:
        bucket.update("sum", lambda sum: sum + 1, default=0)
        bucket.set("done", [*done, current_call().idempotency_key])
    return bucket.get("sum")


STORE: dict[str, Any] = {
    "set": lambda bucket: bucket.set("a", Point(1, datetime.date(2026, 1, 2))),
    "get": lambda bucket: [bucket.get("a"), bucket.get("b"), bucket.get("b", 7), bucket.exists("a")],
    "delete": lambda bucket: [bucket.delete("a"), bucket.delete("a"), bucket.exists("a")],
    "increment": lambda bucket: [bucket.increment("n"), bucket.increment("n", 5)],
    "malformed": lambda bucket: [bucket.set_bytes("x", b"\xff"), bucket.get("x")],
    "keys": lambda bucket: [[bucket.set(f"k{n:03}", n) for n in range(300)], len(bucket.keys()), bucket.keys("k29")][1:],
    "append": lambda bucket: bucket.update("list", lambda items: [*items, len(items)], default=[]),
    "same": lambda bucket: bucket.update("list", lambda items: items, default=[]),
    "refuse": lambda bucket: bucket.update("list", fail(Failed("no")), default=[]),
    "transfer": transfer,
}


class Store(unittest.TestCase):
    def run_on(self, memory: testing.Memory, *steps: str) -> Any:
        return [testing.run(store, {"step": step}, memory=memory) for step in steps][-1].result

    def test_values_outlast_the_call(self) -> None:
        memory = testing.Memory()
        stored = {"x": 1, "when": "2026-01-02"}
        self.assertEqual(self.run_on(memory, "set", "get"), [stored, None, 7, True])
        self.assertEqual(self.run_on(memory, "delete"), [None, None, False])
        self.assertEqual(self.run_on(memory, "increment"), [1, 6])

    def test_what_is_no_json_is_malformed(self) -> None:
        self.assertIsInstance(testing.run(store, {"step": "malformed"}).failure, keyvalue.Malformed)

    def test_keys_come_in_pages_and_in_order(self) -> None:
        self.assertEqual(self.run_on(testing.Memory(), "keys"), [300, [f"k{n}" for n in range(290, 300)]])

    def test_a_lost_race_starts_again(self) -> None:
        memory = testing.Memory()

        def interfere(key: str) -> None:
            memory.interfere = None
            memory.pairs[key] = b"[9]"

        memory.interfere = interfere
        self.assertEqual(self.run_on(memory, "append"), [9, 1])
        self.assertEqual(memory.values(), {"list": [9, 1]})

    def test_losing_every_race_ends(self) -> None:
        memory = testing.Memory()
        races = iter(range(10_000))
        memory.interfere = lambda key: memory.pairs.update({key: b"[%d]" % next(races)})
        self.assertIsInstance(testing.run(store, {"step": "append"}, memory=memory).failure, keyvalue.StoreUnavailable)

    def test_what_is_unchanged_or_refused_is_not_written(self) -> None:
        memory = testing.Memory()
        memory.pairs["list"] = b"[1]"
        memory.kill_after(0)
        self.assertEqual(self.run_on(memory, "same"), [1])
        self.assertIsInstance(testing.run(store, {"step": "refuse"}, memory=memory).failure, Failed)

    def test_a_call_can_be_killed_at_each_write(self) -> None:
        for writes in range(2):
            memory = testing.Memory()
            attempt = testing.Attempt(store, {"step": "transfer"}, memory=memory)
            memory.kill_after(writes)
            with self.subTest(writes=writes), self.assertRaises(testing.Killed):
                attempt.run()
            memory.kill_after(None)
            # This tool adds twice if it is killed between its two writes. Such a test can find that.
            self.assertEqual(attempt.again().run().result, writes + 1)


@toolgate.tool
def fetch(url: str, body: str | None = None) -> Any:
    """Fetches."""
    token = config.get("token", "none")
    answer = http.request("POST" if body else "GET", url, params={"q": "a b"}, json=body, headers={"X-Token": str(token)})
    return [answer.raise_for_status().json(), answer.header("A"), config.required("must")]


class Outside(unittest.TestCase):
    def fetch(self, response: http.Response, **options: Any) -> testing.Run:
        sent: list[http.Request] = []
        run = testing.run(fetch, {"url": "https://h/x", **options}, answers=lambda request: sent.append(request) or response, config={"must": "1"})
        (self.sent,) = sent
        return run

    def test_a_request_and_its_answer(self) -> None:
        run = self.fetch(http.Response(200, (("a", "b"),), b"[1]"), body="ü")
        self.assertEqual(run.result, [[1], "b", "1"])
        expected = ("POST", "https://h/x?q=a+b", (("X-Token", "none"), ("content-type", "application/json")), '"ü"'.encode())
        self.assertEqual((self.sent.method, self.sent.url, self.sent.headers, self.sent.body), expected)

    def test_a_status_says_whether_trying_again_may_help(self) -> None:
        for status, kind in [(301, http.StatusFailed), (404, Failed), (429, Unavailable), (503, http.StatusUnavailable)]:
            with self.subTest(status=status):
                self.assertIsInstance(self.fetch(http.Response(status)).failure, kind)

    def test_an_answer_that_is_no_json_fails_the_call(self) -> None:
        self.assertIn("is not JSON", str(self.fetch(http.Response(200, (), b"<")).failure))

    def test_nothing_is_allowed_by_default(self) -> None:
        self.assertIsInstance(testing.run(fetch, {"url": "https://h"}).failure, http.RequestDenied)

    def test_a_header_cannot_smuggle_another(self) -> None:
        run = testing.run(fetch, {"url": "https://h"}, config={"token": "a\r\nb: c"})
        self.assertIsInstance(run.failure, http.RequestInvalid)

    def test_a_header_is_a_text(self) -> None:
        def send(header: Any) -> None:
            """Sends."""
            http.get("https://h", headers={"content-length": header})

        toolgate.tool(send)
        run = testing.run(send, {"header": 3}, answers=lambda request: http.Response(200))
        self.assertIsInstance(run.failure, http.RequestInvalid)
        self.assertIn("'content-length' is 3", str(run.failure))

    def test_what_is_required_and_not_configured_is_named(self) -> None:
        run = testing.run(fetch, {"url": "https://h"}, answers=lambda request: http.Response(200, (), b"1"))
        self.assertEqual(str(run.failure), "the operator has not configured `must` for this plugin")


class Wits(unittest.TestCase):
    def test_the_sdk_needs_no_bindings_natively(self) -> None:
        self.assertFalse([name for name in sys.modules if name.startswith(("wit_world", "componentize_py"))])

    def test_a_module_that_is_loaded_again_declares_once(self) -> None:
        count = len(tools.registered())
        toolgate.tool(sum_up)
        self.assertEqual(len(tools.registered()), count)


if __name__ == "__main__":
    unittest.main()
