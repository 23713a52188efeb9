import type { DeadLetterView, Redelivery, WebhookEntry, WebhookRegistered } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions } from "./http.js";
/**
 * Whether a webhook is from the host that knows the secret, unchanged and recent. `body` are the bytes as they arrived.
 * A host may deliver an event again: compare `event.eventId`.
 */
export declare function verifyWebhook(secret: string, headers: Headers | Record<string, string | string[] | undefined>, body: Uint8Array | string, { maxAgeSeconds, nowSeconds }?: {
    maxAgeSeconds?: number;
    nowSeconds?: number;
}): Promise<boolean>;
export declare class Webhooks extends Group {
    /** Subscribes an address. The secret in the reply is shown once. */
    subscribe(url: string, events?: string[], { tags, ...call }?: CallOptions & {
        tags?: string[];
    }): Promise<WebhookRegistered>;
    list(call?: CallOptions): AsyncGenerator<WebhookEntry, void, void>;
    get(webhookId: string, call?: CallOptions): Promise<WebhookEntry>;
    unsubscribe(webhookId: string, call?: CallOptions): Promise<void>;
    /** Calls the receiver again after too many failures. */
    resume(webhookId: string, call?: CallOptions): Promise<WebhookEntry>;
    rotateSecret(webhookId: string, call?: CallOptions): Promise<WebhookRegistered>;
    /** Events that the receiver did not take, newest first. */
    deadLetters(webhookId: string, call?: CallOptions): AsyncGenerator<DeadLetterView, void, void>;
    /** Sends one dead letter again, or all of them. */
    redeliver(webhookId: string, { letterId, ...call }?: CallOptions & {
        letterId?: string;
    }): Promise<Redelivery>;
}
