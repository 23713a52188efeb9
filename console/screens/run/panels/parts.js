// What panels are made of: sections, facts, links to a sequence, and what "before" means.
import { h } from "../../../lib/dom.js";
import { number, shortId } from "../../../lib/format.js";
import { address, link } from "../../../lib/router.js";
import { computed } from "../../../lib/signal.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {import("../../../types.js").RunEvent} RunEvent */
/** @typedef {import("../../../lib/dom.js").Child} Child */

/** @param {Child} title @param {...Child} children @returns {HTMLElement} */
export function section(title, ...children) {
  return h("section", { class: "in-section" }, h("h2", null, title), ...children);
}

/** The same, with something to do beside the title. @param {Child} title @param {Child} tools @param {...Child} children @returns {HTMLElement} */
export function titled(title, tools, ...children) {
  return h("section", { class: "in-section" }, h("div", { class: "in-head" }, h("h2", { class: "wrap-any" }, title), tools), ...children);
}

/** Names and what they stand for; entries without a value are left out. @param {([string, Child] | null | false | undefined)[]} entries */
export function facts(entries) {
  return h("dl", { class: "facts" }, entries.map((entry) => {
    if (!entry) return null;
    const [name, value] = entry;
    if (value === null || value === undefined || value === false || value === "") return null;
    return [h("dt", null, name), h("dd", null, value)];
  }));
}

/** @param {...Child} children */
export const note = (...children) => h("p", { class: "in-note muted" }, ...children);

/** Moves the playhead. @param {RunContext} ctx @param {number} seq @param {Child} [label] */
export function seqLink(ctx, seq, label) {
  const here = () => address("/runs/:runId", { runId: ctx.runId }, { ...Object.fromEntries(ctx.screen.query.peek()), seq });
  return h("a", { class: "seq", href: here(), onClick: (/** @type {MouseEvent} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    ctx.moveTo(seq);
  } }, label ?? `#${number(seq)}`);
}

/** @param {string} runId @param {Child} [label] */
export function runLink(runId, label) {
  return link(address("/runs/:runId", { runId }), { class: "mono", title: runId }, label ?? shortId(runId));
}

/** A piece of data: a line where a line will do, a box otherwise. @param {unknown} value @param {(value: unknown) => HTMLElement} view */
export function data(value, view) {
  if (value === undefined) return h("p", { class: "muted" }, "Nothing.");
  if (typeof value === "string" && value.includes("\n")) return h("pre", { class: "box" }, value);
  return h("div", { class: "box" }, view(value));
}

const MOST_TEXT = 200_000;

/** A text, the beginning first where it is very long. @param {string} content */
export function longText(content) {
  const box = h("pre", { class: "box file-box", tabindex: "0", role: "region", "aria-label": "Content" }, content.slice(0, MOST_TEXT));
  if (content.length <= MOST_TEXT) return box;
  const more = h("button", { type: "button", class: "small", onClick: () => ((box.textContent = content), more.remove()) }, `Show all ${number(content.length)} characters`);
  return h("div", { class: "stack" }, box, more);
}

/** A value that follows from others and stays the same object while its key does, so that nothing is drawn anew for nothing. @template T @param {() => T} derive @param {(value: T) => string} key @returns {import("../../../lib/signal.js").Signal<T>} */
export function stable(derive, key) {
  /** @type {{ key: string, value: T } | null} */
  let last = null;
  return computed(() => {
    const value = derive();
    const now = key(value);
    if (!last || last.key !== now) last = { key: now, value };
    return last.value;
  });
}

/** The events of a log up to a sequence, newest first. @param {RunContext} ctx @param {number} seq @returns {Generator<RunEvent>} */
export function* backwards(ctx, seq) {
  for (let at = Math.min(seq, ctx.log.newest.peek()); at >= 0; at -= 1) {
    const event = ctx.log.at(at);
    if (event) yield event;
  }
}

/** The events of a log from a sequence on. @param {RunContext} ctx @param {number} seq @param {number} [until] @returns {Generator<RunEvent>} */
export function* onwards(ctx, seq, until = ctx.log.newest.peek()) {
  for (let at = Math.max(0, seq); at <= until; at += 1) {
    const event = ctx.log.at(at);
    if (event) yield event;
  }
}

/** The events of a call, an invocation, a question: those that `belongs` accepts. @param {RunContext} ctx @param {number} seq @param {(event: RunEvent) => boolean} belongs @param {(event: RunEvent) => boolean} begins @param {(event: RunEvent) => boolean} ends */
export function bracket(ctx, seq, belongs, begins, ends) {
  /** @type {RunEvent[]} */
  const found = [];
  for (const event of backwards(ctx, seq)) {
    if (!belongs(event)) continue;
    found.unshift(event);
    if (begins(event)) break;
  }
  if (found.some(ends)) return found;
  for (const event of onwards(ctx, seq + 1)) {
    if (!belongs(event)) continue;
    if (begins(event)) break;
    found.push(event);
    if (ends(event)) break;
  }
  return found;
}
