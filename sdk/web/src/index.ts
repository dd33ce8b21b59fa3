/** The parts that need no page: client, streams, pending store and client tools. */
export { type FollowOptions, Toolgate, type ToolgateOptions } from "./client.js";
export type { ClientCall, ClientTool, ClientTools, ClientToolsOptions } from "./client-tools.js";
export { type Clock, systemClock } from "./clock.js";
export { type DiffLine, shownChanges } from "./diff.js";
/** The types of the OpenAPI document, as openapi-typescript makes them. */
export type { components, paths } from "./generated/api.js";
export { RawJson } from "./json-text.js";
export {
  type PendingChange,
  type PendingStatus,
  PendingStore,
  type PendingStoreOptions,
} from "./pending-store.js";
export { ToolgateError } from "./problem.js";
export type { StreamMessage, StreamStatus } from "./stream.js";
export { line as shownLine, lines as shownLines } from "./text.js";
export type * from "./wire.js";
