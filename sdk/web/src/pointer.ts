/** JSON Pointers (RFC 6901). */

/** `/a~1b/0` as `["a/b", "0"]`. */
export function parts(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** `["a/b", "0"]` as `/a~1b/0`. */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
