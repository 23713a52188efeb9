// The fields of a branch: values to change, and options of the run. Each tells its value; what is as it was is left out.
import { h, uid } from "../../lib/dom.js";
import { signal } from "../../lib/signal.js";
import { readField } from "./plan.js";

/**
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {import("../../lib/signal.js").Signal<unknown>} value undefined while nothing is said
 * @property {import("../../lib/signal.js").Signal<string | null>} problem
 */

/**
 * One option. @param {{ label: string, hint?: string, kind: "text" | "number" | "json" | "list", placeholder?: string, rows?: number, initial?: unknown }} options
 * @returns {Field}
 */
export function optionField({ label, hint, kind, placeholder, rows, initial }) {
  const [id, hintId] = [uid("field"), uid("hint")];
  const value = signal(initial);
  const problem = signal(/** @type {string | null} */ (null));
  const props = { id, "aria-describedby": hintId, placeholder: placeholder ?? "", value: written(initial, kind), spellcheck: "false", autocomplete: "off", "aria-invalid": () => (problem.value ? "true" : null) };
  const input = rows ? h("textarea", { ...props, rows }) : h("input", { ...props, type: "text", inputmode: kind === "number" ? "decimal" : null});
  input.addEventListener("input", () => {
    try {
      value.value = readField(input.value, kind);
      problem.value = null;
    } catch (error) {
      problem.value = kind === "json" ? `This is no JSON: ${/** @type {Error} */ (error).message}` : /** @type {Error} */ (error).message;
    }
  });
  const element = h("div", { class: "field" }, h("label", { for: id }, label), input,
    h("span", { id: hintId, class: () => ["small", problem.value ? "bad-text" : "muted"] }, () => problem.value ?? hint ?? ""));
  return { element, value, problem };
}

/** A value as its field shows it. @param {unknown} value @param {string} kind */
function written(value, kind) {
  if (value === undefined) return "";
  return kind === "json" ? JSON.stringify(value, null, 2) : kind === "list" && Array.isArray(value) ? value.join(", ") : String(value);
}

/**
 * A value that is there already: a text is edited as text, anything else as JSON.
 * @param {string} name @param {unknown} before @param {string} [written] what was typed into an earlier field for it
 * @returns {Field & { before: unknown, typed: () => string | undefined }}
 */
export function valueField(name, before, written) {
  const id = uid("value");
  const isText = typeof before === "string";
  const was = isText ? before : JSON.stringify(before, null, 2) ?? "null";
  const value = signal(/** @type {unknown} */ (undefined));
  const problem = signal(/** @type {string | null} */ (null));
  const rows = Math.min(8, was.split("\n").length + Math.floor(was.length / 90));
  const area = h("textarea", { id, rows: Math.max(1, rows), value: was, spellcheck: "false", "aria-invalid": () => (problem.value ? "true" : null) });
  area.addEventListener("input", () => {
    try {
      value.value = area.value === was ? undefined : isText ? area.value : JSON.parse(area.value);
      problem.value = null;
    } catch (error) {
      problem.value = `This is no JSON: ${/** @type {Error} */ (error).message}`;
    }
  });
  if (written !== undefined) {
    area.value = written;
    area.dispatchEvent(new Event("input"));
  }
  const reset = h("button", { type: "button", class: "small quiet", onClick: () => {
    area.value = was;
    area.dispatchEvent(new Event("input"));
    area.focus();
  } }, "As it was");
  const element = h("div", { class: "field" },
    h("span", { class: "row" }, h("label", { for: id, class: "mono" }, name), h("span", { class: "muted small" }, isText ? "text" : "JSON"),
      () => (value.value !== undefined || problem.value) && h("span", { class: "row push" }, h("span", { class: "tag changed" }, "changed"), reset)),
    area, () => problem.value && h("span", { class: "small bad-text" }, problem.value));
  return { element, value, problem, before, typed: () => (area.value === was ? undefined : area.value) };
}

/** One of a few. @template {string} T @param {string} label @param {{ value: T, label: string, hint: string }[]} choices @param {import("../../lib/signal.js").Signal<T>} chosen */
export function choice(label, choices, chosen) {
  const name = uid("choice");
  return h("fieldset", { class: "choices" }, h("legend", null, label), choices.map((one) => h("label", { class: () => ["choice", chosen.value === one.value && "on"] },
    h("input", { type: "radio", name, value: one.value, checked: () => chosen.value === one.value, onChange: () => (chosen.value = one.value) }),
    h("span", null, h("strong", null, one.label), h("span", { class: "muted small" }, one.hint)))));
}
