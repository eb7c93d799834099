// The tools of isolation. What they do is done by the daemon; the model is
// offered them while auditd tells it about symbols.

import type { Daemon } from "./daemon.ts";
import type { Guard } from "./guard.ts";
import { howToApprove } from "./guard.ts";
import type { Context, Tool, ToolResult } from "./host.ts";
import { decodeOutcome, isRecord, type Fields } from "./wire.ts";

export const toolNames = ["inspect_symbol", "policy_list", "policy_add", "policy_del"];

const text = (description: string) => ({ type: "string", description });
const object = (properties: Fields, required: string[]) => ({ type: "object", properties, required, additionalProperties: false });

const kind = { type: "string", enum: ["trust", "usage"], description: "trust: what comes back from a source. usage: what may go into a tool." };

export function tools(daemon: () => Pick<Daemon, "call"> | undefined, guard: () => Guard, ctx: Context): Tool[] {
  const tool = (name: string, path: string, description: string, parameters: unknown, body: (p: Fields) => Fields): Tool => ({
    name, label: name, description, parameters,
    async execute(callId, params): Promise<ToolResult> {
      const said = (text: string, status: string): ToolResult => ({ content: [{ type: "text", text }], details: { status } });
      try {
        const d = daemon();
        if (!d) return said("[auditd] The plugin is broken.", "error");
        const { host, agent, session } = guard().base(ctx, "inspect");
        const o = decodeOutcome(await d.call("POST", path, JSON.stringify({ host, agent, session, call_id: callId, ...body(isRecord(params) ? params : {}) })));
        if (o.action === "block" || o.action === "defer_to_human") return said(`[auditd] ${o.message}${howToApprove(o)}`, "error");
        return said(o.text ?? (o.result === undefined ? o.message : typeof o.result === "string" ? o.result : JSON.stringify(o.result)), "completed");
      } catch {
        return said("[auditd] This could not be done.", "error");
      }
    },
  });
  return [
    tool("inspect_symbol", "/v1/dualview/inspect", "Ask a question about what symbols stand for. The answer comes from a model that sees the content and can do nothing else.",
      object({ symbols: { type: "array", items: { type: "string" }, minItems: 1, description: "The symbols, whole." }, question: text("What you want to know."), schema: { type: "object", description: "JSON Schema of the answer, if it needs one." } }, ["symbols", "question"]),
      (p) => ({ symbols: p["symbols"], question: p["question"], ...(p["schema"] === undefined ? {} : { schema: p["schema"] }) })),
    tool("policy_list", "/v1/dualview/policy", "List the rules about what is trusted and what needs a person.", object({ kind }, ["kind"]), (p) => ({ op: "list", kind: p["kind"] })),
    tool("policy_add", "/v1/dualview/policy", "Propose a rule. The owner decides.", object({ kind, rule: text("The rule."), why: text("Why it is needed.") }, ["kind", "rule"]),
      (p) => ({ op: "add", kind: p["kind"], rule: p["rule"], ...(p["why"] === undefined ? {} : { why: p["why"] }) })),
    tool("policy_del", "/v1/dualview/policy", "Propose to take a rule away. The owner decides.", object({ kind, id: text("The rule's id."), why: text("Why.") }, ["kind", "id"]),
      (p) => ({ op: "del", kind: p["kind"], id: p["id"], ...(p["why"] === undefined ? {} : { why: p["why"] }) })),
  ];
}
