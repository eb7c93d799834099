// What the plugin and the daemon say to each other: schema's event and outcome.
// Decoding is strict, and the golden vectors in schema/testdata hold both sides
// to the same words.
export const phases = [
    "session-start", "bootstrap", "prompt", "before-tool", "after-tool", "memory", "webhook", "message-out", "inspect", "session-end",
];
export const actions = ["block", "defer_to_human", "rewrite_and_continue", "allow"];
/** WireError names the field that is wrong and never quotes what it holds. */
export class WireError extends Error {
    field;
    constructor(field, problem) {
        super(`${field} ${problem}`);
        this.field = field;
    }
}
export function isRecord(v) {
    return typeof v === "object" && v !== null && !Array.isArray(v);
}
const eventKinds = {
    host: "string", agent: "string", session: "string", call_id: "string", phase: "string", tool: "string", params: "any", result: "any",
    is_error: "boolean", text: "string", origin: "string", sender: "string", workspace: "string", ticket: "string", deadline_ms: "number",
};
const outcomeKinds = {
    action: "string", reason: "string", message: "string", params: "any", result: "any", text: "string", ticket: "string", decisions: "array",
};
function fields(text, kinds) {
    let doc;
    try {
        doc = JSON.parse(text);
    }
    catch {
        throw new WireError("document", "is not JSON");
    }
    if (!isRecord(doc))
        throw new WireError("document", "is not an object");
    for (const [name, value] of Object.entries(doc)) {
        const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
        if (kind === undefined)
            throw new WireError(name, "is unknown");
        const is = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
        if (kind !== "any" && kind !== is)
            throw new WireError(name, `is ${is}, not ${kind}`);
    }
    return doc;
}
/** decodeEvent reads an event as the daemon would; encodeEvent goes through it, so what is sent is valid. */
export function decodeEvent(text) {
    const doc = fields(text, eventKinds);
    const phase = doc["phase"];
    if (typeof phase !== "string" || !phases.some((p) => p === phase))
        throw new WireError("phase", "is missing or unknown");
    if (!doc["host"] || !doc["session"])
        throw new WireError("host, session", "must both be set");
    if ((phase === "before-tool" || phase === "after-tool") && !doc["tool"])
        throw new WireError("tool", "is missing");
    const deadline = doc["deadline_ms"];
    if (typeof deadline === "number" && !(Number.isSafeInteger(deadline) && deadline >= 0))
        throw new WireError("deadline_ms", "is out of range");
    return doc;
}
export function encodeEvent(e) {
    const text = JSON.stringify(e);
    decodeEvent(text);
    return text;
}
/** decodeOutcome reads the daemon's answer. Whatever is not exactly one throws, and the caller denies. */
export function decodeOutcome(text) {
    const doc = fields(text, outcomeKinds);
    const { action, reason, message } = doc;
    if (typeof action !== "string" || !actions.some((a) => a === action))
        throw new WireError("action", "is missing or unknown");
    if (typeof reason !== "string" || reason === "")
        throw new WireError("reason", "is missing");
    if (typeof message !== "string")
        throw new WireError("message", "is missing");
    const questions = [];
    for (const d of doc["decisions"] ?? []) {
        if (!isRecord(d))
            throw new WireError("decisions", "holds what is no decision");
        const id = d["question_id"];
        if (d["action"] === "defer_to_human")
            questions.push(typeof id === "string" ? id : "");
    }
    const out = { action: action, reason, message, questions };
    if (doc["params"] !== undefined)
        out.params = doc["params"];
    if (doc["result"] !== undefined)
        out.result = doc["result"];
    if (typeof doc["text"] === "string")
        out.text = doc["text"];
    if (typeof doc["ticket"] === "string")
        out.ticket = doc["ticket"];
    return out;
}
