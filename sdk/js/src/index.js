// The imports for authors of tools.

export { WaitError } from "./durable.js";
export { Failed, Failure, InvalidArguments, Unavailable } from "./failure.js";
export { plugin } from "./plugin.js";
export { jsonSchema } from "./schema.js";
export { client, human, provider, tool } from "./tool.js";
