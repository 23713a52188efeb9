// What is shown, as something to paste: a request for curl, a command for `baton`, the JSON itself. Keys never are part
// of it; both commands read them from the environment.
import { h } from "./dom.js";
import { toast } from "./toast.js";

/**
 * @typedef {object} Copyable
 * @property {{ method?: string, path: string, body?: unknown }} [request] for curl
 * @property {string[]} [baton] the arguments of `baton`, such as `["run", "show", id]`
 * @property {string} [batonNote] what the command cannot say
 * @property {unknown | (() => unknown)} [json] or what fetches it
 * @property {string} [link] an address of the console; the present one when absent
 */

/** @param {string} text one word of a POSIX shell */
export function shell(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** @param {{ method?: string, path: string, body?: unknown }} request @param {string} [origin] */
export function asCurl({ method = "GET", path, body }, origin = location.origin) {
  const parts = ["curl", "-sS"];
  if (method !== "GET") parts.push("-X", method);
  parts.push("-H", '"Authorization: Bearer $BATON_API_KEY"');
  if (body !== undefined) parts.push("-H", "'content-type: application/json'", "-d", shell(JSON.stringify(body)));
  parts.push(shell(`${origin}${path}`));
  return parts.join(" ");
}

/** @param {string[]} words */
export function asBaton(words) {
  return ["baton", ...words].map(shell).join(" ");
}

/** @param {unknown} value */
export function asJson(value) {
  return JSON.stringify(value, null, 2);
}

/** Copies and says so. @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    // No clipboard outside of secure contexts; the text can still be taken by hand.
    toast(`The browser did not allow copying. ${what}: ${text}`, { kind: "error" });
  }
}

/** Something of the console as a file on the reader's machine. @param {string} name @param {Blob | string} content @param {string} [type] */
export function download(name, content, type = "application/json") {
  const href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href, download: name }).click();
  // The browser reads it after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
