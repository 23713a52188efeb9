// Which run to compare with: the forks and the source of a run first, then others of its workflow, or any by its id.
import { askedView } from "../../components/asked-view.js";
import { statusMark } from "../../components/status.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { asked, rested } from "../../lib/asked.js";
import { h } from "../../lib/dom.js";
import { shortId } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";

/** @typedef {import("../../types.js").RunItem} RunItem */

/** @param {string | null} a the run that is chosen already @param {(runId: string) => void} choose */
export function picker(a, choose) {
  const text = signal("");
  const found = asked((left) => {
    const q = text.value.trim();
    return rested(left, async () => {
      const run = a ? await api.runs.get(a, { signal: left }) : null;
      const { runs } = await api.runs.list({ limit: 60, ...(q ? { idPrefix: q } : run ? { workflowId: run.workflowId } : {}) }, { signal: left });
      const source = run?.forkedFrom?.runId;
      const kin = (/** @type {RunItem} */ one) => one.runId === source || one.forkedFrom?.runId === a;
      return runs.filter((one) => one.runId !== a).map((one) => ({ one, why: one.runId === source ? "its source" : one.forkedFrom?.runId === a ? "a fork of it" : "" }))
        .sort((x, y) => Number(kin(y.one)) - Number(kin(x.one)));
    });
  });
  const input = h("input", { type: "search", class: "mono", placeholder: "run_… or the beginning of it", "aria-label": "Run to compare with", spellcheck: "false", autocomplete: "off", onInput: () => (text.value = input.value), onKeydown: (/** @type {KeyboardEvent} */ event) => {
    const first = found.value.peek()?.[0]?.one.runId;
    if (event.key === "Enter") choose(first?.startsWith(input.value.trim()) ? first : input.value.trim());
  } });
  return h("section", { class: "card stack picker" },
    h("h2", null, a ? `Compare ${shortId(a)} with` : "Compare which run?"), input,
    askedView(found, (runs) => (runs.length === 0 ? h("p", { class: "muted" }, "No such run.") : h("ul", { class: "picks" }, runs.map(({ one, why }) => h("li", null,
      h("button", { type: "button", class: "cmp-pick", onClick: () => choose(one.runId) },
        statusMark(one.status, { word: false }), h("span", { class: "mono" }, shortId(one.runId)), h("span", { class: "clip" }, one.workflowId),
        why && h("span", { class: "tag" }, why), h("span", { class: "muted push" }, ago(one.createdAt)))))))));
}
