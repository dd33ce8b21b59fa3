// The exports of a component. The build writes an entry that passes the author's plugin and the host's functions.

import { dispatch, logLines } from "./dispatch.js";
import { DeclaredPlugin } from "./plugin.js";
import { format } from "./text.js";
import { ENGINE, none } from "./wasi/engine.js";
import { seeded } from "./wasi/random.js";

const AsyncFunction = (async () => {}).constructor;

/**
 * @param {unknown} plugin The default export of the author's module.
 * @param {Record<string, any>} host The interface `host`; a host of 0.1.0 has no `stopRequested`.
 */
export function serve(plugin, host) {
  if (!(plugin instanceof DeclaredPlugin))
    throw new Error("the main module has no `export default plugin([…])`");
  const waits = ENGINE !== "quickjs";
  if (!waits) refuseAsync(plugin);

  /** @type {import("./dispatch.js").Host} */
  const open = {
    progress: ({ message, fraction, data }) =>
      host.progress({ message, fraction: none(fraction), data: none(data) }),
    log: (level, message) => host.log(level, message),
    stopRequested: () => host.stopRequested?.() ?? false,
    waits,
  };
  let running = false;
  globalThis.console = /** @type {Console} */ (
    loggingConsole((level, text) => running && logLines(open, level, text))
  );
  return {
    catalog: { tools: () => plugin.declarations },
    server: {
      run: (/** @type {import("./dispatch.js").Request} */ call) => {
        running = true;
        // Each call has its own key, which is the same for every attempt.
        if (ENGINE === "quickjs") Math.random = seeded(call.idempotencyKey);
        return dispatch(plugin, call, open);
      },
    },
  };
}

/** @param {DeclaredPlugin} plugin */
function refuseAsync(plugin) {
  const names = [...plugin.servers]
    .filter(([, { run }]) => run instanceof AsyncFunction)
    .map(([name]) => name);
  if (names.length === 0) return;
  throw new Error(
    `${names.join(", ")}: run is async, and QuickJS cannot wait for a promise: ` +
      'remove async, or put "toolgate": {"engine": "starlingmonkey"} into package.json',
  );
}

/**
 * A console that writes to the call's log. During the build there is no call, and its output is dropped.
 * @param {(level: import("./index.d.ts").Level, text: string) => void} log
 */
function loggingConsole(log) {
  /** @param {import("./index.d.ts").Level} level */
  const at =
    (level) =>
    (/** @type {unknown[]} */ ...values) =>
      void log(level, format(values));
  return {
    debug: at("debug"),
    trace: at("debug"),
    log: at("info"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}
