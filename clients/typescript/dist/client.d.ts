import { Agents } from "./agents.js";
import { Host } from "./host.js";
import { type ClientOptions } from "./http.js";
import { Interrupts } from "./interrupts.js";
import { Memory, Workspace } from "./memory.js";
import { Runs } from "./runs.js";
import { Webhooks } from "./webhooks.js";
import { Workflows } from "./workflows.js";
/** Without options: the host at BATON_URL (else a `baton dev` on this machine), the key of BATON_API_KEY. */
export declare class Client {
    #private;
    readonly url: string;
    readonly host: Host;
    readonly workflows: Workflows;
    readonly runs: Runs;
    readonly interrupts: Interrupts;
    readonly agents: Agents;
    readonly memory: Memory;
    readonly workspace: Workspace;
    readonly webhooks: Webhooks;
    constructor(options?: ClientOptions);
    /** The same client with other options. */
    withOptions(changes: ClientOptions): Client;
}
