// The JSON that only the console reads. @toolgate/web has the rest; /openapi.json describes everything.

import type { Session as HostSession } from "@toolgate/web";

export type Role = "admin" | "approver" | "caller" | "client";
export type Executor = "server" | "human" | "client" | "provider";
export type Session = HostSession;

export interface Want {
  what: string;
  why: string;
  standing: "granted" | "in part" | "missing";
}

export interface Plugin {
  name: string;
  digest: string;
  built_against?: string;
  tools: string[];
  state: "live" | "rejected";
  findings: { tool?: string; rule: string; message: string; remedy: string }[];
  needs_review: boolean;
  access?: {
    wanted?: Want[];
    granted: string[];
    granted_to: string[];
    effective: string[];
    replayable: boolean;
  };
}

export interface Tool {
  name: string;
  description: string;
  executor: Executor;
  approval: "auto" | "requires-approval";
  rule: "allow" | "ask" | "deny";
  streaming: boolean;
  plugin: string;
}

export interface AuditEntry {
  position: number;
  hash: string;
  at: string;
  by: string;
  action: string;
  conversation?: string;
  turn?: string;
  call?: string;
  subject?: string;
  plugin?: string;
  outcome?: string;
  code?: string;
  comment?: string;
  [member: string]: unknown;
}

export interface AuditPage {
  entries: AuditEntry[];
  next: number | null;
  head: { position: number; hash: string };
}

export interface Explained {
  rule: "allow" | "ask" | "deny";
  by?: string | null;
  reason?: string | null;
  risk?: string | null;
  needs: { who: string[]; quorum: number }[];
  declared: "auto" | "requires-approval";
  effective: "run" | "ask" | "deny";
  steps: { name: string; matched: boolean; rule: string; why?: string | null }[];
}

export interface Receipt {
  time_us: number;
  peak_memory_bytes: number;
  host_calls: number;
}

/** The outcome of a call as the model sees it. */
export interface Content {
  ok: boolean;
  result?: unknown;
  error?: { code: string; message: string };
}
