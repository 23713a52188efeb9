import { Group } from "./group.js";
import { change, get } from "./http.js";
import { pages } from "./pages.js";
const MAX_AGE_SECONDS = 300;
/**
 * Whether a webhook is from the host that knows the secret, unchanged and recent. `body` are the bytes as they arrived.
 * A host may deliver an event again: compare `event.eventId`.
 */
export async function verifyWebhook(secret, headers, body, { maxAgeSeconds = MAX_AGE_SECONDS, nowSeconds = Date.now() / 1000 } = {}) {
    const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
    const given = new Map(entries.map(([name, value]) => [name.toLowerCase(), String(value)]));
    const timestamp = given.get("x-openwop-timestamp") ?? "";
    const signature = /^sha256=([0-9a-f]{64})$/.exec(given.get("x-openwop-signature") ?? "")?.[1];
    if (!/^\d{1,15}$/.test(timestamp) || signature === undefined)
        return false;
    const text = new TextEncoder();
    const head = text.encode(`${timestamp}.`);
    const raw = typeof body === "string" ? text.encode(body) : body;
    const signed = new Uint8Array(head.length + raw.length);
    signed.set(head);
    signed.set(raw, head.length);
    const bytes = Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    const { subtle } = await webCrypto();
    const key = await subtle.importKey("raw", text.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    // It compares in constant time.
    const genuine = await subtle.verify("HMAC", key, bytes, signed);
    return genuine && Math.abs(nowSeconds - Number(timestamp)) <= maxAgeSeconds;
}
async function webCrypto() {
    // Node 18 has it in a module only. The name is no literal so that bundlers for browsers do not look for the module.
    const module = "node:crypto";
    return globalThis.crypto ?? (await import(module)).webcrypto;
}
export class Webhooks extends Group {
    /** Subscribes an address. The secret in the reply is shown once. */
    subscribe(url, events = ["*"], { tags, ...call } = {}) {
        return this.connection.send(change("POST", ["v1", "webhooks"], { url, events, tags }), call);
    }
    list(call = {}) {
        return pages(this.connection, get(["v1", "webhooks"]), call, "webhooks");
    }
    get(webhookId, call) {
        return this.connection.send(get(["v1", "webhooks", webhookId]), call);
    }
    unsubscribe(webhookId, call) {
        return this.connection.send(change("DELETE", ["v1", "webhooks", webhookId]), call);
    }
    /** Calls the receiver again after too many failures. */
    resume(webhookId, call) {
        return this.connection.send(change("POST", ["v1", "host", "baton", "webhooks", webhookId, "resume"]), call);
    }
    rotateSecret(webhookId, call) {
        return this.connection.send(change("POST", ["v1", "host", "baton", "webhooks", webhookId, "rotate-secret"]), call);
    }
    /** Events that the receiver did not take, newest first. */
    deadLetters(webhookId, call = {}) {
        return pages(this.connection, get(["v1", "webhooks", webhookId, "dead-letters"]), call, "deadLetters");
    }
    /** Sends one dead letter again, or all of them. */
    redeliver(webhookId, { letterId, ...call } = {}) {
        const which = letterId === undefined ? [] : [letterId];
        return this.connection.send(change("POST", ["v1", "host", "baton", "webhooks", webhookId, "dead-letters", ...which, "redeliver"]), call);
    }
}
