import { Group } from "./group.js";
import { change, get } from "./http.js";
import { pages } from "./pages.js";
export class Memory extends Group {
    scopes(call) {
        return this.connection.send(get(["v1", "host", "baton", "memory"]), call);
    }
    /** The entries of a scope, newest first. */
    list(scope, { tag, ...call } = {}) {
        return pages(this.connection, get(["v1", "host", "baton", "memory", scope], { tag }), call, "entries");
    }
    get(scope, entryId, call) {
        return this.connection.send(get(["v1", "host", "baton", "memory", scope, entryId]), call);
    }
    put(scope, content, { tags, ttlSeconds, idempotencyKey, ...call } = {}) {
        const asked = change("POST", ["v1", "host", "baton", "memory", scope], { content, tags, ttlSeconds }, { key: idempotencyKey });
        return this.connection.send(asked, call);
    }
    delete(scope, entryId, call) {
        return this.connection.send(change("DELETE", ["v1", "host", "baton", "memory", scope, entryId]), call);
    }
}
export class Workspace extends Group {
    async list({ prefix, ...call } = {}) {
        return (await this.connection.send(get(["v1", "host", "workspace", "files"], { prefix }), call)).files;
    }
    get(name, { version, ...call } = {}) {
        return this.connection.send(get(file(name), { version }), call);
    }
    /** Writes a file. With `ifMatch` (an etag) only if nobody else has changed it; else it throws Conflict. */
    put(name, content, { contentType, ifMatch, ...call } = {}) {
        return this.connection.send(change("PUT", file(name), { content, contentType }, { headers: matching(ifMatch) }), call);
    }
    delete(name, { ifMatch, ...call } = {}) {
        return this.connection.send(change("DELETE", file(name), undefined, { headers: matching(ifMatch) }), call);
    }
    /** The history of the files, newest first. */
    changes({ path, before, limit, ...call } = {}) {
        return this.connection.send(get(["v1", "host", "baton", "workspace", "changes"], { path, before, limit }), call);
    }
}
function file(name) {
    return ["v1", "host", "workspace", "files", ...name.split("/")];
}
function matching(etag) {
    return etag === undefined ? {} : { "if-match": etag };
}
