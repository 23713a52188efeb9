// The files as a tree of links. Folders open by themselves: a workspace has hundreds of files at most.
import { h } from "../../lib/dom.js";
import { plural } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { asTree } from "../run/panels/files.js";
import { fileAddress } from "./file.js";

/** @param {import("../../types.js").FileMeta[]} files @param {string} open the path that is shown */
export function tree(files, open) {
  const nodes = files.map((file) => ({ path: file.path, name: file.path.slice(file.path.lastIndexOf("/") + 1), change: /** @type {"" } */ (""), now: file })).sort((a, b) => (a.path < b.path ? -1 : 1));
  return h("nav", { class: "file-tree", "aria-label": "Files" },
    link(address("/workspace"), { class: "file-link all", "aria-current": open === "" ? "page" : null }, "What happened", h("span", { class: "muted small" }, plural(files.length, "file"))),
    folder(asTree(nodes), open));
}

/** @param {import("../run/panels/files.js").Folder} at @param {string} open @returns {HTMLElement} */
function folder(at, open) {
  return h("ul", null,
    at.folders.map((one) => h("li", null, h("details", { open: true }, h("summary", null, `${one.name}/`), folder(one, open)))),
    at.files.map((one) => h("li", null, link(fileAddress(one.path), { class: "file-link mono", title: one.path, "aria-current": one.path === open ? "page" : null }, h("span", { class: "clip" }, one.name), h("span", { class: "muted small" }, `v${one.now?.version ?? ""}`)))));
}
