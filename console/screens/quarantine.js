// Trees of runs in quarantine: what happened to each, and what can be done about it.
import { copyMenu } from "../components/copy-menu.js";
import { decisions, lackingNote } from "../components/quarantine.js";
import { rowKeys } from "../components/row-keys.js";
import { empty, failed, loading } from "../components/states.js";
import { ago } from "../components/time.js";
import { h } from "../lib/dom.js";
import { number, plural, shortId } from "../lib/format.js";
import { causeWords, heldTrees } from "../lib/quarantine.js";
import { address, link } from "../lib/router.js";
import { arrange } from "../lib/rows.js";
import { computed, effect, scope } from "../lib/signal.js";
import { heldEntry, viewLinks } from "./runs/views.js";

/** @typedef {import("../types.js").QuarantinedTree} QuarantinedTree */

/** @type {import("../types.js").Screen} */
export default {
  title: "In quarantine",
  mount(root, _params, context) {
    const trees = heldTrees(context.signal);
    const { list, error, more, load, loadMore, decided } = trees;
    effect(() => context.setTitle(list.value?.length ? `In quarantine (${number(list.value.length)}${more.value ? "+" : ""})` : "In quarantine"));
    const title = h("h1", { tabindex: "-1" }, () => (list.value?.length ? `${more.value ? "More than " : ""}${plural(list.value.length, "tree")} in quarantine` : "In quarantine"));

    /** Cards stay where they are while others come and go, with the focus and the press of a button in them. */
    function cards() {
      const ul = h("ul", { class: "stack" });
      const home = scope();
      /** @type {Map<string, { element: HTMLElement, end: () => void }>} */
      let shown = new Map();
      effect(() => {
        const had = shown;
        shown = new Map((list.value ?? []).map((tree) => {
          const text = JSON.stringify(tree);
          const here = had.get(text) ?? home.run(() => {
            const { run, end } = scope();
            return { element: run(() => card(tree, decided)), end };
          });
          had.delete(text);
          return [text, here];
        }));
        // What goes must not take the place of whoever works by keyboard along.
        const left = [...had.values()].some(({ element }) => element.contains(document.activeElement));
        arrange(ul, Array.from(shown.values(), ({ element }) => element));
        had.forEach(({ end }) => end());
        if (left) title.focus({ preventScroll: true });
      });
      return ul;
    }

    const body = computed(() => (list.value === null ? (error.value !== null ? "failed" : "loading") : list.value.length === 0 ? "empty" : "list"));
    root.classList.add("runs");
    root.append(
      h("div", { class: "runs-views held-views" }, viewLinks(null), heldEntry(trees, true)),
      h("div", { class: "page held-page" },
        h("div", { class: "page-head" }, title, h("span", { class: "push" }, copyMenu(() => ({
          request: { path: "/v1/host/baton/quarantine" }, baton: ["run", "list", "--quarantined"], batonNote: "the list", json: () => list.peek() ?? [],
        })))),
        () => body.value === "list" && h("p", { class: "muted held-what" }, "The host leaves these trees of runs alone, because one of their runs kept breaking its work. Nothing in them goes on, and their logs stay as they are, until somebody releases or cancels them. All other runs go on."),
        lackingNote(),
        () => {
          if (body.value === "failed") return failed(error.value, () => void load());
          if (body.value === "loading") return loading();
          if (body.value === "empty") return empty("Nothing is in quarantine.", "A run that keeps breaking the host’s work is left alone, with its tree, and then stands here.", link(address("/runs"), null, "Show all runs"));
          return cards();
        },
        () => more.value && h("p", null, h("button", { type: "button", onClick: () => void loadMore() }, "Show more"))));
    context.commands(rowKeys(root, ".held-open"));
  },
};

/** @param {string} runId @param {string} [name] */
const runLink = (runId, name = "") => link(address("/runs/:runId", { runId }), { class: ["mono", name], title: runId }, shortId(runId));

/** @param {QuarantinedTree} tree @param {() => void} done */
function card(tree, done) {
  const { title, text } = causeWords(tree.cause);
  return h("li", { class: "card held-tree" },
    h("div", { class: "held-head" }, h("h2", null, title), h("span", { class: "muted" }, ago(tree.since))),
    h("p", { class: "muted" }, text),
    h("dl", { class: "facts" },
      h("dt", null, "Tree of"), h("dd", null, runLink(tree.rootRunId, "held-open")),
      h("dt", null, "Failing run"), h("dd", null, tree.runId === tree.rootRunId ? "the same" : runLink(tree.runId), h("span", { class: "muted" }, `, which has ${plural(tree.seq, "event")}`)),
      h("dt", null, "Cause"), h("dd", null, h("code", null, tree.cause))),
    tree.detail && h("pre", { class: "box" }, tree.detail),
    decisions(tree, done));
}
