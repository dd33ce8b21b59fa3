/** The value with this name that the operator configured, or `undefined`. The value of a secret is a placeholder. */
export function get(name: string): string | undefined;

/**
 * The value with this name that the operator configured.
 * @throws `Failed`, with the name that the operator has to configure.
 */
export function required(name: string): string;

/** All configured values. */
export function all(): Record<string, string>;
