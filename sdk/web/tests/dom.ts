/** A document for the elements, with Node's own `fetch`, streams and signals. Import this file first. */
import { Window } from "happy-dom";

const window = new Window({ url: "http://127.0.0.1/" });

const NAMES = [
  "document",
  "HTMLElement",
  "Element",
  "Node",
  "customElements",
  "CSSStyleSheet",
  "CustomEvent",
  "KeyboardEvent",
  "FileReader",
  "CSS",
  "HTMLIFrameElement",
  "HTMLInputElement",
  "getComputedStyle",
  "navigator",
] as const;

Object.assign(globalThis, { window });
for (const name of NAMES) {
  Object.defineProperty(globalThis, name, {
    value: Reflect.get(window, name),
    configurable: true,
    writable: true,
  });
}
