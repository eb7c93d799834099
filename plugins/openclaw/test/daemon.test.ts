import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { Daemon, readSettings } from "../src/daemon.ts";
import plugin from "../src/index.ts";
import { Reporter } from "../src/report.ts";

const dir = mkdtempSync(join(tmpdir(), "auditd-plugin-"));
const tokenFile = join(dir, "hook.token");
writeFileSync(tokenFile, "ah_x\n");
test.after(() => rmSync(dir, { recursive: true }));

const event = { host: "openclaw", session: "s", phase: "prompt" as const, text: "x" };
const allow = JSON.stringify({ action: "allow", reason: "r", message: "m" });

async function served(handler: Parameters<typeof createServer>[1], at: string | number, f: (d: Daemon, s: Server) => Promise<void>, more: object = {}): Promise<void> {
  const s = createServer(handler);
  await new Promise<void>((resolve) => s.listen(at, typeof at === "number" ? "127.0.0.1" : undefined, resolve));
  const where = typeof at === "number" ? { url: `http://127.0.0.1:${(s.address() as AddressInfo).port}` } : { socket: at };
  const d = new Daemon(readSettings({ ...where, tokenFile, timeoutMs: 2000, ...more }));
  try {
    await f(d, s);
  } finally {
    d.close();
    s.closeAllConnections();
    await new Promise((resolve) => s.close(resolve));
  }
}

for (const at of [0, join(dir, "sock")]) {
  test(`asks over ${at === 0 ? "the loopback interface" : "the socket"} with the token`, async () => {
    const seen: string[] = [];
    await served((q, r) => {
      seen.push(`${q.method} ${q.url} ${q.headers.authorization}`);
      r.end(allow);
    }, at, async (d) => {
      assert.equal((await d.event(event)).action, "allow");
      assert.deepEqual(seen, ["POST /v1/events Bearer ah_x"]);
    });
  });
}

test("whatever is no answer throws", async () => {
  let how = "";
  await served((_, r) => {
    switch (how) {
      case "500": case "401": case "503": case "302":
        r.writeHead(Number(how), { location: "/elsewhere" });
        return void r.end(allow);
      case "garbage": return void r.end("<html>OK</html>");
      case "empty": return void r.end();
      case "slow": return;
      case "endless": {
        r.writeHead(200);
        const more = () => r.write("x".repeat(1 << 20), (err) => err ? undefined : more());
        return void more();
      }
      case "killed":
        r.writeHead(200, { "content-length": "100" });
        r.write('{"action":"allow"');
        return void setImmediate(() => r.destroy());
    }
  }, 0, async (d) => {
    for (how of ["500", "401", "503", "302", "garbage", "empty", "slow", "killed", "endless"]) await assert.rejects(d.event(event), undefined, how);
  }, { timeoutMs: 1000 });
  const gone = new Daemon(readSettings({ url: "http://127.0.0.1:1", tokenFile }));
  await assert.rejects(gone.event(event));
  const without = new Daemon(readSettings({ url: "http://127.0.0.1:1", tokenFile: join(dir, "none") }));
  await assert.rejects(without.event(event));
});

test("an approved call is asked about once more with its ticket", async () => {
  const deferred = JSON.stringify({ action: "defer_to_human", reason: "r", message: "m", ticket: "t-1", decisions: [{ action: "defer_to_human", question_id: "q-1" }] });
  let said = "";
  const tickets: unknown[] = [];
  await served((q, r) => {
    let body = "";
    q.on("data", (part: Buffer) => (body += part.toString()));
    q.on("end", () => {
      if (q.url === "/v1/approvals/q-1") return void r.end(JSON.stringify({ answer: said }));
      const ticket = (JSON.parse(body) as { ticket?: string }).ticket;
      tickets.push(ticket);
      r.end(ticket === "t-1" ? allow : deferred);
    });
  }, 0, async (d) => {
    for (said of ["", "denied", "expired"]) assert.equal((await d.event(event, true)).action, "defer_to_human", said);
    said = "approved";
    assert.equal((await d.event(event)).action, "allow");
    assert.deepEqual(tickets, [undefined, undefined, undefined, undefined, "t-1"]);
  });
});

test("nothing leaves this machine", () => {
  for (const url of ["http://example.com", "https://127.0.0.1", "http://127.0.0.1.example.com", "http://0.0.0.0", "ftp://localhost", "nonsense"]) {
    assert.throws(() => readSettings({ url, tokenFile }), undefined, url);
  }
  for (const bad of [undefined, null, [], {}, { tokenFile: 1 }, { tokenFile, timeoutMs: 0 }, { tokenFile, timeoutMs: "1" }, { tokenFile, waitMs: -1 }]) {
    assert.throws(() => readSettings(bad));
  }
  assert.equal(readSettings({ tokenFile, url: "http://[::1]:7841" }).waitMs, 0);
});

test("register never throws: what it could register denies", async () => {
  type Policy = { evaluate(event: unknown, ctx: unknown): Promise<{ block?: boolean; blockReason?: string }> };
  let policy: Policy | undefined;
  const api = { pluginConfig: { url: "http://example.com" }, registerTrustedToolPolicy: (p: Policy) => (policy = p), on: () => { throw new Error("changed"); } };
  plugin.register(api as never);
  const o = await policy?.evaluate({ toolName: "exec", params: {} }, {});
  assert.ok(o?.block && o.blockReason?.includes("loopback") && o.blockReason.includes("before_tool_call could not be registered"), JSON.stringify(o));
});

test("a daemon of another protocol is noticed", async () => {
  const reports: { problems?: string[]; ends?: boolean }[] = [];
  let theirs: unknown = 1;
  const r = new Reporter({ call: (_m, _p, body) => { reports.push(JSON.parse(body ?? "{}")); return Promise.resolve(JSON.stringify({ protocol: theirs })); } }, "2026.9.6", () => ["x".repeat(400)]);
  await r.start();
  assert.equal(r.mismatch, "");
  for (theirs of [2, undefined]) {
    await r.beat(false);
    assert.ok(r.mismatch !== "");
  }
  await r.stop();
  assert.ok(reports.at(-1)?.ends === true && (reports[0]?.problems?.[0]?.length ?? 999) <= 300);
});
