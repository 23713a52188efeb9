// What is said where a question was: who answered it, when, with what. Never an error page.
import { h } from "../../lib/dom.js";
import { ApiError } from "../../lib/error.js";
import { absolute } from "../../lib/format.js";
import { ago } from "../time.js";

/** @typedef {{ resolvedAt?: string, resolvedBy?: string, outcome?: string, sequence?: number }} Settled */

/** The details, where an error says that somebody was faster. @param {unknown} error @returns {Settled | null} */
export function settledBy(error) {
  return error instanceof ApiError && error.code === "interrupt_already_resolved" ? error.details : null;
}

/** @param {Settled} settled */
export function settledText({ resolvedAt, resolvedBy, outcome }) {
  return `Already resolved${outcome ? ` (${outcome})` : ""}${resolvedBy ? ` by ${resolvedBy === "link" ? "a signed link" : resolvedBy}` : ""}${resolvedAt ? ` at ${absolute(resolvedAt)}` : ""}`;
}

/** @param {Settled} settled @param {...import("../../lib/dom.js").Child} more */
export function settledNote(settled, ...more) {
  const { resolvedAt, resolvedBy, outcome } = settled;
  return h("div", { class: "settled", role: "status" },
    h("p", null, h("strong", null, resolvedAt || resolvedBy ? "Already resolved" : "No longer open"), resolvedBy && [" by ", resolvedBy === "link" ? "a signed link" : h("code", null, resolvedBy)], resolvedAt && [" at ", absolute(resolvedAt), h("span", { class: "muted" }, " (", ago(resolvedAt), ")")], "."),
    outcome && h("p", { class: "muted" }, `Outcome: ${outcome}. Nothing you had typed here was sent.`), ...more);
}
