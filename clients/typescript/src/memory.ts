// Texts and files that outlive a run.
import type { Changes, FileMeta, MemoryEntry, MemoryScopes, WorkspaceFile } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions, change, get } from "./http.js";
import { pages } from "./pages.js";

export class Memory extends Group {
  scopes(call?: CallOptions): Promise<MemoryScopes> {
    return this.connection.send(get(["v1", "host", "baton", "memory"]), call);
  }

  /** The entries of a scope, newest first. */
  list(scope: string, { tag, ...call }: CallOptions & { tag?: string } = {}): AsyncGenerator<MemoryEntry, void, void> {
    return pages(this.connection, get(["v1", "host", "baton", "memory", scope], { tag }), call, "entries");
  }

  get(scope: string, entryId: string, call?: CallOptions): Promise<MemoryEntry> {
    return this.connection.send(get(["v1", "host", "baton", "memory", scope, entryId]), call);
  }

  put(scope: string, content: string, { tags, ttlSeconds, idempotencyKey, ...call }: CallOptions & { tags?: string[]; ttlSeconds?: number; idempotencyKey?: string } = {}): Promise<MemoryEntry> {
    const asked = change("POST", ["v1", "host", "baton", "memory", scope], { content, tags, ttlSeconds }, { key: idempotencyKey });
    return this.connection.send(asked, call);
  }

  delete(scope: string, entryId: string, call?: CallOptions): Promise<void> {
    return this.connection.send(change("DELETE", ["v1", "host", "baton", "memory", scope, entryId]), call);
  }
}

export class Workspace extends Group {
  async list({ prefix, ...call }: CallOptions & { prefix?: string } = {}): Promise<FileMeta[]> {
    return (await this.connection.send<{ files: FileMeta[] }>(get(["v1", "host", "workspace", "files"], { prefix }), call)).files;
  }

  get(name: string, { version, ...call }: CallOptions & { version?: number } = {}): Promise<WorkspaceFile> {
    return this.connection.send(get(file(name), { version }), call);
  }

  /** Writes a file. With `ifMatch` (an etag) only if nobody else has changed it; else it throws Conflict. */
  put(name: string, content: string, { contentType, ifMatch, ...call }: CallOptions & { contentType?: string; ifMatch?: string } = {}): Promise<WorkspaceFile> {
    return this.connection.send(change("PUT", file(name), { content, contentType }, { headers: matching(ifMatch) }), call);
  }

  delete(name: string, { ifMatch, ...call }: CallOptions & { ifMatch?: string } = {}): Promise<void> {
    return this.connection.send(change("DELETE", file(name), undefined, { headers: matching(ifMatch) }), call);
  }

  /** The history of the files, newest first. */
  changes({ path, before, limit, ...call }: CallOptions & { path?: string; before?: number; limit?: number } = {}): Promise<Changes> {
    return this.connection.send(get(["v1", "host", "baton", "workspace", "changes"], { path, before, limit }), call);
  }
}

function file(name: string): string[] {
  return ["v1", "host", "workspace", "files", ...name.split("/")];
}

function matching(etag: string | undefined): Record<string, string> {
  return etag === undefined ? {} : { "if-match": etag };
}
