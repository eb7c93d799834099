import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { decodeEvent, decodeOutcome, encodeEvent, WireError } from "../src/wire.ts";

interface Vector {
  name: string;
  doc: string;
  valid: boolean;
  field?: string;
}

function vectors(name: string): Vector[] {
  const list = JSON.parse(readFileSync(new URL(`../../../schema/testdata/vectors/${name}.json`, import.meta.url), "utf8")) as Vector[];
  assert.ok(list.length > 0);
  return list;
}

for (const [name, decode] of [["event", decodeEvent], ["outcome", decodeOutcome]] as const) {
  for (const v of vectors(name)) {
    test(`${name}: ${v.name}`, () => {
      if (v.valid) {
        decode(v.doc);
        return;
      }
      assert.throws(() => decode(v.doc), (err) => err instanceof WireError && err.field === v.field);
    });
  }
}

test("an event is checked before it is sent", () => {
  assert.throws(() => encodeEvent({ host: "openclaw", session: "", phase: "prompt" }), WireError);
  assert.throws(() => encodeEvent({ host: "openclaw", session: "s", phase: "before-tool" }), WireError);
  assert.equal(decodeEvent(encodeEvent({ host: "openclaw", session: "s", phase: "prompt", text: "x" })).text, "x");
});

test("what is no outcome throws", () => {
  const good = { action: "allow", reason: "r", message: "m" };
  for (const bad of ["", "null", "[]", "<html>", '"allow"', "{}", '{"action":"allow"}', JSON.stringify({ ...good, reason: "" }), JSON.stringify({ ...good, text: 1 }),
    JSON.stringify({ ...good, decisions: [1] }), JSON.stringify({ ...good, decisions: {} }), JSON.stringify({ ...good, action: "ALLOW" }), JSON.stringify(good).slice(0, -1)]) {
    assert.throws(() => decodeOutcome(bad), WireError, bad);
  }
  assert.equal(decodeOutcome(JSON.stringify(good)).action, "allow");
});
