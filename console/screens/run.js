// One run: its tree, its timeline, its events and whatever the playhead shows of it.
import { split } from "../components/split.js";
import { failed, loading } from "../components/states.js";
import { recovered } from "../lib/connection.js";
import { h } from "../lib/dom.js";
import { shortId } from "../lib/format.js";
import { computed, effect, untracked } from "../lib/signal.js";
import { runActions, runCommands } from "./run/actions.js";
import { banners } from "./run/banners.js";
import { createContext } from "./run/context.js";
import { eventList } from "./run/events.js";
import { runHeader } from "./run/header.js";
import { inspector } from "./run/inspector.js";
import { questions } from "./run/question.js";
import { playheadBar } from "./run/steps.js";
import { timeline } from "./run/timeline.js";
import { runTree } from "./run/tree.js";

/** What may change the run's row without being in it: ask for it again, but not for every event. */
const ROW = /^(run\.|interrupt\.|node\.(suspended|resumed|dispatched)|runOrchestrator\.|budget\.|provider\.usage)/;
const ROW_AFTER = 400;

/** @type {import("../types.js").Screen} */
export default {
  title: (params) => shortId(params.runId ?? ""),
  mount(root, params, context) {
    const ctx = createContext(params.runId ?? "", context);
    const actions = runActions(ctx);
    const tree = runTree(ctx);
    const line = timeline(ctx);
    root.classList.add("run");
    const middle = h("div", { class: "run-middle" }, questions(ctx), playheadBar(ctx, line.tools), line.element, eventList(ctx, (seq) => void actions.fork({ seq })));
    const right = split({ name: "run-inspector", size: 780, min: 320, max: 1800, label: "Width of the events" }, middle, inspector(ctx));
    const body = split({ name: "run-tree", size: 250, min: 150, max: 600, label: "Width of the tree" }, tree.element, right);
    body.classList.add("run-body");
    const broken = computed(() => (ctx.log.newest.value < 0 && ctx.log.phase.value === "failed" ? ctx.log.error : null));
    root.append(
      runHeader(ctx, actions),
      banners(ctx, actions),
      body,
      h("div", { class: "run-over", hidden: () => broken.value === null && ctx.log.newest.value >= 0 }, () =>
        broken.value === null ? loading(10) : failed(broken.value, ctx.again)));
    context.commands(runCommands(ctx, actions, tree.sibling));
    // A log that cannot be had at all must not hide why, and what can be decided.
    effect(() => void root.classList.toggle("left-alone", ctx.held.tree.value !== null));

    ctx.log.follow(context.signal);
    effect(() => {
      const workflow = ctx.item.value?.workflowId;
      if (workflow) context.setTitle(`${workflow} ${shortId(ctx.runId)}`);
    });
    effect(() => {
      void recovered.value;
      untracked(ctx.refresh);
    });
    let seen = -1;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let asking;
    effect(() => {
      const newest = ctx.log.newest.value;
      if (ctx.log.phase.value === "loading") return void (seen = newest);
      for (let seq = Math.max(seen + 1, newest - 200); seq <= newest; seq += 1) {
        if (!ROW.test(ctx.log.at(seq)?.type ?? "")) continue;
        asking ??= setTimeout(() => {
          asking = undefined;
          if (!context.signal.aborted) ctx.refresh();
        }, ROW_AFTER);
        break;
      }
      seen = newest;
    });
    return () => clearTimeout(asking);
  },
};
