/** The value that the operator configured under this name, or `undefined`. The value of a secret is a placeholder. */
export function get(name: string): string | undefined;

/**
 * The value that the operator configured under this name.
 * @throws `Failed` with what the operator would have to configure.
 */
export function required(name: string): string;

/** Everything that the operator configured. */
export function all(): Record<string, string>;
