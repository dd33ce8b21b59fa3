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
from toolgate.http import Request, Response, StatusUnavailable, Unreachable  # noqa: E402
from toolgate.testing import answered, approved, approved_as, denied, expired, received, returned  # noqa: E402

LIVE = answered({"environment": "live"})
DEPLOYED = returned(Returned({"instances": 3}))
PLAN = {"version": "1.4.2", "environment": "live", "instances": 3}


def roll_out(*ends: testing.End, service: "Service | None" = None, **others: object) -> testing.Run:
    options = service.options() if service else {}
    return testing.run(plugin.roll_out, {"version": "1.4.2", **others}, waits=[LIVE, *ends], **options)


def ended(reason: str | None) -> dict[str, object]:
    """The result of a rollout. Without a reason, it is done."""
    return {"state": "rolled back", "reason": reason, "plan": PLAN} if reason else {"state": "done", "plan": PLAN}


class Service:
    """The service of a test, and the requests that it got: the URL and the body of each. A GET request has no body, and gets
    this status and body, or no response."""

    def __init__(self, status: int = 201, health: tuple[int, bytes] | None = None) -> None:
        self.status, self.health = status, health
        self.sent: list[tuple[str, object]] = []

    def answer(self, request: Request) -> Response:
        self.sent.append((request.url, json.loads(request.body or b"null")))
        if request.method != "GET":
            return Response(self.status)
        if self.health is None:
            raise Unreachable("it is away")
        status, body = self.health
        return Response(status, body=body)

    def options(self) -> dict[str, object]:
        return {"answers": self.answer, "config": {"service": "https://deploy.example/api/"}}


class Rollout(unittest.TestCase):
    def test_the_declarations_are_legal(self):
        testing.check()

    def test_approved_plan_is_rolled_out_and_checked(self):
        plan = {"version": "1.4.2", "environment": "live", "instances": 2}
        broken = {"state": "rolled back", "reason": "people say that it is broken", "plan": plan}
        for decision, result in [("healthy", {"state": "done", "plan": plan}), ("broken", broken)]:
            run = roll_out(approved_as(plan), answered({"decision": decision}))
            self.assertEqual(run.result, result)
            self.assertEqual([wait.kind for wait in run.waits], ["ask", "approve", "sleep", "ask"])
            self.assertEqual(run.waits[2].seconds, 5)

    def test_approved_plan_is_deployed_by_a_tool_that_requires_approval(self):
        service = Service()
        run = roll_out(approved(), DEPLOYED, answered({"decision": "healthy"}), deploy=True, service=service)
        self.assertEqual(run.result, {"state": "done", "plan": PLAN})
        self.assertEqual(service.sent, [("https://deploy.example/api/builds", {"version": "1.4.2"})])
        self.assertEqual(run.waits[2].question, {"calls": [{"tool": "roll_out_py_deploy", "arguments": PLAN}]})
        denied_call = Returned(error=NotCarriedOut("denied", "a person denied it"))
        run = roll_out(approved(), returned(denied_call), deploy=True, service=Service())
        self.assertEqual(run.result, {"state": "not deployed", "reason": "a person denied it", "plan": PLAN})
        service = Service()
        self.assertEqual(testing.run(plugin.carry_out, PLAN, **service.options()).result, {"instances": 3})
        self.assertEqual(service.sent, [("https://deploy.example/api/deployments", PLAN)])
        failure = testing.run(plugin.carry_out, PLAN, **Service(503).options()).failure
        self.assertIsInstance(failure, StatusUnavailable)

    def test_reported_health_decides_the_state(self):
        for end, reason in [
            (received({"healthy": True, "detail": "all checks pass"}), None),
            (received({"healthy": False}), "it is reported as broken"),
            (received({"healthy": False, "detail": "no answer"}), "no answer"),
            (expired(), "nothing is reported in time"),
        ]:
            run = roll_out(approved(), end, signal="health")
            self.assertEqual(run.result, ended(reason))
            question = run.waits[2].question
            self.assertEqual(question["name"], "health")
            self.assertEqual(question["metadata"], {"version": "1.4.2", "environment": "live"})
            self.assertEqual([wait.seconds for wait in run.waits[3:]], [] if reason else [5])

    def test_deployed_version_is_verified_after_it_has_settled(self):
        unclear = "the service does not say that it is healthy"
        for health, reason in [
            ((200, b'{"version":"1.4.2","healthy":true}'), None),
            ((200, b'{"healthy":false}'), unclear),
            ((200, b"[true]"), unclear),
            ((503, b'{"healthy":true}'), "the server answered with status 503"),
            (None, "it is away"),
        ]:
            service = Service(health=health)
            run = roll_out(approved(), DEPLOYED, received({"healthy": True}), deploy=True, signal="health", service=service)
            self.assertEqual(run.result, ended(reason))
            self.assertEqual([wait.kind for wait in run.waits[2:]], ["call_tools", "await_external", "sleep"])
            self.assertEqual(service.sent[1:], [("https://deploy.example/api/deployments/1.4.2", None)])

    def test_version_that_is_reported_as_broken_is_not_verified(self):
        service = Service(health=(200, b'{"healthy":true}'))
        broken = received({"healthy": False, "detail": "no answer"})
        run = roll_out(approved(), DEPLOYED, broken, deploy=True, signal="health", service=service)
        self.assertEqual(run.result, ended("no answer"))
        self.assertEqual([wait.kind for wait in run.waits[2:]], ["call_tools", "await_external"])
        self.assertEqual([url for url, _ in service.sent], ["https://deploy.example/api/builds"])

    def test_denied_plan_is_a_result(self):
        result = roll_out(denied("not on a Friday")).result
        self.assertEqual(result, {"state": "rejected", "comment": "not on a Friday"})

    def test_plan_that_nobody_decides_about_fails_the_call(self):
        self.assertIsInstance(roll_out(expired()).failure, durable.Expired)


if __name__ == "__main__":
    unittest.main()
