"""Rolls a version out. One call asks people, waits for a report and for time, and verifies what it deployed. Each wait may take
days, and the host may be stopped meanwhile."""

from dataclasses import dataclass
from typing import Annotated, Any

from toolgate import Call, Field, ToolError, config, durable, http, tool


@dataclass
class Target:
    """The place to roll out to."""

    environment: Annotated[str, Field("The name of the environment.", min_length=1, max_length=64)]


@dataclass
class Plan:
    """The exact plan that a person approves."""

    version: str
    environment: str
    instances: int


@dataclass
class Health:
    """The report of a monitoring system."""

    healthy: bool
    detail: Annotated[str | None, Field("The findings of the system.", max_length=1000)] = None


@tool(name="roll_out_py", title="Roll out a version", durable=True)
def roll_out(
    version: Annotated[str, Field("For example 1.4.2.", pattern=r"^[0-9A-Za-z][0-9A-Za-z._+-]{0,63}$")],
    call: Call,
    settles_s: Annotated[int, Field("The seconds before people decide, or it is verified.", minimum=1, maximum=86_400)] = 5,
    signal: Annotated[
        str | None,
        Field("The signal that reports its health. Without it, people say whether it is healthy.", min_length=1, max_length=64),
    ] = None,
    deploy: Annotated[
        bool,
        Field(
            "Whether it is built and deployed. A person must approve the deployment again. Without it, people only decide about "
            "the plan."
        ),
    ] = False,
) -> dict[str, Any]:
    """Rolls a version out, with the people who decide about it."""
    # The states of a rollout, in their order.
    if deploy:
        request("builds", {"version": version})
    target = call.ask(f"To which environment does {version} go?", Target)
    call.log("info", f"it goes to {target.environment}")
    plan = Plan(version, target.environment, instances=3)
    try:
        plan = call.approve(f"Roll {version} out to {plan.environment}?", plan, risk="high", editable=["instances"])
    except durable.Denied as denied:
        return {"state": "rejected", "comment": denied.comment}
    if deploy:
        (deployed,) = call.call_tools(("roll_out_py_deploy", plan))
        if deployed.error:
            return {"state": "not deployed", "reason": deployed.error.message, "plan": plan}
    if signal:
        fault = reported(plan, signal, call)
        if not fault:
            call.sleep(settles_s)
            fault = verified(version) if deploy else None
    else:
        call.sleep(settles_s)
        fault = asked(plan, call)
    return {"state": "rolled back", "reason": fault, "plan": plan} if fault else {"state": "done", "plan": plan}


def url(path: str) -> str:
    """An address of the service that the operator configured."""
    return f"{config.required('service').rstrip('/')}/{path}"


def request(path: str, body: dict[str, Any]) -> None:
    """Sends a request to the service. The host adds an `Idempotency-Key`. A kill of the host can interrupt the request. The host
    then sends it again with the same key, if the grant says `idempotent = true`."""
    http.post(url(path), json=body).raise_for_status()


def asked(plan: Plan, call: Call) -> str | None:
    """The fault, if people say that it is broken."""
    choice = call.choose(f"Is {plan.version} healthy in {plan.environment}?", ["healthy", "broken"])
    call.log("info", f"people say that it is {choice.decision}")
    return None if choice.decision == "healthy" else f"people say that it is {choice.decision}"


def reported(plan: Plan, signal: str, call: Call) -> str | None:
    """The fault, if a monitoring system reports one, or nothing in time."""
    metadata = {"version": plan.version, "environment": plan.environment}
    prompt = f"The health of {plan.version} in {plan.environment}"
    try:
        health = call.await_external(prompt, Health, signal=signal, metadata=metadata)
    except durable.Expired:
        return "nothing is reported in time"
    call.log("info", f"it is reported: {health.detail or 'no detail'}")
    return None if health.healthy else health.detail or "it is reported as broken"


def verified(version: str) -> str | None:
    """The fault, unless the service confirms that the deployed version is healthy."""
    try:
        health = http.get(url(f"deployments/{version}")).raise_for_status().json()
    except ToolError as error:
        return str(error)
    match health:
        case {"healthy": True}:
            return None
    return "the service does not say that it is healthy"


@tool(
    name="roll_out_py_deploy",
    title="Deploy a version",
    durable=True,
    requires_approval=True,
    prompt="Deploy {version} to {environment}, with {instances} instances?",
    risk="high",
)
def carry_out(
    version: Annotated[str, Field("For example 1.4.2.")],
    environment: Annotated[str, Field("The name of the environment.")],
    instances: Annotated[int, Field("The number of instances.", minimum=0)],
    call: Call,
) -> dict[str, int]:
    """Deploys a version to an environment."""
    # The host runs this only if a person has approved exactly this plan, which no workflow can avoid.
    call.log("info", f"deploys {version} to {environment}")
    request("deployments", {"version": version, "environment": environment, "instances": instances})
    return {"instances": instances}
