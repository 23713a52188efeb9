// The tabs at the side: one panel at a time, named in the address.
import { failed } from "../../components/states.js";
import { h, uid } from "../../lib/dom.js";
import { computed, effect, onEnd, scope, untracked } from "../../lib/signal.js";
import effects from "./panels/effect.js";
import io from "./panels/in-out.js";
import memory from "./panels/memory.js";
import overview from "./panels/overview.js";
import prompt from "./panels/prompt.js";
import raw from "./panels/raw.js";
import state from "./panels/state.js";
import trace from "./panels/trace.js";
import usage from "./panels/usage.js";
import workspace from "./panels/workspace.js";
import turn from "./turn.js";

/** In order. Each is a file; `context.js` says what it gets. @type {import("./context.js").Panel[]} */
const all = [turn, overview, io, state, memory, workspace, prompt, effects, usage, raw, trace];

/** @param {import("./context.js").RunContext} ctx */
export function inspector(ctx) {
  const fitting = computed(() => all.filter((panel) => panel.appliesTo(ctx)).map((panel) => panel.id).join(" "));
  const wanted = () => ctx.screen.query.value.get("tab");
  // A tab that does not apply any more stays the wanted one: it comes back where it does.
  const current = computed(() => {
    const ids = fitting.value.split(" ");
    return ids.find((id) => id === wanted()) ?? ids[0] ?? "";
  });
  const prefix = uid("inspector");
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Inspector" });
  const body = h("div", { class: "in-body", role: "tabpanel", tabindex: "0", id: `${prefix}-panel` });
  const choose = (/** @type {string} */ id) => ctx.screen.setQuery({ tab: id === fitting.peek().split(" ")[0] ? null : id });

  effect(() => {
    const ids = fitting.value.split(" ");
    const now = current.value;
    const had = tabs.contains(document.activeElement);
    tabs.replaceChildren(...all.filter((panel) => ids.includes(panel.id)).map((panel) =>
      h("button", { type: "button", role: "tab", id: `${prefix}-${panel.id}`, "aria-selected": String(panel.id === now), "aria-controls": `${prefix}-panel`, tabindex: panel.id === now ? "0" : "-1", onClick: () => choose(panel.id) }, panel.title)));
    body.setAttribute("aria-labelledby", `${prefix}-${now}`);
    const tab = /** @type {HTMLElement | null} */ (tabs.querySelector("[aria-selected=true]"));
    if (had) tab?.focus({ preventScroll: true });
    if (tab) tabs.scrollLeft = Math.max(0, tab.offsetLeft - tabs.offsetLeft - 40);
  });
  tabs.addEventListener("keydown", (event) => {
    const buttons = /** @type {HTMLElement[]} */ ([...tabs.children]);
    const at = buttons.findIndex((one) => one === event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || at < 0 || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = buttons[(to + buttons.length) % buttons.length];
    next?.click();
    /** @type {HTMLElement | null} */ (tabs.querySelector("[aria-selected=true]"))?.focus();
  });
  effect(() => {
    const panel = all.find((one) => one.id === current.value);
    untracked(() => {
      const here = scope();
      body.replaceChildren();
      body.scrollTop = 0;
      if (!panel) return;
      try {
        here.run(() => {
          const unmount = panel.mount(body, ctx);
          if (unmount) onEnd(unmount);
        });
      } catch (error) {
        body.replaceChildren(failed(error)); // One broken panel must not take the screen with it.
        reportError(error);
      }
    });
  });
  return h("section", { class: "inspector", "aria-label": "Inspector" }, tabs, body);
}
