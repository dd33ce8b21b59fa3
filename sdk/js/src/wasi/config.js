// The configuration of a real call: wasi:config, interface `store`.

import * as store from "wasi:config/store";
import { payload } from "./engine.js";

/**
 * @param {string} name
 * @returns {string | undefined}
 */
export function readOne(name) {
  try {
    return store.get(name) ?? undefined;
  } catch (thrown) {
    throw payload(thrown);
  }
}

/** @returns {[string, string][]} */
export function readAll() {
  try {
    return store.getAll();
  } catch (thrown) {
    throw payload(thrown);
  }
}
