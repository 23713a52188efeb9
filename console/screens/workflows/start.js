// The form that starts a run. What earlier runs were given is one `↑` away; it is read from them, nothing is kept here.
import { copyMenu } from "../../components/copy-menu.js";
import { schemaForm } from "../../components/schema-form.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { fill, h, uid } from "../../lib/dom.js";
import { asApiError, isAbort } from "../../lib/error.js";
import { number } from "../../lib/format.js";
import { addCommands } from "../../lib/keys.js";
import { address, navigate } from "../../lib/router.js";
import { signal } from "../../lib/signal.js";
import { toast, toastError } from "../../lib/toast.js";
import { runLink } from "../run/panels/parts.js";
import { chosenInputs, inputSchemas, reusable } from "./inputs.js";

const REMEMBERED = 20;

/** @param {string} workflowId @param {import("../../types.js").WorkflowDefinition} definition @param {boolean} older an earlier version is looked at @param {import("../../types.js").ScreenContext} context */
export function startForm(workflowId, definition, older, context) {
  const { main, rest, restCount } = inputSchemas(definition.variables);
  const fields = h("div", { class: "stack" });
  const others = h("div", { class: "stack" });
  const problem = h("p", { class: "wrong", role: "alert" });
  const [tags, scope] = [h("input", { id: uid("tags"), type: "text", placeholder: "nightly, demo" }), h("input", { id: uid("scope"), type: "text", autocomplete: "off", placeholder: "the run’s own" })];
  const options = schemaForm(definition.configurableSchema ?? {}, undefined);
  const optionsOpen = h("details", { class: "wf-more" }, h("summary", null, "Options of the run"));
  /** @type {{ main: ReturnType<typeof schemaForm>, rest: ReturnType<typeof schemaForm> }} */
  let forms;
  const show = (/** @type {Record<string, unknown> | undefined} */ from) => {
    forms = { main: schemaForm(main, from && pick(from, main)), rest: schemaForm(rest, from && pick(from, rest)) };
    fill(fields, definition.variables.length === 0 ? h("p", { class: "muted" }, "This workflow declares no variables: it takes nothing.") : forms.main.element);
    fill(others, restCount > 0 && forms.rest.element);
  };
  show(undefined);

  const read = () => {
    const given = { .../** @type {object} */ (definition.variables.length > 0 ? forms.main.read() : {}), .../** @type {object} */ (restCount > 0 ? forms.rest.read() : {}) };
    const inputs = chosenInputs(/** @type {Record<string, unknown>} */ (given), definition.variables);
    const names = tags.value.split(",").map((one) => one.trim()).filter(Boolean);
    /** @type {any} */
    let configurable;
    // An empty field is no options; a wrong one is a mistake.
    if (optionsOpen.open && [...optionsOpen.querySelectorAll(".schema-form :is(input, textarea, select)")].some(filled)) configurable = options.read();
    return { workflowId, inputs, ...(names.length > 0 ? { tags: names } : {}), ...(scope.value.trim() ? { scopeId: scope.value.trim() } : {}), ...(configurable ? { configurable } : {}) };
  };
  const go = h("button", { type: "submit", class: "primary" }, "Start the run");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    problem.textContent = "";
    go.disabled = true;
    try {
      const { runId } = await api.runs.start(read());
      navigate(address("/runs/:runId", { runId }));
    } catch (error) {
      go.disabled = false;
      const { message, hint, status } = asApiError(error);
      problem.textContent = status > 0 && hint ? `${message} ${hint}` : message;
    }
  };
  const past = earlier(workflowId, context, (inputs) => {
    const at = document.activeElement instanceof HTMLElement && fields.contains(document.activeElement) ? [...fields.querySelectorAll("input, textarea, select")].indexOf(document.activeElement) : -1;
    show(inputs);
    if (at >= 0) /** @type {HTMLElement | undefined} */ ([...fields.querySelectorAll("input, textarea, select")][at])?.focus();
  });
  const body = () => {
    try {
      return read();
    } catch {
      return { workflowId, inputs: {} };
    }
  };
  optionsOpen.append(h("div", { class: "wf-options" },
    h("div", { class: "field" }, h("label", { for: tags.id }, "Tags"), tags, h("span", { class: "muted small" }, "Separated by commas.")),
    h("div", { class: "field" }, h("label", { for: scope.id }, "Memory scope"), scope, h("span", { class: "muted small" }, "Runs of one scope remember together.")),
    h("div", { class: "field wide" }, h("span", { class: "field-name" }, "Configurable"), options.element,
      h("span", { class: "muted small" }, definition.configurableSchema ? "As the workflow’s schema has it." : "Bounds and budget of this run, as JSON: recursionLimit, runTimeoutMs, budget."))));
  return h("form", { class: "wf-start", onSubmit: submit },
    older && h("p", { class: "banner callout" }, "A run always begins with the newest version. You are looking at an earlier one."),
    h("div", { class: "in-head" }, h("h2", null, "Inputs"), past.tools),
    past.line, fields,
    restCount > 0 && h("details", { class: "wf-more" }, h("summary", null, `Variables it works with `, h("span", { class: "muted" }, `${number(restCount)}, with defaults`)), others),
    optionsOpen, problem,
    h("div", { class: "row wrap" }, go, copyMenu(() => {
      const wanted = body();
      return { request: { method: "POST", path: "/v1/runs", body: wanted }, baton: startWords(wanted), json: wanted };
    })));
}

/** The same in a terminal. @param {{ workflowId: string, inputs: object, tags?: string[], scopeId?: string, configurable?: object }} wanted */
function startWords({ workflowId, inputs, tags = [], scopeId, configurable }) {
  return ["run", "start", workflowId, "--inputs", JSON.stringify(inputs), ...tags.flatMap((tag) => ["--tag", tag]), ...(scopeId ? ["--scope", scopeId] : []), ...(configurable ? ["--configurable", JSON.stringify(configurable)] : [])];
}

/** @param {Element} one */
const filled = (one) => (one instanceof HTMLInputElement && one.type === "checkbox" ? one.checked : one instanceof HTMLInputElement && one.type === "radio" ? one.checked : /** @type {HTMLInputElement} */ (one).value !== "" && /** @type {HTMLInputElement} */ (one).value !== "-1");

/** @param {Record<string, unknown>} from @param {{ properties: object }} schema */
const pick = (from, schema) => Object.fromEntries(Object.entries(from).filter(([name]) => name in schema.properties));

/**
 * What earlier runs were given, newest first, one step at a time.
 * @param {string} workflowId @param {import("../../types.js").ScreenContext} context @param {(inputs: Record<string, unknown> | undefined) => void} use
 */
function earlier(workflowId, context, use) {
  const at = signal(-1);
  /** @type {import("../../types.js").RunItem[] | null} */
  let runs = null;
  /** One step after the other, however fast they are asked for. */
  let before = Promise.resolve();
  const step = (/** @type {1 | -1} */ by) => (before = before.then(() => take(by)));
  const take = async (/** @type {1 | -1} */ by) => {
    try {
      runs ??= (await api.runs.list({ workflowId, limit: REMEMBERED }, { signal: context.signal })).runs;
      const to = Math.max(-1, Math.min(runs.length - 1, at.peek() + by));
      if (runs.length === 0) return toast("No run of this workflow is known yet.");
      const run = runs[to];
      const inputs = run ? reusable((await api.runs.get(run.runId, { signal: context.signal })).inputs) : undefined;
      context.later(() => {
        at.value = to;
        use(inputs);
      });
    } catch (error) {
      if (!isAbort(error)) toastError(error, "Reading earlier inputs");
    }
    return undefined;
  };
  // Arrows mean something else in fields with several lines or values.
  const free = () => !(document.activeElement instanceof HTMLTextAreaElement || document.activeElement instanceof HTMLSelectElement || (document.activeElement instanceof HTMLInputElement && ["number", "radio", "range"].includes(document.activeElement.type)) || document.activeElement?.closest("[role=tablist], [role=tree]"));
  addCommands([
    { keys: "ArrowUp", label: "Inputs of the run before", group: "Workflow", typing: true, when: free, run: () => void step(1) },
    { keys: "ArrowDown", label: "Inputs of the run after", group: "Workflow", typing: true, when: () => free() && at.peek() >= 0, run: () => void step(-1) },
  ]);
  return {
    tools: h("span", { class: "row" },
      h("button", { type: "button", class: "small", onClick: () => step(1) }, "Last inputs ", h("kbd", null, "↑")),
      () => at.value >= 0 && h("button", { type: "button", class: "small", onClick: () => step(-1) }, at.value === 0 ? "Defaults " : "Newer ", h("kbd", null, "↓"))),
    line: h("p", { class: "muted small", role: "status" }, () => {
      const place = at.value;
      const run = runs?.[place];
      return run ? ["As ", runLink(run.runId), " had them, ", ago(run.createdAt), ` (${number(place + 1)} of ${number(runs?.length ?? 0)}). What was masked is left out.`] : null;
    }),
  };
}
