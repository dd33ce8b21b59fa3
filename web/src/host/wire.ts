// The JSON that only the console reads, under the console's names. @toolgate/web has the rest.

import type { components, Session } from "@toolgate/web";

type Schemas = components["schemas"];

export type { Session };
export type Role = Schemas["Role"];
export type Executor = Schemas["Executor"];
export type Plugin = Schemas["PluginView"];
export type Tool = Schemas["Tool"];
export type AuditEntry = Schemas["AuditEntry"];
export type AuditPage = Schemas["AuditPage"];
export type Explained = Schemas["Explanation"];
export type Receipt = Schemas["Receipt"];
/** The outcome of a call as the model sees it. */
export type Content = Schemas["Content"];
