"""Native tests: python3 -m unittest"""

import json
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "../../sdk/python")]

import plugin  # noqa: E402
from toolgate import durable, testing  # noqa: E402
from toolgate.durable import NotCarriedOut, Returned  # noqa: E402
from toolgate.http import Request, Response, StatusUnavailable  # noqa: E402
from toolgate.testing import answered, approved, approved_as, denied, expired, received, returned  # noqa: E402

LIVE = answered({"environment": "live"})


def roll_out(*ends: testing.End, service: "Service | None" = None, **others: object) -> testing.Run:
    options = service.options() if service else {}
    return testing.run(plugin.roll_out, {"version": "1.4.2", **others}, waits=[LIVE, *ends], **options)


class Service:
    """The service of a test, and the requests that it got: the URL and the body of each."""

    def __init__(self, status: int = 201) -> None:
        self.status = status
        self.sent: list[tuple[str, object]] = []

    def answer(self, request: Request) -> Response:
        self.sent.append((request.url, json.loads(request.body or b"null")))
        return Response(self.status)

    def options(self) -> dict[str, object]:
        return {"answers": self.answer, "config": {"service": "https://deploy.example/api/"}}


class Rollout(unittest.TestCase):
    def test_the_declarations_are_legal(self):
        testing.check()

    def test_approved_plan_is_rolled_out_and_checked(self):
        plan = {"version": "1.4.2", "environment": "live", "instances": 2}
        for decision, state in [("healthy", "done"), ("broken", "rolled back")]:
            run = roll_out(approved_as(plan), answered({"decision": decision}))
            self.assertEqual(run.result, {"state": state, "plan": plan})
            self.assertEqual([wait.kind for wait in run.waits], ["ask", "approve", "sleep", "ask"])
            self.assertEqual(run.waits[2].seconds, 5)

    def test_approved_plan_is_deployed_by_a_tool_that_requires_approval(self):
        plan = {"version": "1.4.2", "environment": "live", "instances": 3}
        service = Service()
        ends = [approved(), returned(Returned({"instances": 3})), answered({"decision": "healthy"})]
        run = roll_out(*ends, deploy=True, service=service)
        self.assertEqual(run.result, {"state": "done", "plan": plan})
        self.assertEqual(service.sent, [("https://deploy.example/api/builds", {"version": "1.4.2"})])
        self.assertEqual(run.waits[2].question, {"calls": [{"tool": "roll_out_py_deploy", "arguments": plan}]})
        denied_call = Returned(error=NotCarriedOut("denied", "a person denied it"))
        run = roll_out(approved(), returned(denied_call), deploy=True, service=Service())
        self.assertEqual(run.result, {"state": "not deployed", "reason": "a person denied it", "plan": plan})
        service = Service()
        self.assertEqual(testing.run(plugin.carry_out, plan, **service.options()).result, {"instances": 3})
        self.assertEqual(service.sent, [("https://deploy.example/api/deployments", plan)])
        failure = testing.run(plugin.carry_out, plan, **Service(503).options()).failure
        self.assertIsInstance(failure, StatusUnavailable)

    def test_reported_health_decides_the_state(self):
        for end, state in [
            (received({"healthy": True}), "done"),
            (received({"healthy": False, "detail": "no answer"}), "rolled back"),
            (expired(), "rolled back"),
        ]:
            run = roll_out(approved(), end, signal="health")
            self.assertEqual(run.result["state"], state)
            question = run.waits[-1].question
            self.assertEqual(question["name"], "health")
            self.assertEqual(question["metadata"], {"version": "1.4.2", "environment": "live"})

    def test_denied_plan_is_a_result(self):
        result = roll_out(denied("not on a Friday")).result
        self.assertEqual(result, {"state": "rejected", "comment": "not on a Friday"})

    def test_plan_that_nobody_decides_about_fails_the_call(self):
        self.assertIsInstance(roll_out(expired()).failure, durable.Expired)


if __name__ == "__main__":
    unittest.main()
