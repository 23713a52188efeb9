// Registering and reading workflows.
import type { Json, Validation, WorkflowDefinition, WorkflowVersion } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions, change, get, path, type Request } from "./http.js";
import { Workflow } from "./workflow/builder.js";
import { throwProblems } from "./workflow/problems.js";

export type Definition = Workflow<Json> | Record<string, Json>;

export class Workflows extends Group {
  /** Registers a version. The same content again changes nothing. */
  async register(definition: Definition, call?: CallOptions): Promise<WorkflowVersion> {
    return this.connection.send(change("POST", ["v1", "workflows"], plain(definition)), call);
  }

  /** What the host has to say about a definition. Registers nothing. */
  async validate(definition: Definition, call?: CallOptions): Promise<Validation> {
    return this.connection.send(validation(definition), call);
  }

  /** Throws InvalidWorkflow with each problem at the line that built that part of the workflow. */
  async check(workflow: Workflow<Json>, call?: CallOptions): Promise<void> {
    throwProblems(workflow, await this.validate(workflow, call));
  }

  /** The newest version of each workflow. */
  async list(call?: CallOptions): Promise<WorkflowVersion[]> {
    return (await this.connection.send<{ workflows: WorkflowVersion[] }>(get(["v1", "workflows"]), call)).workflows;
  }

  /** A definition: the newest, or that of one version. */
  get(workflowId: string, { version, ...call }: CallOptions & { version?: number } = {}): Promise<WorkflowDefinition> {
    const newest = ["v1", "workflows", workflowId];
    return this.connection.send(get(version === undefined ? newest : [...versionsOf(workflowId), String(version)]), call);
  }

  /** Every version, newest first. */
  async versions(workflowId: string, call?: CallOptions): Promise<WorkflowVersion[]> {
    return (await this.connection.send<{ versions: WorkflowVersion[] }>(get(versionsOf(workflowId)), call)).versions;
  }
}

function versionsOf(workflowId: string): string[] {
  return ["v1", "host", "baton", "workflows", workflowId, "versions"];
}

function plain(definition: Definition): Json {
  return definition instanceof Workflow ? definition.definition() : definition;
}

function validation(definition: Definition): Request {
  return { method: "POST", path: path("v1", "host", "baton", "workflows", "validate"), json: plain(definition) };
}
