// Whether the host answers. Any failed request says "no"; from then on its health is asked, ever more slowly, until it
// answers again. Screens read `recovered` in an effect and ask anew when it grows.
import { signal } from "./signal.js";

/** @typedef {"online" | "offline"} Reach */
export const reach = signal(/** @type {Reach} */ ("online"));
/** How often the host has come back. */
export const recovered = signal(0);

const FIRST_WAIT = 500;
const LONGEST_WAIT = 5000;
/** @type {number | undefined} */
let timer;
let wait = FIRST_WAIT;

/** A request did not arrive. */
export function lost() {
  if (reach.peek() === "offline") return;
  reach.value = "offline";
  wait = FIRST_WAIT;
  timer = setTimeout(probe, wait);
}

/** A request was answered, whatever the answer. */
export function heard() {
  if (reach.peek() === "online") return;
  clearTimeout(timer);
  reach.value = "online";
  recovered.value += 1;
}

export async function probe() {
  clearTimeout(timer);
  try {
    const response = await fetch("/health", { cache: "no-store" });
    if (response.ok) return heard();
  } catch {
    // Still gone.
  }
  wait = Math.min(wait * 1.6, LONGEST_WAIT);
  timer = setTimeout(probe, wait);
}

addEventListener("online", () => reach.peek() === "offline" && probe());
