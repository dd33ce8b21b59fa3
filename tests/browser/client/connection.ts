import type { CallToolRequest, CallToolResult, Tool } from "@modelcontextprotocol/client";

/** The functions of the test that the page calls. */
export interface Connection {
  /** The page of the card, and the call that it shows. */
  read: () => Promise<{ html: string; tool: Tool; input: Record<string, unknown>; result: CallToolResult }>;
  call: (params: CallToolRequest["params"]) => Promise<CallToolResult>;
  open: (url: string) => Promise<void>;
  shown: (height: number) => Promise<void>;
}
