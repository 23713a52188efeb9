// Programs of users' own that do steps of runs: which are connected, what they bring, how much they have in hand.
import { ago } from "../../components/time.js";
import { h } from "../../lib/dom.js";
import { number, plural } from "../../lib/format.js";
import { card } from "./facts.js";

/** @typedef {import("../../types.js").Runner} Runner */

/** @param {{ runners: Runner[] } | null} list absent for keys that may not see it, and until it was asked for */
export function runnersCard(list) {
  if (!list || list.runners.length === 0) return null;
  const here = list.runners.filter((one) => one.connected).length;
  return card(["Runners ", h("span", { class: "muted" }, `${number(here)} of ${number(list.runners.length)} connected`)],
    h("div", { class: "sys-table" }, h("table", { class: "dense sys-discovery" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Runner"), h("th", { scope: "col" }, "State"), h("th", { scope: "col" }, "Tools"))),
      h("tbody", null, list.runners.map(row)))));
}

/** @param {Runner} one */
function row(one) {
  const word = one.draining ? "stopping" : one.connected ? "connected" : "away";
  return h("tr", null,
    h("th", { scope: "row" }, h("code", null, one.pool ?? one.runnerId), h("div", { class: "muted small wrap-any" }, one.pool ? one.runnerId : one.subject, one.version && `, version ${one.version}`)),
    h("td", null, h("span", { class: ["advert", one.connected && !one.draining ? "good" : "muted"] }, word),
      h("div", { class: "muted small" }, `${plural(one.inFlight, "call")} of ${number(one.maxConcurrency)}, seen `, ago(one.lastSeenAt))),
    h("td", null, one.tools.length === 0 ? h("span", { class: "muted" }, "none") : h("span", { class: "wrap-any" }, one.tools.join(", "))));
}
