// The configuration of a test.

import { world } from "./world.js";

/**
 * @param {string} name
 * @returns {string | undefined}
 */
export function readOne(name) {
  const { config } = world("the configuration");
  return Object.hasOwn(config, name) ? config[name] : undefined;
}

/** @returns {[string, string][]} */
export const readAll = () => Object.entries(world("the configuration").config);
