// A connection to one host with one key.
import { Agents } from "./agents.js";
import { Host } from "./host.js";
import { type ClientOptions, Connection } from "./http.js";
import { Interrupts } from "./interrupts.js";
import { Memory, Workspace } from "./memory.js";
import { Runs } from "./runs.js";
import { Webhooks } from "./webhooks.js";
import { Workflows } from "./workflows.js";

/** Without options: the host at BATON_URL (else a `baton dev` on this machine), the key of BATON_API_KEY. */
export class Client {
  readonly url: string;
  readonly host: Host;
  readonly workflows: Workflows;
  readonly runs: Runs;
  readonly interrupts: Interrupts;
  readonly agents: Agents;
  readonly memory: Memory;
  readonly workspace: Workspace;
  readonly webhooks: Webhooks;
  readonly #options: ClientOptions;

  constructor(options: ClientOptions = {}) {
    const connection = new Connection(options);
    this.#options = options;
    this.url = connection.url;
    this.host = new Host(connection);
    this.workflows = new Workflows(connection);
    this.runs = new Runs(connection);
    this.interrupts = new Interrupts(connection);
    this.agents = new Agents(connection);
    this.memory = new Memory(connection);
    this.workspace = new Workspace(connection);
    this.webhooks = new Webhooks(connection);
  }

  /** The same client with other options. */
  withOptions(changes: ClientOptions): Client {
    return new Client({ ...this.#options, ...changes });
  }
}
