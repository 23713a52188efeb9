export { Client } from "./client.js";
export { AlreadyAnswered, ApiError, BatonError, Conflict, ConnectionFailed, Forbidden, InvalidRequest, NotFound, NotUnderstood, RateLimited, TimedOut, Unauthenticated, Unavailable, } from "./errors.js";
export { verifyWebhook } from "./webhooks.js";
export { Workflow } from "./workflow/builder.js";
