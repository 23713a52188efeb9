// The files that runs share: the tree as it is now, what happened to it, one file in any of its versions.
import { askedView } from "../components/asked-view.js";
import { copyMenu } from "../components/copy-menu.js";
import { empty } from "../components/states.js";
import { ago } from "../components/time.js";
import { api } from "../lib/api.js";
import { asked } from "../lib/asked.js";
import { recovered } from "../lib/connection.js";
import { h } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { link, navigate } from "../lib/router.js";
import { computed, effect, signal } from "../lib/signal.js";
import { runLink } from "./run/panels/parts.js";
import { keptNav } from "./memory/kept-nav.js";
import { fileAddress, fileView } from "./workspace/file.js";
import { tree } from "./workspace/tree.js";

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
    const files = asked((left) => {
      void recovered.value;
      return api.workspace.list({}, { signal: left });
    });
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
  const answer = asked((left) => {
    void recovered.value;
    return api.workspace.changes({ limit: limit.value }, { signal: left });
  });
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
