import { Group } from "./group.js";
import { get } from "./http.js";
export class Host extends Group {
    /** What this host can do, for this key. */
    discover(call) {
        return this.connection.send(get([".well-known", "openwop"]), call);
    }
    /** Version, limits and counts. */
    system(call) {
        return this.connection.send(get(["v1", "host", "baton", "system"]), call);
    }
    /** Throws Unavailable while the host starts or shuts down for longer than the client tries. */
    ready(call) {
        return this.connection.send(get(["readiness"]), call);
    }
}
