import { Group } from "./group.js";
import { change, get } from "./http.js";
import { pages } from "./pages.js";
export class Agents extends Group {
    async list(call) {
        return (await this.connection.send(get(["v1", "agents"]), call)).agents;
    }
    get(agentId, call) {
        return this.connection.send(get(["v1", "agents", agentId]), call);
    }
    /** What an agent may call here, its model, memory and limits. */
    effective(agentId, { toolGrant, ...call } = {}) {
        return this.connection.send(get(["v1", "host", "baton", "agents", agentId, "effective"], { toolGrant: toolGrant?.join(",") }), call);
    }
    /** Starts a run of one agent. Its answer will be the run's `outputs.result`. */
    run(agentId, task, { configurable, conversationId, tags, idempotencyKey, ...call } = {}) {
        const wanted = { agentId, inputs: task, configurable, conversationId, tags };
        return this.connection.send(change("POST", ["v1", "runs"], wanted, { key: idempotencyKey }), call);
    }
    /** Sends a message; `@name` in it says to which agent. */
    chat(text, { configurable, conversationId, idempotencyKey, ...call } = {}) {
        const wanted = { text, conversationId, configurable };
        return this.connection.send(change("POST", ["v1", "host", "baton", "chat"], wanted, { key: idempotencyKey }), call);
    }
    conversations(call = {}) {
        return pages(this.connection, get(["v1", "host", "baton", "conversations"]), call, "conversations");
    }
    /** The turns of a conversation, newest first. */
    turns(conversationId, call = {}) {
        return pages(this.connection, get(["v1", "host", "baton", "conversations", conversationId]), call, "turns");
    }
    /** What agents may be allowed to call here. */
    tools({ source, ...call } = {}) {
        return this.connection.send(get(["v1", "tools"], { source }), call);
    }
}
