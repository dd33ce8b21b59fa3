// An MCP client that shows the card of one call. The test is its connection to the host.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
import type { Connection } from "./connection";

const { read, call, open, shown } = window as unknown as Connection;
const frame = document.querySelector("iframe");
if (!frame?.contentWindow) throw new Error("the page has no frame");

const { html, tool, input, result } = await read();
const capabilities = { openLinks: {}, serverTools: {} };
const hostContext = { theme: "light" as const, toolInfo: { tool } };
const bridge = new AppBridge(null, { name: "client", version: "1" }, capabilities, { hostContext });
bridge.oncalltool = call;
bridge.onopenlink = async ({ url }) => {
  await open(url);
  return {};
};
bridge.oninitialized = async () => {
  await bridge.sendToolInput({ arguments: input });
  await bridge.sendToolResult(result);
};
bridge.onsizechange = ({ height = 0 }) => shown(height);
await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
frame.srcdoc = html;
