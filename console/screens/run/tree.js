// The family as a tree: runs with what they cost and whom they wait for, and below the run that is shown what it did.
// One item has the focus; arrows move (the tree pattern of ARIA).
import { statusMark } from "../../components/status.js";
import { h } from "../../lib/dom.js";
import { cost, number, tokens } from "../../lib/format.js";
import { address, link, navigate } from "../../lib/router.js";
import { arrange, become } from "../../lib/rows.js";
import { computed, effect, onEnd, untracked } from "../../lib/signal.js";
import { countUntil } from "./facts.js";
import { followFamily } from "./family.js";

/** @typedef {import("../../types.js").RunItem} RunItem */

/** More items than anybody reads; the list of runs has them all. Of many runs below one, the newest are shown. */
const MOST = 600;
const MOST_BELOW = 200;
/** After going from run to run by tree, the focus stays in the tree. */
let keepFocus = false;

/** @param {import("./context.js").RunContext} ctx */
export function runTree(ctx) {
  const { family } = followFamily(ctx);
  const tree = h("ul", { role: "tree", class: "tree", "aria-label": "Runs of this tree" });
  /** Before the newest event: what the host last said of runs came later. */
  const isPast = () => !ctx.live.value && ctx.seq.value < ctx.log.newest.value;
  const past = computed(isPast);
  const others = computed(() => (family.value.of?.runs.size ?? 0) > 1);
  /** Items stay the same elements while the run goes on, with the focus and the press of a button in them. @type {Map<string, HTMLElement>} */
  let items = new Map();
  /** What this run itself did, by the id of its item. @type {Map<string, Doing>} */
  let known = new Map();
  /** @type {string | null} */
  let focused = null;
  let planned = 0;

  let took = 0;
  const build = () => {
    planned = 0;
    const began = performance.now();
    const of = family.peek().of;
    if (!of) return;
    const had = tree.contains(document.activeElement) || keepFocus;
    const before = items;
    items = new Map();
    known = new Map(doings(ctx.log.facts).map((one) => [`${one.kind} ${one.label}`, one]));
    /** The item of before, if there was one, made to look like this one. @param {HTMLElement} made @param {HTMLElement[] | null} [below] */
    const settle = (made, below = null) => {
      const id = made.dataset.id ?? "";
      const li = before.get(id) ?? made;
      items.set(id, li);
      const [row, wait, group] = [":first-child", ".tree-wait", "ul"].map((part) => li.querySelector(`:scope > ${part}`));
      if (li !== made) {
        for (const { name, value } of made.attributes) if (li.getAttribute(name) !== value && name !== "tabindex") li.setAttribute(name, value);
        if (!made.hasAttribute("aria-expanded")) li.removeAttribute("aria-expanded");
        delete li.dataset.shown; // Of now; `asOf` says how it stood.
        const [nextRow, nextWait] = made.children;
        if (row && nextRow) become(row, nextRow);
        if (wait && nextWait) become(wait, nextWait);
        else if (nextWait) row?.after(nextWait);
        else wait?.remove();
      }
      if (!below) group?.remove();
      else if (group) arrange(group, below);
      else li.append(h("ul", { role: "group" }, below));
      return li;
    };
    const top = of.runs.get(of.root) ?? of.runs.get(ctx.runId);
    let left = MOST;
    const workers = new Map(ctx.log.facts.turns.list.flatMap((turn) => turn.workers.map((worker) => /** @type {const} */ ([worker.childRunId ?? "", turn.number]))));
    /** @param {RunItem} run @param {number} level @returns {HTMLElement} */
    const item = (run, level) => {
      left -= 1;
      const here = run.runId === ctx.runId;
      const children = of.below(run.runId);
      const own = here ? [...known] : [];
      const opens = children.length + own.length > 0;
      const open = opens && !of.closed.has(run.runId);
      const part = run.parentRunId === ctx.runId ? workers.get(run.runId) : undefined;
      const shown = open ? children.slice(-Math.max(1, Math.min(MOST_BELOW, left))) : [];
      const made = h("li", { role: "treeitem", tabindex: "-1", "aria-level": level, "aria-expanded": opens ? String(open) : null, "aria-selected": String(here), dataset: { id: run.runId, status: run.status, ...(run.parentRunId === ctx.runId ? { below: "" } : {}) } },
        h("div", { class: "tree-row", style: { "--level": String(level - 1) } },
          h("button", { type: "button", class: "twist", tabindex: "-1", "aria-hidden": "true", disabled: !opens, onClick: (/** @type {Event} */ event) => (event.stopPropagation(), toggle(run.runId)) }, opens ? (open ? "▾" : "▸") : ""),
          h("span", { class: "tree-status" }, statusMark(run.status, { word: false })),
          part && h("span", { class: "tree-turn", title: `Turn ${part}` }, `t${part}`),
          link(address("/runs/:runId", { runId: run.runId }, keep()), { class: "clip grow", tabindex: "-1", title: `${run.workflowId} ${run.runId}`, "aria-current": here ? "page" : null }, run.workflowId, h("span", { class: "muted mono small" }, ` ${run.runId.slice(-4)}`)),
          h("span", { class: "tree-cost" }, spent(run))),
        waits(run, level));
      const earlier = children.length - shown.length;
      return settle(made, open ? [
        ...own.map(([id, one]) => settle(doing(id, one, level + 1))),
        ...(earlier > 0 ? [settle(h("li", { role: "none", dataset: { id: `before ${run.runId}` } }, h("div", { class: "muted small tree-more" }, `${number(Math.max(children.length, run.summary?.children ?? 0) - shown.length)} earlier`)))] : []),
        ...shown.map((child) => item(child, level + 1)),
      ] : null);
    };
    arrange(tree, top ? [item(top, 1)] : []);
    const to = find(focused) ?? find(ctx.runId);
    for (const one of items.values()) if (one.hasAttribute("tabindex")) one.setAttribute("tabindex", one === to ? "0" : "-1");
    if (had && (keepFocus || !tree.contains(document.activeElement))) to?.focus({ preventScroll: true });
    keepFocus = false;
    asOf();
    took = performance.now() - began;
  };
  const plan = () => {
    // A large tree that grows fast is drawn less often, so that drawing it stays a small part of the time.
    if (!planned) planned = window.setTimeout(build, Math.max(60, took * 15));
  };
  onEnd(() => clearTimeout(planned));

  /** @param {string} id @param {Doing} one @param {number} level */
  function doing(id, one, level) {
    return h("li", { role: "treeitem", tabindex: "-1", "aria-level": level, "aria-selected": "false", dataset: { id } },
      h("div", { class: "tree-row leaf", style: { "--level": String(level - 1) }, onClick: () => open(id) },
        h("span", { class: "twist", "aria-hidden": "true" }, "•"), h("span", { class: "muted" }, one.kind), h("span", { class: "clip grow", title: one.label }, one.label), h("span", { class: "tree-cost" }, count(one))));
  }

  /** @param {Doing} one */
  const count = (one) => `×${number(countUntil(one.seqs, ctx.seq.peek(), (seq) => seq))}`;

  /** Shows the next of these after the playhead, or the first. @param {string} id */
  function open(id) {
    const one = known.get(id);
    if (!one) return;
    const after = countUntil(one.seqs, ctx.live.peek() ? -1 : ctx.seq.peek(), (seq) => seq);
    ctx.moveTo(one.seqs[after] ?? one.seqs[0] ?? 0);
  }

  /**
   * What was not there yet at the playhead is faint; counts are those of then, and so is how this run and those right
   * below it stood. The log does not tell of the others: they are shown as they are now, and the tree says so.
   */
  function asOf() {
    const past = isPast();
    const then = past ? ctx.state.peek().value : null;
    const stood = new Map(then?.childRuns.map((child) => [child.runId, child.status]));
    if (then) stood.set(ctx.runId, then.status);
    for (const [id, row] of items) {
      const { status: now = "", shown = now, below } = row.dataset;
      if (now !== "" && (then || !past)) {
        const status = past ? stood.get(id) ?? (below === undefined ? now : "pending") : now;
        row.classList.toggle("future", past && below !== undefined && !stood.has(id));
        row.classList.toggle("then", status !== now);
        if (status !== shown) row.querySelector(".tree-status")?.replaceChildren(statusMark(status, { word: false }));
        row.dataset.shown = status;
      }
      const one = known.get(id);
      const counter = one && row.querySelector(".tree-cost");
      if (!counter) continue;
      row.classList.toggle("future", count(one) === "×0");
      if (counter.textContent !== count(one)) counter.textContent = count(one);
    }
  }

  const keep = () => ({ tab: ctx.screen.query.peek().get("tab"), view: ctx.screen.query.peek().get("view") });
  /** @param {string | null} id @returns {HTMLElement | null} */
  const find = (id) => (id === null ? null : tree.querySelector(`[role=treeitem][data-id="${CSS.escape(id)}"]`));
  /** @param {string} id @param {boolean} [open] */
  const toggle = (id, open) => {
    const of = family.peek().of;
    if (!of) return;
    if (open ?? of.closed.has(id)) of.closed.delete(id);
    else of.closed.add(id);
    build();
  };
  /** @param {HTMLElement} item */
  const focusOn = (item) => {
    focused = item.dataset.id ?? null;
    for (const one of tree.querySelectorAll("[role=treeitem]")) one.setAttribute("tabindex", one === item ? "0" : "-1");
    item.focus({ preventScroll: true });
    item.querySelector(".tree-row")?.scrollIntoView({ block: "nearest" });
  };
  /** @param {string} id */
  const go = (id) => {
    keepFocus = true;
    navigate(address("/runs/:runId", { runId: id }, keep()));
  };
  tree.addEventListener("click", (event) => {
    const row = event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest("[role=treeitem]")) : null;
    if (!row) return;
    focused = row.dataset.id ?? null;
    // A link takes the focus along to the other run; its own run is shown already.
    keepFocus = event.target instanceof Element && event.target.closest("a") !== null && focused !== ctx.runId;
    if (!keepFocus) focusOn(row);
  });
  tree.addEventListener("keydown", (event) => {
    const items = /** @type {HTMLElement[]} */ ([...tree.querySelectorAll("[role=treeitem]")]);
    const at = items.findIndex((one) => event.target instanceof Element && one === event.target.closest("[role=treeitem]"));
    const item = items[at];
    if (!item || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const [id, expanded] = [item.dataset.id ?? "", item.getAttribute("aria-expanded")];
    /** @type {HTMLElement | null | undefined} */
    let to;
    if (event.key === "ArrowDown") to = items[at + 1];
    else if (event.key === "ArrowUp") to = items[at - 1];
    else if (event.key === "Home") to = items[0];
    else if (event.key === "End") to = items[items.length - 1];
    else if (event.key === "ArrowRight" && expanded === "false") toggle(id, true);
    else if (event.key === "ArrowRight") to = expanded === "true" ? items[at + 1] : null;
    else if (event.key === "ArrowLeft" && expanded === "true") toggle(id, false);
    else if (event.key === "ArrowLeft") to = /** @type {HTMLElement | null} */ (item.parentElement?.closest("[role=treeitem]"));
    else if (event.key === "Enter" || event.key === " ") known.has(id) ? open(id) : go(id);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (to) focusOn(to);
  });

  effect(() => {
    void [family.value, ctx.log.newest.value];
    untracked(plan);
  });
  effect(() => {
    void [ctx.seq.value, ctx.state.value];
    untracked(asOf);
  });

  /** The run before or after this one among those with the same parent. @param {1 | -1} by */
  const sibling = (by) => {
    const of = family.peek().of;
    const self = of?.runs.get(ctx.runId);
    if (!of || !self?.parentRunId) return;
    const list = of.below(self.parentRunId);
    const next = list[list.findIndex((one) => one.runId === ctx.runId) + by];
    if (next) navigate(address("/runs/:runId", { runId: next.runId }, keep()));
  };
  return {
    element: h("nav", { class: "run-tree", "aria-label": "Tree" }, tree,
      () => past.value && others.value && h("p", { class: "muted small tree-now" }, "Costs, and runs not right below this one: as of now."),
      () => family.value.of?.more && h("p", { class: "muted small" }, "There are more runs below than are shown.")),
    sibling,
  };
}

/** @param {RunItem} run */
function spent(run) {
  const { usage } = run.summary ?? {};
  if (!usage) return "";
  return usage.costUsd ? cost(usage.costUsd) : h("span", { class: "muted", title: `${number(usage.inputTokens)} in, ${number(usage.outputTokens)} out` }, `${tokens(usage.inputTokens + usage.outputTokens)}`);
}

/** @param {RunItem} run @param {number} level */
function waits(run, level) {
  const on = run.summary?.waitingOn;
  if (!on || on.runId) return null;
  return h("div", { class: "tree-wait", style: { "--level": String(level) }, title: on.question ?? "" }, `waits: ${on.kind.replace(/^x-host-baton-/, "")} at ${on.nodeId}`);
}

// What a run itself did, counted: models asked, tools called, questions put. For the tree.
/** @typedef {{ kind: "chat" | "tool" | "ask", label: string, seqs: number[] }} Doing */

const MOST_DOINGS = 40;

/** @param {import("./facts.js").Facts} facts @returns {Doing[]} */
function doings(facts) {
  /** @type {Map<string, Doing>} */
  const found = new Map();
  for (const lane of facts.spans.lanes) {
    for (const span of lane.inner) {
      const kind = span.kind === "model" ? "chat" : span.kind === "tool" ? "tool" : span.kind === "wait" && span.label !== "child-waiting" ? "ask" : null;
      if (!kind) continue;
      const label = kind === "ask" ? `${span.label.replace(/^x-host-baton-/, "")} at ${lane.nodeId}` : span.label;
      const one = found.get(`${kind} ${label}`) ?? { kind, label, seqs: [] };
      one.seqs.push(kind === "chat" ? span.endSeq : span.seq);
      found.set(`${kind} ${label}`, one);
    }
  }
  return [...found.values()].slice(0, MOST_DOINGS).map((one) => ({ ...one, seqs: one.seqs.sort((a, b) => a - b) }));
}
