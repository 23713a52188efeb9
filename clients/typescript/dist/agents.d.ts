import type { AgentInventoryEntry, Conversation, CreatedRun, EffectiveAgent, Json, Turn } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions } from "./http.js";
export interface AgentRunOptions extends CallOptions {
    configurable?: Record<string, Json>;
    conversationId?: string;
    tags?: string[];
    idempotencyKey?: string;
}
export declare class Agents extends Group {
    list(call?: CallOptions): Promise<AgentInventoryEntry[]>;
    get(agentId: string, call?: CallOptions): Promise<AgentInventoryEntry>;
    /** What an agent may call here, its model, memory and limits. */
    effective(agentId: string, { toolGrant, ...call }?: CallOptions & {
        toolGrant?: string[];
    }): Promise<EffectiveAgent>;
    /** Starts a run of one agent. Its answer will be the run's `outputs.result`. */
    run(agentId: string, task: Record<string, Json>, { configurable, conversationId, tags, idempotencyKey, ...call }?: AgentRunOptions): Promise<CreatedRun>;
    /** Sends a message; `@name` in it says to which agent. */
    chat(text: string, { configurable, conversationId, idempotencyKey, ...call }?: Omit<AgentRunOptions, "tags">): Promise<CreatedRun>;
    conversations(call?: CallOptions): AsyncGenerator<Conversation, void, void>;
    /** The turns of a conversation, newest first. */
    turns(conversationId: string, call?: CallOptions): AsyncGenerator<Turn, void, void>;
    /** What agents may be allowed to call here. */
    tools({ source, ...call }?: CallOptions & {
        source?: string;
    }): Promise<Record<string, Json>[]>;
}
