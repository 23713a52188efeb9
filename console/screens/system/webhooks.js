// Webhook subscriptions: how each of them does, and what it did not take. Absent for keys that may not see them.
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { number, plural } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { toast, toastError } from "../../lib/toast.js";
import { card } from "./facts.js";

/** @typedef {import("../../types.js").Webhook} Webhook */
const TONES = { active: "yes", failing: "no", failed: "no" };

/** @param {import("../../types.js").WebhookList | null} list @param {() => void} done */
export function webhooksCard(list, done) {
  if (!list || list.webhooks.length === 0) return null;
  const failing = list.webhooks.filter((one) => one.state !== "active").length;
  const all = `${number(list.webhooks.length)}${list.nextCursor ? "+" : ""}`;
  return card(["Webhooks ", h("span", { class: "muted" }, failing > 0 ? `${number(failing)} of ${all} failing` : all)],
    h("div", { class: "sys-table" }, h("table", { class: "dense sys-discovery" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Subscription"), h("th", { scope: "col" }, "State"), h("th", { scope: "col" }, "Details"))),
      h("tbody", null, list.webhooks.map((one) => row(one, done))))));
}

/** @param {Webhook} one @param {() => void} done */
function row(one, done) {
  const busy = signal(false);
  /** @param {string} what @param {() => Promise<unknown>} act @param {(answer: any) => string} told */
  const button = (what, act, told) => h("button", {
    type: "button", class: "small", disabled: () => busy.value,
    onClick: async () => {
      busy.value = true;
      await act().then((answer) => toast(told(answer))).catch((error) => toastError(error, what));
      busy.value = false;
      done();
    },
  }, what);
  const last = one.lastFailure;
  return h("tr", null,
    h("th", { scope: "row" }, h("code", { class: "wrap-any" }, one.url), h("div", { class: "muted small" }, one.webhookId)),
    h("td", null, h("span", { class: ["advert", TONES[one.state] ?? ""] }, one.state)),
    h("td", null,
      h("span", { class: "muted" }, `${plural(one.waiting, "event")} waiting, ${plural(one.deadLetters, "dead letter")}`,
        one.deadLettersDropped > 0 && `, ${number(one.deadLettersDropped)} dropped`, one.openUntil && [", called again ", ago(one.openUntil)]),
      last && h("div", { class: "bad-text" }, last.status ? `answered ${last.status} ` : "no answer ", ago(last.at)),
      h("div", { class: "row wrap" },
        one.state !== "active" && button("Resume", () => api.webhooks.resume(one.webhookId), () => "It is called again"),
        one.state !== "failed" && one.deadLetters > 0 && button("Redeliver all", () => api.webhooks.redeliver(one.webhookId), (answer) => `${plural(answer.queued, "event")} on the way again`))));
}
