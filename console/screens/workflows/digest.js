// A digest: enough of it to tell two apart, the whole of it by a click.
import { copy } from "../../lib/copy.js";
import { h } from "../../lib/dom.js";

/** @param {string} digest */
export function digestView(digest) {
  return h("button", { type: "button", class: "quiet small mono digest", title: `sha256 ${digest}. Click to copy.`, "aria-label": `${digest.slice(0, 12)}: copy the digest`, onClick: () => copy(digest, "Digest") }, digest.slice(0, 12));
}
