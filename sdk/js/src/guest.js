// The exports of a component. The build writes an entry that passes the author's plugin and the host's functions.

import { dispatch, logLines } from "./dispatch.js";
import { NOT_DURABLE } from "./durable.js";
import { DeclaredPlugin } from "./plugin.js";
import { format } from "./text.js";
import { ENGINE, int64, none, payload } from "./wasi/engine.js";
import { seeded } from "./wasi/random.js";

const AsyncFunction = (async () => {}).constructor;

/**
 * @param {unknown} plugin The default export of the author's module.
 * @param {Record<string, any>} host The interface `host`; a host of 0.1.0 has no `stopRequested`.
 * @param {Record<string, any>} [durable] The interface `durable`, if package.json says that the plugin has durable tools.
 */
export function serve(plugin, host, durable) {
  if (!(plugin instanceof DeclaredPlugin))
    throw new Error("the main module has no `export default plugin([…])`");
  checkDurable(plugin, durable !== undefined);
  const waits = ENGINE !== "quickjs";
  if (!waits) refuseAsync(plugin);

  /** @type {import("./dispatch.js").Host} */
  const open = {
    progress: ({ message, fraction, data }) =>
      host.progress({ message, fraction: none(fraction), data: none(data) }),
    log: (level, message) => host.log(level, message),
    stopRequested: () => host.stopRequested?.() ?? false,
    wait: (kind, question) => translated(() => available(durable)[kind](question)),
    sleep: (ms) => translated(() => available(durable).sleep(int64(ms))),
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

/** @param {Record<string, any> | undefined} durable */
function available(durable) {
  if (durable) return durable;
  throw { tag: "not-granted", val: NOT_DURABLE };
}

/**
 * Passes on the error of the interface in the same form for both engines.
 * @template T
 * @param {() => T} step
 */
function translated(step) {
  try {
    return step();
  } catch (thrown) {
    throw payload(thrown);
  }
}

/**
 * The component imports the interface `durable` exactly if it has durable tools.
 * @param {DeclaredPlugin} plugin
 * @param {boolean} imported
 */
function checkDurable(plugin, imported) {
  const names = [...plugin.servers].filter(([, { durable }]) => durable).map(([name]) => name);
  const key = '"toolgate": {"durable": true}';
  if (names.length > 0 && !imported)
    throw new Error(`${names.join(", ")}: a durable tool needs ${key} in package.json`);
  if (names.length === 0 && imported)
    throw new Error(
      `no tool is durable: remove "durable" from package.json, or declare one with durable: true`,
    );
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
