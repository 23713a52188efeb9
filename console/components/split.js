// Two panes and a bar between them that can be moved by pointer and by arrows. The size is remembered per name.
import { h } from "../lib/dom.js";

/**
 * @param {{ name: string, orientation?: "columns" | "rows", size: number, min?: number, max?: number, label: string }} options
 * sizes are those of the first pane, in pixels
 * @param {HTMLElement} first @param {HTMLElement} second
 */
export function split({ name, orientation = "columns", size, min = 160, max = 900, label }, first, second) {
  const stored = Number(localStorage.getItem(`baton.split.${name}`));
  const columns = orientation === "columns";
  const bar = h("div", { role: "separator", tabindex: "0", "aria-label": label, "aria-orientation": columns ? "vertical" : "horizontal", "aria-valuemin": min, "aria-valuemax": max });
  const element = h("bt-split", { orientation }, first, bar, second);
  let now = size;
  const set = (/** @type {number} */ wanted, keep = true) => {
    const room = columns ? element.clientWidth : element.clientHeight;
    now = Math.round(Math.max(min, Math.min(wanted, max, room > 0 ? room - min : max)));
    first.style.setProperty(columns ? "width" : "height", `${now}px`);
    bar.setAttribute("aria-valuenow", String(now));
    if (keep) localStorage.setItem(`baton.split.${name}`, String(now));
  };
  set(stored > 0 ? stored : size, false);
  bar.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 64 : 16;
    const move = { [columns ? "ArrowLeft" : "ArrowUp"]: -step, [columns ? "ArrowRight" : "ArrowDown"]: step }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    set(now + move);
  });
  bar.addEventListener("dblclick", () => set(size));
  bar.addEventListener("pointerdown", (event) => {
    const start = { at: columns ? event.clientX : event.clientY, size: now };
    bar.setPointerCapture(event.pointerId);
    bar.classList.add("dragging");
    const move = (/** @type {PointerEvent} */ to) => set(start.size + (columns ? to.clientX : to.clientY) - start.at);
    const stop = () => {
      bar.classList.remove("dragging");
      bar.removeEventListener("pointermove", move);
    };
    bar.addEventListener("pointermove", move);
    bar.addEventListener("lostpointercapture", stop, { once: true });
    event.preventDefault();
  });
  return element;
}
