// The files that runs share: the tree as it is now, what happened to it, one file in any of its versions.
import { askedView } from "../components/asked-view.js";
import { copyMenu } from "../components/copy-menu.js";
import { empty } from "../components/states.js";
import { ago } from "../components/time.js";
import { api } from "../lib/api.js";
import { asked } from "../lib/asked.js";
import { h } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { address, link, navigate } from "../lib/router.js";
import { computed, effect, signal } from "../lib/signal.js";
import { keptNav } from "./memory/kept-nav.js";
import { asTree } from "./run/panels/files.js";
import { runLink } from "./run/panels/parts.js";
import { fileAddress, fileView } from "./workspace/file.js";

/** @typedef {import("../types.js").FileChange} FileChange */
const PART = 50;

/** @type {import("../types.js").Screen} */
export default {
  title: "Workspace",
  mount(root, params, context) {
    // The file is part of the query: a path that ends like a file would be asked of the host as one.
    if (params.path) return navigate(fileAddress(params.path), { replace: true });
    const open = computed(() => context.query.value.get("file") ?? "");
    effect(() => context.setTitle(open.value || "Workspace"));
    const files = asked((left) => api.workspace.list({}, { signal: left }));
    root.append(h("div", { class: "page kept" },
      h("div", { class: "page-head" }, h("h1", null, "Workspace"), keptNav("workspace"),
        h("span", { class: "push" }, copyMenu(() => ({ request: { path: "/v1/host/workspace/files" }, baton: ["workspace", "ls"], json: () => files.value.peek()?.files })))),
      h("div", { class: "kept-two" },
        h("section", { class: "kept-side", "aria-label": "Files" }, askedView(files, ({ files: all }) => (all.length === 0 ? h("p", { class: "muted" }, "There are no files.") : () => tree(all, open.value)))),
        h("section", { class: "kept-main" }, () => (open.value ? fileView(open.value, context) : history())))));
  },
};

/** What happened to all files. */
function history() {
  const limit = signal(PART);
  const answer = asked((left) => api.workspace.changes({ limit: limit.value }, { signal: left }));
  return [
    h("h2", null, "What happened"),
    askedView(answer, ({ changes, nextBefore }) => {
      if (changes.length === 0) return empty("No file was written yet.", "Runs write files with workspace nodes and tools; people can too.", h("code", null, "baton workspace put notes.md --file notes.md"));
      return [changesTable(changes), nextBefore !== undefined && limit.peek() < 1000 && h("button", { type: "button", class: "small", onClick: () => (limit.value = Math.min(1000, limit.peek() * 4)) }, "Show more")];
    }),
  ];
}

/** @param {FileChange[]} changes */
function changesTable(changes) {
  return h("table", { class: "dense rows" },
    h("caption", { class: "visually-hidden" }, plural(changes.length, "change")),
    h("thead", null, h("tr", null, h("th", { scope: "col", class: "num roomy" }, "Change"), h("th", { scope: "col" }, "File"), h("th", { scope: "col" }, "What"), h("th", { scope: "col" }, "By"), h("th", { scope: "col" }, "When"))),
    h("tbody", null, changes.map((one) => h("tr", null,
      h("td", { class: "num muted roomy" }, number(one.change)),
      h("td", { class: "wrap-any" }, one.deleted ? h("span", { class: "mono" }, one.path) : link(fileAddress(one.path, { version: one.version, diff: (one.version ?? 1) > 1 ? "1" : null }), { class: "mono" }, one.path)),
      h("td", null, one.deleted ? h("span", { class: "bad-text" }, "deleted") : one.version === 1 ? h("span", { class: "good-text" }, "created") : `version ${number(one.version ?? 0)}`),
      h("td", null, one.runId ? runLink(one.runId) : h("span", { class: "muted" }, "from outside")),
      h("td", { class: "muted" }, ago(one.at))))));
}

// The files as a tree of links. Folders open by themselves: a workspace has hundreds of files at most.
/** @param {import("../types.js").FileMeta[]} files @param {string} open the path that is shown */
function tree(files, open) {
  const nodes = files.map((file) => ({ path: file.path, name: file.path.slice(file.path.lastIndexOf("/") + 1), change: /** @type {"" } */ (""), now: file })).sort((a, b) => (a.path < b.path ? -1 : 1));
  return h("nav", { class: "file-tree", "aria-label": "Files" },
    link(address("/workspace"), { class: "file-link all", "aria-current": open === "" ? "page" : null }, "What happened", h("span", { class: "muted small" }, plural(files.length, "file"))),
    folder(asTree(nodes), open));
}

/** @param {import("./run/panels/files.js").Folder} at @param {string} open @returns {HTMLElement} */
function folder(at, open) {
  return h("ul", null,
    at.folders.map((one) => h("li", null, h("details", { open: true }, h("summary", null, `${one.name}/`), folder(one, open)))),
    at.files.map((one) => h("li", null, link(fileAddress(one.path), { class: "file-link mono", title: one.path, "aria-current": one.path === open ? "page" : null }, h("span", { class: "clip" }, one.name), h("span", { class: "muted small" }, `v${one.now?.version ?? ""}`)))));
}
