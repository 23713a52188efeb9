// The files of two moments as one tree, and what became of each. Pure.

/** @typedef {import("../../../types.js").FileMeta} FileMeta */
/** @typedef {"" | "added" | "changed" | "removed"} FileChange */
/** @typedef {{ path: string, name: string, change: FileChange, now?: FileMeta, then?: FileMeta }} FileNode */
/** @typedef {{ name: string, folders: Folder[], files: FileNode[], changes: number }} Folder */

/** @param {FileMeta[]} then @param {FileMeta[]} now @returns {FileNode[]} by path */
export function mergeFiles(then, now) {
  /** @type {Map<string, FileNode>} */
  const all = new Map();
  const name = (/** @type {string} */ path) => path.slice(path.lastIndexOf("/") + 1);
  for (const file of then) all.set(file.path, { path: file.path, name: name(file.path), change: "removed", then: file });
  for (const file of now) {
    const before = all.get(file.path)?.then;
    const same = before && before.version === file.version && before.etag === file.etag;
    all.set(file.path, { path: file.path, name: name(file.path), change: !before ? "added" : same ? "" : "changed", now: file, ...(before && { then: before }) });
  }
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** @param {FileNode[]} files @returns {Folder} */
export function asTree(files) {
  /** @type {Folder} */
  const root = { name: "", folders: [], files: [], changes: 0 };
  for (const file of files) {
    let at = root;
    for (const part of file.path.split("/").slice(0, -1)) {
      let next = at.folders.find((one) => one.name === part);
      if (!next) at.folders.push((next = { name: part, folders: [], files: [], changes: 0 }));
      if (file.change !== "") next.changes += 1;
      at = next;
    }
    at.files.push(file);
  }
  return root;
}
