// Every question that waits for a person or another system, over all runs: the list, and the card of the chosen one.
import { empty, failed, loading } from "../components/states.js";
import { openInterrupts } from "../lib/activity.js";
import { h } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { address } from "../lib/router.js";
import { arrange } from "../lib/rows.js";
import { computed, effect, scope, signal, untracked } from "../lib/signal.js";
import { card } from "./inbox/card.js";
import { kindWord, row } from "./inbox/row.js";
import { keyOf, MOST, openQuestions } from "./inbox/store.js";

/** @type {import("../types.js").Screen} */
export default {
  title: "Inbox",
  mount(root, _params, context) {
    const { list, error, load, answered } = openQuestions(context.signal);
    const kind = computed(() => context.query.value.get("kind") ?? "");
    const at = computed(() => context.query.value.get("at") ?? "");
    const shown = computed(() => (list.value ?? []).filter((one) => !kind.value || kindWord(one) === kind.value));
    // Without a choice the oldest is shown where there is room for it; the style sheet hides it where there is none.
    const chosen = computed(() => at.value || (shown.value[0] ? keyOf(shown.value[0]) : ""));
    const open = signal(/** @type {ReturnType<typeof card> | null} */ (null));
    const go = (/** @type {string | null} */ key) => context.setQuery({ at: key }, { push: !at.peek() });

    effect(() => context.setTitle(list.value?.length ? `Inbox (${number(openInterrupts.value ?? list.value.length)})` : "Inbox"));
    // Whoever begins to answer stays with that question, whatever arrives meanwhile.
    const pane = h("section", { class: "inbox-card", "aria-label": "The question", onInput: () => at.peek() || context.setQuery({ at: chosen.peek() }) });
    let showing = "";
    effect(() => {
      const [key, all] = [chosen.value, list.value];
      if (all === null) return;
      if (key === showing && !all.some((one) => keyOf(one) === key)) void open.peek()?.gone();
    });
    pane.append(h("div", { class: "inbox-hold" }, () => {
      const key = chosen.value;
      // Read once per choice: a list that changes must not take a half-typed answer away.
      const ready = computed(() => list.value !== null);
      if (!ready.value) return null;
      const question = list.peek()?.find((one) => keyOf(one) === key);
      showing = key;
      return untracked(() => {
        if (!question) {
          open.value = null;
          return key ? empty("This question is no longer open.", "It was answered, withdrawn, or has run out.", h("button", { type: "button", onClick: () => go(null) }, "All questions")) : null;
        }
        const made = card(question, {
          done: (stays) => {
            if (!stays) {
              answered(key);
              context.setQuery({ at: null });
            }
            void load();
          },
          back: () => go(null),
        });
        open.value = made;
        return made.element;
      });
    }));

    const move = (/** @type {number} */ by) => {
      const all = shown.peek();
      const next = all[Math.max(0, Math.min(all.length - 1, all.findIndex((one) => keyOf(one) === chosen.peek()) + by))];
      if (next) go(keyOf(next));
    };
    context.commands([
      { keys: "j", label: "Next question", group: "Inbox", run: () => move(1) },
      { keys: "k", label: "Previous question", group: "Inbox", run: () => move(-1) },
      { keys: "a", label: "Approve (asks first)", group: "Inbox", when: () => open.peek() !== null, run: () => void open.peek()?.byKey("accept") },
      { keys: "d", label: "Deny (asks first)", group: "Inbox", when: () => open.peek() !== null, run: () => void open.peek()?.byKey("reject") },
    ]);

    /** Rows stay where they are while others come and go, with the focus and the press of a button in them. */
    function questionList() {
      const ul = h("ul");
      const home = scope();
      /** @type {Map<string, { row: HTMLElement, end: () => void }>} */
      let rows = new Map();
      effect(() => {
        const had = rows;
        rows = new Map(shown.value.map((one) => {
          const text = `${kind.value} ${JSON.stringify(one)}`;
          const here = had.get(text) ?? home.run(() => {
            const { run, end } = scope();
            return { row: run(() => row(one, address("/inbox", {}, { kind: kind.peek(), at: keyOf(one) }), () => chosen.value === keyOf(one))), end };
          });
          had.delete(text);
          return [text, here];
        }));
        arrange(ul, Array.from(rows.values(), (one) => one.row));
        had.forEach(({ end }) => end());
      });
      return ul;
    }

    const body = computed(() => (error.value !== null && list.value === null ? "failed" : list.value === null ? "loading" : list.value.length === 0 && !at.value ? "empty" : "list"));
    root.append(h("div", { class: "inbox-screen" }, () => {
      if (body.value === "failed") return failed(error.value, () => void load());
      if (body.value === "loading") return loading();
      if (body.value === "empty") return empty("Nothing waits for you.", "Questions of all runs appear here by themselves: approvals, held decisions, clarifications, effects that nobody is sure about.");
      return h("div", { class: () => ["inbox", at.value && "chosen"] },
        h("nav", { class: "inbox-list", "aria-label": "Open questions" },
          h("div", { class: "inbox-head" },
            h("h1", null, () => plural(Math.max(openInterrupts.value ?? 0, list.value?.length ?? 0), "open question")),
            () => kinds(list.value ?? [], kind.value, (one) => context.setQuery({ kind: one, at: null }))),
          questionList(),
          () => (list.value?.length ?? 0) >= MOST && h("p", { class: "muted small inbox-more" }, `The oldest ${MOST} are shown.`)),
        pane);
    }));
  },
};

/** @param {import("../types.js").InterruptItem[]} all @param {string} chosen @param {(kind: string | null) => void} choose */
function kinds(all, chosen, choose) {
  const counts = new Map();
  for (const one of all) counts.set(kindWord(one), (counts.get(kindWord(one)) ?? 0) + 1);
  if (counts.size < 2 && !chosen) return null;
  return h("div", { class: "row wrap", role: "group", "aria-label": "Kind" }, [...counts].map(([kind, count]) =>
    h("button", { type: "button", class: "small", "aria-pressed": String(kind === chosen), onClick: () => choose(kind === chosen ? null : kind) }, kind, h("span", { class: "muted" }, number(count)))));
}
