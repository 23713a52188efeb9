// One file: any of its versions, who wrote it, and what is different to another.
import { askedView } from "../../components/asked-view.js";
import { copyMenu } from "../../components/copy-menu.js";
import { textDiff } from "../../components/diff-view.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { asked } from "../../lib/asked.js";
import { download } from "../../lib/copy.js";
import { h } from "../../lib/dom.js";
import { bytes, number } from "../../lib/format.js";
import { address } from "../../lib/router.js";
import { computed } from "../../lib/signal.js";
import { longText, runLink } from "../run/panels/parts.js";

/** @typedef {import("../../types.js").FileChange} FileChange */
const MOST_VERSIONS = 200;

/** @param {string} path @param {Record<string, string | number | null | undefined>} [query] */
export function fileAddress(path, query = {}) {
  return address("/workspace", {}, { file: path, ...query });
}

/** The changes since the file was last created: those that have a version to read. @param {FileChange[]} changes newest first @returns {FileChange[]} */
export function readable(changes) {
  const end = changes.findIndex((one) => one.deleted);
  return (end < 0 ? changes : changes.slice(0, end)).filter((one) => one.version !== undefined);
}

/** @param {string} path @param {import("../../types.js").ScreenContext} context */
export function fileView(path, context) {
  const wanted = computed(() => Number(context.query.value.get("version")) || null);
  const against = computed(() => Number(context.query.value.get("against")) || null);
  const diff = computed(() => context.query.value.get("diff") === "1");
  const past = asked((left) => api.workspace.changes({ path, limit: MOST_VERSIONS }, { signal: left }));
  const file = asked((left) => {
    const version = wanted.value;
    return version === null ? api.workspace.get(path, { signal: left }) : api.workspace.version(path, version, { signal: left });
  });
  const before = asked((left) => {
    const now = file.value.value?.version;
    const other = against.value ?? (now ?? 1) - 1;
    return !diff.value || now === undefined || other < 1 || other === now ? null : api.workspace.version(path, other, { signal: left });
  });
  return [
    h("div", { class: "in-head" }, h("h2", { class: "mono wrap-any" }, path),
      h("span", { class: "row" },
        () => file.value.value && h("button", { type: "button", class: "small", onClick: () => download(path.slice(path.lastIndexOf("/") + 1), file.value.peek()?.content ?? "", "text/plain") }, "Save"),
        copyMenu(() => ({ request: { path: `/v1/host/workspace/files/${path.split("/").map(encodeURIComponent).join("/")}${wanted.peek() ? `?version=${wanted.peek()}` : ""}` }, baton: ["workspace", "cat", path, ...(wanted.peek() ? ["--version", String(wanted.peek())] : [])], json: () => file.value.peek() })))),
    h("div", { class: "in-bar" }, () => versionBar(readable(past.value.value?.changes ?? []), file.value.value?.version ?? null, diff.value, against.value, context)),
    askedView(file, (now) => [
      h("p", { class: "muted small row wrap" }, h("span", null, now.contentType ?? "text"), h("span", null, bytes(new TextEncoder().encode(now.content).length)), h("span", null, "written ", ago(now.updatedAt)),
        () => {
          const by = readable(past.value.value?.changes ?? []).find((one) => one.version === now.version);
          return by && h("span", null, by.runId ? ["by ", runLink(by.runId)] : "from outside");
        }),
      () => (diff.value && before.value.value ? h("div", { class: "box file-box" }, textDiff(before.value.value.content, now.content)) : longText(now.content)),
    ]),
    () => {
      const all = past.value.value?.changes ?? [];
      const older = all.length - readable(all).length;
      return older > 0 && h("p", { class: "muted small" }, `The file was deleted and made again: ${number(older)} earlier changes are in the history, their contents are not kept apart.`);
    },
  ];
}

/** @param {FileChange[]} all @param {number | null} shown @param {boolean} diff @param {number | null} against @param {import("../../types.js").ScreenContext} context */
function versionBar(all, shown, diff, against, context) {
  if (shown === null || all.length === 0) return null;
  const newest = all[0]?.version;
  const option = (/** @type {FileChange} */ one, /** @type {number | null} */ chosen) => h("option", { value: String(one.version), ".selected": one.version === chosen }, `version ${one.version}${one.version === newest ? ", newest" : ""}`);
  const select = (/** @type {string} */ label, /** @type {FileChange[]} */ choices, /** @type {number | null} */ chosen, /** @type {(version: number) => void} */ choose) =>
    h("select", { class: "wf-version", "aria-label": label, onChange: (/** @type {Event} */ event) => choose(Number(/** @type {HTMLSelectElement} */ (event.target).value)) }, choices.map((one) => option(one, chosen)));
  const others = all.filter((one) => one.version !== shown);
  return [
    select("Version", all, shown, (version) => context.setQuery({ version: version === newest ? null : version, against: null }, { push: true })),
    others.length > 0 && h("button", { type: "button", class: "small", "aria-pressed": String(diff), onClick: () => context.setQuery({ diff: diff ? null : "1", against: null }) }, "Differences"),
    diff && others.length > 0 && [h("span", { class: "muted" }, "to"), select("Compared with", others, against ?? (shown > 1 ? shown - 1 : others[0]?.version ?? null), (version) => context.setQuery({ against: version }))],
  ];
}
