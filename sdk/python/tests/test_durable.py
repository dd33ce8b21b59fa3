"""Durable tools: a test scripts the ends of their waits, and sees what they asked."""

from __future__ import annotations

import dataclasses
import datetime
import json
import unittest
from typing import Annotated, Any

import toolgate
from toolgate import Call, Failed, Field, durable, testing
from toolgate.durable import NotCarriedOut, Returned
from toolgate.testing import Wait, answered, approved, approved_as, denied, expired, received, returned


@dataclasses.dataclass
class Target:
    environment: Annotated[str, Field("The environment to deploy to.")]


@dataclasses.dataclass
class Plan:
    environment: str
    instances: int


@toolgate.tool(durable=True)
def deploy(call: Call) -> Any:
    """Deploys."""
    target = call.ask("Where to?", Target, expires=datetime.timedelta(minutes=1), who=["group:ops"])
    plan = Plan(target.environment, 3)
    try:
        plan = call.approve("Deploy?", plan, risk="high", editable=("instances",), quorum=2)
    except durable.Expired:
        return "nobody was there"
    call.sleep(5)
    choice = call.choose("Healthy?", ["yes", "no"], expires=1.5)
    return [plan, choice.decision, choice.data]


@toolgate.tool
def hurry(what: str, call: Call) -> Any:
    """Waits, which it may not."""
    return call.sleep(1) if what == "sleep" else call.ask("Where to?", str)


@toolgate.tool(durable=True)
def decide(call: Call) -> Any:
    """Asks in other ways."""
    date = call.ask("When?", datetime.date)
    call.sleep(datetime.timedelta(milliseconds=250))
    later = call.approve("Then?", date, editable="all")
    return [type(later).__name__, later, call.approve("And nothing?", None), call.ask("What?", object)]


@dataclasses.dataclass
class Health:
    healthy: bool


@dataclasses.dataclass
class Notes:
    by_line: dict[int, str]


@toolgate.tool(durable=True)
def muse(call: Call) -> Any:
    """Asks about a value that has a form in JSON, but cannot be read from it."""
    return call.approve("Fine?", Notes({1: "one"}))


@toolgate.tool(durable=True)
def watch(call: Call) -> Any:
    """Waits for reports of other systems."""
    about = {"environment": "live", "since": datetime.date(2026, 1, 2)}
    health = call.await_external("The health", Health, signal="health", metadata=about, expires=60)
    return [health.healthy, call.await_external("Anything", object)]


@toolgate.tool(durable=True)
def post(call: Call) -> Any:
    """Posts with other tools."""
    ends = call.call_tools(("ledger_post", {"on": datetime.date(2026, 1, 2)}), ("ledger_read", {}))
    return [[end.error.code if end.error else end.result, end.trusted] for end in ends]


@toolgate.tool(durable=True)
def insist(call: Call) -> Any:
    """Posts, and takes no denial."""
    (end,) = call.call_tools(("ledger_post", {}))
    return end.result


LIVE = answered({"environment": "live"})
SCHEMA = {
    "type": "object",
    "properties": {"environment": {"type": "string", "description": "The environment to deploy to."}},
    "required": ["environment"],
    "additionalProperties": False,
}


class Waits(unittest.TestCase):
    def run_it(self, *ends: testing.End) -> testing.Run:
        return testing.run(deploy, waits=list(ends))

    def test_answers_reach_the_tool_in_order(self) -> None:
        run = self.run_it(LIVE, approved(), answered({"decision": "yes", "data": 7}))
        self.assertEqual(run.result, [{"environment": "live", "instances": 3}, "yes", 7])
        approval = {"prompt": "Deploy?", "risk": "high", "editable": ["instances"], "quorum": 2}
        expected = [
            Wait("ask", {"prompt": "Where to?", "expires_ms": 60000, "who": ["group:ops"], "response": SCHEMA}),
            Wait("approve", {**approval, "subject": {"environment": "live", "instances": 3}}),
            Wait("sleep", seconds=5.0),
            Wait("ask", {"prompt": "Healthy?", "expires_ms": 1500, "responses": ["yes", "no"]}),
        ]
        self.assertEqual(run.waits, expected)

    def test_denial_expiry_and_edit_differ(self) -> None:
        denial = self.run_it(LIVE, denied("not today")).failure
        self.assertIsInstance(denial, durable.Denied)
        self.assertEqual((str(denial), denial.comment), ("a person denied it: not today", "not today"))
        self.assertEqual(str(self.run_it(denied()).failure), "a person denied it")
        self.assertEqual(self.run_it(LIVE, expired()).result, "nobody was there")
        edited = self.run_it(LIVE, approved_as(Plan("live", 1)), answered({"decision": "no"}))
        self.assertEqual(edited.result, [{"environment": "live", "instances": 1}, "no", None])

    def test_answer_of_another_form_is_malformed(self) -> None:
        failure = self.run_it(answered({"environment": 1})).failure
        self.assertIsInstance(failure, durable.Malformed)
        self.assertEqual(str(failure), "the answer cannot be read: /environment: must be a string, not 1")

    def test_external_result_reaches_the_tool(self) -> None:
        run = testing.run(watch, waits=[received(Health(True)), received([1])])
        self.assertEqual(run.result, [True, [1]])
        healthy = {"healthy": {"type": "boolean"}}
        schema = {"type": "object", "properties": healthy, "required": ["healthy"], "additionalProperties": False}
        about = {"environment": "live", "since": "2026-01-02"}
        question = {"prompt": "The health", "expires_ms": 60000, "schema": schema, "name": "health", "metadata": about}
        self.assertEqual(run.waits, [Wait("await_external", question), Wait("await_external", {"prompt": "Anything"})])

    def test_external_wait_without_a_result_fails(self) -> None:
        for end, kind in [
            (expired(), durable.Expired),
            (received({"healthy": 1}), durable.Malformed),
            (answered({"healthy": True}), durable.NotGranted),
            (approved(), durable.NotGranted),
        ]:
            with self.subTest(end=end):
                self.assertIsInstance(testing.run(watch, waits=[end]).failure, kind)
        self.assertIsInstance(self.run_it(received({"environment": "live"})).failure, durable.NotGranted)

    def test_results_of_other_tools_reach_the_tool(self) -> None:
        denied_call = Returned(error=NotCarriedOut("denied", "a person denied it"))
        run = testing.run(post, waits=[returned(Returned(Plan("live", 1), trusted=False), denied_call)])
        self.assertEqual(run.result, [[{"environment": "live", "instances": 1}, False], ["denied", True]])
        on = {"tool": "ledger_post", "arguments": {"on": "2026-01-02"}}
        request = {"calls": [on, {"tool": "ledger_read", "arguments": {}}]}
        self.assertEqual(run.waits, [Wait("call_tools", request)])

    def test_result_that_another_tool_does_not_have_fails_the_call(self) -> None:
        self.assertIsNone(testing.run(insist, waits=[returned(Returned())]).result)
        error = NotCarriedOut("denied", "a person denied it")
        failure = testing.run(insist, waits=[returned(Returned(error=error))]).failure
        self.assertIsInstance(failure, NotCarriedOut)
        self.assertEqual(str(failure), "a person denied it")
        for end in [None, answered([]), approved()]:
            failure = testing.run(insist, waits=[end] if end else []).failure
            self.assertIsInstance(failure, durable.NotGranted)

    def test_wait_without_a_script_fails_the_call(self) -> None:
        failure = self.run_it(LIVE).failure
        self.assertIsInstance(failure, durable.NotGranted)
        self.assertTrue(str(failure).startswith('the test does not answer this question: {"prompt":"Deploy?"'))
        self.assertIsInstance(self.run_it(LIVE, LIVE).failure, durable.NotGranted, "an answer is no approval")

    def test_tool_that_is_not_durable_cannot_wait(self) -> None:
        for what in ("ask", "sleep"):
            run = testing.run(hurry, {"what": what}, waits=[answered("here")])
            self.assertIsInstance(run.failure, durable.NotGranted)
            self.assertIn("`@tool(durable=True)`", str(run.failure))

    def test_approved_value_has_the_type_of_the_subject(self) -> None:
        ends = [answered("2026-01-02"), approved_as("2026-01-03"), approved(), answered([1])]
        run = testing.run(decide, waits=ends)
        self.assertEqual(run.result, ["date", "2026-01-03", None, [1]])
        self.assertEqual([wait.kind for wait in run.waits], ["ask", "sleep", "approve", "approve", "ask"])
        self.assertEqual(run.waits[1].seconds, 0.25)
        self.assertEqual(run.waits[3].question, {"prompt": "And nothing?", "subject": None})
        self.assertEqual(run.waits[4].question, {"prompt": "What?"})

    def test_subject_that_cannot_be_read_again_is_not_asked_about(self) -> None:
        run = testing.run(muse, waits=[approved()])
        self.assertIsInstance(run.failure, Failed)
        self.assertIn("no answer can have this type", str(run.failure))
        self.assertEqual(run.waits, [])

    def test_errors_of_waits_are_failures_of_the_tool(self) -> None:
        for error in (durable.Denied, durable.Expired, durable.Cancelled, durable.NotGranted, durable.Malformed):
            self.assertTrue(issubclass(error, durable.WaitError) and issubclass(error, Failed))

    def test_declaration_has_the_option(self) -> None:
        (declared,) = [one for one in testing.declarations() if one["name"] == "deploy"]
        self.assertTrue(declared["options"]["durable"])
        json.dumps(declared)


if __name__ == "__main__":
    unittest.main()
