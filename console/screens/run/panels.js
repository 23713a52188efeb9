// The tabs of the inspector, in order. Each is a file; `context.js` says what it gets.
import effect from "./panels/effect.js";
import io from "./panels/in-out.js";
import memory from "./panels/memory.js";
import overview from "./panels/overview.js";
import prompt from "./panels/prompt.js";
import raw from "./panels/raw.js";
import state from "./panels/state.js";
import trace from "./panels/trace.js";
import usage from "./panels/usage.js";
import workspace from "./panels/workspace.js";

/** @type {import("./context.js").Panel[]} */
export const panels = [overview, io, state, memory, workspace, prompt, effect, usage, raw, trace];
