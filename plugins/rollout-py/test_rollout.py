"""Native tests: python3 -m unittest"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "../../sdk/python")]

import plugin  # noqa: E402
from toolgate import durable, testing  # noqa: E402
from toolgate.durable import NotCarriedOut, Returned  # noqa: E402
from toolgate.testing import answered, approved, approved_as, denied, expired, received, returned  # noqa: E402

LIVE = answered({"environment": "live"})


def roll_out(*ends: testing.End, **others: object) -> testing.Run:
    return testing.run(plugin.roll_out, {"version": "1.4.2", **others}, waits=[LIVE, *ends])


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
        run = roll_out(approved(), returned(Returned({"instances": 3})), answered({"decision": "healthy"}), deploy=True)
        self.assertEqual(run.result, {"state": "done", "plan": plan})
        self.assertEqual(run.waits[2].question, {"calls": [{"tool": "roll_out_py_deploy", "arguments": plan}]})
        denied_call = Returned(error=NotCarriedOut("denied", "a person denied it"))
        run = roll_out(approved(), returned(denied_call), deploy=True)
        self.assertEqual(run.result, {"state": "not deployed", "reason": "a person denied it", "plan": plan})
        self.assertEqual(testing.run(plugin.carry_out, plan).result, {"instances": 3})

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
