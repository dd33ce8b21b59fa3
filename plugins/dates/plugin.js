// Dates, durations and workdays for models, which are bad at counting days. Moments and durations are ISO 8601 texts.
//
// QuickJS has no `Intl`, so there are offsets from UTC but no time zone names. Daylight saving time is not known here.

import { InvalidArguments, plugin, tool } from "@toolgate/sdk";
import * as duration from "./src/duration.js";
import * as moment from "./src/moment.js";
import { after, calendar, count, NAMES } from "./src/workdays.js";

const MOMENT = { type: "string", minLength: 7, maxLength: 40 };
const DATE_EXAMPLES = "as 2024-02-29, 2024-02-29T12:30:00, or with an offset, 2024-02-29T12:30:00+02:00";
const FREE = {
  weekend: {
    type: "array",
    items: { enum: NAMES },
    maxItems: 7,
    uniqueItems: true,
    description: "The days of the week on which nobody works; saturday and sunday if absent.",
  },
  holidays: {
    type: "array",
    items: MOMENT,
    maxItems: 2000,
    description: "Dates on which nobody works besides.",
  },
};
const PURE = { readOnly: true, idempotent: true };

/** Parameters of an object, and the names of the required ones. */
const object = (/** @type {Record<string, object>} */ properties, /** @type {string[]} */ ...required) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

/** The arguments fit their schema, because the host has checked them. */
const works = (/** @type {any} */ { weekend = ["saturday", "sunday"], holidays = [] }) =>
  calendar(weekend, holidays);

const describe = tool({
  name: "date_describe",
  description:
    "Says what a date is: its weekday, ISO week, day of the year, and its time in UTC and in Unix seconds if it has an offset.",
  parameters: object({ date: { ...MOMENT, description: `The date, ${DATE_EXAMPLES}.` } }, "date"),
  hints: PURE,
  run: (/** @type {any} */ { date }) => {
    const read = moment.read(date, "date");
    const parts = moment.partsOf(read.day);
    const week = moment.weekOf(read.day);
    const described = {
      date: moment.write(read),
      weekday: NAMES[moment.weekday(read.day) - 1],
      week: `${String(week.year).padStart(4, "0")}-W${String(week.week).padStart(2, "0")}`,
      day_of_year: read.day - moment.dayOf(parts.year, 1, 1) + 1,
      days_in_month: moment.daysIn(parts.year, parts.month),
      leap_year: moment.daysIn(parts.year, 2) === 29,
    };
    if (read.offset === undefined) return described;
    return {
      ...described,
      utc: moment.write(moment.under(read, 0)),
      unix_seconds: moment.milliseconds(read) / 1000,
    };
  },
});

const now = tool({
  name: "date_now",
  description: "Says what date and time it is, under an offset from UTC.",
  parameters: object({ offset: { type: "string", description: "As Z or +02:00; Z if absent." } }),
  hints: { readOnly: true },
  run: (/** @type {any} */ { offset = "Z" }) => {
    const milliseconds = Math.floor(Date.now() / 1000) * 1000;
    const utc = { day: Math.floor(milliseconds / moment.DAY), time: milliseconds % moment.DAY, offset: 0 };
    return moment.write(moment.under(utc, moment.offset(offset, "offset")));
  },
});

const add = tool({
  name: "date_add",
  description:
    "Adds a duration to a date. A day that the month has not becomes its last: 2024-01-31 and P1M is 2024-02-29.",
  parameters: object(
    {
      date: { ...MOMENT, description: `The date, ${DATE_EXAMPLES}.` },
      duration: {
        type: "string",
        maxLength: 60,
        description: "Of ISO 8601, as P1M, P2W, P1DT12H, or -P3D for the past.",
      },
      offset: {
        type: "string",
        description: "Write the result under this offset from UTC, as +02:00. For dates that have one.",
      },
    },
    "date",
    "duration",
  ),
  hints: PURE,
  run: (/** @type {any} */ { date, duration: written, offset }) => {
    const sum = duration.add(moment.read(date, "date"), duration.read(written, "duration"));
    if (offset === undefined) return moment.write(sum);
    if (sum.offset === undefined)
      throw new InvalidArguments("/offset: the date has no offset, so it cannot be converted to another");
    return moment.write(moment.under(sum, moment.offset(offset, "offset")));
  },
});

const difference = tool({
  name: "date_difference",
  description:
    "Says how long it is from one date to another: as a duration, as years, months and days, and in days, hours and seconds.",
  parameters: object(
    { from: { ...MOMENT, description: `The one date, ${DATE_EXAMPLES}.` }, to: MOMENT },
    "from",
    "to",
  ),
  hints: PURE,
  run: (/** @type {any} */ { from, to }) => {
    const found = duration.between(moment.read(from, "from"), moment.read(to, "to"));
    return {
      duration: duration.write(found),
      years: found.sign * Math.floor(found.months / 12) || 0,
      months: found.sign * (found.months % 12) || 0,
      days: found.sign * found.days || 0,
      total_days: found.total / moment.DAY,
      total_hours: found.total / 3_600_000,
      total_seconds: found.total / 1000,
    };
  },
});

const workdaysBetween = tool({
  name: "workdays_between",
  description: "Counts the workdays from one date, which counts, to another, which does not.",
  parameters: object({ from: MOMENT, to: MOMENT, ...FREE }, "from", "to"),
  result: { type: "integer" },
  hints: PURE,
  run: (/** @type {any} */ args) =>
    count(moment.read(args.from, "from").day, moment.read(args.to, "to").day, works(args)),
});

const workdaysAdd = tool({
  name: "workdays_add",
  description: "Finds the date that is a number of workdays after a date, or before it.",
  parameters: object(
    {
      date: MOMENT,
      workdays: {
        type: "integer",
        minimum: -50_000,
        maximum: 50_000,
        description: "Less than 0 for the past.",
      },
      ...FREE,
    },
    "date",
    "workdays",
  ),
  result: { type: "string" },
  hints: PURE,
  run: (/** @type {any} */ args) => {
    const read = moment.read(args.date, "date");
    return moment.write({ ...read, day: after(read.day, args.workdays, works(args)) });
  },
});

const range = tool({
  name: "date_range",
  description: "Lists the dates from one to another, that one included, each a step after the one before.",
  parameters: object(
    {
      from: MOMENT,
      to: MOMENT,
      step: { type: "string", description: "A duration, as P1W; P1D if absent." },
      only: { type: "array", items: { enum: NAMES }, description: "Only these days of the week." },
    },
    "from",
    "to",
  ),
  result: { type: "array", items: { type: "string" } },
  hints: PURE,
  run: (/** @type {any} */ { from, to, step = "P1D", only = NAMES }) => {
    const [first, last, by] = [moment.read(from, "from"), moment.read(to, "to"), duration.read(step, "step")];
    const end = moment.milliseconds(last);
    /** @type {string[]} */
    const dates = [];
    for (let index = 0; ; index += 1) {
      // Each is computed from the first date, so that last days of months stay last days.
      const next = duration.add(first, {
        months: by.months * index,
        days: by.days * index,
        milliseconds: by.milliseconds * index,
      });
      if (moment.milliseconds(next) > end) return dates;
      if (index > 0 && moment.milliseconds(next) <= moment.milliseconds(first))
        throw new InvalidArguments("/step: it does not advance: use a duration other than zero");
      if (index >= 20_000 || dates.length >= 1000)
        throw new InvalidArguments("/step: there would be too many: at most 1000 dates in 20000 steps");
      if (only.includes(NAMES[moment.weekday(next.day) - 1])) dates.push(moment.write(next));
    }
  },
});

export default plugin([describe, now, add, difference, workdaysBetween, workdaysAdd, range]);
