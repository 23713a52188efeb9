// Modal questions. The browser's own dialog keeps the focus inside and gives it back.
import { h, uid } from "../lib/dom.js";
import { toastError } from "../lib/toast.js";

/** Shows a dialog with any content. @param {string} title @param {(close: () => void) => import("../lib/dom.js").Child[]} content @param {{ class?: string }} [options] */
export function openDialog(title, content, options = {}) {
  const id = uid("dialog");
  const dialog = h("dialog", { class: options.class ?? "", "aria-labelledby": id });
  const close = () => dialog.close();
  dialog.append(h("div", { class: "dialog" }, h("h2", { id }, title), ...content(close)));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Whatever is still asked is not asked any more: its screen goes. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
}

/**
 * Asks before something that cannot be undone. With `typed`, that text must be typed first.
 * @param {{ title: string, text: import("../lib/dom.js").Child, confirm: string, danger?: boolean, typed?: string, act: () => Promise<unknown> }} question
 */
export function confirmThen({ title, text, confirm, danger = false, typed, act }) {
  const go = h("button", { type: "button", class: ["primary", danger && "danger"], disabled: Boolean(typed) }, confirm);
  const field = typed ? h("input", { type: "text", autocomplete: "off", spellcheck: "false", "aria-label": `Type ${typed} to confirm` }) : null;
  field?.addEventListener("input", () => (go.disabled = field.value.trim() !== typed));
  const dialog = openDialog(title, (close) => [
    h("div", null, text),
    field && h("div", { class: "stack" }, h("span", { class: "muted" }, "Type ", h("code", null, typed ?? ""), " to confirm"), field),
    h("div", { class: "actions" }, h("button", { type: "button", class: "keep", onClick: close }, "Keep"), go),
  ]);
  go.addEventListener("click", async () => {
    go.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      go.disabled = false;
      toastError(error, title.replace(/\?$/, ""));
    }
  });
  // What cannot be undone is never one key away.
  const keep = /** @type {HTMLElement | null} */ (danger ? dialog.querySelector(".keep") : null);
  (field ?? keep ?? go).focus();
}
