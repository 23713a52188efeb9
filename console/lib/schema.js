// What a form needs to know of a JSON Schema: which field fits, what to begin with, what is wrong. Only what forms can
// show; the host checks the whole of it anyway.

/** What a field reads as when nothing was entered. */
export const ABSENT = Symbol("absent");

/** @typedef {"object" | "array" | "string" | "number" | "boolean" | "choice" | "variants" | "const" | "json"} Field */

/** @param {any} schema @returns {Field} */
export function fieldOf(schema) {
  if (!schema || typeof schema !== "object") return "json";
  if (schema.const !== undefined) return "const";
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return "choice";
  if (Array.isArray(schema.oneOf ?? schema.anyOf)) return "variants";
  switch (typeOf(schema)) {
    case "object": return schema.properties ? "object" : "json";
    case "array": return "array";
    case "string": return "string";
    case "number": case "integer": return "number";
    case "boolean": return "boolean";
    default: return "json";
  }
}

/** The one type besides null. @param {any} schema @returns {string | undefined} */
export function typeOf({ type, properties, items }) {
  if (Array.isArray(type)) {
    const real = type.filter((one) => one !== "null");
    return real.length === 1 ? real[0] : undefined;
  }
  return type ?? (properties ? "object" : items ? "array" : undefined);
}

/** A schema that a value fits, for editing what has none. @param {unknown} value @returns {any} */
export function schemaLike(value) {
  if (Array.isArray(value)) return { type: "array", items: value.length > 0 ? schemaLike(value[0]) : {} };
  if (value !== null && typeof value === "object") {
    const names = Object.keys(value);
    if (names.length === 0) return {};
    return { type: "object", required: names, properties: Object.fromEntries(Object.entries(value).map(([name, one]) => [name, schemaLike(one)])) };
  }
  return ["string", "number", "boolean"].includes(typeof value) ? { type: typeof value } : {};
}

/** Which of several shapes a value has: the first whose constants and required members it has. @param {any[]} variants @param {any} value */
export function variantOf(variants, value) {
  const found = variants.findIndex((one) => {
    if (value === undefined || !one || typeof one !== "object") return false;
    if (one.const !== undefined) return one.const === value;
    const type = typeOf(one);
    if (type === "object") {
      return value !== null && typeof value === "object" && !Array.isArray(value) && Object.entries(one.properties ?? {}).every(([name, part]) =>
        /** @type {any} */ (part)?.const === undefined || value[name] === /** @type {any} */ (part).const)
        && (one.required ?? []).every((/** @type {string} */ name) => name in value);
    }
    if (type === "array") return Array.isArray(value);
    return type === typeof value || (type === "integer" && Number.isInteger(value));
  });
  return Math.max(0, found);
}

/** How a shape is called. @param {any} schema @param {number} index */
export function nameOf(schema, index) {
  if (schema?.title) return String(schema.title);
  if (schema?.const !== undefined) return String(schema.const);
  const constant = Object.values(schema?.properties ?? {}).find((part) => /** @type {any} */ (part)?.const !== undefined);
  return constant ? String(/** @type {any} */ (constant).const) : schema?.type ? String(schema.type) : `Shape ${index + 1}`;
}

/** What is wrong with a number or a text, in words; empty when nothing is. @param {any} schema @param {unknown} value */
export function wrongWith(schema, value) {
  if (typeof value === "number") {
    if (Number.isNaN(value)) return "is not a number";
    if (typeOf(schema) === "integer" && !Number.isInteger(value)) return "has to be a whole number";
    if (typeof schema.minimum === "number" && value < schema.minimum) return `is less than ${schema.minimum}`;
    if (typeof schema.maximum === "number" && value > schema.maximum) return `is more than ${schema.maximum}`;
    if (typeof schema.exclusiveMinimum === "number" && value <= schema.exclusiveMinimum) return `has to be more than ${schema.exclusiveMinimum}`;
    if (typeof schema.exclusiveMaximum === "number" && value >= schema.exclusiveMaximum) return `has to be less than ${schema.exclusiveMaximum}`;
  }
  if (typeof value === "string") {
    if (typeof schema.minLength === "number" && [...value].length < schema.minLength) return `needs at least ${schema.minLength} characters`;
    if (typeof schema.maxLength === "number" && [...value].length > schema.maxLength) return `has more than ${schema.maxLength} characters`;
  }
  if (Array.isArray(value)) {
    if (typeof schema.minItems === "number" && value.length < schema.minItems) return `needs at least ${schema.minItems} of them`;
    if (typeof schema.maxItems === "number" && value.length > schema.maxItems) return `has more than ${schema.maxItems}`;
  }
  return "";
}
