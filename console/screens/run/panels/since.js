// What changed since a point before: the field that chooses the point, and what was so then and is so now.
import { asked, rested } from "../../../lib/asked.js";
import { h } from "../../../lib/dom.js";
import { become } from "../../../lib/rows.js";
import { effect } from "../../../lib/signal.js";
import { baseline, baselines } from "./baseline.js";
import { stable } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {import("./baseline.js").BaselineId} BaselineId */

/**
 * The field stays the same while the run goes on: whoever has opened it keeps it.
 * @param {RunContext} ctx @param {BaselineId[]} wanted
 */
export function baselineSelect(ctx, wanted) {
  const select = h("select", { onChange: () => ctx.screen.setQuery({ against: select.value }) });
  const offered = stable(() => {
    void ctx.reached.value;
    const seq = ctx.seq.value;
    return { all: baselines(ctx, seq).map((one) => [one.id, one.label]), now: baseline(ctx, seq, wanted).id };
  }, JSON.stringify);
  effect(() => {
    const { all, now } = offered.value;
    become(select, h("select", null, all.map(([value, label]) => h("option", { value }, label))));
    select.value = now;
  });
  return h("label", { class: "baseline" }, h("span", { class: "muted" }, "Changes since"), select);
}

/**
 * What was so before and what is so now, at the playhead.
 * @template T @param {RunContext} ctx @param {BaselineId[]} wanted @param {(seq: number, signal: AbortSignal) => Promise<T>} get
 * @returns {import("../../../lib/asked.js").Asked<{ was: T | null, is: T }>}
 */
export function beforeAndNow(ctx, wanted, get) {
  return asked((left) => {
    const seq = ctx.calm.value;
    if (seq < 0 || !ctx.reached.value) return null;
    const before = baseline(ctx, seq, wanted).seq;
    return rested(left, async () => {
      const [was, is] = await Promise.all([before < 0 ? null : get(before, left), get(seq, left)]);
      return { was, is };
    });
  });
}
