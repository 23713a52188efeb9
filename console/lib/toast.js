// Short news at the edge of the page. Said to screen readers too; errors stay until they are dismissed.
import { h } from "./dom.js";

const STAY = 4000;
const MOST = 4;

/** @type {HTMLElement | null} */
let area = null;

/** The place for them; the shell mounts it once. */
export function toastArea() {
  area = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
  return area;
}

/**
 * @param {string} text
 * @param {{ kind?: "note" | "error", action?: { label: string, run: () => void }, hint?: string }} [options]
 */
export function toast(text, { kind = "note", action, hint } = {}) {
  if (!area) return;
  const close = () => element.remove();
  const element = h("div", { class: ["toast", kind], role: kind === "error" ? "alert" : null },
    h("div", { class: "toast-text" }, text, hint && h("div", { class: "muted" }, hint)),
    action && h("button", { type: "button", class: "quiet", onClick: () => (close(), action.run()) }, action.label),
    h("button", { type: "button", class: "icon", "aria-label": "Dismiss", onClick: close }, "×"));
  area.append(element);
  while (area.childElementCount > MOST) area.firstElementChild?.remove();
  if (kind !== "error") setTimeout(close, STAY);
}

/** @param {unknown} error @param {string} [what] what was tried: "Cancelling the run" */
export function toastError(error, what) {
  const { message, hint } = /** @type {{ message?: string, hint?: string }} */ (error ?? {});
  toast(`${what ? `${what} failed: ` : ""}${message ?? String(error)}`, hint ? { kind: "error", hint } : { kind: "error" });
}
