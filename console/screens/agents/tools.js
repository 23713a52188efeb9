// What the agent may call: its manifest's list, without what the host does not have or this key may not use.
import { h } from "../../lib/dom.js";
import { plural } from "../../lib/format.js";

const POLICIES = /** @type {Record<string, string>} */ ({ retry: "called again", verify: "looked up", ask: "a human is asked", fail: "counts as failed" });

/** @param {import("../../types.js").AgentEntry} agent @param {import("../../types.js").EffectiveAgent} effective */
export function toolTable(agent, { tools, unavailable }) {
  const usable = tools.filter((one) => one.held).length;
  return h("section", { class: "card stack agent-tools" },
    h("div", { class: "row wrap" }, h("h2", { class: "grow" }, "Effective tools"), h("span", { class: "muted small" }, `${plural(agent.toolAllowlist.length, "tool")} on its list, ${usable} usable with this key`)),
    tools.length === 0 && unavailable.length === 0 ? h("p", { class: "muted" }, "None: its manifest allows no tools.") : h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Effective tools" }, h("table", null,
      h("thead", null, h("tr", null, ["Tool", "Safety", "In doubt", "Scopes"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null,
        tools.map((tool) => h("tr", { class: tool.held ? "" : "not-held" },
          h("td", null, h("span", { class: "mono" }, tool.toolId), h("div", { class: "muted small" }, tool.description, tool.transport && tool.transport !== "native" && ` Over ${tool.transport}.`)),
          h("td", null, h("span", { class: ["tag", ["write", "exec"].includes(tool.safetyTier) && "amber"] }, tool.safetyTier)),
          h("td", { class: "small" }, POLICIES[tool.outcomePolicy] ?? tool.outcomePolicy),
          h("td", { class: "small" }, tool.scopes.length > 0 ? h("span", { class: "mono" }, tool.scopes.join(", ")) : h("span", { class: "muted" }, "none"), !tool.held && h("div", { class: "wrong" }, "this key has not")))),
        unavailable.map((tool) => h("tr", { class: "not-held" }, h("td", { class: "mono" }, tool), h("td", { colspan: "3", class: "muted small" }, "on its list, not offered here")))))));
}
