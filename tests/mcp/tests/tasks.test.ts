// Checks that the conformance suite cannot make here: messages about tasks against the schema of their extension, and questions whose keys the
// host chooses.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Host, until } from "../src/host.ts";
import { createsTask, type Members, Raw } from "../src/messages.ts";

const ASKS = { elicitation: { form: {} } };
const TASKS = { ...ASKS, extensions: { "io.modelcontextprotocol/tasks": {} } };

/** The text of a result. */
function text(result: unknown): string {
  const [content] = (result as { content: { text: string }[] }).content;
  return content?.text ?? "";
}

/** The answer of a person to the only question, and answers to questions that nobody asked. */
function answers(asking: Members, content: Members): Members {
  const keys = Object.keys(asking.inputRequests ?? {});
  assert.equal(keys.length, 1, JSON.stringify(asking));
  const other = { action: "accept", content: { name: "Mallory" } };
  return { a_key: other, [String(keys[0])]: { action: "accept", content }, user_name: other };
}

describe("messages about tasks", () => {
  const host = new Host();
  let client: Raw;

  before(async () => {
    await host.start();
    client = new Raw(host, await host.token("tasks", "caller"), TASKS);
  });
  after(() => host.dispose());

  /** Creates a task, and returns its id. */
  async function created(name: string, args: Members): Promise<string> {
    const { resultType, taskId } = await client.result("tools/call", { name, arguments: args });
    assert.equal(resultType, "task");
    return String(taskId);
  }

  /** The task, once it has this state. */
  const reached = (taskId: string, status: string) =>
    until(`the state ${status}`, async () => {
      const task = await client.result("tasks/get", { taskId });
      return task.status === status ? task : undefined;
    });

  /** Follows a task, and does something in each new state. Returns the states in order. */
  async function followed(taskId: string, act: (task: Members) => Promise<unknown>): Promise<unknown[]> {
    const states: unknown[] = [];
    for await (const { method, params } of client.listen({ taskIds: [taskId] })) {
      if (method !== "notifications/tasks" || params === undefined) continue;
      if (states.at(-1) === params.status) continue;
      states.push(params.status);
      if (!["working", "input_required"].includes(String(params.status))) break;
      await act(params);
    }
    return states;
  }

  it("the schema has no other members, and needs its own", () => {
    const task = { taskId: "a", status: "working", createdAt: "b", lastUpdatedAt: "c", ttlMs: null };
    createsTask({ resultType: "task", ...task });
    assert.throws(() => createsTask({ resultType: "task", ...task, requestState: "d" }));
    assert.throws(() => createsTask({ resultType: "task", ...task, ttlMs: undefined }));
    assert.throws(() => createsTask(task));
  });

  it("working, then completed", async () => {
    const taskId = await created("gated_greet", { name: "Ann" });
    await reached(taskId, "working");
    const { suspension } = await host.pending("gated_greet");
    const states = await followed(taskId, () => host.approve(suspension));
    assert.deepEqual(states, ["working", "completed"]);
    assert.equal(text((await reached(taskId, "completed")).result), "Hello, Ann!");
  });

  it("input_required, then completed", async () => {
    const taskId = await created("confirm_delete", { filename: "c.txt" });
    const states = await followed(taskId, async (task) => {
      if (task.status === "working") return;
      const inputResponses = answers(task, { confirm: true });
      await client.result("tasks/update", { taskId, inputResponses });
    });
    assert.deepEqual([states[0], states.at(-1)], ["input_required", "completed"]);
    assert.equal(text((await reached(taskId, "completed")).result), "c.txt is deleted");
  });

  it("a tool that fails completes its task", async () => {
    const { result } = await reached(await created("failing_job", {}), "completed");
    assert.equal((result as Members).isError, true);
  });

  it("cancelled", async () => {
    const taskId = await created("gated_greet", { name: "Bob" });
    const states = await followed(taskId, () => client.result("tasks/cancel", { taskId }));
    assert.deepEqual(states, ["working", "cancelled"]);
    await reached(taskId, "cancelled");
    await client.result("tasks/cancel", { taskId });
  });

  it("a client that knows tasks is asked in the task", async () => {
    const taskId = await created("test_tool_with_task", {});
    const inputResponses = answers(await reached(taskId, "input_required"), { name: "Cem" });
    await client.result("tasks/update", { taskId, inputResponses });
    assert.equal(text((await reached(taskId, "completed")).result), "computed for Cem");
  });
});

describe("questions in results", () => {
  const host = new Host();
  let client: Raw;

  before(async () => {
    await host.start();
    client = new Raw(host, await host.token("asks", "caller"), ASKS);
  });
  after(() => host.dispose());

  for (const name of ["test_input_required_result_elicitation", "test_tool_with_task"]) {
    it(`${name}: other keys are ignored`, async () => {
      const call = { name, arguments: {} };
      const asking = await client.result("tools/call", call);
      assert.equal(asking.resultType, "input_required");
      const inputResponses = answers(asking, { name: "Ann" });
      const { requestState } = asking;
      const result = await client.result("tools/call", { ...call, inputResponses, requestState });
      assert.equal(result.resultType, "complete");
      assert.match(text(result), /Ann/);
    });
  }

  it("a requestState answers one question, also of the same call", async () => {
    const call = { name: "test_input_required_result_multi_round", arguments: {} };
    const first = await client.result("tools/call", call);
    const named = {
      ...call,
      inputResponses: answers(first, { name: "Ann" }),
      requestState: first.requestState,
    };
    const second = await client.result("tools/call", named);
    assert.notDeepEqual(Object.keys(second.inputRequests ?? {}), Object.keys(first.inputRequests ?? {}));
    const inputResponses = answers(second, { color: "blue" });
    const used = await client.result("tools/call", {
      ...call,
      inputResponses,
      requestState: first.requestState,
    });
    assert.deepEqual(used.inputRequests, second.inputRequests);
    const { requestState } = used;
    assert.equal(
      text(await client.result("tools/call", { ...call, inputResponses, requestState })),
      "Ann likes blue",
    );
  });

  it("answers without a requestState answer nothing", async () => {
    const call = { name: "test_input_required_result_request_state", arguments: {} };
    const asking = await client.result("tools/call", call);
    const inputResponses = answers(asking, { ok: true });
    const again = await client.result("tools/call", { ...call, inputResponses });
    assert.deepEqual(again.inputRequests, asking.inputRequests);
    const { requestState } = again;
    assert.match(
      text(await client.result("tools/call", { ...call, inputResponses, requestState })),
      /state-ok: true/,
    );
  });
});
