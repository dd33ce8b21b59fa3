// The operator's configuration for the plugin, which requests it with `[wants.config]` or `[wants.secrets]`. The value of a
// secret is a placeholder. Put it into a request of `@toolgate/sdk/http` at the place of the secret. The host replaces it
// there if the operator granted that. It has no other use.

/**
 * The value with this name that the operator configured, or `undefined`.
 * @throws `Unavailable`, if the host could not read it.
 */
export function get(name: string): string | undefined;

/**
 * The value with this name that the operator configured.
 * @throws `Failed`, with the name that the operator has to configure. Otherwise as `get`.
 */
export function required(name: string): string;

/**
 * All configured values.
 * @throws `Unavailable`, if the host could not read them.
 */
export function all(): Record<string, string>;
