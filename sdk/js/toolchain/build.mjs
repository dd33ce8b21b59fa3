// Builds a component from a plugin's folder: type check, bundle, engine. `toolgate build` runs it. To run it by hand:
//
//   node build.mjs --engine NAME --project DIR --toolchain DIR --sdk DIR --wit DIR --world NAME --out FILE
//
// The toolchain is a folder in which one of the lists beside this file is installed. Node.js runs no code of the
// plugin. Only the engine runs it, in the sandbox in which the component is made.
//
// The same source gives the same component. If `fixed.so` is in the folder of this file, the engine gets fixed random
// numbers and a fixed time while the component is made.

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

/** A mistake of the author. It is printed without a stack. */
class Wrong extends Error {}

/** componentize-qjs 0.4.5 cannot link the types of wasi:http ("mismatched resource types"). */
const NO_HTTP =
  'a plugin on QuickJS cannot send requests over HTTP: write "toolgate": {"engine": "starlingmonkey"} into package.json, ' +
  "or remove `http` from toolgate-plugin.toml";

/** The explanation of a trap of the engine during the build. */
const DRAWN_EARLY =
  "a module draws a random number while it loads (Math.random, crypto). Modules load only once, when the component is built, so the " +
  "number would be the same in every call. Draw it in run";

const { values: options } = parseArgs({
  options: {
    engine: { type: "string" },
    project: { type: "string" },
    toolchain: { type: "string" },
    sdk: { type: "string" },
    wit: { type: "string" },
    world: { type: "string", default: "plugin" },
    out: { type: "string" },
  },
});
const { project, toolchain, sdk, wit, out } = Object.fromEntries(
  ["project", "toolchain", "sdk", "wit", "out"].map((name) => {
    if (!options[name]) fail(`--${name} is missing`);
    return [name, resolve(options[name])];
  }),
);
const tools = createRequire(join(toolchain, "package.json"));
const here = dirname(fileURLToPath(import.meta.url));

try {
  await build();
} catch (error) {
  fail(error instanceof Wrong ? error.message : (error?.stack ?? String(error)));
}

async function build() {
  const manifest = readManifest();
  const main = resolve(project, manifest.main ?? "plugin.js");
  if (!existsSync(main))
    throw new Wrong(
      `package.json names ${manifest.main ?? "no main, so plugin.js"} as the plugin's main module, but the file does not exist`,
    );
  const typescript = /\.[mc]?ts$/.test(main);
  const { engine } = options;
  if (engine !== "quickjs" && engine !== "starlingmonkey")
    throw new Wrong("--engine is quickjs or starlingmonkey");
  const work = join(project, "build", "js");
  mkdirSync(work, { recursive: true });
  if (typescript) checkTypes(work, main);
  const bundle = await bundled(work, main, engine);
  const component = engine === "quickjs" ? withQuickJs(bundle) : await withStarlingMonkey(bundle);
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, component);
  const made = engine === "quickjs" ? "componentize-qjs" : "@bytecodealliance/componentize-js";
  for (const name of [...(typescript ? ["typescript"] : []), "esbuild", made])
    console.log(`tool: ${name} ${versionOf(name)}`);
}

function readManifest() {
  const file = join(project, "package.json");
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Wrong(`cannot read ${file}: ${error.message}`);
  }
}

function versionOf(name) {
  return JSON.parse(readFileSync(join(toolchain, "node_modules", name, "package.json"), "utf8")).version;
}

/** `tsc --noEmit` over the main module and what it imports, under the author's own compiler options. */
function checkTypes(work, main) {
  const config = join(work, "tsconfig.json");
  const own = join(project, "tsconfig.json");
  const base = existsSync(own) ? { extends: own } : {};
  const defaults = existsSync(own)
    ? {}
    : { strict: true, target: "ES2023", module: "ESNext", moduleResolution: "bundler", lib: ["ES2023"] };
  const paths = Object.fromEntries(
    ["", "/keyvalue", "/http", "/config"].map((part) => [
      `@toolgate/sdk${part}`,
      [join(sdk, "src", `${part.slice(1) || "index"}.d.ts`)],
    ]),
  );
  const compilerOptions = {
    ...defaults,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    types: [],
    paths,
  };
  writeFileSync(config, JSON.stringify({ ...base, compilerOptions, files: [main], include: [] }, null, 2));
  const tsc = spawnSync(
    process.execPath,
    [tools.resolve("typescript/bin/tsc"), "-p", config, "--pretty", "false"],
    { cwd: project, encoding: "utf8" },
  );
  if (tsc.status !== 0) throw new Wrong(`the types do not fit:\n${tsc.stdout}${tsc.stderr}`);
}

/** Bundles everything into one module, except the host's functions. */
async function bundled(work, main, engine) {
  const esbuild = tools("esbuild");
  const entry = join(work, "entry.js");
  const outfile = join(work, "bundle.js");
  const durable = hasWorld("plugin-durable");
  writeFileSync(
    entry,
    `import plugin from ${JSON.stringify(main)};\n` +
      `import * as host from "toolgate:plugin/host";\n` +
      (durable ? `import * as durable from "toolgate:plugin/durable";\n` : "") +
      `import { serve } from "@toolgate/sdk/guest";\n` +
      `export const { catalog, server } = serve(plugin, host${durable ? ", durable" : ""});\n`,
  );
  const result = await esbuild
    .build({
      entryPoints: [entry],
      outfile,
      bundle: true,
      format: "esm",
      target: "es2022",
      platform: "neutral",
      mainFields: ["module", "main"],
      conditions: ["toolgate", "module", "import"],
      define: { TOOLGATE_ENGINE: JSON.stringify(engine), "process.env.NODE_ENV": '"production"' },
      legalComments: "none",
      absWorkingDir: project,
      logLevel: "silent",
      plugins: [oneSdk(engine), versioned()],
    })
    .catch((error) => {
      throw new Wrong(
        `the plugin cannot be bundled:\n${esbuild.formatMessagesSync(error.errors ?? [], { kind: "error" }).join("") || error.message}`,
      );
    });
  for (const warning of esbuild.formatMessagesSync(result.warnings, { kind: "warning" }))
    console.log(warning);
  return outfile;
}

/** Always uses the SDK that `toolgate` found, because two copies would not recognize each other's tools. */
function oneSdk(engine) {
  const exported = JSON.parse(readFileSync(join(sdk, "package.json"), "utf8")).exports;
  return {
    name: "one-sdk",
    setup(build) {
      build.onResolve({ filter: /^@toolgate\/sdk(\/|$)/ }, ({ path }) => {
        const target = exported[path.replace("@toolgate/sdk", ".")];
        if (!target) return { errors: [{ text: `the SDK has no ${path}` }] };
        if (path.endsWith("/testing"))
          return { errors: [{ text: "@toolgate/sdk/testing is for tests: a plugin cannot import it" }] };
        if (path.endsWith("/http") && engine === "quickjs") return { errors: [{ text: NO_HTTP }] };
        return { path: join(sdk, target.default ?? target) };
      });
      build.onResolve({ filter: /^node:/ }, ({ path, importer }) => ({
        errors: [
          { text: `${path} is a module of Node.js, and a component has no Node.js`, detail: importer },
        ],
      }));
    },
  };
}

/** Replaces `toolgate:plugin/host` by `toolgate:plugin/host@0.1.2`. The engines need the interface's version. */
function versioned() {
  const versions = new Map();
  const folders = [wit, ...subfolders(join(wit, "deps"))];
  for (const file of folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))) {
    const line =
      file.endsWith(".wit") && /^package ([a-z-]+:[a-z-]+)@([^;\s]+);/m.exec(readFileSync(file, "utf8"));
    if (line) versions.set(line[1], line[2]);
  }
  return {
    name: "versioned",
    setup(build) {
      build.onResolve({ filter: /^(toolgate|wasi):/ }, ({ path }) => {
        const [name, version] = path.split("@");
        const known = version ?? versions.get(name.split("/")[0]);
        return known
          ? { path: `${name}@${known}`, external: true }
          : { errors: [{ text: `the interface has no ${name}` }] };
      });
    },
  };
}

function subfolders(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [join(folder, entry.name)] : [],
  );
}

function withQuickJs(bundle) {
  const made = `${bundle}.wasm`;
  // The path is relative: the variable is a list, and a space in the plugin's path would make another library of the rest.
  const fixed = existsSync(join(here, "fixed.so")) ? { LD_PRELOAD: "./fixed.so" } : {};
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(here, "quickjs.mjs"), toolchain, wit, options.world, bundle, made],
    { cwd: here, env: { ...process.env, ...fixed }, encoding: "utf8" },
  );
  if (status === 0) return readFileSync(made);
  const why = /wasi:http/.test(stderr)
    ? NO_HTTP
    : stderr.replace(/^[\s\S]*?module evaluation: (Error: )?/, "").trimEnd();
  throw new Wrong(`QuickJS could not make a component of the plugin:\n${why}`);
}

async function withStarlingMonkey(bundle) {
  // Its package.json allows `import`, but not `require.resolve`.
  const path = join(toolchain, "node_modules/@bytecodealliance/componentize-js/src/componentize.js");
  const { componentize } = await import(pathToFileURL(path).href);
  const { default: wizer } = await import(tools.resolve("@bytecodealliance/wizer"));
  try {
    const { component } = await componentize({
      sourcePath: bundle,
      witPath: wit,
      worldName: options.world,
      wizerBin: throughNode(join(dirname(bundle), "wizer"), wizer),
      // StarlingMonkey has `fetch`, which imports wasi:http, only then.
      disableFeatures: ["fetch-event", ...(hasWorld("plugin-with-http") ? [] : ["http"])],
    });
    return component;
  } catch (error) {
    const why = /wasi:random/.test(error.message) ? DRAWN_EARLY : error.message;
    throw new Wrong(`StarlingMonkey could not make a component of the plugin:\n${why}`);
  }
}

/** Writes a program that runs wizer by `wizer.mjs`. ComponentizeJS starts it without arguments of ours. */
function throughNode(program, wizer) {
  const words = [process.execPath, join(here, "wizer.mjs"), wizer];
  const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  writeFileSync(program, `#!/bin/sh\nexec ${quoted} "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

/** Whether the component's world includes this world of the interface. */
function hasWorld(name) {
  const world = join(wit, "world.wit");
  return existsSync(world) && readFileSync(world, "utf8").includes(`\n  include toolgate:plugin/${name}@`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
