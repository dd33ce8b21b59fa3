// A page that carries out two tools of the plugin `browser` (plugins/browser): where the user is, and a file that they pick.
// Beside it, an inbox: `pick_file` needs an approval before the page is asked for the file.
import "../src/elements.js";
import { type ClientTool, Toolgate, ToolgateError } from "../src/index.js";

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const [state, log, chooser] = [element("state"), element("log"), element("chooser")];

/** `get_location`: the W3C Geolocation API asks the user itself. */
const locate: ClientTool = () =>
  new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude, accuracy } }) => resolve({ latitude, longitude, accuracy }),
      ({ message }) => reject(new Error(`the location is not known: ${message}`)),
      { timeout: 30_000 },
    );
  });

/** `pick_file`: browsers open a picker only for a person's own click, so the page asks for one. */
const pick: ClientTool = (args: { purpose: string; accept?: string[] }, { signal, progress }) => {
  const input = element<HTMLInputElement>("file");
  input.value = "";
  input.accept = (args.accept ?? []).join(",");
  element("purpose").textContent = args.purpose;
  chooser.hidden = false;
  progress("the user is choosing a file");
  input.focus();
  return new Promise((resolve, reject) => {
    const end = new AbortController();
    const finish = (settle: () => void) => {
      end.abort();
      chooser.hidden = true;
      settle();
    };
    const on = { signal: end.signal };
    input.addEventListener("change", () => finish(() => resolve(read(input.files?.[0]))), on);
    element("no-file").addEventListener(
      "click",
      () => finish(() => reject(new Error("the user picked none"))),
      on,
    );
    signal.addEventListener(
      "abort",
      () => finish(() => reject(new Error("nobody waits for it any more"))),
      on,
    );
  });
};

async function read(file: File | undefined): Promise<unknown> {
  if (file === undefined) throw new Error("the user picked none");
  const bytes = new Uint8Array(await file.arrayBuffer());
  const content = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return { name: file.name, media_type: file.type || "application/octet-stream", content };
}

function note(text: string): void {
  const item = document.createElement("li");
  item.textContent = text;
  log.prepend(item);
}

let stop = new AbortController();

element<HTMLFormElement>("connect").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = new FormData(event.currentTarget as HTMLFormElement);
  const field = (name: string) => String(given.get(name) ?? "");
  const [url, conversation] = [field("url"), field("conversation")];
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  const toolgate = new Toolgate({ url, token: field("token") });
  const agent = new Toolgate({ url, token: field("agent") || field("token") });

  const attached = toolgate.clientTools({
    conversation,
    signal,
    tools: { get_location: locate, pick_file: pick },
    onStatus: (status) => {
      state.textContent = status.state === "open" ? "Attached." : "Not attached; trying again …";
    },
    onError: (error) => note(`went wrong: ${error instanceof Error ? error.message : error}`),
  });
  attached.done.catch((error: unknown) => {
    state.textContent = error instanceof ToolgateError ? error.detail : String(error);
  });
  element<HTMLElementTagNameMap["toolgate-inbox"]>("inbox").toolgate = toolgate;
  void follow(toolgate, conversation, signal);

  const ask = (tool: string, args: unknown) => async () => {
    try {
      await agent.submit(conversation, {
        calls: [{ id: crypto.randomUUID(), tool, arguments: args }],
        ephemeral: false,
      });
    } catch (error) {
      note(`the call was refused: ${error instanceof Error ? error.message : error}`);
    }
  };
  element("ask-location").onclick = ask("get_location", {});
  element("ask-file").onclick = ask("pick_file", { purpose: "to look at it" });
  element("page").hidden = false;
});

async function follow(toolgate: Toolgate, conversation: string, signal: AbortSignal): Promise<void> {
  for await (const event of toolgate.events(conversation, { signal, after: "now" })) {
    if (event.event === "call.settled") note(`${event.tool}: ${JSON.stringify(event.content).slice(0, 300)}`);
    else if (event.event === "call.progress") note(`progress: ${event.message}`);
    else note(event.event);
  }
}
