// The links to MCP servers, model providers and other hosts: which work, since when, and why the others do not.
import { ago } from "../../components/time.js";
import { told } from "../../lib/connections.js";
import { h } from "../../lib/dom.js";
import { number, plural } from "../../lib/format.js";
import { card, closed } from "./facts.js";

/** @typedef {import("../../types.js").Connection} Connection */
const KINDS = { mcp: "MCP server", provider: "Model provider", remote: "Other host" };

/** @param {Connection[] | null | undefined} all absent for keys that may not see it */
export function connectionsCard(all) {
  if (!all) return closed("Connections");
  const failing = all.filter((one) => one.failures > 0).length;
  return card(["Connections ", h("span", { class: "muted" }, failing > 0 ? `${number(failing)} of ${number(all.length)} failing` : number(all.length))],
    all.length === 0 ? h("p", { class: "muted" }, "No MCP server, model provider or other host is configured.")
      : h("div", { class: "sys-table" }, h("table", { class: "dense sys-discovery" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Name"), h("th", { scope: "col" }, "State"), h("th", { scope: "col" }, "Details"))),
        h("tbody", null, all.map(row)))));
}

/** @param {Connection} one */
function row(one) {
  const { word, tone } = told(one);
  return h("tr", null,
    h("th", { scope: "row" }, h("code", null, one.name), h("div", { class: "muted small" }, KINDS[one.kind] ?? one.kind)),
    h("td", null, h("span", { class: ["advert", tone] }, word)),
    h("td", null,
      h("span", { class: "muted" }, "since ", ago(one.since), one.tools !== undefined && `, ${plural(one.tools, "tool")}`, one.failures > 0 && `, ${plural(one.failures, "failure")} in a row`, one.nextAttempt && [", next attempt ", ago(one.nextAttempt)]),
      one.leftOut && h("div", { class: "muted wrap-any" }, one.leftOut),
      one.reason && h("div", { class: "bad-text wrap-any" }, one.reason),
      one.stderr && one.stderr.length > 0 && h("details", null, h("summary", null, "What it said last"), h("pre", { class: "box wrap-any small" }, one.stderr.join("\n")))));
}
