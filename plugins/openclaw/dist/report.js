// The handshake: the plugin tells the daemon that it is there, in which
// version, and what is wrong. A host that starts without it says nothing, and
// that is how the daemon notices.
import { randomUUID } from "node:crypto";
import { isRecord } from "./wire.js";
export const version = "0.1.0";
/** protocol is the daemon's heartbeat.Protocol: with another daemon everything is denied. */
export const protocol = 1;
const everyMs = 20_000;
export class Reporter {
    #daemon;
    #hostVersion;
    #problems;
    #instance = randomUUID();
    #timer;
    /** Why the daemon is not one that this plugin can talk to; empty while it is, or has not answered. */
    mismatch = "";
    constructor(daemon, hostVersion, problems) {
        this.#daemon = daemon;
        this.#hostVersion = hostVersion;
        this.#problems = problems;
    }
    async start() {
        this.#timer ??= setInterval(() => void this.beat(false), everyMs).unref();
        await this.beat(false);
    }
    async stop() {
        clearInterval(this.#timer);
        this.#timer = undefined;
        await this.beat(true);
    }
    async beat(ends) {
        try {
            const problems = this.#problems().map((p) => Array.from(p).slice(0, 70).join("")).slice(0, 16);
            const report = { host: "openclaw", instance: this.#instance, plugin: version, protocol, host_version: this.#hostVersion.slice(0, 64), problems, ends };
            const answer = JSON.parse(await this.#daemon.call("POST", "/v1/heartbeats", JSON.stringify(report)));
            const theirs = isRecord(answer) ? answer["protocol"] : undefined;
            this.mismatch = theirs === protocol ? "" : `the daemon speaks protocol ${String(theirs).slice(0, 10)} and the plugin ${protocol}: run \`auditd install openclaw\` again`;
        }
        catch {
            // Nobody answers: each call is then denied by itself.
        }
    }
}
