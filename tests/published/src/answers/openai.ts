// Answers of OpenAI's Chat Completions and Responses APIs, under the types of its official library.

import type { ChatCompletion, ChatCompletionMessageToolCall } from "openai/resources/chat/completions";
import type {
  Response,
  ResponseFunctionToolCall,
  ResponseOutputItem,
} from "openai/resources/responses/responses";

const BOSTON = '{"city":"Boston"}';
const HALF = '{"city":"Bos';
const MODEL = "gpt-5.4-mini-2026-03-17";

type Finish = ChatCompletion.Choice["finish_reason"];

function completion(calls: ChatCompletionMessageToolCall[], finish: Finish = "tool_calls"): ChatCompletion {
  return {
    id: "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
    choices: [
      {
        finish_reason: finish,
        index: 0,
        logprobs: null,
        message: { content: null, refusal: null, role: "assistant", annotations: [], tool_calls: calls },
      },
    ],
    created: 1741570283,
    model: MODEL,
    object: "chat.completion",
    service_tier: "default",
    usage: { completion_tokens: 17, prompt_tokens: 82, total_tokens: 99 },
  };
}

function called(id: string, text = BOSTON): ChatCompletionMessageToolCall {
  return { id, function: { arguments: text, name: "echo" }, type: "function" };
}

const custom: ChatCompletionMessageToolCall = {
  id: "call_2",
  custom: { input: "free text", name: "echo" },
  type: "custom",
};

const chat = {
  "chat-complete": completion([called("call_1"), custom]),
  "chat-cut-off": completion([called("call_1"), called("call_2", HALF)], "length"),
  "chat-filtered": completion([called("call_1")], "content_filter"),
};

/** An answer as it is sent. The library adds `output_text`. */
type Sent = Omit<Response, "output_text">;

function response(output: ResponseOutputItem[], more: Partial<Sent> = {}): Sent {
  return {
    id: "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
    created_at: 1741476542,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: MODEL,
    object: "response",
    output,
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    status: "completed",
    ...more,
  };
}

function item(
  n: number,
  more: Partial<ResponseFunctionToolCall> = {},
): ResponseFunctionToolCall & { id: string } {
  const call = { arguments: BOSTON, call_id: `call_${n}`, name: "echo", type: "function_call" } as const;
  return { ...call, id: `fc_${n}`, status: "completed", ...more };
}

/** A shell call. Its environment says who carries it out. */
function shell(n: number) {
  const action = { commands: ["ls"], max_output_length: null, timeout_ms: null };
  return { id: `sh_${n}`, action, call_id: `call_${n}`, status: "completed", type: "shell_call" } as const;
}

const PROGRAM = { caller_id: "call_prog_1", type: "program" } as const;
const cut = item(2, { arguments: HALF, status: "incomplete" });

const responses = {
  // A namespace with the function's own name is the function itself.
  "responses-complete": response([
    { id: "rs_1", summary: [], type: "reasoning" },
    {
      id: "prog_1",
      call_id: "call_prog_1",
      code: "await echo({city:'Boston'})",
      fingerprint: "fp",
      type: "program",
    },
    item(1, { caller: PROGRAM }),
    item(2, { caller: { type: "direct" } }),
    item(3, { namespace: "echo" }),
    {
      call_id: "call_4",
      input: "free text",
      name: "echo",
      type: "custom_tool_call",
      id: "ctc_1",
      caller: PROGRAM,
    },
  ]),
  "responses-cut-off": response([item(1), cut], {
    incomplete_details: { reason: "max_output_tokens" },
    status: "incomplete",
  }),
  "responses-elsewhere": response([
    item(1, { caller: PROGRAM, namespace: "crm" }),
    {
      call_id: "call_2",
      input: "free text",
      name: "echo",
      type: "custom_tool_call",
      id: "ctc_1",
      namespace: "crm",
    },
    {
      id: "lsh_1",
      action: { command: ["ls"], env: {}, type: "exec" },
      call_id: "call_3",
      status: "completed",
      type: "local_shell_call",
    },
    { ...shell(4), environment: { type: "local" } },
    {
      id: "tsc_1",
      arguments: { query: "weather" },
      call_id: "call_5",
      execution: "client",
      status: "completed",
      type: "tool_search_call",
    },
  ]),
  "responses-failed": response([item(1)], {
    error: { code: "server_error", message: "The server had an error." },
    status: "failed",
  }),
  "responses-hosted": response([
    { id: "ws_1", action: { type: "search", query: "boston" }, status: "completed", type: "web_search_call" },
    { id: "fs_1", queries: ["boston"], status: "completed", type: "file_search_call", results: null },
    {
      id: "mcp_1",
      arguments: BOSTON,
      name: "echo",
      server_label: "crm",
      type: "mcp_call",
      error: null,
      output: "{}",
      status: "completed",
    },
    { id: "ig_1", result: null, status: "failed", type: "image_generation_call" },
    {
      id: "tsc_1",
      arguments: { query: "weather" },
      call_id: null,
      execution: "server",
      status: "completed",
      type: "tool_search_call",
    },
    {
      id: "tso_1",
      call_id: null,
      execution: "server",
      status: "completed",
      tools: [],
      type: "tool_search_output",
    },
    { ...shell(1), environment: { container_id: "cntr_1", type: "container_reference" } },
    {
      id: "sho_1",
      call_id: "call_1",
      max_output_length: null,
      output: [{ outcome: { exit_code: 0, type: "exit" }, stderr: "", stdout: "README.md" }],
      status: "completed",
      type: "shell_call_output",
    },
  ]),
  "responses-item-cut-off": response([item(1), cut]),
};

export const openai = { ...chat, ...responses };
