import type { Changes, FileMeta, MemoryEntry, MemoryScopes, WorkspaceFile } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions } from "./http.js";
export declare class Memory extends Group {
    scopes(call?: CallOptions): Promise<MemoryScopes>;
    /** The entries of a scope, newest first. */
    list(scope: string, { tag, ...call }?: CallOptions & {
        tag?: string;
    }): AsyncGenerator<MemoryEntry, void, void>;
    get(scope: string, entryId: string, call?: CallOptions): Promise<MemoryEntry>;
    put(scope: string, content: string, { tags, ttlSeconds, idempotencyKey, ...call }?: CallOptions & {
        tags?: string[];
        ttlSeconds?: number;
        idempotencyKey?: string;
    }): Promise<MemoryEntry>;
    delete(scope: string, entryId: string, call?: CallOptions): Promise<void>;
}
export declare class Workspace extends Group {
    list({ prefix, ...call }?: CallOptions & {
        prefix?: string;
    }): Promise<FileMeta[]>;
    get(name: string, { version, ...call }?: CallOptions & {
        version?: number;
    }): Promise<WorkspaceFile>;
    /** Writes a file. With `ifMatch` (an etag) only if nobody else has changed it; else it throws Conflict. */
    put(name: string, content: string, { contentType, ifMatch, ...call }?: CallOptions & {
        contentType?: string;
        ifMatch?: string;
    }): Promise<WorkspaceFile>;
    delete(name: string, { ifMatch, ...call }?: CallOptions & {
        ifMatch?: string;
    }): Promise<void>;
    /** The history of the files, newest first. */
    changes({ path, before, limit, ...call }?: CallOptions & {
        path?: string;
        before?: number;
        limit?: number;
    }): Promise<Changes>;
}
