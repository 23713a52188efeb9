// Every address of the console and the screen it shows. Screens are loaded when they are first needed.
/** @type {import("./lib/router.js").Route[]} */
export const routes = [
  { path: "/runs", section: "runs", load: () => import("./screens/runs.js") },
  { path: "/runs/:runId", section: "runs", load: () => import("./screens/run.js") },
  { path: "/quarantine", section: "runs", load: () => import("./screens/quarantine.js") },
  { path: "/compare", section: "runs", load: () => import("./screens/compare.js") },
  { path: "/inbox", section: "inbox", load: () => import("./screens/inbox.js") },
  { path: "/link/:token", public: true, load: () => import("./screens/signed-link.js") },
  { path: "/agents", section: "agents", load: () => import("./screens/agents.js") },
  { path: "/agents/:agentId", section: "agents", load: () => import("./screens/agents.js") },
  { path: "/memory", section: "memory", load: () => import("./screens/memory.js") },
  { path: "/memory/:scope", section: "memory", load: () => import("./screens/memory.js") },
  { path: "/workspace", section: "memory", load: () => import("./screens/workspace.js") },
  { path: "/workspace/*path", section: "memory", load: () => import("./screens/workspace.js") },
  { path: "/workflows", section: "workflows", load: () => import("./screens/workflows.js") },
  { path: "/workflows/:workflowId", section: "workflows", load: () => import("./screens/workflows.js") },
  { path: "/system", section: "system", load: () => import("./screens/system.js") },
];

/** The parts of the navigation, in order. `keys` follow `g`. */
export const sections = [
  { id: "runs", label: "Runs", path: "/runs", keys: "g r" },
  { id: "inbox", label: "Inbox", path: "/inbox", keys: "g i" },
  { id: "agents", label: "Agents", path: "/agents", keys: "g a" },
  { id: "memory", label: "Memory", path: "/memory", keys: "g m" },
  { id: "workflows", label: "Workflows", path: "/workflows", keys: "g w" },
  { id: "system", label: "System", path: "/system", keys: "g s" },
];
