// Workflows as plain code.
export { Workflow } from "./builder.js";
export type { Types, VariableOptions, WorkflowOptions } from "./builder.js";
export { Chain } from "./chain.js";
export type { ApproveOptions, Arm, LoopOptions, MapOptions, StepOptions, SuperviseOptions } from "./chain.js";
export {
  agent, askUser, delay, http, memoryList, memoryPut, nextWorker, Node, node, rule, setVariable, setVariables, structuredOutput, subWorkflow,
  terminate, tool, workspaceGet, workspacePut, writeChannel,
} from "./nodes.js";
export type { Decision, Rule } from "./nodes.js";
export { BuildError, InvalidWorkflow } from "./problems.js";
export type { BuildProblem, Site } from "./problems.js";
export { cel, Expression, Output, output, Variable } from "./values.js";
export type { Inputs, Value } from "./values.js";
