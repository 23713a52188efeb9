// Tabs that are addresses: each is a link that changes one name of the query, so that "back" and copying work.
import { h } from "../lib/dom.js";
import { effect } from "../lib/signal.js";

/**
 * @param {{ label: string, name?: string, tabs: { id: string, label: import("../lib/dom.js").Child }[], chosen: () => string, context: import("../types.js").ScreenContext }} options
 * `name` is the name in the query; the first tab has none there
 */
export function tabs({ label, name = "tab", tabs: all, chosen, context }) {
  const first = all[0]?.id;
  const buttons = all.map((one) => h("button", {
    type: "button", role: "tab", id: `tab-${name}-${one.id}`, class: "tab", "aria-controls": `panel-${name}`,
    "aria-selected": () => String(chosen() === one.id), tabindex: () => (chosen() === one.id ? "0" : "-1"),
    onClick: () => context.setQuery({ [name]: one.id === first ? null : one.id }, { push: true }),
  }, one.label));
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons);
  list.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const button = buttons[(to + buttons.length) % buttons.length];
    button?.focus();
    button?.click();
  });
  effect(() => {
    const chosenOne = buttons[all.findIndex((one) => one.id === chosen())];
    requestAnimationFrame(() => chosenOne?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  });
  return list;
}

/** What the chosen tab shows. @param {{ name?: string, chosen: () => string }} options @param {...import("../lib/dom.js").Child} children */
export function tabPanel({ name = "tab", chosen }, ...children) {
  const panel = h("div", { role: "tabpanel", id: `panel-${name}`, class: "tab-panel" }, ...children);
  effect(() => panel.setAttribute("aria-labelledby", `tab-${name}-${chosen()}`));
  return panel;
}
