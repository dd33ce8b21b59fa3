// Math.random for QuickJS. The engine seeds its own during the build, so every call would draw the same numbers.

/**
 * An endless sequence of numbers from 0 up to 1, derived from a text: xorshift over 128 bits. They are not for secrets.
 * @param {string} text
 * @returns {() => number}
 */
export function seeded(text) {
  const [a, b, c, d] = [1, 2, 3, 4].map((salt) => hash(text, salt));
  // A state of all zeros would never change.
  const state = Uint32Array.of(a ?? 0, b ?? 0, c ?? 0, (d ?? 0) | 1);
  const next = () => {
    const [first = 0, , , last = 0] = state;
    const mixed = first ^ (first << 11);
    state.copyWithin(0, 1);
    state[3] = last ^ (last >>> 19) ^ mixed ^ (mixed >>> 8);
    return state[3];
  };
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

/**
 * FNV-1a with a final mix, so that similar texts give very different numbers.
 * @param {string} text
 * @param {number} salt
 */
function hash(text, salt) {
  let sum = Math.imul(0x811c9dc5 ^ salt, 0x01000193);
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
  sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae35);
  return (sum ^ (sum >>> 16)) >>> 0;
}
