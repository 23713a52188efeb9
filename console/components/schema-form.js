// A form made from a JSON Schema, with the same value as raw JSON one click away. What a form cannot show is a JSON field.
import { fill, h, uid } from "../lib/dom.js";
import { signal } from "../lib/signal.js";
import { ABSENT, fieldOf, nameOf, typeOf, variantOf, wrongWith } from "../lib/schema.js";

/** @typedef {{ node: Node, read: () => unknown }} Made a field, and what is in it: ABSENT when nothing; throws what is wrong */
/** @typedef {{ label: string, required: boolean, bare?: boolean }} Place */

const LONG = 60;

/**
 * @param {any} schema @param {unknown} [start] what it begins with
 * @returns {{ element: HTMLElement, read: () => unknown }} `read` throws an Error in words when something is missing
 */
export function schemaForm(schema, start) {
  const plain = fieldOf(schema) === "json";
  const raw = signal(plain);
  const body = h("div", { class: "sf-body stack" });
  /** @type {Made} */
  let made = make(schema, start, { label: "Value", required: true, bare: true });
  const show = () => fill(body, made.node);
  const toggle = () => {
    /** @type {unknown} */
    let now = ABSENT;
    try {
      now = made.read();
    } catch (error) {
      // Going to raw never loses the way; coming back needs JSON.
      if (raw.peek()) return problem(body, error);
    }
    const value = now === ABSENT ? start : now;
    raw.value = !raw.peek();
    made = raw.peek() ? jsonField(value, { label: "As JSON", required: true, bare: true }) : make(schema, value, { label: "Value", required: true, bare: true });
    return show();
  };
  show();
  return {
    element: h("div", { class: "schema-form" }, body,
      !plain && h("button", { type: "button", class: "small quiet sf-raw", "aria-pressed": () => String(raw.value), onClick: toggle }, "Raw JSON")),
    read: () => {
      const value = made.read();
      if (value === ABSENT) throw new Error("Nothing is filled in yet.");
      return value;
    },
  };
}

/** @param {HTMLElement} body @param {unknown} error */
function problem(body, error) {
  body.querySelector(".sf-wrong")?.remove();
  body.append(h("p", { class: "wrong sf-wrong", role: "alert" }, error instanceof Error ? error.message : String(error)));
}

/** @param {any} schema @param {unknown} value @param {Place} place @returns {Made} */
function make(schema, value, place) {
  const start = value === undefined ? schema?.default : value;
  switch (fieldOf(schema)) {
    case "object": return objectField(schema, start, place);
    case "array": return arrayField(schema, start, place);
    case "variants": return variantField(schema.oneOf ?? schema.anyOf, start, place);
    case "choice": return choiceField(schema, start, place);
    case "boolean": return booleanField(schema, start, place);
    case "number": case "string": return textField(schema, start, place);
    case "const": return { node: document.createDocumentFragment(), read: () => schema.const };
    default: return jsonField(start, place, schema?.description);
  }
}

/** A labelled control. @param {Place} place @param {string | undefined} note @param {(id: string) => Node} control */
function labelled({ label, required, bare }, note, control) {
  const id = uid("field");
  return h("div", { class: "sf-field" },
    h("label", { for: id, class: bare ? "visually-hidden" : "" }, label, !required && h("span", { class: "muted" }, " (optional)")),
    control(id), note && h("p", { class: "muted small" }, note));
}

/** @param {any} schema @param {any} start @param {Place} place @returns {Made} */
function textField(schema, start, place) {
  const numeric = fieldOf(schema) === "number";
  const text = start === undefined || start === null ? "" : String(start);
  const long = !numeric && (text.length > LONG || text.includes("\n") || (schema.maxLength ?? 0) > 200 || place.bare);
  const field = long
    ? h("textarea", { rows: Math.min(12, Math.max(2, Math.ceil(text.length / 70))), class: "prose", value: text })
    : h("input", numeric ? { type: "number", step: typeOf(schema) === "integer" ? "1" : "any", min: schema.minimum, max: schema.maximum, value: text } : { type: "text", value: text });
  const touched = start !== undefined;
  return {
    node: labelled(place, schema.description, (id) => (field.id = id, field)),
    read: () => {
      // An empty text that was there before is a text; one that never was is nothing.
      if (field.value === "" && (numeric || !touched || !place.required)) {
        if (place.required) throw new Error(`“${place.label}” is missing.`);
        return ABSENT;
      }
      const value = numeric ? Number(field.value) : field.value;
      const wrong = wrongWith(schema, value);
      if (wrong) throw new Error(`“${place.label}” ${wrong}.`);
      return value;
    },
  };
}

/** @param {any} schema @param {any} start @param {Place} place @returns {Made} */
function choiceField(schema, start, place) {
  const at = schema.enum.findIndex((/** @type {unknown} */ one) => JSON.stringify(one) === JSON.stringify(start));
  const few = schema.enum.length <= 4;
  const name = uid("choice");
  const word = (/** @type {unknown} */ one) => (typeof one === "string" ? one : JSON.stringify(one));
  const select = few ? null : h("select", null, h("option", { value: "-1" }, "Choose…"), schema.enum.map((/** @type {unknown} */ one, /** @type {number} */ index) => h("option", { value: String(index), ".selected": index === at }, word(one))));
  const node = select
    ? labelled(place, schema.description, (id) => (select.id = id, select))
    : h("fieldset", { class: "sf-field sf-choice" }, h("legend", null, place.label, !place.required && h("span", { class: "muted" }, " (optional)")),
        schema.enum.map((/** @type {unknown} */ one, /** @type {number} */ index) => h("label", { class: "sf-option" }, h("input", { type: "radio", name, value: String(index), checked: index === at }), word(one))),
        schema.description && h("p", { class: "muted small" }, schema.description));
  return {
    node,
    read: () => {
      const chosen = select ? select.value : /** @type {HTMLInputElement | null} */ (node.querySelector("input:checked"))?.value ?? "-1";
      if (chosen === "-1") {
        if (place.required) throw new Error(`“${place.label}”: choose one.`);
        return ABSENT;
      }
      return schema.enum[Number(chosen)];
    },
  };
}

/** @param {any} schema @param {any} start @param {Place} place @returns {Made} */
function booleanField(schema, start, place) {
  const box = h("input", { type: "checkbox", checked: start === true });
  return {
    node: h("div", { class: "sf-field" }, h("label", { class: "sf-option" }, box, place.label), schema.description && h("p", { class: "muted small" }, schema.description)),
    read: () => (box.checked || place.required || start !== undefined ? box.checked : ABSENT),
  };
}

/** @param {any} schema @param {any} start @param {Place} place @returns {Made} */
function objectField(schema, start, place) {
  const required = new Set(schema.required ?? []);
  const given = start !== null && typeof start === "object" && !Array.isArray(start) ? start : {};
  const fields = Object.entries(schema.properties).map(([name, part]) => ({ name, made: make(part, given[name], { label: /** @type {any} */ (part)?.title ?? name, required: required.has(name) }) }));
  const inner = fields.map(({ made }) => made.node);
  return {
    node: place.bare ? h("div", { class: "stack" }, schema.description && h("p", { class: "muted small" }, schema.description), inner)
      : h("fieldset", { class: "sf-group stack" }, h("legend", null, place.label), inner),
    read: () => {
      const entries = fields.map(({ name, made }) => /** @type {[string, unknown]} */ ([name, made.read()])).filter(([, value]) => value !== ABSENT);
      // What the form does not show stays as it was.
      const rest = schema.additionalProperties === false ? {} : Object.fromEntries(Object.entries(given).filter(([name]) => !(name in schema.properties)));
      if (entries.length === 0 && !place.required) return ABSENT;
      return { ...rest, ...Object.fromEntries(entries) };
    },
  };
}

/** @param {any} schema @param {any} start @param {Place} place @returns {Made} */
function arrayField(schema, start, place) {
  /** @type {Set<{ made: Made, row: HTMLElement }>} */
  const items = new Set();
  const list = h("div", { class: "stack sf-items" });
  const add = (/** @type {unknown} */ value) => {
    const made = make(schema.items ?? {}, value, { label: `${place.label}, one`, required: true });
    const row = h("div", { class: "sf-item" }, made.node, h("button", { type: "button", class: "small quiet", "aria-label": `Remove this one of ${place.label}`, onClick: () => (items.delete(one), row.remove()) }, "Remove"));
    const one = { made, row };
    items.add(one);
    list.append(row);
    return row;
  };
  if (Array.isArray(start)) start.forEach(add);
  return {
    node: h("fieldset", { class: "sf-group sf-array stack" }, h("legend", null, place.label, !place.required && h("span", { class: "muted" }, " (optional)")),
      schema.description && h("p", { class: "muted small" }, schema.description), list,
      h("button", { type: "button", class: "small", onClick: () => /** @type {HTMLElement | null} */ (add(undefined).querySelector("input, textarea, select"))?.focus() }, "Add")),
    read: () => {
      const value = [...items].map(({ made }) => made.read());
      if (value.length === 0 && !place.required) return ABSENT;
      const wrong = wrongWith(schema, value);
      if (wrong) throw new Error(`“${place.label}” ${wrong}.`);
      return value;
    },
  };
}

/** One of several shapes. What was typed under a name that both have is kept. @param {any[]} variants @param {any} start @param {Place} place @returns {Made} */
function variantField(variants, start, place) {
  const body = h("div", { class: "stack" });
  const select = h("select", null, variants.map((one, index) => h("option", { value: String(index) }, nameOf(one, index))));
  select.value = String(variantOf(variants, start));
  /** @type {Made} */
  let made;
  const show = (/** @type {unknown} */ value) => {
    made = make(variants[Number(select.value)], value, { label: place.label, required: true, bare: true });
    fill(body, made.node);
  };
  select.addEventListener("change", () => show(start));
  show(start);
  return {
    node: h("div", { class: "stack" }, labelled({ ...place, label: place.bare ? "Kind" : place.label, bare: false, required: true }, undefined, (id) => (select.id = id, select)), body),
    read: () => made.read(),
  };
}

/** @param {unknown} start @param {Place} place @param {string} [note] @returns {Made} */
function jsonField(start, place, note) {
  const text = start === undefined ? "" : JSON.stringify(start, null, 2);
  const field = h("textarea", { rows: Math.min(14, Math.max(3, text.split("\n").length)), spellcheck: "false", placeholder: "JSON", value: text });
  return {
    node: labelled(place, note, (id) => (field.id = id, field)),
    read: () => {
      if (!field.value.trim()) {
        if (place.required) throw new Error(`“${place.label}” is missing.`);
        return ABSENT;
      }
      try {
        return JSON.parse(field.value);
      } catch (error) {
        throw new Error(`“${place.label}” is not JSON yet: ${error instanceof Error ? error.message : error}`);
      }
    },
  };
}
