// Rolls a version out. One call asks people, waits for a report and for time, and verifies what it deployed. Each wait may take
// days, and the host may be stopped meanwhile.

import { type Call, Failure, plugin, tool, WaitError } from "@toolgate/sdk";
import { required } from "@toolgate/sdk/config";
import { request } from "@toolgate/sdk/http";
import * as z from "zod";

const text = z.string().min(1).max(64);

/** The version to roll out. */
const release = z.strictObject({
  version: z
    .string()
    .regex(/^[0-9A-Za-z][0-9A-Za-z._+-]{0,63}$/)
    .describe("For example 1.4.2."),
  settles_s: z
    .int()
    .min(1)
    .max(86_400)
    .default(5)
    .describe("The seconds before people decide, or it is verified."),
  deploy: z
    .boolean()
    .default(false)
    .describe(
      "Whether it is built and deployed. A person must approve the deployment again. Without it, people only decide about the plan.",
    ),
  signal: text
    .optional()
    .describe("The signal that reports its health. Without it, people say whether it is healthy."),
});

/** The place to roll out to. */
const target = z.strictObject({ environment: text.describe("The name of the environment.") });

/** The report of a monitoring system. */
const report = z.strictObject({
  healthy: z.boolean(),
  detail: z.string().max(1000).nullish().describe("The findings of the system."),
});

/** The exact plan that a person approves. */
const approvable = z.strictObject({
  version: z.string().describe("For example 1.4.2."),
  environment: z.string().describe("The name of the environment."),
  instances: z.int().min(0).describe("The number of instances."),
});
type Plan = z.output<typeof approvable>;

const ended = (error: unknown, reason: WaitError["reason"]): error is WaitError =>
  error instanceof WaitError && error.reason === reason;

/** The states of a rollout, in their order. */
function rollOut({ version, settles_s, deploy, signal }: z.output<typeof release>, call: Call) {
  if (deploy) send("builds", { version });
  const { environment } = call.ask({
    prompt: `To which environment does ${version} go?`,
    response: target,
  });
  call.log("info", `it goes to ${environment}`);
  let plan: Plan = { version, environment, instances: 3 };
  try {
    const prompt = `Roll ${version} out to ${environment}?`;
    plan = call.approve({ prompt, subject: plan, risk: "high", editable: ["instances"] });
  } catch (error) {
    if (ended(error, "denied")) return { state: "rejected", comment: error.comment ?? null };
    throw error;
  }
  if (deploy) {
    const [deployed] = call.callTools([{ tool: "roll_out_ts_deploy", arguments: plan }]);
    if (!deployed.ok) return { state: "not deployed", reason: deployed.error.message, plan };
  }
  let fault: string | undefined;
  if (signal === undefined) {
    call.sleep(settles_s * 1000);
    fault = asked(plan, call);
  } else {
    fault = reported(plan, signal, call);
    if (fault === undefined) {
      call.sleep(settles_s * 1000);
      if (deploy) fault = verified(version);
    }
  }
  return fault === undefined ? { state: "done", plan } : { state: "rolled back", reason: fault, plan };
}

/** Deploys a version. The host runs this only if a person has approved exactly this plan, which no workflow can avoid. */
function carryOut(deployed: Plan, call: Call) {
  call.log("info", `deploys ${deployed.version} to ${deployed.environment}`);
  send("deployments", deployed);
  return { instances: deployed.instances };
}

/** An address of the service that the operator configured. */
const url = (path: string) => `${required("service").replace(/\/$/, "")}/${path}`;

/**
 * Sends a request to the service. The host adds an `Idempotency-Key`. A kill of the host can interrupt the request. The host
 * then sends it again with the same key, if the grant says `idempotent = true`.
 */
function send(path: string, json: unknown): void {
  request(url(path), { method: "POST", json }).successful();
}

/** The fault, if people say that it is broken. */
function asked({ version, environment }: Plan, call: Call): string | undefined {
  const { decision } = call.choose({
    prompt: `Is ${version} healthy in ${environment}?`,
    choices: ["healthy", "broken"],
  });
  call.log("info", `people say that it is ${decision}`);
  return decision === "healthy" ? undefined : `people say that it is ${decision}`;
}

/** The fault, if a monitoring system reports one, or nothing in time. */
function reported({ version, environment }: Plan, signal: string, call: Call): string | undefined {
  const prompt = `The health of ${version} in ${environment}`;
  try {
    const metadata = { version, environment };
    const { healthy, detail } = call.awaitExternal({ prompt, schema: report, signal, metadata });
    call.log("info", `it is reported: ${detail ?? "no detail"}`);
    return healthy ? undefined : (detail ?? "it is reported as broken");
  } catch (error) {
    if (ended(error, "expired")) return "nothing is reported in time";
    throw error;
  }
}

/** The fault, unless the service confirms that the deployed version is healthy. */
function verified(version: string): string | undefined {
  try {
    const answer = request(url(`deployments/${version}`)).successful();
    const health = answer.json<{ healthy?: unknown } | null>();
    return health?.healthy === true ? undefined : "the service does not say that it is healthy";
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}

export default plugin([
  tool({
    name: "roll_out_ts",
    title: "Roll out a version",
    description: "Rolls a version out, with the people who decide about it.",
    parameters: release,
    durable: true,
    run: rollOut,
  }),
  tool({
    name: "roll_out_ts_deploy",
    title: "Deploy a version",
    description: "Deploys a version to an environment.",
    parameters: approvable,
    durable: true,
    approval: "requires-approval",
    prompt: "Deploy {version} to {environment}, with {instances} instances?",
    risk: "high",
    run: carryOut,
  }),
]);
