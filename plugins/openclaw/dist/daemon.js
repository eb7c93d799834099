// The one connection of the plugin: to the daemon, on the loopback interface
// or its Unix socket. It starts no process and reads one file, the hook token.
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { decodeOutcome, encodeEvent, isRecord } from "./wire.js";
/** maxAnswer bounds what is read of an answer, in bytes. */
const maxAnswer = 16 << 20;
/** poll is how often the answer of a person is looked for, in milliseconds. */
const poll = 500;
/** readSettings throws when the daemon could not be meant: nothing leaves this machine. */
export function readSettings(raw) {
    if (!isRecord(raw))
        throw new Error("the plugin has no configuration: run `auditd install openclaw`");
    const text = (name, other) => {
        const v = raw[name] ?? other;
        if (typeof v !== "string")
            throw new Error(`${name} is no text`);
        return v;
    };
    const count = (name, other, least, most) => {
        const v = raw[name] ?? other;
        if (typeof v !== "number" || !Number.isSafeInteger(v) || v < least || v > most)
            throw new Error(`${name} must be ${least} to ${most}`);
        return v;
    };
    const s = {
        url: text("url", "http://127.0.0.1:7841"), socket: text("socket", ""), tokenFile: text("tokenFile", ""),
        timeoutMs: count("timeoutMs", 45_000, 100, 300_000), waitMs: count("waitMs", 0, 0, 600_000),
    };
    const u = new URL(s.url);
    if (u.protocol !== "http:" || !["127.0.0.1", "localhost", "[::1]"].includes(u.hostname))
        throw new Error("url must be http on the loopback interface");
    if (s.tokenFile === "")
        throw new Error("tokenFile is missing");
    return s;
}
export class Daemon {
    #settings;
    #agent = new Agent({ keepAlive: true, maxSockets: 16 });
    constructor(settings) {
        this.#settings = settings;
    }
    close() {
        this.#agent.destroy();
    }
    /**
     * event reports e and returns what may go on. Where the owner has approved
     * what was deferred, it asks once more with the ticket. It throws when there
     * is no answer: the caller denies.
     */
    async event(e, wait = false) {
        const o = await this.#report(e);
        if (o.action !== "defer_to_human" || !o.ticket || o.questions.length === 0)
            return o;
        const until = Date.now() + (wait ? this.#settings.waitMs : 0);
        for (const id of o.questions) {
            if (!(await this.#approved(id, until)))
                return o;
        }
        return await this.#report({ ...e, ticket: o.ticket });
    }
    async #report(e) {
        return decodeOutcome(await this.call("POST", "/v1/events", encodeEvent({ ...e, deadline_ms: this.#settings.timeoutMs })));
    }
    async #approved(id, until) {
        if (id === "")
            return false;
        for (;;) {
            const q = JSON.parse(await this.call("GET", `/v1/approvals/${encodeURIComponent(id)}`));
            const answer = isRecord(q) ? q["answer"] : undefined;
            if (answer !== undefined && answer !== "")
                return answer === "approved";
            if (Date.now() >= until)
                return false;
            await new Promise((resolve) => setTimeout(resolve, poll));
        }
    }
    /** call returns the body of an answer with status 200; everything else throws. */
    call(method, path, body) {
        const { url, socket, tokenFile, timeoutMs } = this.#settings;
        return new Promise((resolve, reject) => {
            // Read for each call: the daemon may have made it after this plugin started.
            const token = readFileSync(tokenFile, "utf8").trim();
            const u = new URL(url);
            const req = request({
                agent: this.#agent, method, path, signal: AbortSignal.timeout(timeoutMs),
                ...(socket ? { socketPath: socket, host: "auditd" } : { host: u.hostname.replace(/^\[|\]$/g, ""), port: u.port || 80 }),
                headers: {
                    authorization: `Bearer ${token}`,
                    ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
                },
            }, (res) => {
                const parts = [];
                let size = 0;
                res.on("data", (part) => {
                    size += part.length;
                    if (size > maxAnswer)
                        req.destroy(new Error("the answer is too large"));
                    else
                        parts.push(part);
                });
                res.on("error", reject);
                res.on("end", () => {
                    if (!res.complete)
                        reject(new Error("the answer was cut off"));
                    else if (res.statusCode !== 200)
                        reject(new Error(`the daemon answered ${res.statusCode ?? 0}`));
                    else
                        resolve(Buffer.concat(parts).toString("utf8"));
                });
            });
            req.on("error", reject);
            req.end(body);
        });
    }
}
