// What the host is and can do.
import type { Health, Json, System } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions, get } from "./http.js";

export class Host extends Group {
  /** What this host can do, for this key. */
  discover(call?: CallOptions): Promise<Record<string, Json>> {
    return this.connection.send(get([".well-known", "openwop"]), call);
  }

  /** Version, limits and counts. */
  system(call?: CallOptions): Promise<System> {
    return this.connection.send(get(["v1", "host", "baton", "system"]), call);
  }

  /** Throws Unavailable while the host starts or shuts down for longer than the client tries. */
  ready(call?: CallOptions): Promise<Health> {
    return this.connection.send(get(["readiness"]), call);
  }
}
