// Moving the playhead: by event, by iteration, to the newest.
import { h } from "../../lib/dom.js";
import { asApiError } from "../../lib/error.js";
import { absolute, number } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { countUntil } from "./facts.js";
import { sinceStart } from "./event-row.js";

/** @typedef {import("./context.js").RunContext} RunContext */

/** @param {RunContext} ctx @param {1 | -1} by */
export function stepEvent(ctx, by) {
  const newest = ctx.log.newest.peek();
  if (newest < 0 || (by > 0 && ctx.seq.peek() >= newest)) return;
  ctx.moveTo(ctx.seq.peek() + by);
}

/** To the beginning of the next iteration, or of this one, or of the one before. @param {RunContext} ctx @param {1 | -1} by */
export function stepIteration(ctx, by) {
  const starts = ctx.log.facts.iterations;
  const seq = ctx.seq.peek();
  const passed = countUntil(starts, seq, (one) => one);
  if (by > 0) ctx.moveTo(starts[passed] ?? ctx.log.newest.peek());
  else ctx.moveTo(starts[starts[passed - 1] === seq ? passed - 2 : passed - 1] ?? 0);
}

/** The line above the timeline. @param {RunContext} ctx @param {HTMLElement} tools */
export function playheadBar(ctx, tools) {
  const { log } = ctx;
  const button = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ run) =>
    h("button", { type: "button", class: "icon small", title: label, "aria-label": label, onClick: run }, sign);
  // Whoever is in the field has it to themselves: neither what they typed nor what they selected is taken by the run.
  const held = signal(/** @type {string | null} */ (null));
  const go = () => {
    const [from, text] = [held.peek(), field.value];
    held.value = null;
    if (text !== from && /\d/.test(text)) ctx.moveTo(Number(text.replace(/\D/g, "")));
  };
  const field = h("input", {
    type: "text", inputmode: "numeric", class: "seq-field", "aria-label": "Sequence",
    value: () => held.value ?? String(Math.max(0, ctx.seq.value)),
    onFocus: () => (held.value = field.value), onBlur: go,
    onKeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && field.blur(),
  });
  return h("div", { class: "playhead-bar" },
    button("⇤", "Previous iteration (⇧ ←)", () => stepIteration(ctx, -1)),
    button("←", "Previous event (←)", () => stepEvent(ctx, -1)),
    h("span", { class: "row seq-of" }, field, h("span", { class: "muted" }, () => `/ ${number(Math.max(0, log.newest.value))}`)),
    button("→", "Next event (→)", () => stepEvent(ctx, 1)),
    button("⇥", "Next iteration (⇧ →)", () => stepIteration(ctx, 1)),
    h("button", { type: "button", class: ["small", "live-button"], "aria-pressed": () => String(ctx.live.value), title: "Follow the newest event (l)", onClick: () => ctx.moveTo(ctx.live.peek() ? log.newest.peek() : null) },
      h("i", { "aria-hidden": "true", class: () => (ctx.live.value && log.phase.value === "live" ? "on" : "") }), () => (log.phase.value === "ended" ? "Latest" : "Live")),
    h("span", { class: "muted small clip grow", role: "status" }, () => {
      const phase = log.phase.value;
      if (phase === "loading") {
        const total = ctx.item.value?.events;
        return `loading ${number(log.newest.value + 1)}${total ? ` of ${number(total)}` : ""}…`;
      }
      if (phase === "waiting" || phase === "connecting") return "reconnecting…";
      if (phase === "failed") return "";
      if (ctx.live.value) return "";
      const event = log.at(ctx.seq.value);
      if (!event) return `The log does not reach ${number(ctx.seq.value)} yet.`;
      const turn = log.facts.turns.at(ctx.seq.value);
      return h("span", { title: absolute(event.timestamp) }, `as of ${sinceStart((log.facts.times[event.sequence] ?? 0) - (log.facts.times[0] ?? 0))}${turn ? `, turn ${turn.number}` : ""}`);
    }),
    // Not in the line beside it: that one goes where there is no room.
    h("span", { role: "alert" }, () => log.phase.value === "failed" && h("span", { class: "row small wrong" }, h("span", { title: asApiError(log.error).message }, "Could not load the rest."), h("button", { type: "button", class: "small", onClick: ctx.again }, "Try again"))),
    tools);
}
