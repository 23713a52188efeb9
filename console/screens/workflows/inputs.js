// What a run of a workflow takes: its variables, as schemas for a form. Pure.

/** @typedef {{ name: string, type: string, required?: boolean, description?: string, defaultValue?: unknown, sensitive?: boolean }} Variable */

/** @param {Variable} variable @returns {any} */
function schemaOf({ type, description, defaultValue, sensitive }) {
  const about = [description, sensitive && "Sensitive: masked wherever the run is shown."].filter(Boolean).join(". ");
  return {
    // `object` takes anything, as the host does.
    ...(type === "object" ? {} : type === "array" ? { type, items: {} } : { type }),
    ...(about ? { description: about } : {}),
    ...(defaultValue === undefined ? {} : { default: defaultValue }),
  };
}

/** @param {Variable[]} variables */
const objectOf = (variables) => ({ type: "object", required: variables.filter((one) => one.required && one.defaultValue === undefined).map((one) => one.name), properties: Object.fromEntries(variables.map((one) => [one.name, schemaOf(one)])) });

/**
 * Two forms: what a caller is expected to give, and the variables a run only works with.
 * @param {Variable[]} variables
 */
export function inputSchemas(variables) {
  const asked = variables.filter((one) => one.required || one.description);
  const main = asked.length > 0 ? asked : variables;
  const rest = variables.filter((one) => !main.includes(one));
  return { main: objectOf(main), rest: objectOf(rest), restCount: rest.length };
}

/** Without what is the default anyway: the run's record then says what was chosen. @param {Record<string, unknown>} given @param {Variable[]} variables */
export function chosenInputs(given, variables) {
  const same = (/** @type {unknown} */ a, /** @type {unknown} */ b) => JSON.stringify(a) === JSON.stringify(b);
  return Object.fromEntries(Object.entries(given).filter(([name, value]) => !variables.some((one) => one.name === name && one.defaultValue !== undefined && same(one.defaultValue, value))));
}

/** Inputs of an earlier run, without what was masked. @param {Record<string, unknown>} inputs */
export function reusable(inputs) {
  return Object.fromEntries(Object.entries(inputs).filter(([, value]) => value !== "[REDACTED]"));
}
