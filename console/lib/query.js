// The language of filter boxes: `status:waiting workflow:research since:24h cost>0.5 some words`.
// Text to terms and back; each screen says which names it knows. Unknown names are told, never ignored.

/** @typedef {":" | ">" | "<" | ">=" | "<="} Sign */
/** @typedef {{ name: string, sign: Sign, value: string }} Term */
/** @typedef {{ terms: Term[], words: string[] }} Query */

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} hint what it means, for the menu
 * @property {string[]} [values] what may stand there; shown as choices
 * @property {Sign[]} [signs] `:` unless said otherwise
 * @property {(value: string) => boolean} [valid]
 */

const TOKEN = /(?:([A-Za-z][\w-]*)(:|>=|<=|>|<))?(?:"((?:[^"\\]|\\.)*)"?|(\S+))/g;

/** @param {string} text @returns {Query} */
export function parseQuery(text) {
  /** @type {Query} */
  const query = { terms: [], words: [] };
  for (const [, name, sign, quoted, plain] of text.matchAll(TOKEN)) {
    const value = quoted === undefined ? plain ?? "" : quoted.replace(/\\(.)/g, "$1");
    if (name && sign) query.terms.push({ name: name.toLowerCase(), sign: /** @type {Sign} */ (sign), value });
    else query.words.push(value);
  }
  return query;
}

/** @param {string} value */
function quote(value) {
  return /^[^\s"]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** @param {Query} query */
export function writeQuery({ terms, words }) {
  return [...terms.map(writeTerm), ...words.map(quote)].join(" ");
}

/** @param {Term} term */
export function writeTerm({ name, sign, value }) {
  return `${name}${sign}${quote(value)}`;
}

/** The first value of a name. @param {Query} query @param {string} name */
export function valueOf(query, name) {
  return query.terms.find((term) => term.name === name)?.value;
}

/** All values of a name; `a,b` counts as two. @param {Query} query @param {string} name */
export function valuesOf(query, name) {
  return query.terms.filter((term) => term.name === name).flatMap((term) => term.value.split(",")).filter(Boolean);
}

/** What is wrong with a query, in words; empty when nothing is. @param {Query} query @param {Field[]} fields @returns {string[]} */
export function problems(query, fields) {
  const known = new Map(fields.map((field) => [field.name, field]));
  return query.terms.flatMap((term) => {
    const field = known.get(term.name);
    if (!field) return [`There is no filter “${term.name}”. Known: ${[...known.keys()].join(", ")}.`];
    const signs = field.signs ?? [":"];
    if (!signs.includes(term.sign)) return [`“${term.name}” is written ${term.name}${signs[0]}…`];
    const values = term.value.split(",");
    if (field.values && !values.every((value) => field.values?.includes(value))) {
      return [`“${term.value}” is no ${term.name}. Choose among ${field.values.join(", ")}.`];
    }
    return field.valid && !field.valid(term.value) ? [`“${writeTerm(term)}” cannot be read: ${field.hint}.`] : [];
  });
}

const UNITS = { s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `90s`, `15m`, `24h`, `7d` in milliseconds; null when it is none. @param {string} text */
export function span(text) {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(s|m|min|h|d|w)$/.exec(text) ?? [];
  return count && unit ? Number(count) * UNITS[/** @type {keyof typeof UNITS} */ (unit)] : null;
}

/** An instant: a span before now, or a date. @param {string} text @param {number} [now] @returns {string | null} RFC 3339 */
export function instant(text, now = Date.now()) {
  const ago = span(text);
  if (ago !== null) return new Date(now - ago).toISOString();
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}
