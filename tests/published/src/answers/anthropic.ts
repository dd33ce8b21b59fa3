// Answers of Anthropic's Messages API, under the types of its official library.

import type { BetaMessage } from "@anthropic-ai/sdk/resources/beta/messages";
import type {
  Message,
  ServerToolUseBlock,
  ToolUseBlock,
  WebSearchToolResultBlock,
} from "@anthropic-ai/sdk/resources/messages";

const usage: Message["usage"] = {
  cache_creation: null,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  inference_geo: null,
  input_tokens: 400,
  output_tokens: 80,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: "standard",
  speed: null,
};

function message(content: Message["content"], stop: Message["stop_reason"] = "tool_use"): Message {
  return {
    id: "msg_01XFDUDYJgAACzvnptvVoYEL",
    container: null,
    content,
    diagnostics: null,
    model: "claude-sonnet-4-5",
    role: "assistant",
    stop_details: null,
    stop_reason: stop,
    stop_sequence: null,
    type: "message",
    usage,
  };
}

function call(id: string, more: Partial<ToolUseBlock> = {}): ToolUseBlock {
  return {
    id,
    caller: { type: "direct" },
    input: { city: "Boston" },
    name: "echo",
    type: "tool_use",
    ...more,
  };
}

/** Calls by the model and by a program of Anthropic's code execution. */
const complete = message([
  { citations: null, text: "I will look.", type: "text" },
  {
    id: "srvtoolu_3",
    caller: { type: "direct" },
    input: { code: "await echo()" },
    name: "code_execution",
    type: "server_tool_use",
  },
  call("toolu_1", { caller: { tool_id: "srvtoolu_3", type: "code_execution_20250825" } }),
  call("toolu_2"),
]);

/** A call of a member of a toolset, which belongs to another program, beside a call for this host. */
const elsewhere = message([
  call("toolu_1", { toolset_name: "crm" }),
  call("toolu_2", { toolset_name: null }),
  call("toolu_3", { input: { tab_id: "1" }, name: "close_tab", toolset_name: "browser" }),
]);

/** Each way in which an answer ends before it is complete. */
const cutOff = message([call("toolu_1"), call("toolu_2", { input: {} })], "max_tokens");
const full = message([call("toolu_1")], "model_context_window_exceeded");
const refused: Message = {
  ...message([call("toolu_1")], "refusal"),
  stop_details: { category: null, explanation: null, type: "refusal" },
};

/** A call that Anthropic carries out. */
const search = {
  id: "srvtoolu_1",
  caller: { type: "direct" },
  input: { query: "boston" },
  name: "web_search",
  type: "server_tool_use",
} satisfies ServerToolUseBlock;

const searched = {
  caller: { type: "direct" },
  content: [
    {
      encrypted_content: "Eq",
      page_age: "1 day",
      title: "Boston",
      type: "web_search_result",
      url: "https://example.org/",
    },
  ],
  tool_use_id: "srvtoolu_1",
  type: "web_search_tool_result",
} satisfies WebSearchToolResultBlock;

/** Anthropic paused before its call ended, and the next message has the result. */
const paused = message([search], "pause_turn");
const resumed = message([searched], "end_turn");

/** Calls that Anthropic carried out. Calls of MCP servers are in the beta of the API. */
const hosted: BetaMessage = {
  ...message([], "end_turn"),
  context_management: null,
  stop_details: null,
  usage: { ...usage, fallback_credit: null, iterations: null },
  content: [
    search,
    searched,
    {
      id: "srvtoolu_2",
      caller: { type: "direct" },
      input: { code: "1" },
      name: "code_execution",
      type: "server_tool_use",
    },
    {
      content: { content: [], return_code: 0, stderr: "", stdout: "1", type: "code_execution_result" },
      tool_use_id: "srvtoolu_2",
      type: "code_execution_tool_result",
    },
    { id: "mcptoolu_1", input: { city: "Boston" }, name: "echo", server_name: "crm", type: "mcp_tool_use" },
    {
      content: [{ citations: null, text: "Boston", type: "text" }],
      is_error: false,
      tool_use_id: "mcptoolu_1",
      type: "mcp_tool_result",
    },
  ],
};

export const anthropic = {
  "messages-complete": complete,
  "messages-cut-off": cutOff,
  "messages-elsewhere": elsewhere,
  "messages-full": full,
  "messages-hosted": hosted,
  "messages-paused": paused,
  "messages-refused": refused,
  "messages-resumed": resumed,
};
