// The event as the host wrote it; the whole run while nothing is selected.
import { copyMenu } from "../../../components/copy-menu.js";
import { jsonView } from "../../../components/json-view.js";
import { asJson } from "../../../lib/copy.js";
import { h } from "../../../lib/dom.js";
import { number } from "../../../lib/format.js";
import { signal } from "../../../lib/signal.js";
import { titled } from "./parts.js";

/** Kept while the page is open: whoever wants text wants it for every event. */
const asText = signal(false);

/** @type {import("../context.js").Panel} */
export default {
  id: "raw",
  title: "Raw JSON",
  appliesTo: () => true,
  mount(root, ctx) {
    root.append(h("div", null, () => {
      const event = ctx.selection.value;
      const shown = event ?? ctx.snapshot.value;
      if (!shown) return null;
      return titled(event ? `Event #${number(event.sequence)}` : "The run as it is now",
        h("span", { class: "row" },
          h("button", { type: "button", class: "small", "aria-pressed": () => String(asText.value), onClick: () => (asText.value = !asText.peek()) }, "As text"),
          copyMenu(() => (event ? { json: event } : { request: { path: `/v1/runs/${ctx.runId}` }, baton: ["run", "show", ctx.runId, "--json"], json: shown }))),
        () => (asText.value ? h("pre", { class: "box", tabindex: "0", role: "region", "aria-label": "JSON" }, asJson(shown)) : h("div", { class: "box" }, jsonView(shown, 4))));
    }));
  },
};
