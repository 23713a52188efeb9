// "Copy as: curl | baton | JSON | link", the same everywhere.
import { asBaton, asCurl, asJson, copy } from "../lib/copy.js";
import { h } from "../lib/dom.js";
import { toastError } from "../lib/toast.js";
import { menuButton } from "./menu.js";

/** @param {() => import("../lib/copy.js").Copyable} what asked when it is opened @param {{ label?: string, class?: string }} [options] */
export function copyMenu(what, options = {}) {
  return menuButton(options.label ?? "Copy as", () => copyItems(what()), { class: options.class ?? "quiet small", title: "Copy as" });
}

/** The entries, for menus that have more. @param {import("../lib/copy.js").Copyable} what @returns {import("./menu.js").MenuItem[]} */
export function copyItems({ request, baton, batonNote, json, link }) {
  return [
    request ? { label: "Copy as curl", note: "request", run: () => copy(asCurl(request), "curl command") } : null,
    baton ? { label: "Copy as baton", note: batonNote ?? "command", run: () => copy(asBaton(baton), "baton command") } : null,
    json === undefined ? null : { label: "Copy as JSON", run: () => copyJson(json) },
    { label: "Copy link", run: () => copy(link ? new URL(link, location.origin).href : location.href, "Link") },
  ];
}

/** @param {unknown} json */
async function copyJson(json) {
  try {
    await copy(asJson(typeof json === "function" ? await json() : json), "JSON");
  } catch (error) {
    toastError(error, "Copying");
  }
}

/** A digest: enough of it to tell two apart, the whole of it by a click. @param {string} digest */
export function digestView(digest) {
  return h("button", { type: "button", class: "quiet small mono digest", title: `sha256 ${digest}. Click to copy.`, "aria-label": `${digest.slice(0, 12)}: copy the digest`, onClick: () => copy(digest, "Digest") }, digest.slice(0, 12));
}
