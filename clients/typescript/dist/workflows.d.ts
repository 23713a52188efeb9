import type { Json, Validation, WorkflowDefinition, WorkflowVersion } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions } from "./http.js";
import { Workflow } from "./workflow/builder.js";
export type Definition = Workflow<Json> | Record<string, Json>;
export declare class Workflows extends Group {
    /** Registers a version. The same content again changes nothing. */
    register(definition: Definition, call?: CallOptions): Promise<WorkflowVersion>;
    /** What the host has to say about a definition. Registers nothing. */
    validate(definition: Definition, call?: CallOptions): Promise<Validation>;
    /** Throws InvalidWorkflow with each problem at the line that built that part of the workflow. */
    check(workflow: Workflow<Json>, call?: CallOptions): Promise<void>;
    /** The newest version of each workflow. */
    list(call?: CallOptions): Promise<WorkflowVersion[]>;
    /** A definition: the newest, or that of one version. */
    get(workflowId: string, { version, ...call }?: CallOptions & {
        version?: number;
    }): Promise<WorkflowDefinition>;
    /** Every version, newest first. */
    versions(workflowId: string, call?: CallOptions): Promise<WorkflowVersion[]>;
}
