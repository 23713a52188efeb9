// What is different between two values or two texts. Pure; `components/diff-view.js` shows it.

/** @typedef {{ path: string, kind: "added" | "removed" | "changed", before?: unknown, after?: unknown }} Change */
/** @typedef {{ kind: "same" | "added" | "removed", text: string, before?: number, after?: number }} Line */

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The changes between two JSON values, by JSON pointer. Stops at `most`; the last argument collects whether it did.
 * @param {unknown} before @param {unknown} after @param {number} [most] @returns {{ changes: Change[], truncated: boolean }}
 */
export function diffJson(before, after, most = 2000) {
  /** @type {Change[]} */
  const changes = [];
  let truncated = false;
  /** @param {unknown} a @param {unknown} b @param {string} path */
  const walk = (a, b, path) => {
    if (Object.is(a, b)) return;
    if (changes.length >= most) {
      truncated = true;
      return;
    }
    if (isObject(a) && isObject(b)) {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
        const here = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
        if (!(name in b)) changes.push({ path: here, kind: "removed", before: a[name] });
        else if (!(name in a)) changes.push({ path: here, kind: "added", after: b[name] });
        else walk(a[name], b[name], here);
      }
    } else if (Array.isArray(a) && Array.isArray(b)) {
      for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
        if (i >= b.length) changes.push({ path: `${path}/${i}`, kind: "removed", before: a[i] });
        else if (i >= a.length) changes.push({ path: `${path}/${i}`, kind: "added", after: b[i] });
        else walk(a[i], b[i], `${path}/${i}`);
      }
    } else changes.push({ path, kind: "changed", before: a, after: b });
  };
  walk(before, after, "");
  return { changes, truncated };
}

/** More differing lines than this are shown as one block replaced by another: the exact path would cost a second. */
const MOST_EDITS = 2000;

/** Lines of two texts, aligned (Myers). @param {string} before @param {string} after @returns {Line[]} */
export function diffText(before, after) {
  const [a, b] = [before === "" ? [] : before.split("\n"), after === "" ? [] : after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  /** @type {Line[]} */
  const lines = [];
  const same = (/** @type {number} */ i, /** @type {number} */ j) =>
    lines.push({ kind: "same", text: a[i] ?? "", before: i + 1, after: j + 1 });
  for (let i = 0; i < start; i += 1) same(i, i);
  for (const edit of middle(a, b, start, endA, start, endB)) lines.push(edit);
  for (let i = endA; i < a.length; i += 1) same(i, i - endA + endB);
  return lines;
}

/** @param {string[]} a @param {string[]} b @param {number} a0 @param {number} a1 @param {number} b0 @param {number} b1 @returns {Line[]} */
function middle(a, b, a0, a1, b0, b1) {
  const [n, m] = [a1 - a0, b1 - b0];
  /** @type {Int32Array[]} */
  const trace = [];
  const most = Math.min(n + m, MOST_EDITS);
  const offset = most + 1;
  const reach = new Int32Array(2 * most + 3);
  for (let d = 0; d <= most; d += 1) {
    trace.push(reach.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && at(reach, offset + k - 1) < at(reach, offset + k + 1));
      let x = down ? at(reach, offset + k + 1) : at(reach, offset + k - 1) + 1;
      let y = x - k;
      while (x < n && y < m && a[a0 + x] === b[b0 + y]) [x, y] = [x + 1, y + 1];
      reach[offset + k] = x;
      if (x >= n && y >= m) return walkBack(a, b, a0, b0, trace, n, m);
    }
  }
  /** @type {Line[]} */
  const block = [];
  for (let i = a0; i < a1; i += 1) block.push({ kind: "removed", text: a[i] ?? "", before: i + 1 });
  for (let j = b0; j < b1; j += 1) block.push({ kind: "added", text: b[j] ?? "", after: j + 1 });
  return block;
}

/** @param {Int32Array} array @param {number} index */
const at = (array, index) => array[index] ?? 0;

/** @param {string[]} a @param {string[]} b @param {number} a0 @param {number} b0 @param {Int32Array[]} trace @param {number} x @param {number} y @returns {Line[]} */
function walkBack(a, b, a0, b0, trace, x, y) {
  /** @type {Line[]} */
  const lines = [];
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const reach = /** @type {Int32Array} */ (trace[d]);
    const k = x - y;
    const down = k === -d || (k !== d && at(reach, k - 1 + d + 1) < at(reach, k + 1 + d + 1));
    const from = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : at(reach, from + d + 1);
    const fromY = d === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) {
      [x, y] = [x - 1, y - 1];
      lines.push({ kind: "same", text: a[a0 + x] ?? "", before: a0 + x + 1, after: b0 + y + 1 });
    }
    if (d === 0) break;
    if (down) lines.push({ kind: "added", text: b[b0 + y - 1] ?? "", after: b0 + y });
    else lines.push({ kind: "removed", text: a[a0 + x - 1] ?? "", before: a0 + x });
    [x, y] = [fromX, fromY];
  }
  return lines.reverse();
}
