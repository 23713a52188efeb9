// How the link to something outside is doing, in a word.

/** @typedef {import("../types.js").Connection} Connection */
const WORDS = { idle: "not needed yet", connecting: "connecting", connected: "connected", failed: "failed" };

/** A word for it, and whether it is good, bad or neither. @param {Connection} one @returns {{ word: string, tone: "yes" | "no" | "" }} */
export function told(one) {
  const again = one.state === "connecting" && one.failures > 0;
  return { word: again ? "trying again" : WORDS[one.state] ?? one.state, tone: one.state === "connected" ? "yes" : one.failures > 0 ? "no" : "" };
}
