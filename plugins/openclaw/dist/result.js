// A tool's result in the shape that the host takes. What the host refuses it
// replaces by an error of its own, and what is longer than a block may be it
// cuts: so texts are split, and details that are too large are left out.
import { isRecord } from "./wire.js";
/** Limits of the host, as of 2026.9. */
const maxText = 100_000;
const maxBlocks = 200;
const maxDetails = 100_000;
/** withheld is what the model reads in place of a result. */
export function withheld(message) {
    return { content: [{ type: "text", text: `[withheld by auditd] ${message}` }], details: { status: "error", withheldBy: "auditd" } };
}
/** applied is the result that the model may read, or undefined when the one that it has may stay. */
export function applied(result, o) {
    const changed = o.result === undefined ? undefined : shaped(result, o.result);
    switch (o.action) {
        case "allow":
            return o.result === undefined ? undefined : (changed ?? withheld("The result could not be put into the host's shape."));
        case "rewrite_and_continue":
            return changed ?? withheld("The result could not be put into the host's shape.");
        default:
            return changed ?? withheld(o.message);
    }
}
/** shaped returns value as a result of the host's; undefined when it is none. */
export function shaped(original, value) {
    if (!isRecord(value) || !Array.isArray(value["content"]))
        return undefined;
    const content = [];
    for (const block of value["content"]) {
        if (!isRecord(block) || typeof block["type"] !== "string")
            return undefined;
        if (block["type"] !== "text") {
            content.push(block);
            continue;
        }
        const text = block["text"];
        if (typeof text !== "string")
            return undefined;
        for (const part of split(text))
            content.push({ ...block, type: "text", text: part });
    }
    if (content.length > maxBlocks)
        return undefined;
    const { details } = value;
    const out = { ...original, content };
    delete out.details;
    if (details !== undefined) {
        out.details = Buffer.byteLength(JSON.stringify(details)) <= maxDetails ? details : { leftOut: "too large", by: "auditd" };
    }
    return out;
}
/** split cuts text into parts that a block can hold, never inside a character. */
export function split(text) {
    if (text.length <= maxText)
        return [text];
    const parts = [];
    for (let at = 0; at < text.length;) {
        let end = Math.min(at + maxText, text.length);
        const last = text.charCodeAt(end - 1);
        if (end < text.length && last >= 0xd800 && last <= 0xdbff)
            end--;
        parts.push(text.slice(at, end));
        at = end;
    }
    return parts;
}
