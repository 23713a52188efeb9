// The list of runs: filtered by what the address says, live, selectable, as long as it gets.
import { filterBox } from "../components/filter.js";
import { empty, failed, loading } from "../components/states.js";
import { listCommands, virtualList } from "../components/virtual-list.js";
import { copyMenu } from "../components/copy-menu.js";
import { onRuns, relist } from "../lib/activity.js";
import { recovered } from "../lib/connection.js";
import { h } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { url } from "../lib/http.js";
import { atRest } from "../lib/keys.js";
import { hostTurns } from "../lib/limits.js";
import { heldTrees, holderOf } from "../lib/quarantine.js";
import { address, link, navigate } from "../lib/router.js";
import { computed, effect, onEnd, signal, untracked } from "../lib/signal.js";
import { cancelRuns, exportRuns } from "./runs/actions.js";
import { DEFAULT, FIELDS, VIEWS, listCommand, readFilter } from "./runs/filter.js";
import { hasEnded, header, row, runAddress } from "./runs/row.js";
import { RunStore } from "./runs/store.js";
import { heldEntry, queryOf, viewLinks } from "./runs/views.js";

/** What was shown last, so that "back" from a run finds the list where it was. */
const last = { text: "", store: /** @type {RunStore | null} */ (null), top: 0, active: -1, heard: 0 };
/** How often something may have been missed. */
const missed = computed(() => relist.value + recovered.value);
/** @type {(place: number) => void} */
let redraw = () => {};
// The list is kept up to date while another screen is shown, too: going back costs nothing.
onRuns((changed) => last.store?.take(changed).forEach((place) => redraw(place)));
const NARROW = 640;

/** The filter of an address: absent means the default, `*` means everything. @param {URLSearchParams} query */
const textOf = (query) => (query.has("q") ? (query.get("q") ?? "").replace(/^\*$/, "") : DEFAULT);

/** @type {import("../types.js").Screen} */
export default {
  title: "Runs",
  mount(root, _params, context) {
    /** @type {Set<string>} */
    const selected = new Set();
    const selection = signal(0);
    const store = signal(/** @type {RunStore} */ (last.store ?? new RunStore({})));
    const trees = heldTrees(context.signal);
    /** @type {HTMLInputElement} */
    let all;

    const box = filterBox({ fields: FIELDS, label: "Filter runs", placeholder: "Filter: status:waiting workflow:research since:24h cost>0.5", onChange: (text) => context.setQuery(queryOf(text)) });
    const runAt = (/** @type {number} */ index) => store.peek().rows[index];
    const list = virtualList({
      label: "Runs",
      rowHeight: 34,
      header: header(() => selectAll(all.checked), (element) => (all = element)),
      key: (index) => runAt(index)?.runId ?? "",
      render: (index) => {
        const run = runAt(index);
        if (!run) return h("div", { class: "run-row" }, h("span", { class: "skeleton" }));
        // The row goes with its run, wherever that is by then.
        const place = () => store.peek().rows.findIndex(({ runId }) => runId === run.runId);
        return row(run, { selected: selected.has(run.runId), stale: !store.peek().stillFits(run), held: !hasEnded(run) && holderOf(trees.list.peek() ?? [], run) !== undefined, now: () => runAt(place()) ?? run, onSelect: (event) => select(place(), /** @type {MouseEvent} */ (event).shiftKey), onCancel: (now) => cancelRuns([now], refresh) });
      },
      onOpen: (index) => {
        const run = runAt(index);
        if (run) navigate(runAddress(run.runId));
      },
      onSelect: (index, event) => select(index, event.shiftKey),
      onRange: (_first, end) => {
        if (end >= store.peek().rows.length - 30) void store.peek().loadMore(context.signal);
      },
    });

    let anchor = -1;
    /** @param {number} index @param {boolean} through */
    const select = (index, through) => {
      const on = !selected.has(runAt(index)?.runId ?? "");
      const [from, to] = through && anchor >= 0 ? [Math.min(anchor, index), Math.max(anchor, index)] : [index, index];
      for (let i = from; i <= to; i += 1) {
        const id = runAt(i)?.runId;
        if (id) on ? selected.add(id) : selected.delete(id);
      }
      anchor = index;
      selectionChanged();
    };
    const selectAll = (/** @type {boolean} */ on) => {
      selected.clear();
      if (on) for (const run of store.peek().rows) selected.add(run.runId);
      selectionChanged();
    };
    const selectionChanged = () => {
      selection.value = selected.size;
      all.checked = selected.size > 0 && selected.size === store.peek().rows.length;
      all.indeterminate = selected.size > 0 && !all.checked;
      list.refresh();
    };
    const refresh = () => void store.peek().reload(context.signal);
    const chosen = () => store.peek().rows.filter((run) => selected.has(run.runId));

    root.classList.add("runs");
    root.append(
      h("div", { class: "runs-bar" },
        h("h1", { class: "visually-hidden" }, "Runs"), box,
        copyMenu(() => {
          const { filter } = store.peek();
          return { request: { path: url("/v1/runs", { ...filter, limit: 100 }) }, ...listCommand(textOf(context.query.peek())), json: () => store.peek().rows };
        })),
      h("div", { class: "runs-views" }, () => (selection.value > 0 ? selectionBar() : viewLinks(textOf(context.query.value))), heldEntry(trees)),
      h("div", { role: "alert" }, () => {
        const { wrong } = readFilter(textOf(context.query.value));
        return wrong.length > 0 && h("div", { class: "banner bad" }, wrong.join(" "));
      }),
      h("div", { class: "runs-body" },
        h("div", { class: "fresh", role: "status" }, () => {
          const count = store.value.fresh.value;
          return count > 0 && h("button", { type: "button", class: "pill", onClick: () => (refresh(), list.scrollTo({ top: 0 })) }, `${number(count)} new`);
        }),
        list,
        () => placeholder()));

    function selectionBar() {
      return h("div", { class: "row wrap", role: "group", "aria-label": "Selected runs" },
        h("strong", null, `${plural(selection.value, "run")} selected`),
        h("button", { type: "button", class: "small danger", disabled: !chosen().some((run) => !hasEnded(run)), onClick: () => cancelRuns(chosen(), refresh) }, "Cancel…"),
        h("button", { type: "button", class: "small", disabled: !chosen().some(hasEnded), onClick: () => exportRuns(chosen()) }, "Export"),
        h("button", { type: "button", class: "small quiet", onClick: () => selectAll(false) }, "Clear"));
    }

    function placeholder() {
      const { state, error, rows, version } = store.value;
      void version.value;
      if (state.value === "loading") return h("div", { class: "over" }, loading(12));
      if (state.value === "failed") return h("div", { class: "over" }, failed(error, refresh));
      if (rows.length > 0) return null;
      if (textOf(context.query.value) !== DEFAULT) return h("div", { class: "over" }, empty("No run fits this filter.", link("/console/runs", null, "Show all runs")));
      return h("div", { class: "over" }, empty("No runs yet.", "Start one from a terminal, or from Workflows.", h("code", null, "baton run start demo-pipeline")));
    }

    // A new filter is a new list; the one that was left is taken up again.
    effect(() => {
      const text = textOf(context.query.value);
      untracked(() => {
        box.text = text;
        const again = last.store !== null && last.text === text;
        const next = again ? /** @type {RunStore} */ (last.store) : new RunStore(readFilter(text).filter);
        const current = again && last.heard === missed.peek() && !next.stale;
        Object.assign(last, { text, store: next, heard: missed.peek() }, again ? {} : { top: 0, active: -1 });
        store.value = next;
        selectAll(false);
        if (!again) list.scrollTop = 0;
        if (!current) void next.reload(context.signal);
      });
    });
    effect(() => {
      const { version, rows, more, changedFrom } = store.value;
      void version.value;
      list.count = rows.length + (more ? 1 : 0);
      list.refresh(changedFrom > 0 ? changedFrom : undefined);
    });
    effect(() => {
      if (missed.value === last.heard) return;
      last.heard = missed.value;
      untracked(refresh);
    });
    effect(() => {
      if (hostTurns.value !== null) list.refresh();
    });
    effect(() => {
      if (trees.list.value !== null) list.refresh();
    });
    redraw = (place) => list.refresh(place);
    onEnd(() => {
      redraw = () => {};
      Object.assign(last, { top: list.scrollTop, active: list.active });
    });
    if (last.top > 0 || last.active >= 0) {
      requestAnimationFrame(() => {
        list.scrollTop = last.top;
        list.active = last.active;
      });
    }
    const sizes = new ResizeObserver(([entry]) => {
      const height = (entry?.contentRect.width ?? 0) < NARROW ? 58 : 34;
      if (height === list.options.rowHeight) return;
      list.options.rowHeight = height;
      list.refresh();
    });
    sizes.observe(list);
    onEnd(() => sizes.disconnect());

    context.commands([
      ...listCommands(list),
      { keys: "/", label: "Filter", group: "List", run: () => box.focusInput() },
      { keys: "Space", label: "Select the row", group: "List", when: () => list.active >= 0 && atRest(), run: () => select(list.active, false) },
      { keys: "x", label: "Cancel the row or the selection", group: "List", when: () => selected.size > 0 || list.active >= 0, run: () => {
        const one = runAt(list.active);
        cancelRuns(selected.size > 0 ? chosen() : one ? [one] : [], refresh);
      } },
      ...VIEWS.map((view) => ({ label: `View: ${view.label}`, group: "Runs", run: () => context.setQuery(queryOf(view.text), { push: true }) })),
      { label: "View: In quarantine", group: "Runs", run: () => navigate(address("/quarantine")) },
    ]);
  },
};
