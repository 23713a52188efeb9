// A menu under a button. The popover API closes it on Escape and on a click elsewhere; arrows move within.
import { h } from "../lib/dom.js";

/** @typedef {{ label: string, note?: string, run: () => void, danger?: boolean } | null} MenuItem null entries are left out */

/** @param {HTMLElement} anchor @param {MenuItem[]} items @param {string} label */
export function openMenu(anchor, items, label) {
  const menu = h("div", { class: "menu", popover: "auto", role: "menu", "aria-label": label });
  for (const item of items) {
    if (!item) continue;
    menu.append(h("button", { type: "button", role: "menuitem", class: item.danger ? "danger" : "", onClick: () => (menu.hidePopover(), item.run()) },
      item.label, item.note && h("span", { class: "muted" }, item.note)));
  }
  menu.addEventListener("toggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== "closed") return;
    menu.remove();
    anchor.setAttribute("aria-expanded", "false");
  });
  menu.addEventListener("keydown", (event) => {
    const buttons = [...menu.querySelectorAll("button")];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    buttons[(to + buttons.length) % buttons.length]?.focus();
  });
  document.body.append(menu);
  menu.showPopover();
  anchor.setAttribute("aria-expanded", "true");
  const [from, size] = [anchor.getBoundingClientRect(), menu.getBoundingClientRect()];
  const left = Math.max(8, Math.min(from.left, innerWidth - size.width - 8));
  const below = from.bottom + 4 + size.height <= innerHeight;
  menu.style.setProperty("left", `${left}px`);
  menu.style.setProperty("top", `${below ? from.bottom + 4 : Math.max(8, from.top - size.height - 4)}px`);
  menu.querySelector("button")?.focus();
}

/** A button with a menu. @param {import("../lib/dom.js").Child} label @param {() => MenuItem[]} items @param {{ class?: string, title: string }} options */
export function menuButton(label, items, options) {
  const button = h("button", { type: "button", class: options.class ?? "", title: options.title, "aria-label": options.title, "aria-haspopup": "menu", "aria-expanded": "false" }, label);
  button.addEventListener("click", () => openMenu(button, items(), options.title));
  return button;
}
