// A moment as it is written: a date, optionally with a time of day and an offset.

import { InvalidArguments } from "@toolgate/sdk";

/**
 * @typedef {object} Moment
 * @property {number} day Days since 1970-01-01, in the moment's own offset.
 * @property {number | undefined} time Milliseconds since midnight. `undefined` for a date.
 * @property {number | undefined} offset Minutes east of UTC. `undefined` for a local time.
 */

export const DAY = 86_400_000;

/** The first and the last day whose year has four digits. */
const FIRST = dayOf(1, 1, 1);
const LAST = dayOf(9999, 12, 31);

const CALENDAR = /^(\d{4})-(\d{2})-(\d{2})/;
const WEEK = /^(\d{4})-W(\d{2})-(\d)/;
const ORDINAL = /^(\d{4})-(\d{3})(?!\d)/;
const CLOCK = /^[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,3})\d*)?)?(Z|[+-]\d{2}:?\d{2})?$/i;

/**
 * Days since 1970-01-01.
 * @param {number} year
 * @param {number} month From 1. Numbers beyond a year carry over.
 * @param {number} day
 */
export function dayOf(year, month, day) {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getTime() / DAY;
}

/**
 * Year, month (from 1) and day of the month.
 * @param {number} day
 */
export function partsOf(day) {
  const date = new Date(day * DAY);
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, date: date.getUTCDate() };
}

/**
 * @param {number} year
 * @param {number} month
 */
export const daysIn = (year, month) => dayOf(year, month + 1, 1) - dayOf(year, month, 1);

/**
 * 1 is Monday, 7 is Sunday.
 * @param {number} day
 */
export const weekday = (day) => ((((day + 3) % 7) + 7) % 7) + 1;

/**
 * The ISO week, and its year.
 * @param {number} day
 */
export function weekOf(day) {
  const thursday = day - weekday(day) + 4;
  const { year } = partsOf(thursday);
  return { year, week: Math.floor((thursday - dayOf(year, 1, 1)) / 7) + 1 };
}

/**
 * Reads ISO 8601: `2024-02-29`, `2024-W09-4`, `2024-060`, each optionally with `T12:30:00.250` and `Z` or `+02:00`.
 * @param {string} text
 * @param {string} name The argument, for messages.
 * @returns {Moment}
 */
export function read(text, name) {
  const wrong = (/** @type {string} */ why) =>
    new InvalidArguments(`/${name}: ${JSON.stringify(text)} ${why}`);
  const written = text.trim();
  const found = CALENDAR.exec(written) ?? WEEK.exec(written) ?? ORDINAL.exec(written);
  if (!found) throw wrong("is not an ISO 8601 date such as 2024-02-29 or 2024-02-29T12:30:00+02:00");
  const [whole, first, second, third] = found;
  const year = Number(first);
  if (year === 0) throw wrong("has the year 0: years go from 0001 to 9999");
  let day;
  if (whole.includes("W")) {
    const monday = dayOf(year, 1, 4) - weekday(dayOf(year, 1, 4)) + 1;
    day = monday + (Number(second) - 1) * 7 + Number(third) - 1;
    if (Number(third) < 1 || Number(third) > 7 || Number(second) < 1 || weekOf(day).year !== year)
      throw wrong("names a week that does not exist");
  } else if (third === undefined) {
    day = dayOf(year, 1, Number(second));
    if (partsOf(day).year !== year || Number(second) < 1)
      throw wrong(
        `names a day that does not exist: ${first} has ${dayOf(year + 1, 1, 1) - dayOf(year, 1, 1)} days`,
      );
  } else {
    const [month, date] = [Number(second), Number(third)];
    if (month < 1 || month > 12) throw wrong("names a month that does not exist");
    if (date < 1 || date > daysIn(year, month))
      throw wrong(`names a day that does not exist: ${first}-${second} has ${daysIn(year, month)} days`);
    day = dayOf(year, month, date);
  }
  const rest = written.slice(whole.length);
  if (rest === "") return { day, time: undefined, offset: undefined };
  const clock = CLOCK.exec(rest);
  if (!clock)
    throw wrong(
      "has a time that is not ISO 8601, such as T12:30:00, optionally with Z or an offset such as +02:00",
    );
  const [, hours, minutes, seconds = "0", fraction = "0", zone] = clock;
  const time =
    Number(hours) * 3_600_000 +
    Number(minutes) * 60_000 +
    Number(seconds) * 1000 +
    Number(fraction.padEnd(3, "0"));
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59)
    throw wrong("has a time that does not exist");
  return { day, time, offset: zone === undefined ? undefined : offset(zone, name) };
}

/**
 * Reads `Z`, `+02:00` or `-0530`, in minutes.
 * @param {string} text
 * @param {string} name
 */
export function offset(text, name) {
  const found = /^(?:Z|([+-])(\d{2}):?(\d{2}))$/i.exec(text);
  const minutes = found ? Number(found[2] ?? 0) * 60 + Number(found[3] ?? 0) : Number.NaN;
  if (!found || Number(found[3] ?? 0) > 59 || minutes > 18 * 60) {
    throw new InvalidArguments(
      `/${name}: ${JSON.stringify(text)} is not an offset such as Z or +02:00; time zone names are not known here`,
    );
  }
  return found[1] === "-" ? -minutes : minutes;
}

/**
 * @param {Moment} moment
 * @returns {string}
 */
export function write({ day, time, offset }) {
  if (day < FIRST || day > LAST) throw new InvalidArguments("the date is outside of the years 0001 to 9999");
  const { year, month, date } = partsOf(day);
  const written = `${pad(year, 4)}-${pad(month)}-${pad(date)}`;
  if (time === undefined) return written;
  const milliseconds = time % 1000;
  const clock = `T${pad(Math.floor(time / 3_600_000))}:${pad(Math.floor(time / 60_000) % 60)}:${pad(Math.floor(time / 1000) % 60)}`;
  return `${written}${clock}${milliseconds ? `.${pad(milliseconds, 3)}` : ""}${zone(offset)}`;
}

/** @param {number | undefined} offset */
function zone(offset) {
  if (offset === undefined) return "";
  if (offset === 0) return "Z";
  const minutes = Math.abs(offset);
  return `${offset < 0 ? "-" : "+"}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
}

/**
 * The moment moved by milliseconds. The day follows.
 * @param {Moment} moment
 * @param {number} milliseconds
 * @returns {Moment}
 */
export function later({ day, time = 0, offset }, milliseconds) {
  const total = time + milliseconds;
  const days = Math.floor(total / DAY);
  return { day: day + days, time: total - days * DAY, offset };
}

/**
 * The same instant, written with another offset.
 * @param {Moment} moment
 * @param {number} offset
 */
export function under(moment, offset) {
  return { ...later(moment, (offset - (moment.offset ?? offset)) * 60_000), offset };
}

/**
 * Milliseconds since 1970: of the instant if the moment has an offset, otherwise of the calendar.
 * @param {Moment} moment
 */
export const milliseconds = ({ day, time = 0, offset = 0 }) => day * DAY + time - offset * 60_000;

function pad(/** @type {number} */ number, digits = 2) {
  return String(number).padStart(digits, "0");
}
