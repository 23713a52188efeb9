// Mistakes in a workflow, each at the line of the program that made it.
import type { Json, Validation } from "../api.js";
import { BatonError } from "../errors.js";
import type { Workflow } from "./builder.js";

const HERE = new URL("..", import.meta.url).href;
const FRAME = /((?:[a-z][a-z+.-]+:\/\/|\/|[A-Za-z]:\\)[^\s()]*?):(\d+):\d+\)?$/;

/** A line of the program that builds a workflow. */
export interface Site {
  file: string;
  line: number;
}

export const said = (site: Site): string => `${site.file}:${site.line}`;

/** The nearest line outside this package. */
export function caller(): Site {
  for (const frame of (new Error().stack ?? "").split("\n")) {
    const [, file, line] = FRAME.exec(frame.trim()) ?? [];
    if (file !== undefined && !file.startsWith(HERE) && !`file://${file}`.startsWith(HERE)) {
      return { file: file.replace(/^file:\/\//, ""), line: Number(line) };
    }
  }
  return { file: "unknown", line: 0 };
}

/** The program builds something that can be no workflow. */
export class BuildError extends BatonError {
  readonly site: Site;

  constructor(message: string, site: Site = caller()) {
    super(`${said(site)}: ${message}`);
    this.site = site;
  }
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
export class InvalidWorkflow extends BatonError {
  readonly problems: BuildProblem[];

  constructor(workflowId: string, problems: BuildProblem[]) {
    const lines = problems.map(({ site, part, message, code, pointer }) => `  ${said(site)}: ${part}: ${message} [${code}] (${pointer || "the whole"})`);
    super([`the workflow ${workflowId} is not valid:`, ...lines].join("\n"));
    this.problems = problems;
  }
}

export function throwProblems(workflow: Workflow<Json>, validation: Validation): void {
  if (validation.valid) return;
  const problems = validation.problems.map(({ message, code, pointer }) => ({ message, code, pointer, ...workflow.partAt(pointer) }));
  throw new InvalidWorkflow(workflow.id, problems);
}
