// Which runs change, for all screens at once: one stream for the page. It resumes nothing; whoever shows a list lists
// again when `relist` grows, which it does after every break.
import { follow } from "./feed.js";
import { effect, onEnd, signal } from "./signal.js";
import { key } from "./session.js";

/** Open questions of the tenant; null until known. */
export const openInterrupts = signal(/** @type {number | null} */ (null));
/** Grows whenever something may have been missed. */
export const relist = signal(0);
/** @type {import("./signal.js").Signal<import("./feed.js").FeedState>} */
export const activityState = signal(/** @type {import("./feed.js").FeedState} */ ("connecting"));

/** @type {Set<(runs: import("../types.js").RunItem[]) => void>} */
const listeners = new Set();

/** Rows that changed, as they are now. @param {(runs: import("../types.js").RunItem[]) => void} listener @returns {() => void} */
export function onRuns(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Listens for as long as somebody is signed in. */
export function startActivity() {
  effect(() => {
    if (key.value === null) return;
    const end = new AbortController();
    follow({
      path: "/v1/host/baton/activity",
      signal: end.signal,
      onState: (state) => (activityState.value = state),
      onFrames: (frames) => frames.forEach(take),
    });
    onEnd(() => end.abort());
  });
}

/** @param {import("./sse.js").Frame} frame */
function take(frame) {
  const data = JSON.parse(frame.data);
  if (typeof data.openInterrupts === "number") openInterrupts.value = data.openInterrupts;
  if (frame.event === "runs") {
    for (const listener of listeners) {
      try {
        listener(data.runs);
      } catch (error) {
        reportError(error);
      }
    }
  } else relist.value += 1;
}
