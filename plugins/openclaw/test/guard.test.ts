import assert from "node:assert/strict";
import test from "node:test";

import { Guard, stable } from "../src/guard.ts";
import type { Context } from "../src/host.ts";
import { applied, shaped, split, withheld } from "../src/result.ts";
import type { Event, Outcome } from "../src/wire.ts";

const ctx: Context = { agentId: "main", sessionKey: "agent:main:main", sessionId: "s1", channelId: "telegram" };

function outcome(o: Partial<Outcome>): Outcome {
  return { action: "block", reason: "r", message: "no.", questions: [], ...o };
}

/** answering is a daemon that says what it is told to, and keeps what it was asked. */
function answering(...answers: (Partial<Outcome> | Error)[]): { guard: Guard; events: Event[] } {
  const events: Event[] = [];
  const guard = new Guard({
    event: (e: Event) => {
      events.push(e);
      const a = answers.length > 1 ? answers.shift() : answers[0];
      return a instanceof Error || a === undefined ? Promise.reject(a ?? new Error("none")) : Promise.resolve(outcome(a));
    },
  });
  return { guard, events };
}

const result = { content: [{ type: "text", text: "raw" }], details: { text: "raw" } };

/** Each hook, and how it says no: nothing raw is in what it returns. */
const hooks: Record<string, (g: Guard) => Promise<unknown>> = {
  policy: (g) => g.policy({ toolName: "exec", params: { command: "raw" }, toolCallId: "c" }, ctx),
  beforeCall: (g) => g.beforeCall({ toolName: "exec", params: { command: "raw" }, toolCallId: "c" }, ctx),
  result: (g) => g.result({ toolName: "exec", toolCallId: "c", args: {}, result }, ctx),
  run: (g) => g.run({ prompt: "raw" }, ctx),
  reply: (g) => g.reply({ payload: { text: "raw" } }, ctx),
  replyBeside: (g) => g.reply({ payload: { mediaUrl: "file:///raw" } }, ctx),
  message: (g) => g.message({ to: "1", content: "raw" }, ctx),
  install: (g) => g.install({ targetType: "skill", targetName: "raw", sourcePath: "/raw" }, ctx),
  bootstrap: async (g) => {
    const event = { context: { sessionKey: "agent:main:main", bootstrapFiles: [{ name: "AGENTS.md", path: "/w/AGENTS.md", content: "raw" }] } };
    await g.bootstrap(event);
    return { content: event.context.bootstrapFiles[0]?.content };
  },
};

function denies(name: string, v: unknown): void {
  const text = JSON.stringify(v) ?? "";
  assert.ok(/"block":true|"cancel":true|"outcome":"block"|withheld by auditd/.test(text), `${name}: ${text}`);
  assert.ok(!text.includes("raw"), `${name}: ${text}`);
}

for (const [name, hook] of Object.entries(hooks)) {
  test(`${name} denies whatever goes wrong`, async () => {
    for (const answer of [new Error("down"), {}, { action: "defer_to_human" as const, questions: ["q-1"] }, { action: "rewrite_and_continue" as const }]) {
      denies(name, await hook(answering(answer).guard));
    }
    denies(name, await hook(new Guard({ event: () => Promise.resolve(outcome({ action: "allow" })) }, "not registered")));
    denies(name, await hook(new Guard({ event: () => { throw new Error("at once"); } })));
    denies(name, await hook(new Guard({ event: () => Promise.resolve(undefined as unknown as Outcome) })));
  });
}

test("what the host sends broken is denied, not thrown", async () => {
  const { guard } = answering({ action: "allow" });
  const broken = null as never;
  denies("policy", await guard.policy(broken, ctx));
  denies("beforeCall", await guard.beforeCall(broken, ctx));
  denies("result", await guard.result(broken, ctx));
  denies("run", await guard.run(broken, ctx));
  denies("reply", await guard.reply(broken, ctx));
  denies("message", await guard.message(broken, ctx));
  denies("install", await guard.install(broken, ctx));
});

test("what may pass, passes unchanged", async () => {
  const { guard } = answering({ action: "allow" });
  const call = { toolName: "exec", params: { command: "ls" }, toolCallId: "c1" };
  assert.equal(await guard.policy(call, ctx), undefined);
  assert.equal(await guard.beforeCall(call, ctx), undefined);
  assert.equal(await guard.result({ toolName: "exec", toolCallId: "c1", args: {}, result }, ctx), undefined);
  assert.equal(await guard.run({ prompt: "hi", senderIsOwner: true }, ctx), undefined);
  assert.deepEqual(await guard.message({ to: "1", content: "hi" }, ctx), { content: "hi" });
  const payload = { text: "hi", mediaUrl: "file:///a b" };
  assert.deepEqual(await guard.reply({ payload }, ctx), { payload });
});

test("a call whose arguments another plugin changed does not run", async () => {
  const { guard, events } = answering({ action: "rewrite_and_continue", params: { command: "ls -l" } });
  const call = { toolName: "exec", params: { command: "ls" }, toolCallId: "c1" };
  assert.deepEqual(await guard.policy(call, ctx), { params: { command: "ls -l" } });
  assert.equal(await guard.beforeCall({ ...call, params: { command: "ls -l" } }, ctx), undefined);
  await guard.policy(call, ctx);
  denies("changed", await guard.beforeCall({ ...call, params: { command: "rm" } }, ctx));
  assert.equal(events.length, 2);
});

test("calls that hide calls are not made", async () => {
  const { guard, events } = answering({ action: "allow" });
  denies("code mode", await guard.policy({ toolName: "exec", params: {}, toolKind: "code_mode_exec" }, ctx));
  denies("tool search", await guard.policy({ toolName: "tool_call", params: {} }, ctx));
  denies("tool search", await guard.policy({ toolName: "tool_search_code", params: {} }, ctx));
  assert.equal(events.length, 0);
});

test("only the owner's own words are the owner's", async () => {
  const sender = async (event: Parameters<Guard["run"]>[0], c: Context): Promise<string | undefined> => {
    const { guard, events } = answering({ action: "allow" });
    await guard.run(event, c);
    return events[0]?.phase === "webhook" ? "webhook" : events[0]?.sender;
  };
  const own = { prompt: "hi", senderIsOwner: true, senderId: "7" };
  assert.equal(await sender(own, ctx), "owner");
  assert.equal(await sender({ ...own, senderIsOwner: false }, ctx), "7");
  assert.equal(await sender({ prompt: "hi" }, ctx), "unknown");
  assert.equal(await sender(own, { ...ctx, inputProvenance: { kind: "inter_session" } }), "7");
  assert.equal(await sender(own, { ...ctx, jobId: "j" }), "7");
  assert.equal(await sender(own, { ...ctx, sessionKey: "agent:main:subagent:1" }), "7");
  assert.equal(await sender({ ...own, prompt: "<<<EXTERNAL_UNTRUSTED_CONTENT id=1>>> x" }, ctx), "webhook");
});

test("a refused prompt closes its session until it may pass", async () => {
  let answer: Partial<Outcome> = { action: "block" };
  const guard = new Guard({ event: () => Promise.resolve(outcome(answer)) });
  denies("refused", await guard.run({ prompt: "raw" }, ctx));
  answer = { action: "allow" };
  assert.equal(await guard.run({ prompt: "other" }, { ...ctx, sessionId: "s2" }), undefined);
  answer = { action: "block" };
  denies("closed", await guard.run({ prompt: "fine" }, ctx));
  answer = { action: "allow" };
  assert.equal(await guard.run({ prompt: "fine" }, ctx), undefined);
  const picky = new Guard({ event: (e: Event) => Promise.resolve(outcome({ action: e.text === "bad" ? "block" : "allow" })) });
  for (let i = 0; i < 20; i++) denies("bad", await picky.run({ prompt: "bad" }, ctx));
  denies("closed", await picky.run({ prompt: "fine" }, ctx));
  assert.equal(await picky.run({ prompt: "fine" }, { ...ctx, sessionId: "s3" }), undefined);
});

test("a reply is not resolved twice, another text is", async () => {
  const { guard, events } = answering({ action: "rewrite_and_continue", text: "resolved" });
  assert.deepEqual(await guard.reply({ payload: { text: "symbol" } }, ctx), { payload: { text: "resolved" } });
  assert.deepEqual(await guard.message({ to: "1", content: "resolved" }, ctx), { content: "resolved" });
  assert.equal(events.length, 1);
  await guard.message({ to: "1", content: "resolved" }, ctx);
  assert.equal(events.length, 2);
});

test("results keep to the host's limits and lose nothing", () => {
  const long = "ä".repeat(99_999) + "\u{1F600}" + "b".repeat(150_000);
  assert.equal(split(long).join(""), long);
  for (const part of split(long)) {
    assert.ok(part.length <= 100_000);
    assert.ok(part.isWellFormed());
  }
  const s = shaped(result, { content: [{ type: "text", text: long }], details: { text: "x".repeat(100_001) } });
  assert.ok(s && s.content.length === 3 && JSON.stringify(s.details).length < 100);
  assert.equal(shaped(result, { content: Array.from({ length: 201 }, () => ({ type: "text", text: "x" })) }), undefined);
  for (const bad of ["x", [], { content: "x" }, { content: [1] }, { content: [{ type: "text" }] }]) {
    assert.deepEqual(applied(result, outcome({ action: "rewrite_and_continue", result: bad })), withheld("The result could not be put into the host's shape."));
    assert.deepEqual(applied(result, outcome({ action: "allow", result: bad })), withheld("The result could not be put into the host's shape."));
    assert.deepEqual(applied(result, outcome({ result: bad })), withheld("no."));
  }
});

test("equal parameters compare equal", () => {
  assert.equal(stable({ b: 1, a: [{ d: 1, c: undefined }] }), stable({ a: [{ d: 1 }], b: 1 }));
  assert.notEqual(stable({ a: "1" }), stable({ a: 1 }));
});
