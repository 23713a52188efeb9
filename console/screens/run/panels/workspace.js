// The files as of the playhead: the tree, one file, and its difference to a point before.
import { askedView } from "../../../components/asked-view.js";
import { copyMenu } from "../../../components/copy-menu.js";
import { textDiff } from "../../../components/diff-view.js";
import { ago } from "../../../components/time.js";
import { api } from "../../../lib/api.js";
import { asked, rested } from "../../../lib/asked.js";
import { h } from "../../../lib/dom.js";
import { number, plural } from "../../../lib/format.js";
import { address, link } from "../../../lib/router.js";
import { signal } from "../../../lib/signal.js";
import { asTree, mergeFiles } from "./files.js";
import { longText, note } from "./parts.js";
import { baselineSelect, beforeAndNow } from "./since.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {import("./files.js").FileNode} FileNode */
/** @type {import("./baseline.js").BaselineId[]} */
const WANTED = ["previous", "fork", "start"];
const MARKS = { "": "", added: "A", changed: "M", removed: "D" };

/** Whether differences are wanted where there are some. */
const wantsDiff = signal(true);

/** @type {import("../context.js").Panel} */
export default {
  id: "workspace",
  title: "Workspace",
  appliesTo: () => true,
  mount(root, ctx) {
    const answer = beforeAndNow(ctx, WANTED, ctx.surroundingsAt);
    root.append(
      h("div", { class: "in-bar" }, baselineSelect(ctx, WANTED)),
      askedView(answer, ({ was, is }) => {
        if (!is.workspace) return note("This key may not read files. Sign in with one that has the scope workspace:read.");
        const files = mergeFiles(was?.workspace ?? [], is.workspace);
        const changed = files.filter((one) => one.change !== "").length;
        if (files.length === 0) return note("There are no files as of here.");
        return [
          h("div", { class: "in-head" },
            h("span", { class: "muted" }, `${plural(is.workspace.length, "file")} as of #${number(is.seq)}, version ${number(is.workspaceVersion)}`, changed > 0 && ` · ${number(changed)} changed`),
            copyMenu(() => ({ request: { path: `/v1/host/baton/runs/${ctx.runId}/surroundings?at=${is.seq}` }, baton: ["run", "show", ctx.runId, "--at", String(is.seq)], json: is.workspace }))),
          h("div", { class: "ws" },
            h("nav", { class: "ws-tree", "aria-label": "Files" }, () => folder(asTree(files), chosen(ctx, files)?.path ?? "", ctx)),
            h("div", { class: "ws-file" }, () => {
              const file = chosen(ctx, files);
              return file ? fileView(ctx, file, was?.seq ?? -1, is.seq) : note("Choose a file.");
            })),
        ];
      }));
  },
};

/** The file of the address, else the first that changed, else the first. @param {RunContext} ctx @param {FileNode[]} files */
function chosen(ctx, files) {
  const path = ctx.screen.query.value.get("file");
  return files.find((one) => one.path === path) ?? files.find((one) => one.change !== "") ?? files[0];
}

/** @param {import("./files.js").Folder} at @param {string} open @param {RunContext} ctx @returns {HTMLElement} */
function folder(at, open, ctx) {
  return h("ul", null,
    at.folders.map((one) => h("li", null, h("details", { open: true }, h("summary", null, `${one.name}/`, one.changes > 0 && h("span", { class: "muted small" }, ` ${one.changes} changed`)), folder(one, open, ctx)))),
    at.files.map((one) => h("li", null, h("button", {
      type: "button", class: ["ws-name", one.change], "aria-current": one.path === open ? "true" : null, title: one.path,
      onClick: () => ctx.screen.setQuery({ file: one.path }),
    }, h("span", { class: "clip" }, one.name), one.change !== "" && h("span", { class: "ws-mark", title: one.change }, MARKS[one.change], h("span", { class: "visually-hidden" }, ` ${one.change}`))))));
}

/** @param {RunContext} ctx @param {FileNode} file @param {number} before @param {number} seq */
function fileView(ctx, file, before, seq) {
  const differs = file.change === "changed";
  const texts = asked((left) => rested(left, async () => {
    const get = (/** @type {number} */ at) => api.runs.file(ctx.runId, file.path, at, { signal: left });
    const [then, now] = await Promise.all([file.then && file.change !== "" ? get(before) : null, file.now ? get(seq) : null]);
    return { then, now };
  }));
  return [
    h("div", { class: "in-head" },
      h("span", { class: "wrap-any" }, h("strong", { class: "mono" }, file.path),
        h("span", { class: "muted small" }, file.now ? [` version ${number(file.now.version)}`, file.then && differs ? `, was ${number(file.then.version)}` : "", ` · ${file.now.contentType} · `, ago(file.now.updatedAt)] : " removed")),
      h("span", { class: "row" },
        differs && h("button", { type: "button", class: "small", "aria-pressed": () => String(wantsDiff.value), onClick: () => (wantsDiff.value = !wantsDiff.peek()) }, "Diff"),
        copyMenu(() => ({ request: { path: `/v1/host/baton/runs/${ctx.runId}/files/${file.path}?at=${seq}` }, baton: ["workspace", "cat", file.path, ...(file.now ? ["--version", String(file.now.version)] : [])], json: () => texts.value.peek()?.now ?? texts.value.peek()?.then })))),
    askedView(texts, ({ then, now }) => {
      if (!now) return h("div", { class: "box" }, textDiff(then?.content ?? "", ""));
      return () => (differs && wantsDiff.value ? h("div", { class: "box" }, textDiff(then?.content ?? "", now.content)) : longText(now.content));
    }),
    note("As this run sees it. What it writes itself shows from its next turn on. ", link(address("/workspace", {}, { file: file.path }), null, "The file now")),
  ];
}
