// How numbers, times and ids are written. Thin spaces between thousands, so that columns of digits stay readable.

const THIN = "\u202f";

/** @param {number} value @param {number} [digits] */
export function number(value, digits = 0) {
  const [whole = "", part] = Math.abs(value).toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, THIN);
  return `${value < 0 ? "−" : ""}${grouped}${part ? `.${part}` : ""}`;
}

/** `1 run`, `12 runs`. @param {number} count @param {string} one @param {string} [many] */
export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** Tokens: exact below 100 000, then in thousands and millions. @param {number | null | undefined} count */
export function tokens(count) {
  if (count === null || count === undefined) return "–";
  if (count < 100_000) return number(count);
  return count < 10_000_000 ? `${number(count / 1000)}${THIN}k` : `${number(count / 1_000_000, 1)}${THIN}M`;
}

/** Dollars, with as many digits as it takes to see a small amount. @param {number | null | undefined} usd */
export function cost(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd === 0) return "$0";
  const digits = usd >= 1 ? 2 : usd >= 0.01 ? 3 : 5;
  return usd < 0.00001 ? "<$0.00001" : `$${number(usd, digits)}`;
}

/** @param {number | null | undefined} count */
export function bytes(count) {
  if (count === null || count === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${number(value, unit > 0 && value < 10 ? 1 : 0)}${THIN}${units[unit]}`;
}

/** A length of time, with the two units that matter. @param {number} ms @returns {string} */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)}${THIN}ms`;
  if (ms < 60_000) return `${number(ms / 1000, ms < 10_000 ? 1 : 0)}${THIN}s`;
  const [seconds, minutes, hours, days] = [ms / 1000, ms / 60_000, ms / 3_600_000, ms / 86_400_000].map(Math.floor);
  const pair = (/** @type {number} */ a, /** @type {string} */ x, /** @type {number} */ b, /** @type {string} */ y) =>
    b === 0 ? `${number(a)}${THIN}${x}` : `${number(a)}${THIN}${x} ${b}${THIN}${y}`;
  if (/** @type {number} */ (hours) < 1) return pair(/** @type {number} */ (minutes), "min", /** @type {number} */ (seconds) % 60, "s");
  if (/** @type {number} */ (days) < 1) return pair(/** @type {number} */ (hours), "h", /** @type {number} */ (minutes) % 60, "min");
  return pair(/** @type {number} */ (days), "d", /** @type {number} */ (hours) % 24, "h");
}

/** `00:03:12`. @param {number} ms */
export function clock(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** `3 min ago`, `in 23 h`. @param {string | number | Date} at @param {number} [now] */
export function relative(at, now = Date.now()) {
  const gap = now - new Date(at).getTime();
  const size = Math.abs(gap);
  if (size < 5000) return "now";
  const text =
    size < 60_000 ? `${Math.round(size / 1000)}${THIN}s`
    : size < 3_600_000 ? `${Math.floor(size / 60_000)}${THIN}min`
    : size < 172_800_000 ? `${Math.floor(size / 3_600_000)}${THIN}h`
    : `${number(Math.floor(size / 86_400_000))}${THIN}d`;
  return gap >= 0 ? `${text} ago` : `in ${text}`;
}

/** Local time with its offset, to the millisecond. @param {string | number | Date} at */
export function absolute(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const two = (/** @type {number} */ n, width = 2) => String(n).padStart(width, "0");
  const offset = -date.getTimezoneOffset();
  const zone = `${offset < 0 ? "−" : "+"}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)} ${zone}`;
}

/**
 * Enough of an id to tell it from its neighbours. Ids that begin with the time differ at their end, others at their
 * beginning, so both are shown.
 * @param {string} id
 */
export function shortId(id) {
  const [, prefix = "", rest = id] = /^([a-z]+_)?(.*)$/s.exec(id) ?? [];
  return rest.length <= 10 ? id : `${prefix}${rest.slice(0, 2)}…${rest.slice(-6)}`;
}

/** `waiting-approval` as people say it. @param {string} status */
export function statusWord(status) {
  return status.replace(/^waiting-/, "waiting: ").replaceAll("-", " ");
}

/** One line of any JSON value. @param {unknown} value @param {number} [most] */
export function excerpt(value, most = 120) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  const line = text.slice(0, most * 2).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
