import type { Health, Json, System } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions } from "./http.js";
export declare class Host extends Group {
    /** What this host can do, for this key. */
    discover(call?: CallOptions): Promise<Record<string, Json>>;
    /** Version, limits and counts. */
    system(call?: CallOptions): Promise<System>;
    /** Throws Unavailable while the host starts or shuts down for longer than the client tries. */
    ready(call?: CallOptions): Promise<Health>;
}
