// What each hook does: it reports, and applies the answer. Nothing here decides.
// Every handler catches whatever goes wrong and denies in the shape that its
// hook has for that, because the host lets several hooks fail open.
import { createHash } from "node:crypto";
import { applied, withheld } from "./result.js";
import { isRecord } from "./wire.js";
const host = "openclaw";
/** Bounds of what is remembered between two hooks. What was forgotten is asked about again. */
const maxRemembered = 4096;
/** maxName is schema's limit for an identifier, in bytes. */
const maxName = 1024;
/** maxRefused is how many refused prompts are kept to be asked about again; with more a session stays closed. */
const maxRefused = 8;
const closed = "An earlier message of this session was refused, and OpenClaw keeps it in the transcript. Begin a new session with /new.";
const unreachable = "auditd cannot be asked, so this is stopped. Start it with `auditd serve`, or take it out with `auditd uninstall openclaw`.";
/** What calls other tools where no result hook looks. */
const wrappers = {
    tool_call: "tools.toolSearch", tool_search_code: "tools.toolSearch",
};
/** Recent is a map that forgets its oldest entries. */
class Recent {
    #entries = new Map();
    set(key, value) {
        this.#entries.delete(key);
        this.#entries.set(key, value);
        for (const oldest of this.#entries.keys()) {
            if (this.#entries.size <= maxRemembered)
                break;
            this.#entries.delete(oldest);
        }
    }
    get(key) {
        return this.#entries.get(key);
    }
    delete(key) {
        return this.#entries.delete(key);
    }
}
export class Guard {
    #daemon;
    #problem; // why nothing may pass; empty when all is well
    #sessions = new Recent(); // the session that a key stands for now
    #workspaces = new Recent(); // by session
    #decided = new Recent(); // the parameters that may run, by call
    #refused = new Recent(); // prompts that are in a transcript and may not be read, by session
    #said = new Recent(); // replies that may be delivered
    #isolates = new Recent(); // agents whose model is told about symbols
    constructor(daemon, problem = "") {
        this.#daemon = daemon;
        this.#problem = problem;
    }
    // Reports.
    #session(ctx) {
        const { sessionKey, sessionId } = ctx;
        if (sessionKey && sessionId)
            this.#sessions.set(sessionKey, sessionId);
        const id = sessionId || (sessionKey && this.#sessions.get(sessionKey)) || sessionKey || "unknown";
        return short(id);
    }
    /** base is what every event says. */
    base(ctx, phase) {
        const session = this.#session(ctx);
        if (ctx.workspaceDir)
            this.#workspaces.set(session, ctx.workspaceDir);
        const agent = ctx.agentId || /^agent:([^:]+):/.exec(ctx.sessionKey ?? "")?.[1] || "main";
        const workspace = ctx.workspaceDir || this.#workspaces.get(session);
        return { host, agent: short(agent), session, phase, ...(workspace ? { workspace } : {}) };
    }
    async #report(e, wait = false) {
        if (this.#problem)
            return { action: "block", reason: "plugin_broken", message: `auditd's plugin is broken: ${this.#problem}`, questions: [] };
        try {
            return await this.#daemon.event(e, wait);
        }
        catch {
            return { action: "block", reason: "not_decided", message: unreachable, questions: [] };
        }
    }
    // Tool calls.
    /** policy decides a call before any other plugin's hook has seen it. */
    async policy(call, ctx) {
        try {
            const id = call.toolCallId ?? "";
            const wrapper = Object.hasOwn(wrappers, call.toolName) ? wrappers[call.toolName] : undefined;
            if (call.toolKind === "code_mode_exec")
                return block("Code Mode runs tools where auditd cannot see their results. Set tools.codeMode to false.");
            if (wrapper)
                return block(`Tool Search runs tools where auditd cannot see their results. Set ${wrapper} to false.`);
            const e = this.base(ctx, "before-tool");
            const o = await this.#report({ ...e, tool: call.toolName, params: call.params, ...(id ? { call_id: id } : {}) }, true);
            let params = call.params;
            if (o.action === "block" || o.action === "defer_to_human")
                return block(o.message + howToApprove(o));
            if (o.params !== undefined) {
                if (!isRecord(o.params))
                    return block("The daemon's answer holds no parameters.");
                params = o.params;
            }
            else if (o.action === "rewrite_and_continue")
                return block("The daemon's answer holds no parameters.");
            if (id)
                this.#decided.set(callKey(e.session, id), stable(params));
            return o.params === undefined ? undefined : { params };
        }
        catch {
            return block(unreachable);
        }
    }
    /** beforeCall is the last of the hooks: it stops a call that was not decided, or was changed since. */
    async beforeCall(call, ctx) {
        try {
            const key = callKey(this.base(ctx, "before-tool").session, call.toolCallId ?? "");
            const decided = call.toolCallId ? this.#decided.get(key) : undefined;
            if (decided === undefined)
                return await this.policy(call, ctx);
            this.#decided.delete(key);
            return decided === stable(call.params) ? undefined : block("Another plugin changed the arguments after auditd had decided.");
        }
        catch {
            return block(unreachable);
        }
    }
    /** result decides what the model reads of a call's result, error or not. */
    async result(event, ctx) {
        try {
            const { content, details } = event.result;
            const e = {
                ...this.base(event.cwd ? { workspaceDir: event.cwd, ...ctx } : ctx, "after-tool"), call_id: short(event.toolCallId), tool: event.toolName,
                params: event.args, result: details === undefined ? { content } : { content, details }, is_error: event.isError === true,
            };
            const result = applied(event.result, await this.#report(e));
            return result && { result };
        }
        catch {
            return { result: withheld(unreachable) };
        }
    }
    // What enters the context by itself.
    /** run decides whether a turn's prompt may go to the model. No hook can change it. */
    async run(event, ctx) {
        const stop = (message) => ({ outcome: "block", reason: "auditd", message: `[auditd] ${message}` });
        try {
            const outside = /<<<EXTERNAL_UNTRUSTED_CONTENT/.test(event.prompt);
            const kind = ctx.inputProvenance?.kind;
            const person = event.senderIsOwner === true && !outside && (kind === undefined || kind === "external_user") && !ctx.jobId && !/:subagent:|:cron:/.test(ctx.sessionKey ?? "");
            const e = { ...this.base(ctx, outside ? "webhook" : "prompt"), text: event.prompt, origin: short(ctx.channelId ?? event.channelId ?? ctx.trigger ?? "") };
            if (!outside)
                e.sender = person ? "owner" : short(event.senderId ?? ctx.senderId ?? kind ?? ctx.trigger ?? "unknown");
            // A refused prompt stays in the transcript, and the next turn would read it.
            const refused = [];
            for (const old of this.#refused.get(e.session) ?? []) {
                if (!passes(await this.#report(old), old))
                    refused.push(old);
            }
            this.#refused.set(e.session, refused);
            const keep = () => {
                if (refused.length < maxRefused)
                    this.#refused.set(e.session, [...refused, e]);
            };
            if (refused.length > 0) {
                keep();
                return stop(closed);
            }
            const o = await this.#report(e, true);
            if (passes(o, e))
                return undefined;
            keep();
            if (o.action === "allow" || o.action === "rewrite_and_continue") {
                return stop("The message holds content that must not reach the model as it is, and OpenClaw lets no plugin change it.");
            }
            return stop(o.message + howToApprove(o));
        }
        catch {
            return stop(unreachable);
        }
    }
    /** bootstrap replaces the workspace's files before they are put into the system prompt. */
    async bootstrap(event) {
        const { context } = event;
        const files = Array.isArray(context.bootstrapFiles) ? context.bootstrapFiles : [];
        const key = context.sessionKey ?? event.sessionKey;
        const ctx = { ...(key ? { sessionKey: key } : {}) };
        for (const name of ["sessionId", "agentId", "workspaceDir"]) {
            const v = context[name];
            if (typeof v === "string")
                ctx[name] = v;
        }
        await Promise.all(files.map(async (file) => {
            if (typeof file.content !== "string" || file.content === "")
                return;
            try {
                const o = await this.#report({ ...this.base(ctx, "bootstrap"), origin: file.path, text: file.content });
                if (o.action === "block" || o.action === "defer_to_human")
                    file.content = `[${file.name} was withheld by auditd] ${o.message}${howToApprove(o)}`;
                else if (o.text !== undefined)
                    file.content = o.text;
                else if (o.action !== "allow")
                    file.content = `[${file.name} was withheld by auditd]`;
            }
            catch {
                file.content = `[${file.name} was withheld by auditd] ${unreachable}`;
            }
        }));
    }
    /** systemPrompt is what auditd tells the model, in isolation. Without an answer the model is told nothing, and tools deny. */
    async systemPrompt(ctx) {
        try {
            const e = { ...this.base(ctx, "bootstrap"), origin: "system-prompt", text: "" };
            const o = await this.#report(e);
            if (o.action !== "allow" && o.action !== "rewrite_and_continue")
                return undefined;
            if (o.reason === "system_prompt")
                this.#isolates.set(e.agent ?? "", true);
            else
                this.#isolates.delete(e.agent ?? "");
            return o.text ? { appendSystemContext: o.text } : undefined;
        }
        catch {
            return undefined;
        }
    }
    /** isolated reports whether an agent's model is told about symbols: the tools for them are offered then. */
    isolated(ctx) {
        return this.#isolates.get(this.base(ctx, "bootstrap").agent ?? "") === true;
    }
    /** boundary reports that a session begins or ends. One that goes on from another is no new one. */
    async boundary(phase, event, ctx) {
        if (phase === "session-start" && event.resumedFrom)
            return;
        try {
            await this.#report(this.base({ ...event, ...ctx }, phase));
        }
        catch {
            // Without the news the session counts as untrusted.
        }
    }
    // What goes out.
    /** reply decides a reply with everything that it carries beside its text. */
    async reply(event, ctx) {
        try {
            const { text, ...rest } = event.payload;
            const base = { ...this.base(ctx, "message-out"), origin: short(ctx.channelId ?? "reply") };
            const beside = strings(rest).join("\n");
            if (beside !== "") {
                const o = await this.#report({ ...base, text: beside }, true);
                if (o.action !== "allow" || o.text !== undefined)
                    return { cancel: true, reason: `auditd: ${o.message}${howToApprove(o)}` };
            }
            if (typeof text !== "string" || text === "")
                return { payload: event.payload };
            const said = await this.#outgoing({ ...base, text });
            if (typeof said !== "string")
                return { cancel: true, reason: said.why };
            this.#said.set(saidKey(ctx, said), true);
            return { payload: { ...event.payload, text: said } };
        }
        catch {
            return { cancel: true, reason: unreachable };
        }
    }
    /** message decides a message's text. A reply that was just decided is not resolved twice. */
    async message(event, ctx) {
        try {
            if (typeof event.content !== "string")
                return { cancel: true, cancelReason: "auditd: the message has no text" };
            if (event.content === "")
                return { content: "" };
            if (this.#said.delete(saidKey(ctx, event.content)))
                return { content: event.content };
            const said = await this.#outgoing({ ...this.base(ctx, "message-out"), origin: short(`${ctx.channelId ?? "channel"}:${event.to}`), text: event.content });
            return typeof said === "string" ? { content: said } : { cancel: true, cancelReason: said.why };
        }
        catch {
            return { cancel: true, cancelReason: unreachable };
        }
    }
    /** install decides whether a skill or a plugin may be put in. */
    async install(event, ctx) {
        try {
            const params = {
                action: "install", type: event.targetType, name: event.targetName, source: event.sourcePath, origin: event.origin, request: event.request,
                findings: event.builtinScan?.findings,
            };
            const o = await this.#report({ ...this.base(ctx, "before-tool"), tool: event.targetType === "skill" ? "install_skill" : "install_plugin", params }, true);
            if (o.action === "allow" && o.params === undefined)
                return undefined;
            return { block: true, blockReason: `[auditd] ${o.message}${howToApprove(o)}` };
        }
        catch {
            return { block: true, blockReason: unreachable };
        }
    }
    async #outgoing(e) {
        const o = await this.#report(e, true);
        if (o.action === "allow")
            return o.text ?? e.text;
        if (o.action === "rewrite_and_continue" && o.text !== undefined)
            return o.text;
        return { why: `auditd: ${o.message}${howToApprove(o)}` };
    }
}
function passes(o, e) {
    return o.action === "allow" && (o.text === undefined || o.text === e.text);
}
function block(blockReason) {
    return { block: true, blockReason: `[auditd] ${blockReason}` };
}
/** howToApprove tells the agent what a person can do about a deferred call. */
export function howToApprove(o) {
    const ids = o.questions.filter((id) => id !== "");
    if (o.action !== "defer_to_human" || ids.length === 0)
        return "";
    return ` The owner can allow it with: ${ids.map((id) => `auditd approve ${id}`).join(" and ")}. Then repeat exactly the same call.`;
}
function callKey(session, id) {
    return `${session}\0${id}`;
}
function saidKey(ctx, text) {
    return createHash("sha256").update(`${ctx.channelId ?? ""}\0${text}`).digest("hex");
}
/** short bounds an identifier; a longer one goes by its digest. */
function short(id) {
    return Buffer.byteLength(id) <= maxName ? id : `sha256:${createHash("sha256").update(id).digest("hex")}`;
}
/** stable writes a value with sorted names, so that equal ones compare equal. */
export function stable(v) {
    if (Array.isArray(v))
        return `[${v.map(stable).join(",")}]`;
    if (isRecord(v)) {
        const names = Object.keys(v).filter((n) => v[n] !== undefined).sort();
        return `{${names.map((n) => `${JSON.stringify(n)}:${stable(v[n])}`).join(",")}}`;
    }
    return JSON.stringify(v) ?? "null";
}
/** strings are the texts in a value that could say or name something: more than one plain word. */
function strings(v, into = [], depth = 0) {
    if (depth > 64)
        throw new Error("nested too deep");
    if (typeof v === "string") {
        if (!/^[\w.-]{0,24}$/.test(v))
            into.push(v);
    }
    else if (Array.isArray(v))
        for (const x of v)
            strings(x, into, depth + 1);
    else if (isRecord(v))
        for (const x of Object.values(v))
            strings(x, into, depth + 1);
    return into;
}
