// A form from a nested schema shows the errors of the page and the host at their fields.
import { suspensionOf } from "../src/client";
import { fixture } from "../src/components";
import { button, expect, questions, test } from "../src/test";

const RESPONSE = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  required: ["recipient", "slots", "speed"],
  additionalProperties: false,
  properties: {
    recipient: { $ref: "#/$defs/recipient", title: "Recipient" },
    slots: {
      type: "array",
      title: "Slots",
      minItems: 1,
      items: {
        type: "object",
        title: "Slot",
        required: ["day"],
        properties: {
          day: { type: "string", enum: ["Friday", "Monday"], title: "Day" },
          hours: { type: "integer", minimum: 1, maximum: 8, title: "Hours" },
        },
      },
    },
    speed: { type: "string", enum: ["slow", "fast"], title: "Speed" },
    insured: { type: "boolean", title: "Insured" },
  },
  $defs: {
    recipient: {
      type: "object",
      required: ["name", "address"],
      properties: {
        name: { type: "string", minLength: 2, title: "Name" },
        address: {
          type: "object",
          title: "Address",
          required: ["postcode"],
          properties: { postcode: { type: "string", pattern: "^[0-9]{5}$", title: "Postcode" } },
        },
      },
    },
  },
};

test("a question with a nested schema", async ({ start, enter }) => {
  const tool = {
    name: "deliver",
    executor: "human",
    options: { title: "A delivery", response: RESPONSE },
  } as const;
  const host = await start({ components: { deliver: fixture([tool]) } });
  const agent = host.token("agent", ["caller"]);
  const page = await enter(host, host.token("alice", ["approver"]));
  const turn = await agent.call("form", "deliver", {});
  const card = questions(page, "A delivery");
  const postcode = card.getByLabel("Postcode");
  await expect(postcode).toBeVisible();

  // The page finds the missing field and focuses it.
  await card.getByLabel("Name").fill("A");
  await button(card, "Answer").click();
  await expect(card.getByRole("alert").filter({ hasText: "See the fields" })).toBeVisible();
  await expect(card.getByLabel("Name")).toHaveAttribute("aria-invalid", "true");
  await expect(card.getByLabel("Name")).toBeFocused();
  await expect(card.getByLabel("Name")).toHaveAccessibleDescription(/short|2/);

  await card.getByLabel("Name").fill("Ada");
  await postcode.fill("1234");
  await card.getByRole("button", { name: "Add" }).click();
  const hours = card.getByLabel("Hours");
  while ((await hours.count()) < 2) await card.getByRole("button", { name: "Add" }).click();
  await card.getByLabel("Day").first().selectOption({ label: "Friday" });
  await card.getByLabel("Day").last().selectOption({ label: "Monday" });
  await hours.first().fill("9");
  await card.getByLabel("Speed").selectOption({ label: "fast" });
  await card.getByLabel("Insured").check();
  await button(card, "Answer").click();
  await expect(hours.first()).toHaveAttribute("aria-invalid", "true");
  await hours.first().fill("8");

  // Only the host checks regular expressions. Its errors are shown at the field.
  await button(card, "Answer").click();
  await expect(card.getByText("The host rejected this answer. See the fields.")).toBeVisible();
  await expect(postcode).toHaveAttribute("aria-invalid", "true");
  await expect(postcode).toBeFocused();
  await postcode.fill("10115");
  await button(card, "Answer").click();

  await expect(card).toHaveAttribute("closed");
  expect((await agent.ended(turn)).content).toMatchObject({
    ok: true,
    result: {
      recipient: { name: "Ada", address: { postcode: "10115" } },
      slots: [{ day: "Friday", hours: 8 }, { day: "Monday" }],
      speed: "fast",
      insured: true,
    },
  });
});

test("an edit shows its changes and the host's errors", async ({ start, enter }) => {
  const host = await start({
    plugins: ["ledger"],
    tables: '[plugin.ledger]\ncomponent = "any"\ngrants.keyvalue = true\n',
  });
  const agent = host.token("agent", ["caller"]);
  const page = await enter(host, host.token("alice", ["approver"]));
  for (const account of ["a", "b"])
    await agent.call("money", "ledger_open", { account, opening_balance: 5000 });
  const turn = await agent.call("money", "ledger_transfer", { from: "a", to: "b", amount_cents: 4000 });
  const card = page.locator("toolgate-approval");
  await button(card, "Edit arguments").click();
  const amount = card.getByLabel("amount_cents, as JSON (empty: left out)");
  await amount.fill("0");
  await expect(card.getByLabel("Changes")).toContainText('− removed: "amount_cents": 4000');
  await button(card, "Approve as edited").click();
  await expect(amount).toHaveAttribute("aria-invalid", "true");
  await expect(amount).toBeFocused();
  await amount.fill("1500");
  await button(card, "Approve as edited").click();
  await expect(card).toHaveAttribute("closed");
  expect((await agent.ended(turn)).content).toMatchObject({ ok: true, result: { amount_cents: 1500 } });
});

test("a form with several responses is sent exactly as shown", async ({ start, enter }) => {
  const response = {
    type: "object",
    required: ["amount"],
    properties: {
      amount: { type: "integer", title: "Amount", default: 50 },
      reference: { type: "integer", title: "Reference" },
    },
  };
  const options = { title: "A refund", response, responses: ["approved", "rejected"] };
  const host = await start({
    components: { refund: fixture([{ name: "refund", executor: "human", options }]) },
  });
  const agent = host.token("agent", ["caller"]);
  const page = await enter(host, host.token("alice", ["approver"]));
  const card = questions(page, "A refund").last();
  const content = async (turn: Awaited<ReturnType<typeof agent.call>>) => (await agent.ended(turn)).content;

  // The default of an untouched form is sent.
  let turn = await agent.call("refunds", "refund", {});
  await expect(card.getByLabel("Amount")).toHaveValue("50");
  await button(card, "approved").click();
  await expect(card).toHaveAttribute("closed");
  expect(await content(turn)).toMatchObject({
    ok: true,
    result: { decision: "approved", data: { amount: 50 } },
  });

  // Required fields must be filled, and numbers that JavaScript would round are refused.
  await expect(questions(page)).toHaveCount(0);
  turn = await agent.call("refunds", "refund", {});
  await card.getByLabel("Amount").fill("");
  await button(card, "approved").click();
  await expect(card.getByLabel("Amount")).toHaveAttribute("aria-invalid", "true");
  await card.getByLabel("Amount").fill("7");
  await card.getByLabel("Reference").fill("12345678901234567890");
  await button(card, "approved").click();
  await expect(card.getByLabel("Reference")).toHaveAttribute("aria-invalid", "true");
  await expect(card.getByLabel("Reference")).toHaveAccessibleDescription(/more digits than can be sent/);
  await expect(card.getByLabel("Reference")).toHaveValue("12345678901234567890");
  await card.getByLabel("Reference").fill("123456789");
  await button(card, "approved").click();
  await expect(card).toHaveAttribute("closed");
  const data = { amount: 7, reference: 123456789 };
  expect(await content(turn)).toMatchObject({ result: { decision: "approved", data } });

  // A rejection is sent without the form, as the card says, and with the comment.
  await expect(questions(page)).toHaveCount(0);
  turn = await agent.call("refunds", "refund", {});
  await expect(card.getByText("These answers ignore the form: “rejected”.")).toBeVisible();
  await card.getByLabel("Comment, kept with the answer").fill("paid already");
  await button(card, "rejected").click();
  await expect(card).toHaveAttribute("closed");
  expect(await content(turn)).toMatchObject({ ok: true, result: { decision: "rejected" } });
  const asked = await agent.send<{ closed: { comment: string } }>(
    "GET",
    `/v1/suspensions/${suspensionOf(turn)}`,
  );
  expect(asked.closed.comment).toBe("paid already");
});
