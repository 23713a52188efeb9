// Whether the host does its work, as it says itself and as this page found it.
import { h } from "../../lib/dom.js";
import { duration, number } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { card } from "./card.js";

/** @typedef {{ ok: boolean, text: string, took: number }} Readiness what `/readiness` said, and how long an answer took */

/** @param {Readiness | null} readiness @param {{ ready: boolean, trouble?: string, open: number, unknown: number | null }} state */
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
