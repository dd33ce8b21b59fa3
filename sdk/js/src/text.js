// Values as the text of a log line, and UTF-8 for engines without a TextEncoder.

/**
 * Values as one text, for people.
 * @param {unknown[]} values
 */
export function format(values) {
  return values.map(describe).join(" ");
}

/**
 * One value, for people: texts unchanged, errors with their stack, other values as JSON if they have a form in JSON.
 * @param {unknown} value
 * @returns {string}
 */
export function describe(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return stackOf(value);
  if (typeof value === "object" && value !== null) {
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  }
  return String(value);
}

/** @param {Error} error */
function stackOf(error) {
  const said = `${error.name}: ${error.message}`;
  const stack = String(error.stack ?? "").trimEnd();
  // V8 puts the message at the beginning of the stack. Other engines do not.
  const text = stack.startsWith(error.name) ? stack : stack ? `${said}\n${stack}` : said;
  return error.cause === undefined ? text : `${text}\ncaused by: ${describe(error.cause)}`;
}

/**
 * Half of a surrogate pair. JavaScript texts can contain one, but UTF-8 cannot. With the flag `u`, a complete pair is
 * one character and does not match. StarlingMonkey does not support `\p{…}`.
 */
const LONE = /[\ud800-\udfff]/u;

/** @param {string} text */
export const isWellFormed = (text) => !LONE.test(text);

/**
 * Makes a text well-formed, so that it can be passed to the host.
 * @param {string} text
 */
export const wellFormed = (text) => (LONE.test(text) ? text.replace(/[\ud800-\udfff]/gu, "\uFFFD") : text);

/**
 * @param {string} text
 * @returns {Uint8Array}
 */
export function toUtf8(text) {
  if (typeof TextEncoder === "function") return new TextEncoder().encode(text);
  const binary = unescape(encodeURIComponent(wellFormed(text)));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

/**
 * Decodes UTF-8. With a TextDecoder, invalid parts are replaced. Without one, the bytes are read as Latin-1.
 * @param {Uint8Array} bytes
 */
export function fromUtf8(bytes) {
  if (typeof TextDecoder === "function") return new TextDecoder().decode(bytes);
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192)
    binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  try {
    return decodeURIComponent(escape(binary));
  } catch {
    return binary;
  }
}
