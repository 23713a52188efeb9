// One question with everything that is needed to answer it, and the answer.
import { copyItems } from "../../components/copy-menu.js";
import { menuButton } from "../../components/menu.js";
import { about } from "../../components/question/about.js";
import { answerForm } from "../../components/question/answer-form.js";
import { known } from "../../components/question/known.js";
import { settledBy, settledNote } from "../../components/question/settled.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { copy } from "../../lib/copy.js";
import { h, uid } from "../../lib/dom.js";
import { shortId } from "../../lib/format.js";
import { address, link, navigate } from "../../lib/router.js";
import { computed, onEnd, signal, untracked } from "../../lib/signal.js";
import { toast } from "../../lib/toast.js";
import { hasContent, titleOf } from "../run/answers.js";
import { detailsOf, leadsTo } from "./details.js";
import { kindWord } from "./row.js";

/** @typedef {import("../../types.js").InterruptItem} InterruptItem */
/** @typedef {import("./details.js").Details} Details */

/**
 * @param {InterruptItem} question
 * @param {{ done: (stays: boolean) => void, back: () => void }} options
 */
export function card(question, options) {
  const details = signal(/** @type {Details | null} */ (null));
  const settled = signal(/** @type {import("../../components/question/settled.js").Settled | null} */ (null));
  const left = new AbortController();
  onEnd(() => left.abort());
  const load = () => detailsOf(question, left.signal).then((got) => left.signal.aborted || (details.value = got));
  const id = uid("card");
  const here = { runId: question.runId };

  /** @type {ReturnType<typeof answerForm> | null} */
  let form = null;
  /** Our own answer, from when it is sent. @type {Promise<unknown> | null} */
  let mine = null;
  const makeForm = (/** @type {InterruptItem} */ full) => {
    form = answerForm(full, {
      send: (value) => {
        const sent = api.interrupts.resolve(question, value);
        mine = sent;
        return sent;
      },
      answered: (answer, status) => {
        const stays = answer.id === "ask" || (status === "waiting-approval" && (question.data?.requiredApprovals ?? 1) > 1);
        toast(answer.id === "ask" ? "Your question is recorded; this one stays open" : stays ? "Your vote is counted" : `Answered: the run is ${status.replaceAll("-", " ")}`,
          { action: { label: "Open run", run: () => navigate(address("/runs/:runId", here)) } });
        if (stays) {
          mine = null;
          void load();
        }
        options.done(stays);
      },
      settled: (by) => (settled.value = by),
      next: (answer) => leadsTo(details.peek()?.definition ?? null, question.nodeId, answer.id),
    });
    return form.element;
  };
  const path = `/v1/runs/${question.runId}/interrupts/${encodeURIComponent(question.nodeId)}`;
  const signed = () => details.peek()?.view?.interruptToken;
  const menu = menuButton("⋯", () => [
    ...copyItems({ request: { method: "POST", path, body: { interruptId: question.interruptId, resumeValue: form?.value() ?? { action: "accept" } } }, baton: ["interrupt", "resolve", question.runId, question.nodeId, "--id", question.interruptId, "--value", JSON.stringify(form?.value() ?? { action: "accept" })], json: question }),
    signed() ? { label: "Copy signed link", note: "30 min", run: () => copy(new URL(address("/link/:token", { token: signed() ?? "" }), location.origin).href, "A link that answers this one question, without a key,") } : null,
  ], { class: "icon", title: "More" });

  // The form needs the schema, which only the run has. Votes that arrive later must not take away what is being typed.
  const ready = computed(() => details.value !== null);
  const floor = computed(() => details.value?.floor ?? null);
  const made = () => untracked(() => makeForm({ ...question, resumeSchema: question.resumeSchema ?? details.peek()?.view?.resumeSchema }));

  const element = h("article", { class: ["q-card", question.kind === "x-host-baton-effect-unknown" && "unknown"], "aria-labelledby": id },
    h("div", { class: "row q-top" },
      h("button", { type: "button", class: "small quiet q-back", onClick: options.back }, "← All questions"),
      h("span", { class: "tag" }, kindWord(question)), h("span", { class: "grow" }), menu),
    h("h1", { id }, titleOf(question)),
    () => facts(question, details.value),
    () => about(question, floor.value),
    // What is to be judged comes before the ways to judge it.
    () => !hasContent(question) && details.value && known(question, details.value.run),
    () => voices(details.value),
    () => settled.value ? settledNote(settled.value, link(address("/runs/:runId", here), null, "Open the run"))
      : ready.value ? made() : h("p", { class: "muted", role: "status" }, "Loading…"),
    () => hasContent(question) && details.value && known(question, details.value.run));
  void load();

  return {
    element,
    byKey: (/** @type {"accept" | "reject"} */ which) => form?.byKey(which) ?? false,
    /** The question is no longer open: says who answered it, if it was not us. */
    async gone() {
      // The news that it is answered may be faster than the answer to our own answer, which says all there is to say.
      const told = (/** @type {unknown} */ error) => settledBy(error) !== null;
      if (await mine?.then(() => true, told)) return;
      const token = details.peek()?.view?.interruptToken;
      let by = {};
      try {
        // Still open after all: there are more questions than the list has.
        if (token && (await api.interrupts.byToken(token, { signal: left.signal }))) return;
      } catch (error) {
        by = settledBy(error) ?? {};
      }
      if (!left.signal.aborted) settled.value ??= by;
    },
  };
}

/** @param {InterruptItem} question @param {Details | null} details */
function facts(question, details) {
  const run = details?.run;
  const agent = run?.runOrchestrator?.name ?? run?.runOrchestrator?.agentId ?? run?.agent?.name ?? run?.agent?.agentId;
  const parts = [
    ["Run", link(address("/runs/:runId", { runId: question.runId }), { class: "mono", title: question.runId }, shortId(question.runId)), ` of ${question.workflowId}`],
    ["Requested by", `${agent ? `${agent}, ` : ""}node ${question.nodeId}`, run?.owner.principal ? `; run of ${run.owner.principal}` : ""],
    ["Asked", ago(question.requestedAt)],
    ["Expires", question.expiresAt ? ago(question.expiresAt) : "never", question.expiresAt ? "; silence grants nothing" : ""],
  ];
  return h("dl", { class: "q-facts" }, parts.map(([name, ...value]) => h("div", null, h("dt", null, name), h("dd", null, ...value))));
}

/** Who has voted, and what was asked back. @param {Details | null} details */
function voices(details) {
  if (!details || (details.votes.length === 0 && details.asked.length === 0)) return null;
  return h("ul", { class: "q-voices" },
    details.votes.map(({ who, action, at }) => h("li", null, h("strong", null, who || "somebody"), ` voted ${action} `, h("span", { class: "muted" }, ago(at)))),
    details.asked.map(({ who, text, at }) => h("li", null, h("strong", null, who || "somebody"), ` asked: ${text} `, h("span", { class: "muted" }, ago(at)))));
}
