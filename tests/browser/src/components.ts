// The components of a test's host: example plugins, and a fixture with declarations that the test writes.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The repository. */
export const ROOT = join(import.meta.dirname, "../../..");

/** One tool of the fixture; see `tests/illegal/README.md`. */
export interface FixtureTool {
  name: string;
  description?: string;
  executor?: "server" | "human" | "client" | "provider";
  approval?: "auto" | "requires-approval";
  parameters?: object;
  options?: object;
  streaming?: boolean;
}

const MARKER = "toolgate-fixture-slot-1\n";
const CAPACITY = 256 * 1024;

/** An example plugin. */
export function plugin(name: string): Buffer {
  return built("plugins", name);
}

/** A component of `tests/illegal`. */
export function illegal(name: string): Buffer {
  return built("tests/illegal", name);
}

/** A component that declares these tools and returns its arguments. */
export function fixture(tools: FixtureTool[]): Buffer {
  const component = built("tests/illegal", "fixture");
  const at = component.indexOf(MARKER) + MARKER.length;
  const slot = Buffer.from(JSON.stringify(tools));
  if (slot.length > CAPACITY) throw new Error(`the declarations are ${slot.length} bytes`);
  component.fill(" ", at, at + CAPACITY);
  slot.copy(component, at);
  return component;
}

function built(folder: string, name: string): Buffer {
  const path = join(ROOT, folder, "target/wasm32-wasip2/release", `${name}.wasm`);
  try {
    return readFileSync(path);
  } catch (error) {
    const remedy = `run \`cargo build --release --target wasm32-wasip2\` in ${folder}`;
    throw new Error(`${folder}: ${name}.wasm cannot be read: ${remedy}`, { cause: error });
  }
}
