// auditd's plugin for OpenClaw. It is thin: it reports what happens to the
// daemon on this machine and applies the answer.
//
// OpenClaw starts without a plugin that fails to load, and then nothing is
// guarded. So register never throws: what goes wrong in it is kept, and every
// hook that could be registered denies and says why.
import { Daemon, readSettings } from "./daemon.js";
import { Guard } from "./guard.js";
import { Reporter } from "./report.js";
import { toolNames, tools } from "./tools.js";
const last = -1_000_000_000;
const first = 1_000_000_000;
function register(api) {
    const problems = [];
    let daemon;
    try {
        daemon = new Daemon(readSettings(api.pluginConfig));
    }
    catch (err) {
        problems.push(err instanceof Error ? err.message : "the configuration cannot be read");
    }
    const reporter = daemon && new Reporter(daemon, api.runtime?.version ?? "", () => problems);
    let good;
    // Asked for when a hook runs: by then all is registered.
    const guard = () => {
        const why = [...problems, ...(reporter?.mismatch ? [reporter.mismatch] : [])].join("; ");
        if (daemon && why === "")
            return (good ??= new Guard(daemon));
        return new Guard({ event: () => Promise.reject(new Error("broken")) }, why);
    };
    const attempt = (what, f) => {
        try {
            f();
        }
        catch {
            problems.push(`${what} could not be registered`);
            api.logger?.error?.(`auditd: ${what} could not be registered; everything is denied`);
        }
    };
    const on = (name, priority, handler) => attempt(name, () => api.on(name, (event, ctx) => handler(event, ctx ?? {}), { priority }));
    attempt("the tool policy", () => api.registerTrustedToolPolicy({ id: "auditd", description: "auditd decides every tool call", evaluate: (event, ctx) => guard().policy(event, ctx ?? {}) }));
    attempt("the result middleware", () => api.registerAgentToolResultMiddleware((event, ctx) => guard().result(event, ctx ?? {}), { runtimes: ["openclaw", "codex"] }));
    on("before_tool_call", last, (event, ctx) => guard().beforeCall(event, ctx));
    on("before_agent_run", last, (event, ctx) => guard().run(event, ctx));
    on("before_prompt_build", last, (_, ctx) => guard().systemPrompt(ctx));
    on("reply_payload_sending", last, (event, ctx) => guard().reply(event, ctx));
    on("message_sending", last, (event, ctx) => guard().message(event, ctx));
    on("session_start", first, (event, ctx) => guard().boundary("session-start", event, ctx));
    on("session_end", last, (event, ctx) => guard().boundary("session-end", event, ctx));
    on("before_install", last, (event, ctx) => guard().install(event, ctx));
    attempt("the heartbeat", () => api.registerService({ id: "auditd-heartbeat", start: () => Promise.all([reporter?.start(), guard().systemPrompt({})]), stop: () => reporter?.stop() }));
    // Offered while auditd tells this session about symbols; each says so itself.
    for (const name of toolNames) {
        attempt(name, () => api.registerTool((ctx) => (guard().isolated(ctx ?? {}) ? (tools(() => daemon, guard, ctx ?? {}).find((t) => t.name === name) ?? null) : null), { name, names: [name] }));
    }
    attempt("agent:bootstrap", () => api.registerHook("agent:bootstrap", (event) => guard().bootstrap(event), { name: "auditd-bootstrap", description: "auditd decides what of the workspace's files reaches the model" }));
}
export default { id: "auditd", name: "auditd", description: "Asks auditd about everything that the agent reads, runs and says.", register };
