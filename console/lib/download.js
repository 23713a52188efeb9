// Something of the console as a file on the reader's machine.
import { h } from "./dom.js";

/** @param {string} name @param {Blob | string} content @param {string} [type] */
export function download(name, content, type = "application/json") {
  const href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href, download: name }).click();
  // The browser reads it after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
