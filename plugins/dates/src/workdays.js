// Workdays: no weekends, and no holidays that the caller names.

import { InvalidArguments } from "@toolgate/sdk";
import { read, weekday } from "./moment.js";

export const NAMES = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/** The most days that are checked, one by one: 270 years. */
const MAX_DAYS = 100_000;

/**
 * Returns a function that tells whether a day is a workday.
 * @param {readonly string[]} weekend
 * @param {readonly string[]} holidays
 */
export function calendar(weekend, holidays) {
  const free = new Set(weekend.map((name) => NAMES.indexOf(name) + 1));
  if (free.size === 7) throw new InvalidArguments("/weekend: nobody works on any day");
  const off = new Set(holidays.map((text, index) => read(text, `holidays/${index}`).day));
  return (/** @type {number} */ day) => !free.has(weekday(day)) && !off.has(day);
}

/**
 * The number of workdays from one day to another, which is not counted.
 * @param {number} from
 * @param {number} to
 * @param {(day: number) => boolean} works
 */
export function count(from, to, works) {
  if (Math.abs(to - from) > MAX_DAYS)
    throw new InvalidArguments(`/to: at most ${MAX_DAYS} days from the other`);
  let found = 0;
  const step = to < from ? -1 : 1;
  for (let day = from; day !== to; day += step) if (works(day)) found += step;
  return found;
}

/**
 * The day that is this many workdays later or earlier.
 * @param {number} from
 * @param {number} workdays
 * @param {(day: number) => boolean} works
 */
export function after(from, workdays, works) {
  const step = workdays < 0 ? -1 : 1;
  let day = from;
  for (let left = Math.abs(workdays), looked = 0; left > 0; ) {
    day += step;
    looked += 1;
    if (looked > MAX_DAYS) throw new InvalidArguments(`/workdays: there are fewer within ${MAX_DAYS} days`);
    if (works(day)) left -= 1;
  }
  return day;
}
