/** Everything that needs no page: the client, streams, the store of what waits, and client-executed tools. */
export { type FollowOptions, Toolgate, type ToolgateOptions } from "./client.js";
export type { ClientCall, ClientTool, ClientTools, ClientToolsOptions } from "./client-tools.js";
export { type Clock, systemClock } from "./clock.js";
/** What an edit of arguments changes, where there is no card to say so: in a timeline for instance. */
export { type DiffLine, shownChanges } from "./diff.js";
export type { paths } from "./generated/api.js";
export { RawJson } from "./json-text.js";
export {
  type PendingChange,
  type PendingStatus,
  PendingStore,
  type PendingStoreOptions,
} from "./pending-store.js";
export { ToolgateError } from "./problem.js";
export type { StreamMessage, StreamStatus } from "./stream.js";
/** Text of strangers for people, where no `display` has it: of events for instance. */
export { line as shownLine, lines as shownLines } from "./text.js";
export type * from "./wire.js";
