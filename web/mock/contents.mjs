// The data of the mock host.

const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();

export const digest = "3f7a9c0e5b1d2f4a6c8e0b2d4f6a8c0e2b4d6f8a0c2e4b6d8f0a2c4e6b8d0f1a";
const component = `sha256:${digest}`;

export const session = {
  principal: "admin",
  roles: ["admin", "approver", "caller", "client"],
  groups: ["finance"],
  csrf: "word",
};

const schema = {
  type: "object",
  required: ["answer", "when"],
  properties: {
    answer: {
      type: "string",
      title: "Answer",
      minLength: 1,
      description: "One of the choices, or your own words.",
    },
    when: {
      type: "object",
      title: "When",
      required: ["day"],
      properties: {
        day: { type: "string", format: "date", title: "Day" },
        whole: { type: "boolean", title: "The whole day" },
      },
    },
  },
};

function suspension(id, more) {
  const base = {
    suspension: id,
    conversation: "demo",
    turn: "turn_2",
    call: "c1",
    plugin: "ledger",
    executor: "server",
    kind: "approval",
    state: "open",
    caller: "agent",
    allowed: ["approve", "deny"],
    editable: "none",
    created_at: ago(4),
    expires_at: ago(-56),
    on_expiry: "error",
    digest,
    component,
    prompt_by: "plugin",
    arguments_digest: digest,
    needs: [],
    votes: [],
    delegations: [],
    you: { may_answer: true, voted: false },
    ...more,
  };
  return {
    ...base,
    display: {
      prompt: base.prompt,
      arguments: JSON.stringify(base.arguments),
      ...(base.context ? { context: JSON.stringify(base.context) } : {}),
    },
  };
}

export const suspensions = [
  suspension("s_1", {
    tool: "ledger_transfer",
    prompt: "Move 2500 cents from household to landlord?",
    arguments: {
      from: "household",
      to: "landlord",
      amount: 2500,
      note: "rent for December",
      reference: 12345678901,
    },
    reason: "payments over 1000 need finance",
    risk: "high",
    asked_by: "large-payments",
    editable: ["amount", "note"],
    context: { ticket: "OPS-118", environment: "production" },
    needs: [{ who: ["group:finance"], quorum: 2, votes: 1, escalated: false, escalates_at: ago(-20) }],
    votes: [{ by: "alice", at: ago(2), comment: "agreed with the landlord", binding: digest }],
  }),
  suspension("s_2", {
    tool: "deploy",
    plugin: "ops",
    prompt: "Deploy version 4.2.0?",
    arguments: { version: "4.2.0", region: "eu-west" },
    editable: "all",
    standing: { max_ttl_ms: 86_400_000, max_uses: 100 },
    risk: "medium",
  }),
  suspension("s_3", {
    tool: "ask_user",
    plugin: "ask",
    executor: "human",
    kind: "elicitation",
    prompt: "When shall the movers come?\nThey need two days’ notice.",
    arguments: { question: "When shall the movers come?", choices: ["Friday", "Monday"] },
    allowed: ["answer", "decline"],
    response_schema: schema,
  }),
];

const by = "agent";
export const logs = [
  {
    run: 1,
    left_out: 12,
    lines: [
      { line: 13, at: ago(60), level: "info", message: "reading the ledger" },
      { line: 14, at: ago(60), level: "error", message: "Traceback:\n  ledger.py, line 3\nKeyError: 'to'" },
    ],
  },
];

export const events = [
  {
    event: "turn.started",
    at: ago(60),
    turn: "turn_1",
    conversation: "demo",
    caller: by,
    rejection: "continue_siblings",
  },
  {
    event: "call.requested",
    at: ago(60),
    turn: "turn_1",
    call: "a1",
    tool: "ledger_open",
    arguments: { account: "household", opening_balance: 10000 },
    executor: "server",
    approval: "auto",
    plugin: "ledger",
    component,
  },
  { event: "call.started", at: ago(60), turn: "turn_1", call: "a1", tool: "ledger_open", attempt: 1 },
  {
    event: "call.settled",
    at: ago(60),
    turn: "turn_1",
    call: "a1",
    tool: "ledger_open",
    status: "resolved",
    outcome: "ok",
    trusted: true,
    content: { ok: true, result: { account: "household", cents: 10000 } },
    receipt: {
      time_us: 1840,
      peak_memory_bytes: 1179648,
      peak_host_bytes: 2048,
      host_calls: 3,
      bytes_in: 54,
      bytes_out: 40,
    },
  },
  { event: "turn.settled", at: ago(60), turn: "turn_1", state: "settled" },
  {
    event: "turn.started",
    at: ago(4),
    turn: "turn_2",
    conversation: "demo",
    caller: by,
    rejection: "continue_siblings",
    context: { ticket: "OPS-118", environment: "production" },
  },
  {
    event: "call.requested",
    at: ago(4),
    turn: "turn_2",
    call: "c1",
    tool: "ledger_transfer",
    arguments: suspensions[0].arguments,
    executor: "server",
    approval: "requires-approval",
    plugin: "ledger",
    component,
  },
  {
    event: "call.requested",
    at: ago(4),
    turn: "turn_2",
    call: "c2",
    tool: "text_stats",
    arguments: { text: "Hi" },
    executor: "server",
    approval: "auto",
    plugin: "textkit",
    component,
  },
  {
    event: "call.requested",
    at: ago(4),
    turn: "turn_2",
    call: "c4",
    tool: "ledger_transfer",
    arguments: { from: "household", to: "landlord", amount: 7 },
    executor: "server",
    approval: "requires-approval",
    plugin: "ledger",
    component,
  },
  {
    event: "call.requested",
    at: ago(4),
    turn: "turn_2",
    call: "c5",
    tool: "cluster",
    arguments: { documents: ["a", "b"], clusters: 2 },
    executor: "server",
    approval: "auto",
    plugin: "textkit",
    component,
  },
  { event: "call.suspended", at: ago(4), ...suspensions[0], snapshot: false },
  {
    event: "call.voted",
    at: ago(2),
    turn: "turn_2",
    call: "c1",
    suspension: "s_1",
    by: "alice",
    binding: digest,
    needs: [0],
    comment: "agreed with the landlord",
  },
  {
    event: "call.suspended",
    at: ago(4),
    ...suspension("s_9", { tool: "ledger_transfer", call: "c4", prompt: "Move 7 cents?", arguments: {} }),
  },
  {
    event: "call.resolved",
    at: ago(3),
    turn: "turn_2",
    call: "c4",
    suspension: "s_9",
    by: "bob",
    decision: "deny",
    comment: "not this month",
  },
  {
    event: "call.settled",
    at: ago(3),
    turn: "turn_2",
    call: "c4",
    tool: "ledger_transfer",
    status: "errored",
    outcome: "denied",
    content: { ok: false, error: { code: "denied", message: "bob denied the call: not this month" } },
  },
  {
    event: "call.settled",
    at: ago(4),
    turn: "turn_2",
    call: "c2",
    tool: "text_stats",
    status: "resolved",
    outcome: "ok",
    trusted: true,
    content: { ok: true, result: { words: 1, characters: 2, lines: ["Hi"], longest: { word: "Hi", at: 0 } } },
  },
  { event: "call.started", at: ago(4), turn: "turn_2", call: "c5", tool: "cluster", attempt: 2 },
];

export const conversations = [
  { conversation: "demo", owner: "agent" },
  { conversation: "demo-accounts", owner: "agent" },
  { conversation: "release-4.2", owner: "deployer" },
];

export const tools = [
  {
    name: "ledger_transfer",
    description: "Moves money between two accounts.",
    executor: "server",
    approval: "requires-approval",
    rule: "ask",
    streaming: false,
    plugin: "ledger",
  },
  {
    name: "ledger_open",
    description: "Opens an account.",
    executor: "server",
    approval: "auto",
    rule: "allow",
    streaming: false,
    plugin: "ledger",
  },
  {
    name: "ask_user",
    description: "Asks the user a question and waits for the answer.",
    executor: "human",
    approval: "auto",
    rule: "allow",
    streaming: false,
    plugin: "ask",
  },
];

export const plugins = [
  {
    name: "ask",
    digest: component,
    tools: ["ask_user"],
    state: "live",
    findings: [],
    notes: [],
    needs_review: false,
    access: { granted: [], granted_to: [], effective: [], replayable: true },
  },
  {
    name: "ledger",
    digest: component,
    tools: ["ledger_open", "ledger_transfer"],
    state: "live",
    findings: [],
    notes: [
      {
        tool: "ledger_transfer",
        message:
          "`timeout_ms` is 3600000, and the limit `limits.time_ms` of this plugin is 10000; each run ends after 10000 ms",
      },
    ],
    needs_review: false,
    access: {
      wanted: [{ what: "key-value accounts", why: "The balances are kept there.", standing: "granted" }],
      granted: ["key-value accounts"],
      granted_to: ["any"],
      effective: ["key-value accounts"],
      replayable: true,
    },
  },
  {
    name: "weather",
    digest: component,
    tools: [],
    state: "rejected",
    findings: [
      {
        tool: "forecast",
        rule: "gated-question",
        message: "a human tool cannot require an approval",
        remedy: "take out requires-approval, or let the server run it",
      },
    ],
    notes: [],
    needs_review: true,
  },
];

export const audit = [
  {
    position: 1,
    hash: digest,
    at: ago(61),
    by: "system",
    action: "host.started",
    version: "0.3.0",
    grants: ["ledger: key-value accounts"],
  },
  {
    position: 2,
    hash: digest,
    at: ago(60),
    by: "agent",
    action: "turn.started",
    conversation: "demo",
    turn: "turn_1",
  },
  {
    position: 2,
    hash: digest,
    at: ago(60),
    by: "agent",
    action: "call.requested",
    conversation: "demo",
    turn: "turn_1",
    call: "a1",
    subject: "ledger_open",
    plugin: "ledger",
    component,
  },
  {
    position: 5,
    hash: digest,
    at: ago(3),
    by: "bob",
    action: "deny",
    conversation: "demo",
    turn: "turn_2",
    call: "c4",
    subject: "ledger_transfer",
    plugin: "ledger",
    suspension: "s_9",
    comment: "not this month",
  },
  {
    position: 6,
    hash: digest,
    at: ago(3),
    by: "system",
    action: "call.settled",
    conversation: "demo",
    turn: "turn_2",
    call: "c4",
    subject: "ledger_transfer",
    outcome: "denied",
  },
];

const standingApproval = {
  tool: "deploy",
  plugin: "ops",
  component,
  caller: "deployer",
  arguments: { version: "4.1.9", region: "eu-west" },
  pin: ["/region"],
  by: "alice",
  suspension: "s_7",
  created_at: ago(20),
  expires_at: ago(-10),
  uses: 5,
  used: 2,
};
export const standing = [
  { id: "sg_1", ...standingApproval, state: "active" },
  { id: "sg_2", ...standingApproval, created_at: ago(400), used: 5, state: "used_up" },
];

export const explained = {
  rule: "ask",
  by: "large-payments",
  reason: "payments over 1000 need finance",
  risk: "high",
  needs: [{ who: ["group:finance"], quorum: 2 }],
  declared: "requires-approval",
  effective: "ask",
  steps: [
    { name: "policy[0]", matched: false, rule: "deny", why: "the tool is not deploy*" },
    { name: "large-payments", matched: true, rule: "ask", why: "/amount is 2500, at least 1000" },
  ],
};
