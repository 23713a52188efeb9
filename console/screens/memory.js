// What is remembered beyond a run: the scopes, and what each holds. Deleted one by one, exported whole.
import { askedView } from "../components/asked-view.js";
import { copyMenu } from "../components/copy-menu.js";
import { findKey, rowKeys } from "../components/row-keys.js";
import { empty } from "../components/states.js";
import { ago } from "../components/time.js";
import { api } from "../lib/api.js";
import { asked } from "../lib/asked.js";
import { h } from "../lib/dom.js";
import { number, plural, shortId } from "../lib/format.js";
import { address, link } from "../lib/router.js";
import { signal } from "../lib/signal.js";
import { runLink } from "./run/panels/parts.js";
import { keptNav } from "./memory/kept-nav.js";
import { scopeView } from "./memory/scope.js";

/** @type {import("../types.js").Screen} */
export default {
  title: (params) => (params.scope ? `Memory of ${shortId(params.scope)}` : "Memory"),
  mount(root, params, context) {
    const page = h("div", { class: "page kept" });
    root.append(page);
    if (params.scope) scopeView(page, params.scope, context);
    else scopes(page, context);
  },
};

/** @param {HTMLElement} page @param {import("../types.js").ScreenContext} context */
function scopes(page, context) {
  const wanted = signal(context.query.peek().get("q") ?? "");
  const answer = asked((left) => api.memory.scopes({ signal: left }));
  const field = h("input", { type: "search", placeholder: "Find a scope", "aria-label": "Find a scope", value: wanted.peek(), onInput: (/** @type {Event} */ event) => {
    wanted.value = /** @type {HTMLInputElement} */ (event.target).value;
    context.setQuery({ q: wanted.peek() });
  } });
  context.commands([...rowKeys(page, "a.scope-name"), findKey(field)]);
  page.append(
    h("div", { class: "page-head" }, h("h1", null, "Memory"), keptNav("memory"),
      h("span", { class: "push" }, copyMenu(() => ({ request: { path: "/v1/host/baton/memory" }, baton: ["memory", "scopes"], json: () => api.memory.scopes() })))),
    h("p", { class: "muted" }, "A scope is what runs remember together. A run tree has its own unless it was started with a name for one."),
    h("div", { class: "list-bar" }, field),
    askedView(answer, ({ scopes: all }) => {
      if (all.length === 0) return empty("Nothing is remembered yet.", "Runs write here with memory nodes and memory tools; people can too.", h("code", null, "baton memory put SCOPE --content 'deploys are on Tuesdays' --tag rule"));
      return () => {
        const fitting = all.filter((one) => one.scope.toLowerCase().includes(wanted.value.trim().toLowerCase()));
        if (fitting.length === 0) return empty("No scope has this in its name.", `There are ${plural(all.length, "scope")}.`);
        return h("table", { class: "dense rows" },
          h("thead", null, h("tr", null, h("th", { scope: "col" }, "Scope"), h("th", { scope: "col", class: "roomy" }, "Belongs to"), h("th", { scope: "col", class: "num" }, "Changes"), h("th", { scope: "col" }, "Last changed"))),
          h("tbody", null, fitting.map((one) => h("tr", null,
            h("td", null, link(address("/memory/:scope", { scope: one.scope }), { class: "scope-name mono", title: one.scope }, one.scope.startsWith("run_") ? shortId(one.scope) : one.scope)),
            h("td", { class: "roomy" }, one.scope.startsWith("run_") ? ["the tree of ", runLink(one.scope)] : h("span", { class: "muted" }, "whoever names it")),
            h("td", { class: "num" }, number(one.version)), h("td", { class: "muted" }, ago(one.updatedAt))))));
      };
    }));
}
