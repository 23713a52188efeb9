// Questions the run waits on, answered in place: what is asked, what will happen, and a field where one is needed.
import { copyMenu } from "../../components/copy-menu.js";
import { about } from "../../components/question/about.js";
import { answerForm } from "../../components/question/answer-form.js";
import { known } from "../../components/question/known.js";
import { settledText } from "../../components/question/settled.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { inOrder } from "../../lib/asked.js";
import { recovered } from "../../lib/connection.js";
import { append, h, uid } from "../../lib/dom.js";
import { asApiError, isAbort } from "../../lib/error.js";
import { address, link } from "../../lib/router.js";
import { computed, effect, scope, signal, untracked } from "../../lib/signal.js";
import { toast } from "../../lib/toast.js";
import { hasContent, titleOf } from "./answers.js";

/** @typedef {import("./context.js").RunContext} RunContext */
/** @typedef {import("../../types.js").InterruptItem} InterruptItem */

const CONCERNS = /^(interrupt\.|node\.(suspended|resumed|cancelled|failed)|approval\.|baton\.approval|run\.)/;
const MOST = 3;

/** @param {RunContext} ctx */
export function questions(ctx) {
  const { log } = ctx;
  const open = signal(/** @type {InterruptItem[]} */ ([]));
  let asked = -1;
  const begin = inOrder();
  const load = async () => {
    const counts = begin();
    try {
      const { interrupts } = await api.interrupts.list({ runId: ctx.runId }, { signal: ctx.signal });
      if (!ctx.signal.aborted && counts() && JSON.stringify(interrupts) !== JSON.stringify(open.peek())) open.value = interrupts;
    } catch (error) {
      // Without the scope to see them there is nothing to answer. A host that is away takes nothing back.
      if (!isAbort(error) && !asApiError(error).passing && counts()) open.value = [];
    }
  };
  effect(() => {
    if (recovered.value > 0 && asked >= 0) void load();
  });
  /** What is typed into a card stays while others come and go. @type {Map<string, { text: string, element: HTMLElement, end: () => void }>} */
  const cards = new Map();
  const home = scope();
  const cardOf = (/** @type {InterruptItem} */ question) => {
    const [key, text] = [question.interruptId, JSON.stringify(question)];
    const had = cards.get(key);
    if (had?.text === text) return had.element;
    had?.end();
    const here = home.run(scope);
    const element = here.run(() => card(ctx, question, load));
    cards.set(key, { text, element, end: () => here.end() });
    return element;
  };
  effect(() => {
    const newest = log.newest.value;
    if (newest < 0 || log.phase.value === "loading") return;
    const from = asked + 1;
    asked = newest;
    untracked(() => {
      for (let seq = Math.max(from, newest - 500); seq <= newest; seq += 1) {
        if (CONCERNS.test(log.at(seq)?.type ?? "")) return void load();
      }
    });
  });
  const box = h("div", { class: "questions" });
  append(box, [() => {
    // Cards are put back where they were, and so is the cursor.
    const at = document.activeElement;
    if (at instanceof HTMLElement && box.contains(at)) queueMicrotask(() => at.isConnected && at.focus({ preventScroll: true }));
    // A question that is open now was asked at some sequence: before it, nobody could know.
    const shown = open.value.filter((one) => ctx.live.value || ctx.seq.value >= askedAt(ctx, one));
    return [
      ...shown.slice(0, MOST).map(cardOf),
      shown.length > MOST ? link(address("/inbox"), { class: "muted small" }, `${shown.length - MOST} more in the inbox`) : null,
    ];
  }]);
  return box;
}

/** @param {RunContext} ctx @param {InterruptItem} question */
function askedAt(ctx, question) {
  const event = ctx.log.latest(ctx.log.newest.peek(), (one) => one.type === "interrupt.requested" && one.payload.key === question.key);
  return event?.sequence ?? 0;
}

/** @param {RunContext} ctx @param {InterruptItem} question @param {() => void} done */
function card(ctx, question, done) {
  const { kind } = question;
  const id = uid("question");
  const unknown = kind === "x-host-baton-effect-unknown";
  const seq = askedAt(ctx, question);
  const hold = ctx.log.facts.turns.at(seq)?.held.findLast((one) => one.seq <= seq);
  // Drawn anew only when it is something else: what was opened in it stays open.
  const knows = computed(() => (ctx.snapshot.value ? JSON.stringify([ctx.snapshot.value.inputs, ctx.snapshot.value.variables]) : ""));
  const form = answerForm(question, {
    send: (value) => api.interrupts.resolve(question, value),
    answered: (answer) => {
      toast(answer.id === "ask" ? "Your question is recorded" : "Answered");
      ctx.refresh();
      done();
    },
    settled: (settled) => {
      toast(settledText(settled));
      done();
    },
  });
  return h("section", { class: ["question", unknown ? "unknown" : ""], "aria-labelledby": id },
    h("div", { class: "q-head" },
      h("div", { class: "grow" }, h("h2", { id }, titleOf(question)), h("span", { class: "muted small" }, `${kind.replace(/^x-host-baton-/, "")} at ${question.nodeId}, asked `, ago(question.requestedAt), question.expiresAt ? [", expires ", ago(question.expiresAt)] : null)),
      copyMenu(() => ({ request: { method: "POST", path: `/v1/runs/${ctx.runId}/interrupts/${encodeURIComponent(question.nodeId)}`, body: { interruptId: question.interruptId, resumeValue: form.value() } }, baton: ["interrupt", "resolve", ctx.runId, question.nodeId, "--id", question.interruptId, "--value", JSON.stringify(form.value())], json: question }), { label: "⋯", class: "icon small" })),
    about(question, hold?.floor),
    () => !hasContent(question) && knows.value !== "" && untracked(() => known(question, ctx.snapshot.peek())),
    form.element);
}
