// What fits into a few lines: health, runs, recovery, limits, build.
import { statusMark } from "../../components/status.js";
import { ago } from "../../components/time.js";
import { h } from "../../lib/dom.js";
import { bytes, duration, number, plural } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { facts } from "../run/panels/parts.js";

/** A part of the page with its name. @param {import("../../lib/dom.js").Child} title @param {...import("../../lib/dom.js").Child} children @returns {HTMLElement} */
export function card(title, ...children) {
  return h("section", { class: "card sys-card" }, h("h2", null, title), ...children);
}

/** Where a key may not see it. @param {string} title */
export const closed = (title) => card(title, h("p", { class: "muted" }, "Only for keys with the scope ", h("code", null, "host:operate"), ", which no key has unless it is named: this concerns the host and all its tenants."));

/** @typedef {{ ok: boolean, text: string, took: number }} Readiness what `/readiness` said, and how long an answer took */

/** Whether the host does its work, as it says itself and as this page found it. @param {Readiness | null} readiness @param {{ ready: boolean, trouble?: string, open: number, unknown: number | null }} state */
export function healthCard(readiness, { ready, trouble, open, unknown }) {
  const good = ready && (readiness?.ok ?? true);
  return card("Health", h("p", { class: ["sys-verdict", good ? "good" : "bad"] }, h("strong", null, good ? "Ready" : "Not ready"), h("span", { class: "muted" }, good ? " It takes and advances runs." : " It answers, and does not take new work.")),
    trouble && h("p", { class: "bad-text" }, trouble),
    h("dl", { class: "facts" },
      h("dt", null, "/readiness"), h("dd", null, readiness?.text ?? "not asked"),
      h("dt", null, "Answered in"), h("dd", null, readiness ? duration(Math.max(1, Math.round(readiness.took))) : "–"),
      h("dt", null, "Questions open"), h("dd", null, open > 0 ? link(address("/inbox"), null, number(open)) : "none"),
      unknown !== null && [h("dt", null, "Unknown calls"), h("dd", { class: unknown > 0 ? "wait-text" : "" }, unknown > 0 ? `${number(unknown)} since the start` : "none")]));
}

/** @param {import("../../types.js").SystemReport["runs"]} runs */
export function runsCard({ total, byStatus }) {
  const all = Object.entries(byStatus).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...all.map(([, count]) => count));
  return card(["Runs ", h("span", { class: "muted" }, number(total))], all.length === 0 ? h("p", { class: "muted" }, "None yet.")
    : h("ul", { class: "sys-bars" }, all.map(([status, count]) => h("li", null,
        link(address("/runs", {}, { q: `status:${status}` }), { class: "plain" }, statusMark(status)), bar(count / most), h("span", { class: "num" }, number(count))))));
}

/** @param {number} share */
export function bar(share) {
  return h("span", { class: "sys-bar", "aria-hidden": "true" }, h("i", { style: { width: `${Math.max(share > 0 ? 1 : 0, Math.round(share * 100))}%` } }));
}

/** @param {{ recovery?: { at: string, found: number, resumed: number }, unknownCalls: number, generation: number } | null} told */
export function recoveryCard(told) {
  if (!told) return closed("Recovery");
  const { recovery, unknownCalls, generation } = told;
  const missing = recovery ? recovery.found - recovery.resumed : 0;
  return card("Recovery at the last start",
    recovery && h("p", null, recovery.found === 0 ? "Nothing was left unfinished." : missing === 0 ? `All of ${plural(recovery.found, "unfinished run")} went on.` : h("span", { class: "bad-text" }, `${number(missing)} of ${plural(recovery.found, "unfinished run")} did not go on. The log says why.`)),
    facts([
      ["Looked", recovery ? ago(recovery.at) : "not yet"],
      recovery && ["Runs found", number(recovery.found)],
      recovery && ["Runs resumed", number(recovery.resumed)],
      ["Unknown calls", unknownCalls > 0 ? h("span", { class: "wait-text" }, `${number(unknownCalls)} since then: nobody knew whether they took place`) : "none since then"],
      ["Failed commits", generation > 1 ? h("span", { class: "wait-text" }, number(generation - 1)) : "none"],
    ]));
}

/** How each limit is called and written. @type {Record<string, [string, (value: number) => string]>} */
const LIMITS = {
  maxNodeExecutions: ["Node executions of a run", number], maxLoopIterations: ["Rounds of a loop", number], maxRunDurationMs: ["Duration of a run", duration],
  maxFanOut: ["Workers at once", number], maxNestingDepth: ["Depth of a tree", number], maxChildrenPerTree: ["Runs below one", number],
  maxMemoryEntries: ["Entries of a scope", number], maxMemoryEntryBytes: ["Size of an entry", bytes], maxWorkspaceFiles: ["Files", number], maxWorkspaceFileBytes: ["Size of a file", bytes],
  maxRequestBodyBytes: ["Size of a request", bytes], maxBudgetTokens: ["Tokens of a budget", (value) => (value === 0 ? "no ceiling" : number(value))], maxBudgetCostCents: ["Cost of a budget", (value) => (value === 0 ? "no ceiling" : `$${number(value / 100, 2)}`)],
};

/** @param {Record<string, number>} limits */
export function limitsCard(limits) {
  return card("Limits", h("dl", { class: "facts sys-limits" }, Object.entries(limits).map(([name, value]) => {
    const [label, write] = LIMITS[name] ?? [name, number];
    return [h("dt", { title: name }, label), h("dd", null, write(value))];
  })));
}

/** @param {any[]} told version, build, licence, host id, instance */
export function buildCard([version, build, licence, hostId, instance]) {
  return card("Build", facts([
    ["Version", version], ["Build", build], ["Host", h("code", null, hostId)], ["Instance", h("code", { title: "Another one after each start" }, instance)],
    ["Licence", h("span", null, licence, h("span", { class: "muted" }, ", for Baton itself"))],
    ["Console", "part of the binary; no script, font or request from anywhere else"],
  ]), h("p", { class: "muted small" }, "The libraries it is built with have licences of their own; the host does not list them here, its lock file names them."));
}
