// Values as the text of a log line, and UTF-8 where the engine has no TextEncoder.

/**
 * Values as one text, for people.
 * @param {unknown[]} values
 */
export function format(values) {
  return values.map(describe).join(" ");
}

/**
 * One value, for people: texts as they are, errors with their stack, the rest as JSON where it has one.
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
  // V8 begins the stack with the message, the other engines do not.
  const text = stack.startsWith(error.name) ? stack : stack ? `${said}\n${stack}` : said;
  return error.cause === undefined ? text : `${text}\ncaused by: ${describe(error.cause)}`;
}

/**
 * Half of a character without its other half: JavaScript has such texts, and UTF-8 has not. Under `u`, two halves are one character,
 * which is not of these; StarlingMonkey knows no `\p{…}`.
 */
const LONE = /[\ud800-\udfff]/u;

/** @param {string} text */
export const isWellFormed = (text) => !LONE.test(text);

/**
 * A text that can be handed to the host.
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
 * What is not UTF-8 is replaced where the engine has a TextDecoder, and read as Latin-1 where it has none.
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
