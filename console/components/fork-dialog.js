// Takes a run up again at one of its events. Says what is kept and what happens before anything does, and shows the same
// as a command.
import { openLog } from "../screens/run/log.js";
import { api } from "../lib/api.js";
import { asked, rested } from "../lib/asked.js";
import { asBaton, asCurl, copy } from "../lib/copy.js";
import { h } from "../lib/dom.js";
import { asApiError } from "../lib/error.js";
import { number, plural, shortId } from "../lib/format.js";
import { address, navigate } from "../lib/router.js";
import { computed, scope, signal } from "../lib/signal.js";
import { toast } from "../lib/toast.js";
import { openDialog } from "./dialog.js";
import { choice, optionField, valueField } from "./fork/fields.js";
import { beginningOf, callCount, forkBody, forkWords, planOf } from "./fork/plan.js";

/** @typedef {import("./fork/fields.js").Field} Field */
/** @typedef {Map<string, ReturnType<typeof valueField>>} ValueFields */

/**
 * @param {{ runId: string, seq: number, configurable?: Record<string, unknown> }} at `seq` is the first sequence that
 * happens anew; `configurable` is filled in already, such as a bound that was too low
 */
export function openForkDialog({ runId, seq, configurable = {} }) {
  const here = scope();
  const left = new AbortController();
  const dialog = openDialog(`Fork ${shortId(runId)}`, (close) => here.run(() => content(runId, seq, configurable, left.signal, close)), { class: "fork" });
  dialog.addEventListener("close", () => {
    left.abort();
    here.end();
  });
  return dialog;
}

/** @param {string} runId @param {number} seq @param {Record<string, unknown>} configurable @param {AbortSignal} left @param {() => void} close @returns {import("../lib/dom.js").Child[]} */
function content(runId, seq, configurable, left, close) {
  const log = openLog(runId);
  // Whoever looks at the run has its log already; from elsewhere it is loaded now.
  if (log.newest.peek() < 0) void log.follow(left);
  const mode = signal(/** @type {"branch" | "replay"} */ ("branch"));
  const sideEffects = signal(/** @type {"simulated" | "real"} */ ("simulated"));
  const from = signal(Math.max(0, seq));
  const raw = signal(/** @type {string | null} */ (null));
  /** Raw text that differs from the form, while the form is shown. @type {string | null} */
  let aside = null;
  const sending = signal(false);
  const refusal = signal(/** @type {unknown} */ (null));

  const options = optionFields(configurable);
  /** @type {Record<"inputs" | "variables", import("../lib/signal.js").Signal<ValueFields>>} */
  const values = { inputs: signal(new Map()), variables: signal(new Map()) };
  const given = asked(async (wanted) => (await api.runs.get(runId, { signal: wanted })).inputs);
  const known = asked((wanted) => {
    const at = Math.max(0, (mode.value === "branch" ? beginningOf(log.events, from.value) : from.value) - 1);
    return rested(wanted, async () => (await api.runs.state(runId, at, { signal: wanted })).variables);
  });

  const changed = (/** @type {"inputs" | "variables"} */ of) => Object.fromEntries([...values[of].value].flatMap(([name, field]) => (field.value.value === undefined ? [] : [[name, field.value.value]])));
  const formBody = computed(() => forkBody({ mode: mode.value, fromSeq: from.value, sideEffects: sideEffects.value, inputs: changed("inputs"), variables: changed("variables"), configurable: options.configurable() }));
  const formText = () => JSON.stringify(formBody.value, null, 2);
  const toggleRaw = () => {
    const text = raw.peek();
    if (text !== null) aside = text === formText() ? null : text;
    raw.value = text === null ? aside ?? formText() : null;
  };
  const rawProblem = computed(() => {
    if (raw.value === null) return null;
    try {
      const read = JSON.parse(raw.value);
      return read !== null && typeof read === "object" && !Array.isArray(read) ? null : "This is no JSON object.";
    } catch (error) {
      return `This is no JSON: ${/** @type {Error} */ (error).message}`;
    }
  });
  const body = computed(() => (raw.value === null || rawProblem.value ? formBody.value : JSON.parse(raw.value)));
  /** What will be asked for, in the form's words, whoever wrote it. */
  const will = computed(() => {
    const { fromSeq, mode: way, runOptionsOverlay } = body.value;
    return { from: Number.isInteger(fromSeq) ? fromSeq : 0, mode: way === "replay" ? "replay" : "branch", real: way !== "replay" && runOptionsOverlay?.sideEffects === "real" };
  });
  const wrong = computed(() => rawProblem.value !== null || (log.newest.value >= 0 && will.value.from > log.newest.value + 1) || (raw.value === null && mode.value === "branch" && [...options.fields, ...values.inputs.value.values(), ...values.variables.value.values()].some((field) => field.problem.value !== null)));

  const go = async () => {
    sending.value = true;
    refusal.value = null;
    try {
      const { runId: made, fromSeq, requestedFromSeq } = await api.runs.fork(runId, body.peek());
      close();
      navigate(address("/runs/:runId", { runId: made }));
      toast(`Forked at #${number(fromSeq)}${requestedFromSeq === undefined ? "" : `, the step or handoff that #${number(requestedFromSeq)} lies in`}`, { action: { label: "Compare", run: () => navigate(address("/compare", {}, { a: runId, b: made })) } });
    } catch (error) {
      sending.value = false;
      refusal.value = error;
    }
  };

  return [
    h("div", { class: "fork-top", hidden: () => raw.value !== null },
      choice("Way", [
        { value: "branch", label: "Branch", hint: "goes its own way from there, with what you change" },
        { value: "replay", label: "Replay", hint: "proves that the engine decides as it did; calls nobody" },
      ], mode),
      fromField(from, log)),
    h("div", { class: "fork-plan", role: "status" }, () => planView(log, will.value.from, will.value.mode, will.value.real)),
    h("div", { class: "fork-form", hidden: () => mode.value === "replay" || raw.value !== null },
      choice("Side effects", [
        { value: "simulated", label: "Simulate", hint: "calls are answered from the record, else by the tool's stub, else they fail" },
        { value: "real", label: "Real", hint: "calls happen" },
      ], sideEffects),
      valuesPart("Variables", "as of the fork point", known, values.variables),
      valuesPart("Inputs", "count for what is read from then on, and wholly from #0", given, values.inputs),
      part("Model and prompt", options.model), part("Limits and tools", options.limits), part("Budget of its own", options.budget), part("Other options", options.other)),
    h("div", { class: "stack", hidden: () => raw.value === null },
      h("label", { class: "stack" }, "Request", h("textarea", { rows: 12, spellcheck: "false", ".value": () => raw.value ?? "", "aria-invalid": () => (rawProblem.value ? "true" : null), onInput: (/** @type {Event} */ event) => (raw.value = /** @type {HTMLTextAreaElement} */ (event.target).value) })),
      () => rawProblem.value && h("span", { class: "small bad-text" }, rawProblem.value),
      () => raw.value !== null && raw.value !== formText() && h("div", null, h("button", { type: "button", class: "small", onClick: () => (raw.value = formText()) }, "As the form has it"))),
    commandPart(runId, body),
    h("div", { role: "alert" }, () => {
      if (refusal.value === null) return null;
      const { message, hint } = asApiError(refusal.value);
      return h("div", { class: "banner bad callout" }, h("div", null, message, hint && h("div", { class: "small" }, hint)));
    }),
    h("div", { class: "actions" },
      h("button", { type: "button", class: "quiet start", "aria-pressed": () => String(raw.value !== null), onClick: toggleRaw }, "Raw JSON"),
      h("button", { type: "button", onClick: close }, "Cancel"),
      h("button", { type: "button", class: () => ["primary", will.value.real && "danger"], disabled: () => sending.value || wrong.value, onClick: go },
        () => (will.value.mode === "replay" ? "Replay" : will.value.real ? "Fork with real calls" : "Fork"))),
  ];
}

/** @param {import("../lib/signal.js").Signal<number>} from @param {import("../screens/run/log.js").Log} log */
function fromField(from, log) {
  return h("label", { class: "field from" }, "First event that happens anew", h("input", { type: "number", min: 0, value: from.peek(), max: () => log.newest.value + 1, onInput: (/** @type {Event} */ event) => {
    const { valueAsNumber } = /** @type {HTMLInputElement} */ (event.target);
    if (Number.isInteger(valueAsNumber) && valueAsNumber >= 0) from.value = valueAsNumber;
  } }), h("span", { class: "small muted" }, "A step is decided as a whole, and a child works as a whole: a branch inside one begins before it."));
}

/** What is kept, what is not repeated, what happens. @param {import("../screens/run/log.js").Log} log @param {number} from @param {string} mode @param {boolean} real */
function planView(log, from, mode, real) {
  const newest = log.newest.value;
  if (newest >= 0 && from > newest + 1) return h("p", { class: "bad-text" }, `The log does not reach #${number(from)}; #${number(newest + 1)} is the furthest.`);
  const asked = from;
  if (mode === "branch") from = beginningOf(log.events, asked);
  const moved = from < asked && h("p", null, `A child is under way at #${number(asked)}. The branch begins before it, at #${number(from)}.`);
  const { kept, later } = planOf(log.events, from);
  const [keptCalls, laterCalls] = [callCount(kept), callCount(later)];
  const names = (/** @type {Map<string, number>} */ calls) => [...calls].map(([name, times]) => h("li", { class: "mono" }, name, times > 1 ? ` × ${number(times)}` : ""));
  const did = (/** @type {import("./fork/plan.js").Deeds} */ deeds) => [deeds.models > 0 && plural(deeds.models, "model call"), deeds.own > 0 && `${plural(deeds.own, "call")} of memory and files`, deeds.answers > 0 && plural(deeds.answers, "answer"), deeds.children > 0 && plural(deeds.children, "child run")].filter(Boolean).join(", ");
  const keptLine = from === 0 ? "Nothing is kept: the run begins again." : `#0 to #${number(from - 1)} are kept and not executed again${did(kept) ? `: ${did(kept)}` : ""}.`;
  if (mode === "replay") return [h("p", null, keptLine), h("p", null, "From there on nobody is asked and nothing is called: what the world said is taken from the log, and what the engine made of it is decided again and compared.")];
  return [
    moved,
    h("p", null, keptLine),
    keptCalls === 0 && from > 0 && h("p", null, "No call reached outside before it, so there is nothing that could be repeated."),
    keptCalls > 0 && h("div", null, h("strong", null, keptCalls === 1 ? "This effect will not be repeated:" : `These ${number(keptCalls)} effects will not be repeated:`), h("ul", { class: "names" }, names(kept.calls))),
    h("p", null, `From #${number(from)} on, models and people are asked, and children start, anew${did(later) ? ` (the source had ${did(later)})` : ""}. The branch has its own memory and files, as they were then.`),
    laterCalls > 0 && h("div", { class: real ? "banner callout" : "" }, h("div", null,
      h("strong", null, real
        ? `${plural(laterCalls, "call")} of the source came after this. The branch may make ${laterCalls === 1 ? "it" : "them"} again, for real:`
        : `${plural(laterCalls, "call")} of the source came after this. ${laterCalls === 1 ? "It is" : "They are"} answered from the record and not made again:`),
      h("ul", { class: "names" }, names(later.calls)))),
    real && laterCalls === 0 && h("div", { class: "banner callout" }, "Whatever the branch calls from here on happens for real."),
  ];
}

/** @param {string} title @param {Field[]} fields */
function part(title, fields) {
  return h("details", { open: fields.some((field) => field.value.peek() !== undefined) }, h("summary", null, title, () => {
    const said = fields.filter((field) => field.value.value !== undefined).length;
    return said > 0 && h("span", { class: "tag changed" }, plural(said, "change"));
  }), h("div", { class: "fork-fields" }, fields.map((field) => field.element)));
}

/** Fields for values that the source has; another point has other ones. @param {string} title @param {string} hint @param {import("../lib/asked.js").Asked<Record<string, unknown>>} before @param {import("../lib/signal.js").Signal<ValueFields>} fields */
function valuesPart(title, hint, before, fields) {
  return h("details", null, h("summary", null, title, h("span", { class: "muted small" }, ` ${hint}`), () => {
    const said = [...fields.value.values()].filter((field) => field.value.value !== undefined).length;
    return said > 0 && h("span", { class: "tag changed" }, plural(said, "change"));
  }), h("div", { class: "fork-fields" }, () => {
    const error = before.error.value;
    const all = before.value.value;
    if (error) return h("p", { class: "bad-text" }, asApiError(error).message);
    if (!all) return h("span", { class: "skeleton" });
    // What was typed stays, also for what is not there at this point.
    const typed = [...fields.peek()].flatMap(([name, field]) => (field.typed() === undefined ? [] : [{ name, before: field.before, text: field.typed() }]));
    const start = { ...Object.fromEntries(typed.map(({ name, before: was }) => [name, was])), ...all };
    const made = new Map(Object.entries(start).map(([name, value]) => [name, valueField(name, value, typed.find((one) => one.name === name)?.text)]));
    fields.value = made;
    return made.size === 0 ? h("p", { class: "muted" }, "None.") : [...made.values()].map((field) => field.element);
  }));
}

/** @param {string} runId @param {import("../lib/signal.js").Signal<any>} body */
function commandPart(runId, body) {
  const curl = computed(() => asCurl({ method: "POST", path: `/v1/runs/${runId}:fork`, body: body.value }));
  const baton = computed(() => asBaton(forkWords(runId, body.value)));
  return h("details", { class: "fork-command" }, h("summary", null, "The same as a command"),
    [["baton", baton], ["curl", curl]].map(([name, text]) => h("div", { class: "row top" }, h("pre", { class: "box grow" }, () => /** @type {any} */ (text).value),
      h("button", { type: "button", class: "small", "aria-label": `Copy as ${name}`, onClick: () => copy(/** @type {any} */ (text).peek(), `${name} command`) }, "Copy"))));
}

/** What a run may be told besides its values. @param {Record<string, unknown>} initial */
function optionFields({ budget: bounds, promptOverrides, ...initial }) {
  const AS_BEFORE = "as in the source";
  /** Takes a value away, so that what is left over is "other". @param {string} name */
  const had = (name) => {
    const value = initial[name];
    delete initial[name];
    return value;
  };
  const bound = (/** @type {string} */ name) => /** @type {any} */ (bounds)?.[name];
  const provider = optionField({ label: "Provider", kind: "text", placeholder: AS_BEFORE, initial: had("ai.provider") });
  const model = optionField({ label: "Model", kind: "text", placeholder: AS_BEFORE, hint: "for agents that begin after the fork point", initial: had("ai.model") });
  const prompt = optionField({ label: "System prompt", kind: "text", rows: 3, placeholder: AS_BEFORE, hint: "a text, or a reference such as prompt:house-style@1.0.0", initial: /** @type {any} */ (promptOverrides)?.system });
  const turns = optionField({ label: "Turns", kind: "number", placeholder: AS_BEFORE, hint: "maxLoopIterations", initial: had("maxLoopIterations") });
  const nodes = optionField({ label: "Node executions", kind: "number", placeholder: AS_BEFORE, hint: "recursionLimit", initial: had("recursionLimit") });
  const time = optionField({ label: "Time, ms", kind: "number", placeholder: AS_BEFORE, hint: "runTimeoutMs", initial: had("runTimeoutMs") });
  const threshold = optionField({ label: "How sure agents must be", kind: "number", placeholder: AS_BEFORE, hint: "escalationThreshold, 0 to 1", initial: had("escalationThreshold") });
  const tools = optionField({ label: "Tools", kind: "list", placeholder: AS_BEFORE, hint: "toolGrant: ids that agents may have at most; never more than the source", initial: had("toolGrant") });
  const tokens = optionField({ label: "Tokens", kind: "number", hint: "maxTokens", initial: bound("maxTokens") });
  const cost = optionField({ label: "US dollars", kind: "number", hint: "maxCostUsd; needs prices", initial: bound("maxCostUsd") });
  const calls = optionField({ label: "Tool calls", kind: "number", hint: "maxToolCalls", initial: bound("maxToolCalls") });
  const other = optionField({ label: "configurable", kind: "json", rows: 3, placeholder: "{ }", hint: "anything else, as a JSON object; the fields above win", initial: Object.keys(initial).length > 0 ? initial : undefined });
  const named = { "ai.provider": provider, "ai.model": model, maxLoopIterations: turns, recursionLimit: nodes, runTimeoutMs: time, escalationThreshold: threshold, toolGrant: tools };
  const limits = { maxTokens: tokens, maxCostUsd: cost, maxToolCalls: calls };
  const said = (/** @type {Record<string, Field>} */ fields) => Object.fromEntries(Object.entries(fields).flatMap(([name, field]) => (field.value.value === undefined ? [] : [[name, field.value.value]])));
  return {
    model: [provider, model, prompt], limits: [turns, nodes, time, threshold, tools], budget: [tokens, cost, calls], other: [other],
    fields: [...Object.values(named), prompt, ...Object.values(limits), other],
    /** @returns {Record<string, unknown>} */
    configurable: () => {
      const more = other.value.value;
      const budget = said(limits);
      return {
        ...(typeof more === "object" && more !== null && !Array.isArray(more) ? more : {}), ...said(named),
        ...(prompt.value.value === undefined ? {} : { promptOverrides: { system: prompt.value.value } }),
        ...(Object.keys(budget).length > 0 ? { budget } : {}),
      };
    },
  };
}
