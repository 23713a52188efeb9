// Asking for a key. It is tried before it is kept; a wrong one is told as such.
import { tryKey } from "../lib/api.js";
import { asApiError } from "../lib/error.js";
import { h, uid } from "../lib/dom.js";
import { farewell, signIn } from "../lib/session.js";
import { signal } from "../lib/signal.js";

export function signInForm() {
  const problem = signal(farewell.peek());
  const busy = signal(false);
  const id = uid("key");
  const input = h("input", { id, type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": `${id}-note`, "aria-invalid": () => (problem.value ? "true" : "false") });
  const form = h("form", { class: "sign-in", novalidate: true },
    h("h1", null, "Sign in to this host"),
    h("label", { for: id }, "API key"),
    input,
    h("div", { role: "alert" }, () => problem.value && h("p", { class: "status bad wrapping" }, problem.value)),
    h("button", { type: "submit", class: "primary", disabled: () => busy.value }, () => (busy.value ? "Checking…" : "Sign in")),
    h("p", { class: "muted small", id: `${id}-note` }, "The key stays in this tab and is forgotten when the tab closes. ", h("code", null, "baton dev"), " prints one when it starts."));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text) {
      problem.value = "Enter a key.";
      return input.focus();
    }
    busy.value = true;
    const error = await tryKey(text);
    busy.value = false;
    if (!error) return signIn(text);
    const { status, message, hint } = asApiError(error);
    problem.value = status === 401 ? "This host does not know that key." : `${message} ${hint}`;
    input.focus();
    input.select();
    return undefined;
  });
  queueMicrotask(() => input.focus());
  return form;
}
