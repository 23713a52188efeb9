// Draws the timeline: a strip with the scale, a lane of turns, a lane for each node. Bars narrower than a pixel are
// drawn once per pixel, so a hundred thousand events cost no more than the width of the canvas.
import { duration, number } from "../../lib/format.js";
import { countUntil } from "./facts.js";
import { moment } from "./event-row.js";

/** @typedef {import("./spans.js").Span} Span */
/** @typedef {{ from: number, to: number }} Window the part of the axis that is seen */
/** @typedef {Record<"text" | "muted" | "line" | "surface" | "sunken" | "accent" | "good" | "bad" | "wait" | "live" | "liveSoft" | "waitSoft" | "badSoft" | "selected" | "font", string>} Paint */

export const STRIP = 20;
export const LANE = 22;
export const DEEP_LANE = 34;

/** @param {import("./spans.js").Lane} lane */
export const heightOf = (lane) => (lane.inner.length > 0 ? DEEP_LANE : LANE);

/** The tokens as the canvas needs them. @param {HTMLElement} near @returns {Paint} */
export function readPaint(near) {
  const probe = document.createElement("i");
  near.append(probe);
  /** @param {string} name */
  const of = (name) => {
    probe.style.setProperty("color", `var(--${name})`);
    return getComputedStyle(probe).color;
  };
  const paint = { text: of("text"), muted: of("muted"), line: of("line"), surface: of("surface"), sunken: of("sunken"), accent: of("accent"), good: of("good"), bad: of("bad"), wait: of("wait"), live: of("live"), liveSoft: of("live-soft"), waitSoft: of("wait-soft"), badSoft: of("bad-soft"), selected: of("selected"), font: `11px ${getComputedStyle(near).fontFamily}` };
  probe.remove();
  return paint;
}

/** @typedef {{ width: number, height: number, axis: import("./axis.js").Axis, window: Window, facts: import("./facts.js").Facts, lanes: import("./spans.js").Lane[], paint: Paint }} Scene */

/** @param {Scene} scene @returns {(unit: number) => number} */
const placing = ({ window: view, width }) => (unit) => ((unit - view.from) / (view.to - view.from)) * width;

/** Everything but the playhead. @param {CanvasRenderingContext2D} canvas @param {Scene} scene */
export function draw(canvas, scene) {
  const { width, height, facts, lanes, paint } = scene;
  const x = placing(scene);
  canvas.clearRect(0, 0, width, height);
  canvas.font = paint.font;
  canvas.textBaseline = "middle";
  strip(canvas, scene, x);
  let top = STRIP;
  if (facts.spans.turns.length > 0) {
    bars(canvas, facts.spans.turns, top + 3, LANE - 6, scene, x, (span) => turnText(facts, span));
    top += LANE;
  }
  for (const lane of lanes) {
    canvas.fillStyle = paint.line;
    canvas.fillRect(0, top, width, 1);
    bars(canvas, lane.spans, top + 4, 13, scene, x, () => "");
    if (lane.inner.length > 0) bars(canvas, lane.inner, top + 19, 11, scene, x, (span) => span.label);
    top += heightOf(lane);
  }
}

/** What lies after the playhead has not happened yet, and what is under way there has not ended yet. @param {CanvasRenderingContext2D} canvas @param {Scene} scene @param {number} seq */
export function veil(canvas, scene, seq) {
  const { width, height, axis, facts, lanes, paint } = scene;
  if (seq >= facts.times.length - 1) return;
  const x = placing(scene);
  canvas.font = paint.font;
  canvas.textBaseline = "middle";
  let top = STRIP + (facts.spans.turns.length > 0 ? LANE : 0);
  for (const lane of lanes) {
    bars(canvas, underWay(lane.spans, seq), top + 4, 13, scene, x, () => "");
    if (lane.inner.length > 0) bars(canvas, underWay(lane.inner, seq), top + 19, 11, scene, x, (span) => span.label);
    top += heightOf(lane);
  }
  const now = x(axis.of(seq));
  if (now >= width) return;
  canvas.globalAlpha = 0.62;
  canvas.fillStyle = paint.surface;
  canvas.fillRect(Math.max(0, now), STRIP, width, height);
  canvas.globalAlpha = 1;
}

/** Bars that end badly after a sequence, as they looked before. @param {Span[]} spans @param {number} seq @returns {Span[]} */
function underWay(spans, seq) {
  const until = countUntil(spans, seq, (span) => span.seq);
  return spans.slice(Math.max(0, until - 8), until).filter((span) => span.endSeq > seq && span.mark === "failed").map((span) => ({ ...span, mark: /** @type {const} */ ("") }));
}

/** @param {CanvasRenderingContext2D} canvas @param {Scene} scene @param {(unit: number) => number} x */
function strip(canvas, { width, height, axis, window: view, facts, paint }, x) {
  canvas.fillStyle = paint.muted;
  const count = Math.max(2, Math.floor(width / 110));
  let before = "";
  for (let i = 0; i <= count; i += 1) {
    const at = (i / count) * width;
    const unit = view.from + (i / count) * (view.to - view.from);
    if (unit > axis.room + 0.0001 || axis.cuts.some((cut) => unit > cut.left - 0.02 && unit < cut.right + 0.02)) continue;
    const text = axis.kind === "steps" ? number(axis.seq(unit)) : unit === 0 ? "0" : moment(axis.since(unit), axis.since(unit) - axis.since(Math.max(0, unit - (view.to - view.from) / count)));
    if (text === before) continue;
    before = text;
    canvas.textAlign = i === 0 ? "left" : i === count ? "right" : "center";
    canvas.fillText(text, Math.min(width - 2, Math.max(2, at)), STRIP / 2 - 1);
    canvas.fillRect(Math.min(width - 1, at), STRIP - 4, 1, 4);
  }
  for (const cut of axis.cuts) {
    const [left, right] = [x(cut.left), x(cut.right)];
    if (right < 0 || left > width) continue;
    canvas.fillStyle = paint.sunken;
    canvas.fillRect(left + 2, STRIP, right - left - 4, height);
    canvas.fillStyle = paint.muted;
    canvas.textAlign = "center";
    if (right - left > 34) canvas.fillText(fit(canvas, duration(cut.to - cut.from), right - left + 8), (left + right) / 2, STRIP / 2 - 1);
  }
}

/** @param {import("./facts.js").Facts} facts @param {Span} span */
function turnText(facts, span) {
  const turn = facts.turns.list[Number(span.label) - 1];
  const { kind, nextWorkerIds } = turn?.decision ?? turn?.held.at(-1)?.decision ?? {};
  return `${span.label}${kind ? ` ${kind === "next-worker" ? `→ ${(nextWorkerIds ?? []).join(", ")}` : kind}` : ""}`;
}

/**
 * @param {CanvasRenderingContext2D} canvas @param {Span[]} spans @param {number} top @param {number} tall
 * @param {Scene} scene @param {(unit: number) => number} x @param {(span: Span) => string} text
 */
function bars(canvas, spans, top, tall, { width, axis, paint }, x, text) {
  let drawn = -1;
  for (const span of spans) {
    const left = x(axis.x(span.start, span.seq));
    if (left > width) break;
    const right = span.endSeq < 0 ? x(1) : x(axis.x(span.end, span.endSeq));
    if (right < 0) continue;
    // Something of every bar is seen, but one column of pixels is painted once.
    const wide = Math.max(right - left, 1.5);
    if (left + wide <= drawn && span.mark === "") continue;
    drawn = left + wide;
    const [fill, edge] = span.mark === "failed" ? [paint.badSoft, paint.bad]
      : span.kind === "wait" || span.mark === "unknown" ? [paint.waitSoft, paint.wait]
      : span.kind === "turn" || span.kind === "node" ? [paint.selected, paint.accent]
      : span.kind === "model" ? [paint.liveSoft, paint.live]
      : span.kind === "child" ? [paint.sunken, paint.muted]
      : [paint.sunken, paint.good];
    canvas.fillStyle = wide < 4 ? edge : fill;
    canvas.beginPath();
    canvas.roundRect(left, top, Math.max(1.5, wide - 1), tall, Math.min(3, wide / 2));
    canvas.fill();
    if (wide >= 4) {
      canvas.fillStyle = edge;
      canvas.fillRect(left, top, 2, tall);
    }
    if (span.kind === "wait" && wide > 12) hatch(canvas, left + 2, top, wide - 3, tall, paint.wait);
    const label = wide > 26 ? fit(canvas, text(span), wide - 9) : "";
    if (label) {
      canvas.fillStyle = paint.text;
      canvas.textAlign = "left";
      canvas.fillText(label, Math.max(left, 0) + 6, top + tall / 2 + 0.5);
    }
  }
}

/** Waiting looks like waiting without its colour too. @param {CanvasRenderingContext2D} canvas @param {number} left @param {number} top @param {number} wide @param {number} tall @param {string} colour */
function hatch(canvas, left, top, wide, tall, colour) {
  canvas.save();
  canvas.beginPath();
  canvas.rect(left, top, wide, tall);
  canvas.clip();
  canvas.globalAlpha = 0.3;
  canvas.strokeStyle = colour;
  canvas.lineWidth = 1;
  canvas.beginPath();
  for (let at = left - tall; at < Math.min(left + wide, canvas.canvas.width + tall); at += 6) {
    canvas.moveTo(at, top + tall);
    canvas.lineTo(at + tall, top);
  }
  canvas.stroke();
  canvas.restore();
}

/** @param {CanvasRenderingContext2D} canvas @param {string} text @param {number} room */
function fit(canvas, text, room) {
  if (!text || room < 8) return "";
  const letters = Math.floor(room / 6);
  if (text.length <= letters) return text;
  return letters < 3 ? "" : `${text.slice(0, letters - 1)}…`;
}
