// ISO 8601 durations, and the difference between two moments.

import { InvalidArguments } from "@toolgate/sdk";
import { DAY, dayOf, daysIn, later, milliseconds, partsOf, under } from "./moment.js";

/**
 * @typedef {import("./moment.js").Moment} Moment
 *
 * @typedef {object} Duration
 * @property {number} months
 * @property {number} days
 * @property {number} milliseconds
 */

const WRITTEN =
  /^([+-])?P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,3}))?S)?)?$/i;

/**
 * Reads `P1Y2M3W4DT5H6M7.5S`. Each part is optional, and a leading `-` means the past.
 * @param {string} text
 * @param {string} name
 * @returns {Duration}
 */
export function read(text, name) {
  const found = WRITTEN.exec(text.trim());
  if (!found)
    throw new InvalidArguments(
      `/${name}: ${JSON.stringify(text)} is not an ISO 8601 duration such as P1M or P2DT6H30M`,
    );
  const sign = found[1] === "-" ? -1 : 1;
  const part = (/** @type {number} */ at) => Number(found[at] ?? 0);
  const duration = {
    months: sign * (part(2) * 12 + part(3)),
    days: sign * (part(4) * 7 + part(5)),
    milliseconds:
      sign *
      (part(6) * 3_600_000 + part(7) * 60_000 + part(8) * 1000 + Number((found[9] ?? "0").padEnd(3, "0"))),
  };
  if (
    Math.abs(duration.months) > 120_000 ||
    Math.abs(duration.days) > 3_660_000 ||
    Math.abs(duration.milliseconds) > 3_660_000 * DAY
  ) {
    throw new InvalidArguments(`/${name}: ${JSON.stringify(text)} is longer than the calendar's 9999 years`);
  }
  return duration;
}

/**
 * Adds months first, and shortens to the last day of a shorter month. Then adds days, then hours, minutes and seconds.
 * @param {Moment} moment
 * @param {Duration} duration
 * @returns {Moment}
 */
export function add(moment, duration) {
  const { year, month, date } = partsOf(moment.day);
  const first = partsOf(dayOf(year, month + duration.months, 1));
  const day = dayOf(first.year, first.month, Math.min(date, daysIn(first.year, first.month))) + duration.days;
  const moved = { ...moment, day };
  return duration.milliseconds === 0 ? moved : later(moved, duration.milliseconds);
}

/**
 * The difference between two moments.
 * @param {Moment} from
 * @param {Moment} to
 */
export function between(from, to) {
  if (
    (from.offset === undefined) !== (to.offset === undefined) &&
    from.time !== undefined &&
    to.time !== undefined
  ) {
    throw new InvalidArguments(
      "one of the two has an offset from UTC and the other does not: give both an offset, or neither",
    );
  }
  const end = from.offset === undefined ? to : under(to, from.offset);
  const total = milliseconds(end) - milliseconds(from);
  const sign = total < 0 ? -1 : 1;
  // Months are counted from the earlier moment.
  const [start, stop] = total < 0 ? [end, from] : [from, end];
  const [a, b] = [partsOf(start.day), partsOf(stop.day)];
  let months = (b.year - a.year) * 12 + b.month - a.month;
  const after = (/** @type {number} */ count) => add(start, { months: count, days: 0, milliseconds: 0 });
  if (milliseconds(after(months)) > milliseconds(stop)) months -= 1;
  const rest = milliseconds(stop) - milliseconds(after(months));
  return { sign, total, months, days: Math.floor(rest / DAY), milliseconds: rest % DAY };
}

/**
 * @param {{ sign: number, months: number, days: number, milliseconds: number }} duration
 */
export function write({ sign, months, days, milliseconds }) {
  const part = (/** @type {number} */ count, /** @type {string} */ unit) => (count ? `${count}${unit}` : "");
  const seconds = (milliseconds % 60_000) / 1000;
  const date = part(Math.floor(months / 12), "Y") + part(months % 12, "M") + part(days, "D");
  const time =
    part(Math.floor(milliseconds / 3_600_000), "H") +
    part(Math.floor(milliseconds / 60_000) % 60, "M") +
    part(seconds, "S");
  const written = date + (time && `T${time}`);
  return written ? `${sign < 0 ? "-" : ""}P${written}` : "P0D";
}
