// One scope: its entries with tags and expiry, who wrote them, and what can be done to them.
import { lines } from "../../components/asked-view.js";
import { copyItems, copyMenu } from "../../components/copy-menu.js";
import { confirmThen } from "../../components/dialog.js";
import { menuButton } from "../../components/menu.js";
import { moreIcon } from "../../components/icons.js";
import { findKey, rowKeys } from "../../components/row-keys.js";
import { empty, failed } from "../../components/states.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { inOrder } from "../../lib/asked.js";
import { recovered } from "../../lib/connection.js";
import { download } from "../../lib/copy.js";
import { h } from "../../lib/dom.js";
import { asApiError, isAbort } from "../../lib/error.js";
import { excerpt, number, plural, shortId } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { computed, effect, signal } from "../../lib/signal.js";
import { toast, toastError } from "../../lib/toast.js";
import { runLink } from "../run/panels/parts.js";
import { keptNav } from "./kept-nav.js";
import { writersOf } from "./writers.js";

/** @typedef {import("../../types.js").MemoryEntry} MemoryEntry */
const PART = 100;
const EXPORT_PART = 1000;

/** @param {HTMLElement} page @param {string} scope @param {import("../../types.js").ScreenContext} context */
export function scopeView(page, scope, context) {
  const tag = computed(() => context.query.value.get("tag") ?? "");
  const find = signal("");
  const state = signal(/** @type {{ entries: MemoryEntry[], next: string | undefined } | null} */ (null));
  const problem = signal(/** @type {unknown} */ (null));
  const writers = signal(/** @type {Map<string, import("./writers.js").Writer>} */ (new Map()));
  const ofRun = scope.startsWith("run_");
  const path = `/v1/host/baton/memory/${encodeURIComponent(scope)}`;
  const begin = inOrder();
  const ask = (/** @type {string | undefined} */ cursor) => {
    const counts = begin();
    return api.memory.list(scope, { tag: tag.peek(), limit: PART, cursor }, { signal: context.signal }).then((page) => context.later(() => {
      // A part that was asked for twice, or under another tag, is not added.
      if (!counts() || (cursor && cursor !== state.peek()?.next)) return;
      problem.value = null;
      state.update((before) => ({ entries: [...(cursor ? before?.entries ?? [] : []), ...page.entries], next: page.nextCursor }));
    })).catch((error) => {
      if (!isAbort(error) && counts()) problem.value = error;
    });
  };
  effect(() => {
    void [tag.value, recovered.value];
    void ask(undefined);
  });
  const field = h("input", { type: "search", placeholder: "Find in what is shown", "aria-label": "Find in what is shown", onInput: (/** @type {Event} */ event) => (find.value = /** @type {HTMLInputElement} */ (event.target).value.toLowerCase()) });
  context.commands([...rowKeys(page, ".entry"), findKey(field), { label: "Export this scope as JSON", group: "Memory", run: () => void exportScope(scope) }]);
  const who = async () => {
    const ids = new Set(state.peek()?.entries.map((one) => one.id));
    try {
      const { found, all } = await writersOf(scope, ids, context.signal);
      context.later(() => (writers.value = found));
      if (found.size < ids.size) toast(all ? `${plural(ids.size - found.size, "entry was", "entries were")} written from outside the tree’s runs.` : "The tree is large: only some of its runs were read.");
    } catch (error) {
      if (!isAbort(error)) toastError(error, "Reading the logs");
    }
  };
  const gone = (/** @type {MemoryEntry} */ one) => state.update((before) => before && { ...before, entries: before.entries.filter((entry) => entry.id !== one.id) });
  page.append(
    h("div", { class: "page-head" }, link(address("/memory"), { class: "muted" }, "Memory"), h("span", { class: "muted", "aria-hidden": "true" }, "/"), h("h1", { class: "mono wrap-any", title: scope }, ofRun ? shortId(scope) : scope), keptNav("memory"),
      h("span", { class: "row push" }, h("button", { type: "button", class: "small", onClick: () => exportScope(scope) }, "Export JSON"),
        copyMenu(() => ({ request: { path }, baton: ["memory", "list", scope], json: () => everything(scope) })))),
    h("p", { class: "muted" }, ofRun ? ["What the tree of ", runLink(scope), " remembers. It stays when the runs have ended."] : "What all runs that name this scope remember. It stays when they have ended."),
    h("div", { class: "list-bar" }, field,
      () => tag.value !== "" && h("button", { type: "button", class: "small", "aria-pressed": "true", title: "Show all tags", onClick: () => context.setQuery({ tag: null }, { push: true }) }, `tag ${tag.value} ×`),
      ofRun && h("button", { type: "button", class: "small push", title: "Reads the logs of the tree’s runs", onClick: who }, "Find who wrote them")),
    h("div", null, () => {
      if (problem.value !== null) return failed(problem.value, () => ask(undefined));
      const now = state.value;
      if (!now) return lines();
      const fitting = now.entries.filter((one) => `${one.content} ${one.tags.join(" ")} ${one.id}`.toLowerCase().includes(find.value));
      if (now.entries.length === 0) return tag.value ? empty("No entry has this tag.", "Entries that expired are gone.") : empty("This scope holds nothing.", "What was here was deleted, has expired, or never was.");
      if (fitting.length === 0) return empty("No entry that is shown has this text.", now.next ? "There are more entries; load them and they are searched too." : "");
      return [
        h("p", { class: "muted small", role: "status" }, `${plural(fitting.length, "entry", "entries")}${now.next ? " so far" : ""}, newest first`),
        h("ul", { class: "entries" }, fitting.map((one) => entry(scope, one, () => writers.value.get(one.id), context, gone))),
        now.next && h("button", { type: "button", onClick: () => ask(now.next) }, "Show more"),
      ];
    }));
}

/** @param {string} scope @param {MemoryEntry} one @param {() => import("./writers.js").Writer | undefined} writer @param {import("../../types.js").ScreenContext} context @param {(one: MemoryEntry) => void} gone */
function entry(scope, one, writer, context, gone) {
  const path = `/v1/host/baton/memory/${encodeURIComponent(scope)}/${encodeURIComponent(one.id)}`;
  const forget = () => confirmThen({
    title: "Delete this entry?", danger: true, confirm: "Delete",
    text: [h("blockquote", { class: "box" }, excerpt(one.content, 200)), h("p", null, "Runs that start a turn from now on no longer see it. What runs have seen stays in their logs’ past; the entry itself cannot be brought back.")],
    act: async () => {
      let there = true;
      await api.memory.forget(scope, one.id).catch((error) => {
        there = false;
        if (asApiError(error).status !== 404) throw error;
      });
      gone(one);
      toast(there ? "The entry is deleted" : "The entry was gone already");
    },
  });
  return h("li", { class: "entry", tabindex: "-1" },
    h("div", { class: "entry-text" }, one.content),
    h("div", { class: "row wrap small muted" },
      one.tags.map((tag) => h("button", { type: "button", class: "tag", title: `Only entries with the tag ${tag}`, onClick: () => context.setQuery({ tag }, { push: true }) }, tag)),
      h("span", { class: "mono", title: one.id }, shortId(one.id)), h("span", null, "written ", ago(one.createdAt)),
      () => {
        const by = writer();
        return by && h("span", null, "by ", link(address("/runs/:runId", { runId: by.runId }, { seq: by.seq }), { class: "mono", title: by.runId }, `${shortId(by.runId)} #${number(by.seq)}`), by.nodeId && ` at ${by.nodeId}`);
      },
      one.expiresAt ? h("span", { class: "expiry" }, "expires ", ago(one.expiresAt)) : h("span", null, "does not expire")),
    h("div", { class: "entry-menu" }, menuButton(moreIcon(), () => [
      ...copyItems({ request: { path }, baton: ["memory", "get", scope, one.id], json: one }),
      { label: "Delete…", danger: true, run: forget },
    ], { class: "icon", title: "More for this entry" })));
}

/** Every entry of a scope. @param {string} scope */
async function everything(scope) {
  /** @type {MemoryEntry[]} */
  const all = [];
  /** @type {string | undefined} */
  let cursor;
  do {
    const page = await api.memory.list(scope, { limit: EXPORT_PART, cursor });
    all.push(...page.entries);
    cursor = page.nextCursor;
  } while (cursor);
  return all;
}

/** @param {string} scope */
async function exportScope(scope) {
  try {
    const entries = await everything(scope);
    download(`memory-${scope.replace(/[^\w.-]+/g, "_")}.json`, JSON.stringify({ scope, exportedAt: new Date().toISOString(), entries }, null, 2));
    toast(`${plural(entries.length, "entry", "entries")} exported`);
  } catch (error) {
    toastError(error, "Exporting");
  }
}
