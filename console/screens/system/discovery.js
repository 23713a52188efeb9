// The discovery document as a table: what the host advertises, member by member, with its details one click away.
import { copyMenu } from "../../components/copy-menu.js";
import { jsonView } from "../../components/json-view.js";
import { h } from "../../lib/dom.js";
import { excerpt } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { card } from "./facts.js";

/** Members that repeat others or only name the document. */
const AROUND = new Set(["capabilities", "implementation", "protocolVersion", "protocolVersions"]);

/** `maxEntrySizeBytes` as words. @param {string} name */
const words = (name) => name.replace(/([a-z0-9])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);

/** @param {any} value @returns {{ state: "yes" | "no" | "said", detail: string }} */
export function advertised(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return { state: value === true ? "yes" : value === false ? "no" : "said", detail: typeof value === "boolean" ? "" : Array.isArray(value) ? value.map((one) => excerpt(one, 40)).join(", ") : String(value) };
  const detail = Object.entries(value).filter(([name]) => name !== "supported").map(([name, one]) => {
    if (one === true) return words(name);
    if (one === false) return `no ${words(name)}`;
    if (Array.isArray(one)) return `${words(name)}: ${one.map((each) => excerpt(each, 40)).join(", ")}`;
    return typeof one === "object" ? `${words(name)} …` : `${words(name)} ${one}`;
  });
  return { state: value.supported === false ? "no" : value.supported === true ? "yes" : "said", detail: detail.join(" · ") };
}

/** @param {any} document */
export function discoveryCard(document) {
  const find = signal("");
  const rows = Object.entries({ ...document, ...document.capabilities }).filter(([name]) => !AROUND.has(name)).sort(([a], [b]) => (a < b ? -1 : 1));
  return card(h("span", { class: "row wrap" }, "What it advertises", h("span", { class: "muted" }, `protocol ${document.protocolVersion}`),
    h("span", { class: "row push" }, h("input", { type: "search", class: "sys-find", placeholder: "Find", "aria-label": "Find in what is advertised", onInput: (/** @type {Event} */ event) => (find.value = /** @type {HTMLInputElement} */ (event.target).value.toLowerCase()) }),
      copyMenu(() => ({ request: { path: "/.well-known/openwop" }, json: document })))),
  h("p", { class: "muted small" }, "As ", h("code", null, "/.well-known/openwop"), " says it to everybody who asks. What is not listed is not provided. The document tells what is advertised; whether a conformance run has tested it, this host does not say."),
  h("div", { class: "sys-table" }, () => {
    const fitting = rows.filter(([name, value]) => `${name} ${JSON.stringify(value)}`.toLowerCase().includes(find.value));
    if (fitting.length === 0) return h("p", { class: "muted" }, "Nothing advertised has this in it.");
    return h("table", { class: "dense sys-discovery" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Capability"), h("th", { scope: "col" }, "Advertised"), h("th", { scope: "col" }, "Details"))),
      h("tbody", null, fitting.map(([name, value]) => row(name, value))));
  }));
}

/** @param {string} name @param {any} value */
function row(name, value) {
  const { state, detail } = advertised(value);
  const opens = value !== null && typeof value === "object";
  const place = h("td", null);
  const more = h("details", null, h("summary", null, detail || "without more to say"));
  // Drawn when it is opened: forty trees nobody looks at are not free.
  more.addEventListener("toggle", () => more.open && more.childElementCount === 1 && more.append(h("div", { class: "box" }, jsonView(value, 2))));
  place.append(opens ? more : h("span", { class: "wrap-any" }, detail));
  return h("tr", null, h("th", { scope: "row" }, h("code", null, name)), h("td", null, h("span", { class: ["advert", state] }, state === "yes" ? "yes" : state === "no" ? "no" : "stated")), place);
}
