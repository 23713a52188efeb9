export type * as api from "./api.js";
export { Client } from "./client.js";
export { AlreadyAnswered, ApiError, BatonError, Conflict, ConnectionFailed, Forbidden, InvalidRequest, NotFound, NotUnderstood, RateLimited, TimedOut, Unauthenticated, Unavailable, } from "./errors.js";
export type { WaitOptions } from "./follow.js";
export type { CallOptions, ClientOptions } from "./http.js";
export type { Question } from "./interrupts.js";
export type { ForkOptions, RunFilter, StartOptions } from "./runs.js";
export { verifyWebhook } from "./webhooks.js";
export { Workflow } from "./workflow/builder.js";
