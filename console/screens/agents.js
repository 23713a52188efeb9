// Who may be called on this host: the inventory, and for one agent what it is, what it may do here, and a turn to try.
import { empty, failed, loading } from "../components/states.js";
import { api } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { address, link, navigate } from "../lib/router.js";
import { asked } from "../lib/asked.js";
import { detail } from "./agents/detail.js";

/** @typedef {import("../types.js").AgentEntry} AgentEntry */

/** What an agent lacks here. @param {AgentEntry} agent @returns {string[]} */
export const lacks = (agent) => [...(agent.degraded ?? []), ...(agent.degradedMemoryDimensions ?? []).map((one) => `memory: ${one}`)];

/** @type {import("../types.js").Screen} */
export default {
  title: (params) => params.agentId ?? "Agents",
  mount(root, params, context) {
    const agents = asked((signal) => api.agents.list({ signal }));
    const chosen = params.agentId;
    const list = () => (agents.value.value?.agents ?? []);
    const move = (/** @type {number} */ by) => {
      const all = agents.value.peek()?.agents ?? [];
      const next = all[Math.max(0, Math.min(all.length - 1, all.findIndex((one) => one.agentId === chosen) + by))];
      if (next) navigate(address("/agents/:agentId", { agentId: next.agentId }));
    };
    context.commands([
      { keys: "j", label: "Next agent", group: "Agents", run: () => move(1) },
      { keys: "k", label: "Previous agent", group: "Agents", run: () => move(-1) },
      { keys: "t", label: "Try the agent", group: "Agents", when: () => Boolean(chosen), run: () => /** @type {HTMLElement | null} */ (root.querySelector(".try textarea"))?.focus() },
    ]);
    const page = h("section", { class: "agent-page", "aria-label": "The agent" });
    if (chosen) page.append(detail(chosen, context));
    root.append(h("div", { class: "agents-screen" }, () => {
      if (agents.error.value !== null) return failed(agents.error.value, agents.again);
      if (agents.value.value === null) return loading();
      if (list().length === 0) return empty("This host has no agents.", "Agents come in packs: folders that describe who they are and what they may do.", h("code", null, "baton dev --packs ./packs"));
      return h("div", { class: ["agents", chosen && "chosen"] },
        h("nav", { class: "agents-list", "aria-label": "Agents" },
          h("h1", null, plural(list().length, "agent")),
          packs(list()).map(([name, those]) => [
            h("h2", { class: "muted small" }, name),
            h("ul", null, those.map((one) => h("li", null, row(one, one.agentId === chosen)))),
          ])),
        chosen ? page : h("section", { class: "agent-page agent-none" }, empty("Choose an agent", "to see its manifest, its tools, its model and its bounds here, and to try it.")));
    }));
  },
};

/** By pack, as installed. @param {AgentEntry[]} agents @returns {[string, AgentEntry[]][]} */
function packs(agents) {
  /** @type {Map<string, AgentEntry[]>} */
  const by = new Map();
  for (const one of agents) {
    const name = `${one.packName} ${one.packVersion}`;
    by.set(name, [...(by.get(name) ?? []), one]);
  }
  return [...by];
}

/** @param {AgentEntry} agent @param {boolean} current */
function row(agent, current) {
  const missing = lacks(agent);
  return link(address("/agents/:agentId", { agentId: agent.agentId }), { class: "q-row", "aria-current": current ? "true" : null },
    h("span", { class: "q-title" }, agent.label || agent.persona),
    h("span", { class: "q-sub" }, h("span", { class: "tag" }, agent.modelClass), h("span", null, plural(agent.toolAllowlist.length, "tool")),
      missing.length > 0 && h("span", { class: "q-due", title: missing.join(", ") }, "degraded")));
}
