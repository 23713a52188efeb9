import type { Json, Validation } from "../api.js";
import { BatonError } from "../errors.js";
import type { Workflow } from "./builder.js";
/** A line of the program that builds a workflow. */
export interface Site {
    file: string;
    line: number;
}
export declare const said: (site: Site) => string;
/** The nearest line outside this package. */
export declare function caller(): Site;
/** The program builds something that can be no workflow. */
export declare class BuildError extends BatonError {
    readonly site: Site;
    constructor(message: string, site?: Site);
}
/** What the host has to say about one part of a workflow. */
export interface BuildProblem {
    message: string;
    code: string;
    pointer: string;
    /** Such as `step "review"`, or `the workflow`. */
    part: string;
    site: Site;
}
/** The host would refuse to register the workflow. */
export declare class InvalidWorkflow extends BatonError {
    readonly problems: BuildProblem[];
    constructor(workflowId: string, problems: BuildProblem[]);
}
export declare function throwProblems(workflow: Workflow<Json>, validation: Validation): void;
