// The ways to answer a question, as buttons; the one that is chosen says what will happen, takes what it needs and is
// confirmed. Used wherever a question is shown: run, inbox, signed link.
import { h } from "../../lib/dom.js";
import { ApiError } from "../../lib/error.js";
import { diffJson } from "../../lib/diff.js";
import { schemaLike } from "../../lib/schema.js";
import { signal } from "../../lib/signal.js";
import { toast } from "../../lib/toast.js";
import { answersOf, holdsDecision, resumeValue, subjectOf } from "../../screens/run/answers.js";
import { confirmThen } from "../dialog.js";
import { jsonDiff, textDiff } from "../diff-view.js";
import { jsonView } from "../json-view.js";
import { schemaForm } from "../schema-form.js";
import { decisionSchema } from "./decision.js";
import { settledBy } from "./settled.js";

/** @typedef {import("../../types.js").InterruptItem} InterruptItem */
/** @typedef {import("../../screens/run/answers.js").Answer} Answer */
/** @typedef {import("./settled.js").Settled} Settled */
/**
 * @typedef {object} Options
 * @property {(value: unknown) => Promise<{ status: string }>} send
 * @property {(answer: Answer, status: string) => void} answered
 * @property {(settled: Settled) => void} settled somebody was faster
 * @property {(answer: Answer) => string | null} [next] what follows, where more is known than the answer's kind
 */

const NOTED = ["accept", "reject", "edit-accept"];
/** @type {Record<string, string>} */
const SENDS = { "edit-accept": "Accept as edited", refine: "Send back", ask: "Ask" };

/** @param {InterruptItem} question @param {Options} options */
export function answerForm(question, options) {
  const answers = answersOf(question);
  const chosen = signal(/** @type {Answer | null} */ (answers.length === 1 ? answers[0] ?? null : null));
  const wrong = signal("");
  const busy = signal(false);
  /** @type {() => unknown} */
  let read = () => null;
  const noteField = () => h("input", { type: "text", placeholder: "Note (optional)", "aria-label": "Note", class: "grow" });
  const note = noteField();
  const voter = voterField(question);
  const valueOf = (/** @type {Answer} */ answer) => {
    const value = resumeValue(answer, read(), note.value);
    const who = NOTED.includes(answer.id) ? voter?.value.trim() : "";
    return who ? { .../** @type {object} */ (value), voter: who } : value;
  };

  const send = async (/** @type {Answer} */ answer, make = () => valueOf(answer)) => {
    if (busy.peek()) return;
    let value;
    try {
      value = make();
    } catch (error) {
      wrong.value = error instanceof Error ? error.message : String(error);
      return;
    }
    busy.value = true;
    wrong.value = "";
    try {
      const { status } = await options.send(value);
      busy.value = false;
      // A question that stays open, after a vote or a question back, can be answered again from the beginning.
      note.value = "";
      if (answers.length > 1) chosen.value = null;
      options.answered(answer, status);
    } catch (error) {
      busy.value = false;
      const settled = settledBy(error);
      if (settled) return options.settled(settled);
      wrong.value = error instanceof ApiError ? `${error.message} ${error.hint}` : String(error);
    }
  };
  const pick = (/** @type {Answer | null} */ answer) => {
    wrong.value = "";
    chosen.value = answer;
    focusForm(".q-form :is(textarea, input, select, button)");
  };
  const focusForm = (/** @type {string} */ where) => {
    element.querySelector(".q-form")?.scrollIntoView({ block: "nearest" });
    /** @type {HTMLElement | null} */ (element.querySelector(where))?.focus();
  };
  const votes = typeof question.data?.requiredApprovals === "number" && question.data.requiredApprovals > 1;
  const then = (/** @type {Answer} */ answer) => {
    const next = options.next?.(answer) ?? "";
    // Where the workflow says what a rejection leads to, it need not be said in general.
    const said = answer.id === "reject" && next ? next : `${answer.then} ${next}`;
    return votes && NOTED.includes(answer.id) ? `This counts as one vote. When it is decided: ${said}` : said;
  };

  const element = h("div", { class: "stack answer-form" },
    answers.length > 1 && h("div", { class: "row wrap q-answers" }, answers.map((answer) =>
      h("button", { type: "button", class: answer.look, disabled: () => busy.value, "aria-pressed": () => String(chosen.value?.id === answer.id), onClick: () => pick(answer) }, answer.label))),
    () => {
      const answer = chosen.value;
      if (!answer) return null;
      const [field, value] = fieldOf(answer, question);
      read = value;
      const name = answer.label.replace(/…$/, "");
      return h("form", { class: "stack q-form", tabindex: "-1", "aria-label": name, onSubmit: (/** @type {Event} */ event) => (event.preventDefault(), void send(answer)) },
        h("p", { class: "q-then" }, h("span", { class: "muted" }, "Next: "), then(answer)),
        field,
        voter && NOTED.includes(answer.id) && h("label", { class: "row wrap" }, "Vote as", voter),
        h("div", { class: "row wrap" }, NOTED.includes(answer.id) && note,
          h("button", { type: "submit", class: ["primary", answer.look === "danger" && "danger"], disabled: () => busy.value }, () => (busy.value ? "Sending…" : SENDS[answer.id] ?? (answers.length > 1 ? `${name}: confirm` : name))),
          answers.length > 1 && h("button", { type: "button", class: "quiet", onClick: () => pick(null) }, "Back")),
        preview(() => valueOf(answer), question, answer));
    },
    h("div", { role: "alert" }, () => wrong.value && h("p", { class: "wrong" }, wrong.value)));

  return {
    element,
    /** What would be sent now, for "Copy as". */
    value: () => {
      try {
        return chosen.peek() ? valueOf(/** @type {Answer} */ (chosen.peek())) : { action: "accept" };
      } catch {
        return { action: "accept" };
      }
    },
    /**
     * By key: asks first where nothing has to be typed, opens the form where something has. A form that is open already
     * stays as it is, with all that was typed. @param {"accept" | "reject"} id
     */
    byKey(id) {
      const answer = answers.find((one) => one.id === id) ?? (id === "accept" ? answers.find((one) => one.look === "primary") : undefined);
      if (!answer) return false;
      const open = chosen.peek();
      if (open && open !== answer) {
        // Not into its fields: Enter there would send another answer than the key meant.
        focusForm(".q-form");
        toast(`“${open.label.replace(/…$/, "")}” is open. Send it, or go back first.`);
        return true;
      }
      if (open || answer.wants !== null || voter) return pick(answer), true;
      const said = noteField();
      confirmThen({ title: `${answer.label}?`, text: h("div", { class: "stack" }, h("p", null, h("strong", null, question.data?.title ?? question.nodeId)), h("p", { class: "muted" }, then(answer)), h("p", null, said)), confirm: answer.label, danger: answer.look === "danger", act: () => send(answer, () => resumeValue(answer, null, said.value)) });
      return true;
    },
  };
}

/** Who votes, where only some may. @param {InterruptItem} question @returns {HTMLSelectElement | HTMLInputElement | null} */
function voterField({ data }) {
  if (Array.isArray(data?.approversList) && data.approversList.length > 0) {
    return h("select", null, data.approversList.map((/** @type {string} */ who) => h("option", { value: who }, who)));
  }
  return typeof data?.requiredApprovals === "number" && data.requiredApprovals > 1 ? h("input", { type: "text", placeholder: "your key's own id" }) : null;
}

/** What exactly is sent, and what was changed. @param {() => unknown} value @param {InterruptItem} question @param {Answer} answer */
function preview(value, question, answer) {
  const body = h("div", { class: "box" });
  const show = () => {
    try {
      const now = /** @type {any} */ (value());
      const [before, after] = [editable(subjectOf(question)), now?.editedArtifactData];
      const changed = answer.id === "edit-accept" && before !== undefined;
      body.replaceChildren(...(changed ? [changes(before, after)] : []), jsonView({ interruptId: question.interruptId, resumeValue: now }, 4));
    } catch (error) {
      body.replaceChildren(h("p", { class: "muted" }, error instanceof Error ? error.message : String(error)));
    }
  };
  return h("details", { class: "q-preview", onToggle: (/** @type {Event} */ event) => /** @type {HTMLDetailsElement} */ (event.target).open && show() },
    h("summary", { class: "muted small" }, answer.id === "edit-accept" ? "What is changed and sent" : "What is sent"), body);
}

/** @param {unknown} before @param {unknown} after */
function changes(before, after) {
  if (typeof before === "string" && typeof after === "string") return before === after ? h("p", { class: "muted" }, "Nothing is changed yet.") : textDiff(before, after);
  return diffJson(before, after).changes.length === 0 ? h("p", { class: "muted" }, "Nothing is changed yet.") : jsonDiff(before, after);
}

/**
 * The field an answer wants, and what reads it.
 * @param {Answer} answer @param {InterruptItem} question @returns {[import("../../lib/dom.js").Child, () => unknown]}
 */
function fieldOf(answer, question) {
  const { data, resumeSchema, kind } = question;
  if (answer.wants === "json") {
    if (answer.id === "done") {
      const form = schemaForm({}, null);
      return [form.element, form.read];
    }
    if (answer.id === "value" && kind === "external-event" && !resumeSchema) {
      const form = schemaForm(schemaLike(data?.correlation ?? {}), data?.correlation ?? {});
      return [[h("p", { class: "muted small" }, `The event ${data?.eventType ?? ""}; it has to carry these values.`), form.element], form.read];
    }
    const schema = answer.id === "edit-accept" ? (holdsDecision(question) ? decisionSchema : schemaLike(editable(answer.start))) : resumeSchema ?? {};
    const form = schemaForm(schema, answer.id === "edit-accept" ? editable(answer.start) : resumeSchema ? undefined : answer.start);
    return [form.element, form.read];
  }
  if (answer.wants === "text") {
    const field = h("textarea", { rows: 3, class: "prose", "aria-label": answer.label.replace(/…$/, ""), placeholder: answer.id === "ask" ? "What do you need to know?" : "What should be different?" });
    return [field, () => {
      if (!field.value.trim()) throw new Error("Write something first.");
      return field.value.trim();
    }];
  }
  if (answer.wants === "delta") {
    const names = { maxTokens: "tokens", maxCostUsd: "US dollars", maxToolCalls: "tool calls", maxRetries: "retries" };
    const fields = Object.entries(names).map(([name, label]) => ({ name, field: h("input", { type: "number", min: "0", step: "any", "aria-label": `More ${label}`, placeholder: label }) }));
    return [h("div", { class: "row wrap" }, "Add", fields.map(({ field }) => field), h("span", { class: "muted small" }, "nothing: what was reached is doubled")), () =>
      Object.fromEntries(fields.filter(({ field }) => field.value !== "").map(({ name, field }) => [name, Number(field.value)]))];
  }
  if (answer.wants === "answers") {
    const asked = /** @type {{ id: string, question?: string, schema?: any }[]} */ (data?.questions ?? [{ id: "answer", question: data?.question ?? data?.prompt }]);
    const fields = asked.map((one) => ({ id: one.id, question: one.question ?? one.id, field: h("textarea", { rows: 2, class: "prose" }) }));
    return [fields.map(({ question: text, field }) => h("label", { class: "stack q-ask" }, text, field)), () => {
      const missing = fields.find(({ field }) => !field.value.trim());
      if (missing) throw new Error(`“${missing.question}” has no answer yet.`);
      return Object.fromEntries(fields.map(({ id, field }) => [id, field.value.trim()]));
    }];
  }
  return [null, () => null];
}

/** What of a thing can be edited: of a worker's attested outputs, the outputs. @param {any} thing */
function editable(thing) {
  return thing && typeof thing === "object" && thing.attestation && thing.outputs ? thing.outputs : thing;
}
