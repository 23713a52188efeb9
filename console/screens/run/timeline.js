// The run over time, and the playhead on it: a slider that can be dragged and moved by key. The canvas is decoration for
// whoever sees it; everything in it is in the list of events too.
import { h } from "../../lib/dom.js";
import { number } from "../../lib/format.js";
import { effect, onEnd, signal } from "../../lib/signal.js";
import { theme } from "../../lib/theme.js";
import { Axis } from "./axis.js";
import { draw, heightOf, LANE, readPaint, STRIP, veil } from "./draw.js";
import { stepIteration } from "./steps.js";
import { factOf, nameOf } from "./words.js";

/** More lanes than this do not help; the list of events has them all. */
const MOST_LANES = 48;
const CLOSEST = 1 / 20_000;
/** How often the bars are drawn while a long log comes in, in ms. */
const WHILE_LOADING = 300;

/** @param {import("./context.js").RunContext} ctx */
export function timeline(ctx) {
  const { log, screen } = ctx;
  const canvas = h("canvas", { "aria-hidden": "true" });
  const head = h("div", { class: "tl-head", role: "slider", tabindex: "0", "aria-label": "Playhead", "aria-valuemin": "0" }, h("i"));
  const area = h("div", { class: "tl-area" }, canvas, head);
  const labels = h("div", { class: "tl-labels", "aria-hidden": "true" });
  const body = h("div", { class: "tl-body" }, labels, area);
  const seen = signal({ from: 0, to: 1 });
  const size = signal(0);
  const kind = () => (screen.query.value.get("axis") === "steps" ? "steps" : "time");
  let axis = new Axis([], [], "time", true);
  /** What the axis was made for. */
  let made = { length: -1, kind: "time" };
  /** @type {"time" | "steps"} */
  let wanted = "time";
  /** @type {import("./draw.js").Paint | null} */
  let paint = null;
  let planned = 0;
  const under = document.createElement("canvas");
  let stale = true;
  let drawnAt = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let later;

  const lanes = () => log.facts.spans.lanes.slice(0, MOST_LANES);
  const place = (/** @type {number} */ unit) => ((unit - seen.peek().from) / (seen.peek().to - seen.peek().from)) * size.peek();
  const drawNow = () => {
    planned = 0;
    const { facts } = log;
    const wide = size.peek();
    if (wide === 0 || !canvas.isConnected) return;
    if (made.length !== facts.times.length || made.kind !== wanted) {
      axis = new Axis(facts.times, facts.spans.gaps, wanted, log.over);
      made = { length: facts.times.length, kind: wanted };
    }
    const shown = lanes();
    const tall = STRIP + (facts.spans.turns.length > 0 ? LANE : 0) + shown.reduce((sum, lane) => sum + heightOf(lane), 0) + 2;
    const dots = devicePixelRatio || 1;
    const [deviceWide, deviceTall] = [Math.round(wide * dots), Math.round(tall * dots)];
    if (canvas.width !== deviceWide || canvas.height !== deviceTall) {
      Object.assign(canvas, { width: deviceWide, height: deviceTall });
      canvas.style.setProperty("height", `${tall}px`);
      drawLabels(shown);
    }
    paint ??= readPaint(area);
    const scene = { width: wide, height: tall, axis, window: seen.peek(), facts, lanes: shown, paint };
    // A playhead that moves changes nothing but what it covers: the bars are drawn once and laid under it.
    if (stale || under.width !== deviceWide || under.height !== deviceTall) {
      Object.assign(under, { width: deviceWide, height: deviceTall });
      const brush = /** @type {CanvasRenderingContext2D} */ (under.getContext("2d"));
      brush.setTransform(dots, 0, 0, dots, 0, 0);
      draw(brush, scene);
      stale = false;
      drawnAt = performance.now();
    }
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const seq = ctx.seq.peek();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, deviceWide, deviceTall);
    pen.drawImage(under, 0, 0);
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    veil(pen, scene, seq);
    const at = place(axis.of(seq));
    head.style.setProperty("transform", `translateX(${Math.max(0, Math.min(wide, at))}px)`);
    head.classList.toggle("outside", at < -1 || at > wide + 1);
  };
  const plan = () => {
    if (!planned) planned = requestAnimationFrame(drawNow);
  };
  /** Draws the bars again; not for every page of a long log. */
  const planAll = () => {
    stale = true;
    clearTimeout(later);
    const soon = log.phase.peek() !== "loading" || performance.now() - drawnAt > WHILE_LOADING;
    if (soon) plan();
    else later = setTimeout(plan, WHILE_LOADING);
  };
  const drawLabels = (/** @type {import("./spans.js").Lane[]} */ shown) => {
    labels.replaceChildren(
      h("span", { class: "tl-strip" }),
      ...(log.facts.spans.turns.length > 0 ? [h("span", { class: "tl-lane turns" }, "turns")] : []),
      ...shown.map((lane) => h("span", { class: "tl-lane clip", title: `${lane.nodeId} (${lane.typeId})`, style: { height: `${heightOf(lane)}px` } }, lane.nodeId)),
      ...(log.facts.spans.lanes.length > MOST_LANES ? [h("span", { class: "tl-lane muted" }, `${number(log.facts.spans.lanes.length - MOST_LANES)} more nodes`)] : []));
  };

  /** Shows the part of the axis around a place. @param {number} width @param {number} around @param {number} [share] where in the window it is to be */
  const zoom = (width, around, share = 0.5) => {
    const w = Math.min(1, Math.max(CLOSEST, width));
    const from = Math.max(0, Math.min(1 - w, around - w * share));
    seen.value = { from, to: from + w };
  };
  const zoomBy = (/** @type {number} */ factor) => zoom((seen.peek().to - seen.peek().from) * factor, axis.of(ctx.seq.peek()));

  effect(() => {
    void [log.newest.value, log.phase.value, seen.value, size.value, theme.value];
    wanted = kind();
    planAll();
  });
  effect(() => {
    void theme.value;
    paint = null;
  });
  effect(() => {
    const seq = ctx.seq.value;
    const event = log.at(seq);
    head.setAttribute("aria-valuenow", String(Math.max(0, seq)));
    head.setAttribute("aria-valuemax", String(Math.max(0, log.newest.value)));
    head.setAttribute("aria-valuetext", event ? `${seq}: ${nameOf(event)} ${event.nodeId ?? ""} ${factOf(event).slice(0, 80)}` : "nothing yet");
    head.dataset.label = String(seq);
    // The window goes along with the playhead.
    const { from, to } = seen.peek();
    const at = made.length > 0 ? axis.of(seq) : 0;
    if (to - from < 1 && (at < from || at > to)) zoom(to - from, at);
    plan();
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => {
    paint = null;
    planAll();
  };
  dark.addEventListener("change", repaint);
  const sizes = new ResizeObserver(([entry]) => (size.value = Math.floor(entry?.contentRect.width ?? 0)));
  sizes.observe(area);
  onEnd(() => {
    sizes.disconnect();
    dark.removeEventListener("change", repaint);
    cancelAnimationFrame(planned);
    clearTimeout(later);
  });

  const unitAt = (/** @type {PointerEvent | WheelEvent} */ event) => {
    const { from, to } = seen.peek();
    return from + ((event.clientX - area.getBoundingClientRect().left) / Math.max(1, size.peek())) * (to - from);
  };
  area.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || log.newest.peek() < 0) return;
    area.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ to) => ctx.moveTo(axis.seq(Math.max(0, unitAt(to))));
    move(event);
    head.focus({ preventScroll: true });
    area.addEventListener("pointermove", move);
    area.addEventListener("lostpointercapture", () => area.removeEventListener("pointermove", move), { once: true });
    event.preventDefault();
  });
  area.addEventListener("wheel", (event) => {
    const { from, to } = seen.peek();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const at = unitAt(event);
      zoom((to - from) * Math.exp(event.deltaY * 0.003), at, (at - from) / (to - from));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      const by = ((event.deltaX || event.deltaY) / Math.max(1, size.peek())) * (to - from);
      zoom(to - from, from + by, 0);
    }
  }, { passive: false });
  head.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const seq = ctx.seq.peek();
    const newest = log.newest.peek();
    const page = Math.max(10, Math.round(newest / 20));
    /** @type {Record<string, number>} */
    const moves = { ArrowLeft: seq - 1, ArrowDown: seq - 1, ArrowRight: seq + 1, ArrowUp: seq + 1, PageDown: seq - page, PageUp: seq + page, Home: 0, End: newest };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey && event.key.startsWith("Arrow")) stepIteration(ctx, event.key === "ArrowRight" || event.key === "ArrowUp" ? 1 : -1);
    else ctx.moveTo(to);
  });

  const bar = h("div", { class: "tl-tools" },
    h("button", { type: "button", class: "icon small", title: "Closer", "aria-label": "Closer", onClick: () => zoomBy(0.5) }, "+"),
    h("button", { type: "button", class: "icon small", title: "Further away", "aria-label": "Further away", onClick: () => zoomBy(2) }, "−"),
    h("button", { type: "button", class: "small quiet", hidden: () => seen.value.to - seen.value.from >= 1, onClick: () => (seen.value = { from: 0, to: 1 }) }, "Whole run"),
    h("button", { type: "button", class: "small quiet", title: "What the axis measures", onClick: () => screen.setQuery({ axis: kind() === "time" ? "steps" : null }) }, () => (kind() === "time" ? "by time" : "by step")));
  return { element: h("section", { class: "timeline", "aria-label": "Timeline" }, body), tools: bar };
}
