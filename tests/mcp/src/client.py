"""The official SDK for Python, over a pipe to `toolgate mcp`. `tests/python.test.ts` runs this, restarts the host, and answers."""

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import ClientExtension, advertise
from mcp.client.extension import ClaimContext, ResultClaim
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, Request, Result

BINARY, FOLDER = sys.argv[1:]
TASKS = "io.modelcontextprotocol/tasks"
CARDS = "io.modelcontextprotocol/ui"
CARD = "text/html;profile=mcp-app"

# With it, a client chooses the id of its call.
CALL_ID = "dev.toolgate/callId"


async def driver(*words: str) -> str:
    """Asks the driver for something, and returns what it says."""
    print(*words, flush=True)
    return (await anyio.to_thread.run_sync(sys.stdin.readline)).strip()


def server() -> StdioServerParameters:
    return StdioServerParameters(command=BINARY, args=["mcp", "--config", "toolgate.toml"], cwd=FOLDER)


def text(result: CallToolResult) -> str:
    assert not result.is_error, result
    return result.content[0].text


async def lost(call: Callable[[], Awaitable[CallToolResult]]) -> None:
    """Makes a call whose host is killed."""
    try:
        await call()
    except MCPError:
        return
    raise AssertionError("the request ended without its host")


async def lists_and_calls() -> None:
    async with Client(server()) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        assert "toolgate_wait" in [tool.name for tool in (await client.list_tools()).tools]
        assert (await client.call_tool("test_error_handling", {})).is_error
        try:
            await client.call_tool("no_such_tool", {})
        except MCPError as error:
            assert error.code == -32602, error
        else:
            raise AssertionError("an unknown tool has a result")
        # Over HTTP this argument is in a header too, which the command adds.
        assert text(await client.call_tool("regional", {"region": "Zürich"})) == "Zürich"


async def progress(mode: Literal["auto", "legacy"]) -> None:
    reported = []

    async def report(progress: float, total: float | None, _: str | None) -> None:
        reported.append((progress, total))

    async with Client(server(), mode=mode) as client:
        called = await client.call_tool("test_tool_with_progress", {}, progress_callback=report)
        assert text(called) == "done"
    assert reported == [(0, 100), (50, 100), (100, 100)], reported


async def lane_wait(mode: Literal["auto", "legacy"]) -> None:
    async with Client(server(), mode=mode) as client:
        async def call(name: str = mode) -> CallToolResult:
            return await client.call_tool("gated_greet", {"name": name}, meta={CALL_ID: f"python-{mode}"})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lost, call)
            before = await driver("pending", "gated_greet")
            await driver("restart")

        outcomes = []

        async def wait() -> None:
            outcomes.append(text(await client.call_tool("toolgate_wait", {"call": f"python-{mode}"})))

        async def again() -> None:
            outcomes.append(text(await call()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            tasks.start_soon(again)
            assert await driver("pending", "gated_greet") == before
            await driver("approve", before)
        assert outcomes == [f"Hello, {mode}!"] * 2, outcomes


async def lane_form() -> None:
    asked = []

    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        await driver("restart")
        return ElicitResult(action="accept", content={"name": "Ann"} if len(asked) == 1 else {"color": "blue"})

    async with Client(server(), elicitation_callback=answer) as client:
        assert text(await client.call_tool("test_input_required_result_multi_round", {})) == "Ann likes blue"
    assert len(asked) == 2, asked


async def lane_page() -> None:
    opened = []

    async def open_page(_: Any, params: ElicitRequestParams) -> ElicitResult:
        assert params.mode == "url", params
        opened.append(params.url)
        waiting = await driver("pending", "gated_greet")
        assert params.url.endswith(f"/suspensions/{waiting}"), params.url
        await driver("restart")
        assert await driver("pending", "gated_greet") == waiting
        # The page approves, and not the answer.
        await driver("approve", waiting)
        return ElicitResult(action="accept")

    async with Client(server(), elicitation_callback=open_page) as client:
        assert text(await client.call_tool("gated_greet", {"name": "Dee"})) == "Hello, Dee!"
    assert len(opened) == 1, opened


async def lane_card() -> None:
    async with Client(server(), extensions=[advertise(CARDS, {"mimeTypes": [CARD]})]) as client:
        declared = {tool.name: (tool.meta or {}).get("ui") for tool in (await client.list_tools()).tools}
        assert declared["gated_greet"] == {"resourceUri": "ui://toolgate/call.html"}, declared
        assert declared["toolgate_state"] == {"visibility": ["app"]}, declared
        [page] = (await client.read_resource("ui://toolgate/call.html")).contents
        assert page.mime_type == CARD and "toolgate_state" in page.text, page

        async def call() -> CallToolResult:
            return await client.call_tool("gated_greet", {"name": "Eva"}, meta={CALL_ID: "python-card"})

        async def state() -> dict[str, Any]:
            """What the card shows."""
            return (await client.call_tool("toolgate_state", {"call": "python-card"})).meta["dev.toolgate/call"]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lost, call)
            waiting = await driver("pending", "gated_greet")
            shown = await state()
            await driver("restart")
        assert (shown["state"], shown["suspension"]["id"]) == ("waiting", waiting), shown
        assert await state() == shown

        outcomes = []

        async def again() -> None:
            outcomes.append(text(await call()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(again)
            await driver("approve", waiting)
        assert outcomes == ["Hello, Eva!"], outcomes
        assert (await state())["outcome"] == "ok"


class Created(Result):
    result_type: Literal["task"]
    task_id: str
    poll_interval_ms: int


class State(Result):
    result_type: Literal["complete"]
    status: str
    result: CallToolResult | None = None


class Get(Request[dict[str, Any], Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class Tasks(ClientExtension):
    """Follows a task to its end, over kills of the host. The SDK leaves that to its users."""

    identifier = TASKS

    def claims(self) -> list[ResultClaim[Created]]:
        return [ResultClaim(result_type="task", model=Created, resolve=self.follow)]

    async def follow(self, task: Created, context: ClaimContext) -> CallToolResult:
        waiting = await driver("pending", context.tool_name)
        await driver("restart")
        assert (await self.get(task, context)).status == "working"
        await driver("approve", waiting)
        with anyio.fail_after(60):
            while (state := await self.get(task, context)).status == "working":
                await anyio.sleep(task.poll_interval_ms / 1000)
        await driver("restart")
        assert await self.get(task, context) == state, "the outcome of a task stays"
        assert state.status == "completed" and state.result is not None, state
        return state.result

    async def get(self, task: Created, context: ClaimContext) -> State:
        return await context.session.send_request(Get(params={"taskId": task.task_id}), State)


async def lane_task() -> None:
    async with Client(server(), extensions=[Tasks()]) as client:
        assert text(await client.call_tool("gated_greet", {"name": "Bea"})) == "Hello, Bea!"


async def main() -> None:
    await lists_and_calls()
    await progress("auto")
    await progress("legacy")
    await lane_wait("auto")
    await lane_wait("legacy")
    await lane_form()
    await lane_page()
    await lane_card()
    await lane_task()
    print("passed", flush=True)


anyio.run(main)
