// The list of events: five views, a filter, and the playhead in it. What comes after the playhead is faint, not gone, so
// that one can go on to it.
import { copyItems, copyMenu } from "../../components/copy-menu.js";
import { filterBox } from "../../components/filter.js";
import { openMenu } from "../../components/menu.js";
import { empty, failed, loading } from "../../components/states.js";
import { listCommands, virtualList } from "../../components/virtual-list.js";
import { h } from "../../lib/dom.js";
import { number } from "../../lib/format.js";
import { address } from "../../lib/router.js";
import { effect, onEnd, signal, untracked } from "../../lib/signal.js";
import { eventRow } from "./event-row.js";
import { View, VIEWS } from "./views.js";

const WIDE_ROW = 26;
const NARROW_ROW = 44;
const NARROW = 620;
/** So near to the end that the list goes on with it. */
const NEAR = 40;

/** @param {import("./context.js").RunContext} ctx @param {(seq: number) => void} fork */
export function eventList(ctx, fork) {
  const { log, screen } = ctx;
  const viewId = () => VIEWS.find((view) => view.id === screen.query.value.get("view"))?.id ?? "all";
  let view = new View(log, "all", "");
  const rows = signal(0);
  const searching = signal(false);
  // While the list is told where the playhead is, it must not tell the playhead.
  let told = false;
  let sticks = true;
  const list = virtualList({
    label: "Events",
    rowHeight: WIDE_ROW,
    render: (index) => {
      const row = eventRow(log, view.at(index), view.id, ctx.seq.peek());
      row.classList.toggle("future", view.at(index) > ctx.seq.peek());
      return row;
    },
    onActive: (index) => {
      const seq = view.at(index);
      if (!told && seq >= 0) ctx.moveTo(seq);
    },
    onOpen: () => document.querySelector(/** @type {"[role=tabpanel]"} */ (".inspector [role=tabpanel]"))?.scrollIntoView({ block: "nearest" }),
  });
  list.classList.add("events");
  /** Where the list was put to show its end. */
  let endAt = -1;
  const toEnd = () => {
    list.reveal(view.count - 1);
    endAt = list.scrollTop;
  };
  list.addEventListener("scroll", () => {
    if (list.scrollTop + list.clientHeight >= list.scrollHeight - NEAR) sticks = true;
    // Told late, of a list that has less room by now: nobody has scrolled.
    else if (list.scrollTop !== endAt) sticks = false;
  }, { passive: true });

  list.addEventListener("contextmenu", (event) => {
    const row = event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest(".ev") ?? list.querySelector(".ev.active")) : null;
    const seq = Number(row?.dataset.seq ?? NaN);
    if (!row || Number.isNaN(seq)) return;
    event.preventDefault();
    openMenu(row, [
      { label: "Show here", run: () => ctx.moveTo(seq) },
      { label: "Fork here…", run: () => fork(seq) },
      ...copyItems({ request: { path: `/v1/host/baton/runs/${ctx.runId}/state?at=${seq}` }, baton: ["run", "show", ctx.runId, "--at", String(seq)], json: log.at(seq), link: address("/runs/:runId", { runId: ctx.runId }, { seq }) }),
    ], `Event ${seq}`);
  });

  const box = filterBox({
    fields: [
      { name: "type", hint: "its beginning: type:agent.tool", get values() { return [...log.facts.types].sort(); } },
      { name: "node", hint: "the id of a node", get values() { return [...log.facts.starts.keys()].sort(); } },
    ],
    label: "Filter events",
    placeholder: "Filter  ( / )",
    onChange: (text) => screen.setQuery({ q: text || null }),
  });

  /** @param {() => void} work */
  const quietly = (work) => {
    told = true;
    try {
      work();
    } finally {
      told = false;
    }
  };
  let planned = 0;
  /** A playhead that the address names is shown when the log has come that far, and from then on only when it moves. */
  let found = false;
  /** Where the list stood then. */
  let foundAt = -1;
  const show = () => {
    planned = 0;
    const more = view.extend();
    searching.value = more;
    list.count = rows.value = view.count;
    list.style.setProperty("--digits", `${Math.max(2, String(log.newest.peek()).length)}ch`);
    if (ctx.live.peek()) {
      if (sticks && view.count > 0) toEnd();
      found = true;
    } else {
      const reveal = !found && ctx.reached.peek();
      quietly(() => list.activate(view.indexOf(ctx.seq.peek()), reveal));
      if (reveal) foundAt = list.scrollTop;
      found = ctx.reached.peek() && !more;
    }
    if (more) planned = requestAnimationFrame(show);
  };
  const plan = () => {
    if (!planned) planned = requestAnimationFrame(show);
  };
  onEnd(() => cancelAnimationFrame(planned));

  effect(() => {
    const [id, text] = [viewId(), screen.query.value.get("q") ?? ""];
    untracked(() => {
      box.text = text;
      view = new View(log, id, text);
      quietly(() => (list.active = -1));
      list.refresh();
      show();
      if (!ctx.live.peek()) quietly(() => list.activate(view.indexOf(ctx.seq.peek())));
    });
  });
  effect(() => {
    void log.newest.value;
    // What has ended since is told in the row where it began.
    if (view.id === "compact" || view.id === "effects") list.refresh();
    plan();
  });
  // Whoever reads further up stays there while the run goes on, until they ask for its end.
  let [wanted, wasLive] = [ctx.wantsEnd.peek(), ctx.live.peek()];
  effect(() => {
    const [seq, live, wants] = [ctx.seq.value, ctx.live.value, ctx.wantsEnd.value];
    untracked(() => {
      if (view.id === "compact" || view.id === "effects") list.refresh();
      quietly(() => (live ? (list.active = -1) : list.activate(view.indexOf(seq))));
      if (live && (!wasLive || wants !== wanted)) {
        sticks = true;
        toEnd();
      }
      [wanted, wasLive] = [wants, live];
      for (const row of list.querySelectorAll(".ev")) row.classList.toggle("future", Number(/** @type {HTMLElement} */ (row).dataset.seq) > seq);
    });
  });
  const sizes = new ResizeObserver(([entry]) => {
    const height = (entry?.contentRect.width ?? 0) < NARROW ? NARROW_ROW : WIDE_ROW;
    if (height !== list.options.rowHeight) {
      list.options.rowHeight = height;
      list.refresh();
    }
    // A list at its end, or at the playhead, stays there when the timeline above takes room.
    if (list.scrollTop === foundAt) found = false;
    plan();
  });
  sizes.observe(list);
  onEnd(() => sizes.disconnect());

  screen.commands([
    ...listCommands(list),
    { keys: "/", label: "Filter events", group: "Run", run: () => box.focusInput() },
    ...VIEWS.map(({ id, label }) => ({ label: `Events: ${label}`, group: "Run", run: () => screen.setQuery({ view: id === "all" ? null : id }) })),
  ]);

  return h("section", { class: "run-events", "aria-label": "Events" },
    h("div", { class: "ev-bar" },
      h("div", { class: "segments", role: "group", "aria-label": "View" }, VIEWS.map(({ id, label, hint }) =>
        h("button", { type: "button", class: "small", title: hint, "aria-pressed": () => String(viewId() === id), onClick: () => screen.setQuery({ view: id === "all" ? null : id }) }, label))),
      box,
      h("span", { class: "muted small num ev-count", role: () => (screen.query.value.get("q") ? "status" : null) }, () => (searching.value ? "…" : `${number(rows.value)}`), h("span", { class: "visually-hidden" }, " rows")),
      copyMenu(() => ({ request: { path: `/v1/runs/${ctx.runId}/events` }, baton: ["run", "events", ctx.runId], json: () => Array.from({ length: view.count }, (_, index) => log.at(view.at(index))) }))),
    h("div", { class: "ev-body" }, list, () => placeholder()));

  function placeholder() {
    const phase = log.phase.value;
    if (rows.value > 0) return null;
    if (phase === "failed") return h("div", { class: "over" }, failed(log.error, ctx.again));
    if (phase === "loading" || searching.value) return h("div", { class: "over" }, loading(8));
    if (viewId() !== "all" || screen.query.value.get("q")) {
      const words = { all: "No event fits.", compact: "No event fits.", decisions: "Nothing was decided.", effects: "No call left the host.", errors: "Nothing failed." };
      return h("div", { class: "over" }, empty(screen.query.value.get("q") ? "No event fits this filter." : words[viewId()],
        h("button", { type: "button", onClick: () => screen.setQuery({ view: null, q: null }) }, "Show all events")));
    }
    return h("div", { class: "over" }, empty("Nothing has happened yet."));
  }
}
