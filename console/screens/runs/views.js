// The views of the list of runs, and beside them the way to what the host leaves alone.
import { h } from "../../lib/dom.js";
import { number, plural } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { computed } from "../../lib/signal.js";
import { DEFAULT, VIEWS } from "./filter.js";

/** The query of a filter: absent means the default, `*` means everything. @param {string} text */
export const queryOf = (text) => ({ q: text === DEFAULT ? null : text || "*" });

/** @param {string | null} text the filter that is shown, null when it is none of them */
export function viewLinks(text) {
  return h("nav", { class: "views", "aria-label": "Views" }, VIEWS.map((view) =>
    link(address("/runs", {}, queryOf(view.text)), { "aria-current": view.text === text ? "page" : null }, view.label)));
}

/** Only there when there is something in it. @param {ReturnType<typeof import("../../lib/quarantine.js").heldTrees>} trees @param {boolean} [here] */
export function heldEntry({ list, more }, here = false) {
  const count = computed(() => list.value?.length ?? 0);
  return h("span", { class: "held-entry", role: "status" }, () => count.value > 0 && link(address("/quarantine"), {
    "aria-current": here ? "page" : null,
    title: `The host leaves ${plural(count.value, "tree")} of runs alone until somebody decides`,
  }, "In quarantine", h("span", { class: "count" }, `${number(count.value)}${more.value ? "+" : ""}`)));
}
