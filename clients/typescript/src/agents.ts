// Agents, conversations and tools.
import type { AgentInventoryEntry, Conversation, CreatedRun, EffectiveAgent, Json, Turn } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions, change, get } from "./http.js";
import { pages } from "./pages.js";

export interface AgentRunOptions extends CallOptions {
  configurable?: Record<string, Json>;
  conversationId?: string;
  tags?: string[];
  idempotencyKey?: string;
}

export class Agents extends Group {
  async list(call?: CallOptions): Promise<AgentInventoryEntry[]> {
    return (await this.connection.send<{ agents: AgentInventoryEntry[] }>(get(["v1", "agents"]), call)).agents;
  }

  get(agentId: string, call?: CallOptions): Promise<AgentInventoryEntry> {
    return this.connection.send(get(["v1", "agents", agentId]), call);
  }

  /** What an agent may call here, its model, memory and limits. */
  effective(agentId: string, { toolGrant, ...call }: CallOptions & { toolGrant?: string[] } = {}): Promise<EffectiveAgent> {
    return this.connection.send(get(["v1", "host", "baton", "agents", agentId, "effective"], { toolGrant: toolGrant?.join(",") }), call);
  }

  /** Starts a run of one agent. Its answer will be the run's `outputs.result`. */
  run(agentId: string, task: Record<string, Json>, { configurable, conversationId, tags, idempotencyKey, ...call }: AgentRunOptions = {}): Promise<CreatedRun> {
    const wanted = { agentId, inputs: task, configurable, conversationId, tags };
    return this.connection.send(change("POST", ["v1", "runs"], wanted, { key: idempotencyKey }), call);
  }

  /** Sends a message; `@name` in it says to which agent. */
  chat(text: string, { configurable, conversationId, idempotencyKey, ...call }: Omit<AgentRunOptions, "tags"> = {}): Promise<CreatedRun> {
    const wanted = { text, conversationId, configurable };
    return this.connection.send(change("POST", ["v1", "host", "baton", "chat"], wanted, { key: idempotencyKey }), call);
  }

  conversations(call: CallOptions = {}): AsyncGenerator<Conversation, void, void> {
    return pages(this.connection, get(["v1", "host", "baton", "conversations"]), call, "conversations");
  }

  /** The turns of a conversation, newest first. */
  turns(conversationId: string, call: CallOptions = {}): AsyncGenerator<Turn, void, void> {
    return pages(this.connection, get(["v1", "host", "baton", "conversations", conversationId]), call, "turns");
  }

  /** What agents may be allowed to call here. */
  tools({ source, ...call }: CallOptions & { source?: string } = {}): Promise<Record<string, Json>[]> {
    return this.connection.send(get(["v1", "tools"], { source }), call);
  }
}
