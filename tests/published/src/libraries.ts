// Schemas as people write them with libraries: the same tool with each library, and as much of each library as a tool may use.

import { Type as OldType, type TSchema } from "@sinclair/typebox";
import { Value as OldValue } from "@sinclair/typebox/value";
import { Type } from "typebox";
import { Value } from "typebox/value";
import { z } from "zod";
import { z as z41 } from "zod-4-1";
import type { List, Tool } from "./servers";

/** The parts of zod that both versions have. */
type Zod = Pick<
  typeof z,
  | "array"
  | "boolean"
  | "discriminatedUnion"
  | "email"
  | "enum"
  | "int"
  | "iso"
  | "lazy"
  | "literal"
  | "number"
  | "object"
  | "record"
  | "string"
  | "toJSONSchema"
  | "tuple"
  | "union"
  | "url"
  | "uuid"
>;

function withZod(zod: Zod): Tool[] {
  const address = zod
    .object({ street: zod.string().min(1), zip: zod.string().regex(/^(?=\d)\d{5}$/) })
    .strict();
  const target = zod.discriminatedUnion("kind", [
    zod.object({ kind: zod.literal("mail"), to: zod.email() }),
    zod.object({ kind: zod.literal("post"), to: address }),
  ]);
  const order = zod.object({
    id: zod.uuid(),
    at: zod.iso.datetime(),
    link: zod.url().optional(),
    items: zod
      .array(zod.object({ name: zod.string(), count: zod.int().min(1).max(99) }))
      .min(1)
      .max(10),
    target,
    place: zod.tuple([zod.number(), zod.number()]),
    tags: zod.record(zod.string(), zod.union([zod.string(), zod.number(), zod.boolean()])).default({}),
    state: zod.enum(["new", "paid"]).describe("The state of the order.").nullable(),
  });
  const schema = (draft?: "draft-7") =>
    JSON.stringify(zod.toJSONSchema(order, { io: "input", ...(draft && { target: draft }) }));
  const verdicts = checked(orders(), (value) => order.safeParse(value).success);
  return [
    { name: "order", description: "Takes an order.", parameters: schema(), ...verdicts },
    { name: "order_draft_7", description: "Takes an order.", parameters: schema("draft-7"), ...verdicts },
  ];
}

/** An order, and others that differ from it in one place. */
function orders(): unknown[] {
  const order = {
    id: "0191d7a4-5b1f-7c3e-8a2b-0123456789ab",
    at: "2026-11-24T02:00:00Z",
    items: [{ name: "pen", count: 2 }],
    target: { kind: "mail", to: "ann@example.org" },
    place: [1.5, 2],
    tags: { gift: true, note: "soon", weight: 1 },
    state: "paid",
  };
  const post = { kind: "post", to: { street: "Main St 1", zip: "02101" } };
  return [
    order,
    { ...order, link: "https://example.org/", state: null, target: post },
    { ...order, id: "7" },
    { ...order, id: undefined },
    { ...order, at: "2026-02-30T02:00:00Z" },
    { ...order, items: [] },
    { ...order, items: [{ name: "pen", count: 100 }] },
    { ...order, items: [{ name: "pen", count: 1.5 }] },
    { ...order, target: { kind: "fax" } },
    { ...order, target: { kind: "mail", to: "ann" } },
    { ...order, target: { ...post, to: { ...post.to, zip: "2101" } } },
    { ...order, target: { ...post, to: { ...post.to, floor: 3 } } },
    // Not `[1]`: zod refuses it, but the schema that zod makes of a tuple does not.
    { ...order, place: ["1", 2] },
    { ...order, tags: { gift: null } },
    { ...order, state: "lost" },
  ];
}

/** Sorts arguments by what their library says. */
function checked(
  all: unknown[],
  accepts: (value: unknown) => boolean,
): Required<Pick<Tool, "accepted" | "refused">> {
  // As they are sent: a member without a value is no member.
  const sent: unknown[] = all.map((value) => JSON.parse(JSON.stringify(value)));
  return { accepted: sent.filter(accepts), refused: sent.filter((value) => !accepts(value)) };
}

/** The parts of TypeBox that both versions have. */
type TypeBox = Pick<
  typeof OldType,
  | "Array"
  | "Boolean"
  | "Integer"
  | "Literal"
  | "Null"
  | "Number"
  | "Object"
  | "Optional"
  | "Record"
  | "String"
  | "Tuple"
  | "Union"
>;

function withTypeBox(type: TypeBox, accepts: (schema: TSchema, value: unknown) => boolean): Tool[] {
  const item = type.Object({
    name: type.String({ minLength: 1 }),
    count: type.Integer({ minimum: 1, maximum: 99 }),
  });
  const order = type.Object(
    {
      id: type.String({ pattern: "^[0-9a-f]{8}$", default: "0123abcd" }),
      items: type.Array(item, { minItems: 1, maxItems: 10 }),
      place: type.Tuple([type.Number(), type.Number()]),
      state: type.Union([type.Literal("new"), type.Literal("paid"), type.Null()]),
      tags: type.Optional(type.Record(type.String(), type.Union([type.String(), type.Boolean()]))),
    },
    // TypeBox writes tuples as draft-07 does, and says no draft by itself.
    { additionalProperties: false, $schema: "http://json-schema.org/draft-07/schema#" },
  );
  const base = { id: "0123abcd", items: [{ name: "pen", count: 2 }], place: [1.5, 2], state: "paid" };
  const all = [
    base,
    { ...base, state: null, tags: { gift: true, note: "soon" } },
    { ...base, id: "0123ABCD" },
    { ...base, items: [] },
    { ...base, items: [{ name: "", count: 2 }] },
    { ...base, items: [{ name: "pen", count: 1.5 }] },
    { ...base, place: [1] },
    { ...base, state: "lost" },
    { ...base, tags: { gift: null } },
    { ...base, more: 1 },
  ];
  const verdicts = checked(all, (value) => accepts(order, value));
  return [{ name: "order", description: "Takes an order.", parameters: JSON.stringify(order), ...verdicts }];
}

export const libraries: List[] = [
  { from: "zod", tools: withZod(z) },
  { from: "zod 4.1", tools: withZod(z41 as unknown as Zod) },
  {
    from: "typebox",
    tools: withTypeBox(Type as unknown as TypeBox, (schema, value) => Value.Check(schema, value)),
  },
  { from: "@sinclair/typebox", tools: withTypeBox(OldType, OldValue.Check) },
];
