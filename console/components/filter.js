// A filter box: terms become chips, what is being typed is completed. The text is the state; whoever uses it keeps it
// in the address.
import { h, uid } from "../lib/dom.js";
import { parseQuery, problems, writeQuery, writeTerm } from "../lib/query.js";

/**
 * @param {{ fields: import("../lib/query.js").Field[], label: string, placeholder: string, onChange: (text: string) => void }} options
 * @returns {HTMLElement & { text: string, focusInput(): void }}
 */
export function filterBox({ fields, label, placeholder, onChange }) {
  const listId = uid("suggestions");
  const input = h("input", { type: "text", role: "combobox", "aria-label": label, "aria-autocomplete": "list", "aria-controls": listId, "aria-expanded": "false", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  const list = h("div", { class: "suggestions", role: "listbox", id: listId, "aria-label": "Filters", hidden: true });
  const chips = h("span", { class: "row wrap", role: "group", "aria-label": "Active filters" });
  const box = h("bt-filter", { role: "search" }, chips, input, list);
  /** @type {import("../lib/query.js").Query} */
  let query = { terms: [], words: [] };
  let chosen = -1;
  /** @type {{ text: string, hint: string }[]} */
  let offers = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let typing;

  const tell = () => onChange(writeQuery(query));
  const drawChips = () => {
    chips.replaceChildren(...query.terms.map((term, index) => {
      const wrong = problems({ terms: [term], words: [] }, fields)[0];
      const remove = () => {
        query.terms.splice(index, 1);
        drawChips();
        tell();
        input.focus();
      };
      return h("span", { class: ["chip", wrong && "wrong"], title: wrong ?? null }, writeTerm(term),
        h("button", { type: "button", "aria-label": `Remove ${writeTerm(term)}`, onClick: remove }, "×"));
    }));
    chips.hidden = query.terms.length === 0;
    input.placeholder = query.terms.length === 0 ? placeholder : "";
  };
  /** Takes what is typed: whole terms become chips; with `all`, words too. @param {boolean} all */
  const take = (all) => {
    const typed = parseQuery(input.value);
    query.terms.push(...typed.terms.filter((term) => term.value !== ""));
    if (all) query.words = typed.words;
    input.value = typed.words.join(" ");
    close();
    drawChips();
    tell();
  };
  const close = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const suggest = () => {
    const last = /(\S*)$/.exec(input.value)?.[1] ?? "";
    const [, name, sign, value = ""] = /^([A-Za-z][\w-]*)(:|>=|<=|>|<)(.*)$/.exec(last) ?? [];
    const field = fields.find((one) => one.name === name);
    if (name && field) {
      offers = (field.values ?? []).filter((one) => one.includes(value) && one !== value).map((one) => ({ text: `${name}${sign}${one}`, hint: "" }));
    } else {
      offers = fields.filter((one) => one.name.startsWith(last.toLowerCase())).map((one) => ({ text: `${one.name}${(one.signs ?? [":"])[0]}`, hint: one.hint }));
    }
    chosen = -1;
    list.hidden = offers.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    list.replaceChildren(...offers.map((offer, index) => h("div", { role: "option", id: `${listId}-${index}`, "aria-selected": "false", onMousedown: (/** @type {Event} */ event) => (event.preventDefault(), accept(index)) },
      h("code", null, offer.text), h("span", { class: "muted" }, offer.hint))));
  };
  /** Whether what is typed may yet become a term: then it is no word to search for. */
  const beginsField = () => {
    const last = /(\S+)$/.exec(input.value)?.[1]?.toLowerCase();
    return last !== undefined && fields.some((one) => one.name.startsWith(last));
  };
  /** @param {number} index */
  const accept = (index) => {
    const offer = offers[index];
    if (!offer) return;
    input.value = input.value.replace(/\S*$/, offer.text);
    if (/[:<>=]$/.test(offer.text)) suggest();
    else take(true);
  };
  /** @param {number} to */
  const choose = (to) => {
    chosen = (to + offers.length) % offers.length;
    [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === chosen)));
    input.setAttribute("aria-activedescendant", `${listId}-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  input.addEventListener("focus", suggest);
  input.addEventListener("blur", close);
  input.addEventListener("input", () => {
    suggest();
    clearTimeout(typing);
    // A finished term is taken at the space after it; words are searched for while they are typed.
    if (/\s$/.test(input.value) && parseQuery(input.value).terms.length > 0) take(true);
    else if (parseQuery(input.value).terms.length === 0 && !beginsField()) typing = setTimeout(() => {
      query.words = parseQuery(input.value).words;
      tell();
    }, 250);
  });
  input.addEventListener("keydown", (event) => {
    const open = !list.hidden;
    if (event.key === "ArrowDown" && open) choose(chosen + 1);
    else if (event.key === "ArrowUp" && open) choose(chosen - 1);
    else if (event.key === "Enter") chosen >= 0 ? accept(chosen) : (clearTimeout(typing), take(true));
    else if (event.key === "Tab" && open && chosen >= 0) accept(chosen);
    else if (event.key === "Escape") open ? close() : input.blur();
    else if (event.key === "Backspace" && input.value === "" && query.terms.length > 0) {
      const term = query.terms.pop();
      if (term) input.value = writeTerm(term);
      drawChips();
      tell();
      suggest();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("click", (event) => event.target === box && input.focus());
  drawChips();
  return Object.defineProperties(/** @type {any} */ (box), {
    text: {
      get: () => writeQuery(query),
      set: (/** @type {string} */ text) => {
        if (text === writeQuery(query)) return;
        query = parseQuery(text);
        input.value = query.words.join(" ");
        drawChips();
      },
    },
    focusInput: { value: () => input.focus() },
  });
}
