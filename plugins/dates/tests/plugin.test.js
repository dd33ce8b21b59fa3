import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { run } from "@toolgate/sdk/testing";
import plugin from "../plugin.js";

/** [tool, arguments, result or a part of the failure] */
const ROWS = [
  ["date_describe", { date: "2024-W09-4" }, { date: "2024-02-29", weekday: "thursday" }],
  ["date_describe", { date: "2021-01-03" }, { week: "2020-W53", day_of_year: 3, leap_year: false }],
  ["date_describe", { date: "2024-366" }, { date: "2024-12-31", week: "2025-W01" }],
  ["date_describe", { date: "0001-01-01" }, { weekday: "monday" }],
  [
    "date_describe",
    { date: "2024-02-29T23:30:00.5-01:00" },
    { utc: "2024-03-01T00:30:00.500Z", unix_seconds: 1709253000.5 },
  ],
  ["date_describe", { date: "2023-366" }, /2023 has 365 days/],
  [
    "date_describe",
    { date: "2023-02-29" },
    /^\/date: "2023-02-29" names a day that does not exist: 2023-02 has 28 days/,
  ],
  ["date_describe", { date: "2023-W53-1" }, /a week that does not exist/],
  ["date_describe", { date: "0000-01-01" }, /years go from 0001/],
  ["date_describe", { date: "2024-13-01" }, /a month that does not exist/],
  ["date_describe", { date: "2024-01-01T24:00" }, /a time that does not exist/],
  ["date_describe", { date: "2024-01-01T10:00 Europe/Berlin" }, /a time that is not ISO 8601/],
  ["date_describe", { date: "2024-01-01T10:00+19:00" }, /is not an offset/],
  ["date_describe", { date: "01.02.2024" }, /is not an ISO 8601 date/],
  ["date_add", { date: "2024-12-31T23:59:59Z", duration: "PT1S" }, "2025-01-01T00:00:00Z"],
  ["date_add", { date: "2024-03-31", duration: "-P1M" }, "2024-02-29"],
  ["date_add", { date: "2024-01-01", duration: "P1Y2M3W4DT5H6M7.25S" }, "2025-03-26T05:06:07.250"],
  ["date_add", { date: "2024-01-01T00:30:00+02:00", duration: "P0D", offset: "Z" }, "2023-12-31T22:30:00Z"],
  ["date_add", { date: "2024-01-01", duration: "P1D", offset: "Z" }, /the date has no offset/],
  ["date_add", { date: "2024-01-01", duration: "P" }, /is not an ISO 8601 duration/],
  ["date_add", { date: "2024-01-01", duration: "P1DT" }, /is not an ISO 8601 duration/],
  ["date_add", { date: "9999-12-31", duration: "P1D" }, /outside of the years/],
  ["date_add", { date: "2024-01-01", duration: `P${"9".repeat(40)}Y` }, /longer than the calendar/],
  [
    "date_difference",
    { from: "2024-03-31", to: "2024-02-29" },
    { duration: "-P1M2D", months: -1, days: -2, total_days: -31 },
  ],
  [
    "date_difference",
    { from: "2024-01-01T00:00Z", to: "2024-01-01T01:00+01:00" },
    { duration: "P0D", years: 0, total_seconds: 0 },
  ],
  [
    "date_difference",
    { from: "2024-01-01T10:00", to: "2024-01-02T09:59:59.5" },
    { duration: "PT23H59M59.5S" },
  ],
  ["date_difference", { from: "2024-01-01T10:00Z", to: "2024-01-02T10:00" }, /one of the two has an offset/],
  ["workdays_between", { from: "2024-01-08", to: "2024-01-01" }, -5],
  ["workdays_between", { from: "2024-01-05", to: "2024-01-08", weekend: ["friday"] }, 2],
  [
    "workdays_between",
    { from: "2024-01-05", to: "2024-01-08", holidays: ["2024-01-32"] },
    /^\/holidays\/0: /,
  ],
  ["workdays_between", { from: "0001-01-01", to: "9999-01-01" }, /at most 100000 days/],
  ["workdays_add", { date: "2024-01-08T09:00", workdays: -1 }, "2024-01-05T09:00:00"],
  ["workdays_add", { date: "2024-01-06", workdays: 0 }, "2024-01-06"],
  [
    "workdays_add",
    {
      date: "2024-01-06",
      workdays: 1,
      weekend: ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
    },
    /nobody works/,
  ],
  [
    "date_range",
    { from: "2024-01-01", to: "2024-01-31", only: ["friday"] },
    ["2024-01-05", "2024-01-12", "2024-01-19", "2024-01-26"],
  ],
  ["date_range", { from: "2024-01-02", to: "2024-01-01" }, []],
  ["date_range", { from: "2024-01-01", to: "2024-01-02", step: "P0D" }, /it does not advance/],
  ["date_range", { from: "2024-01-01", to: "2099-01-02", step: "P1D" }, /there would be too many/],
];

for (const [tool, args, expected] of ROWS) {
  test(`${tool} ${JSON.stringify(args)}`, async () => {
    const { ok, result, failure, message } = await run(plugin, tool, args);
    if (expected instanceof RegExp) {
      assert.equal(failure, "invalid-arguments", message);
      assert.match(message, expected);
    } else if (typeof expected === "object" && !Array.isArray(expected)) {
      assert.deepEqual({ ...result, ...expected }, result);
    } else {
      assert.ok(ok, message);
      assert.deepEqual(result, expected);
    }
  });
}

test("the examples are right", async () => {
  for (const { tool, arguments: args, ...expected } of JSON.parse(
    readFileSync(new URL("../examples.json", import.meta.url)),
  )) {
    const { ok, result, failure } = await run(plugin, tool, args);
    if ("result" in expected) assert.deepEqual(result, expected.result, tool);
    else assert.deepEqual(failure, expected.failure, tool);
    assert.equal(ok, expected.failure === undefined);
  }
});
