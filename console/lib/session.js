// The key of whoever looks. It lives as long as the tab and is never part of an address.
import { signal } from "./signal.js";

const NAME = "baton.key";

/** The key, or null when nobody is signed in. */
export const key = signal(/** @type {string | null} */ (sessionStorage.getItem(NAME)));
/** Why somebody was signed out, to be said on the sign-in screen. */
export const farewell = signal("");

/** @param {string} text */
export function signIn(text) {
  sessionStorage.setItem(NAME, text);
  farewell.value = "";
  key.value = text;
}

/** @param {string} [why] */
export function signOut(why = "") {
  sessionStorage.removeItem(NAME);
  farewell.value = why;
  key.value = null;
}
