package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/escalation"
	"example.org/auditd/schema"
)

func mustParse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte("version: 1\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

func facts(change func(*Facts)) Facts {
	f := Facts{
		Flow: &schema.Flow{
			Payload: "npm publish --access public", Surface: schema.Capability,
			Source:  schema.Source{Kind: schema.SourceAgent, Trust: schema.Untrusted},
			Sink:    schema.Sink{Kind: schema.SinkExec, Tool: "exec", Destination: "https://status.example.com/api", ID: "/ws/a.txt"},
			Session: schema.Session{Agent: "openclaw:main", Workspace: "/ws"},
		},
		Precheck: &schema.Precheck{Signals: []schema.Signal{{Code: schema.CredSecret, Rule: "aws-key"}}},
		Now:      day("2027-01-10"),
	}
	if change != nil {
		change(&f)
	}
	return f
}

func TestDefault(t *testing.T) {
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if p.Thresholds() != escalation.Default() || p.NoArbiter() != schema.DeferToHuman || p.Mode("x:y") != schema.ModeAudit || p.Digest() == "" {
		t.Errorf("default policy %+v", p.file)
	}
	if m, err := p.Decide(facts(nil)); m.Matched || err != nil {
		t.Errorf("a rule for everything: %+v %v", m, err)
	}
	leaves := func(kind schema.SinkKind, codes ...schema.Code) Match {
		t.Helper()
		f := facts(nil)
		f.Flow = &schema.Flow{Payload: "x", Source: schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived}, Sink: schema.Sink{Kind: kind}}
		f.Precheck = new(schema.Precheck)
		for _, c := range codes {
			f.Precheck.Signals = append(f.Precheck.Signals, schema.Signal{Code: c})
		}
		m, err := p.Decide(f)
		if err != nil {
			t.Error(err)
		}
		return m
	}
	for _, kind := range []schema.SinkKind{schema.SinkWeb, schema.SinkExec, schema.SinkMessage, schema.SinkTool, schema.SinkPayment} {
		if m := leaves(kind, schema.CredSecret, schema.ExternalSink); m.Action != schema.DeferToHuman || m.Rule != "secret-leaves" {
			t.Errorf("a secret that leaves by %s: %+v", kind, m)
		}
		if m := leaves(kind, schema.ExternalSink); m.Matched {
			t.Errorf("nothing secret by %s: %+v", kind, m)
		}
		if m := leaves(kind, schema.CredSecret); m.Matched {
			t.Errorf("a secret that stays, in %s: %+v", kind, m)
		}
	}
	if m := leaves(schema.SinkReasoning, schema.CredSecret, schema.ExternalSink); m.Matched {
		t.Errorf("a page that is read: %+v", m)
	}
}

// TestDefaultExamples turns the comments of the embedded file into settings:
// what it shows must work.
func TestDefaultExamples(t *testing.T) {
	var b strings.Builder
	for line := range strings.Lines(string(defaultFile)) {
		if rest, ok := strings.CutPrefix(line, "# "); ok && (strings.Contains(rest, ": ") || strings.HasSuffix(strings.TrimSpace(rest), ":")) && !strings.ContainsAny(rest[:1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !strings.HasPrefix(rest, "derived") && !strings.HasPrefix(rest, "audit") && !strings.HasPrefix(rest, "change") {
			line = rest
		}
		b.WriteString(line)
	}
	p, err := Parse([]byte(b.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if len(p.file.Rules) != 4 || len(p.file.Suppressions) != 1 || len(p.file.Trust) != 2 || len(p.file.Known.Domains) != 1 {
		t.Errorf("examples %+v", p.file)
	}
}

func TestRules(t *testing.T) {
	p := mustParse(t, `
rules:
  - {name: never-publish, when: 'sink.kind == "exec" && payload.contains("npm publish")', then: defer_to_human, reason: mine to do}
  - {name: status, when: 'sink.tool == "web_fetch" && sink.host == "status.example.com"', then: allow}
  - {name: secrets, when: '"CRED_SECRET" in precheck.codes && sink.kind == "message"', then: block}
  - {name: old, when: 'sink.tool == "old"', then: allow, expires: 2027-01-09}
  - {name: today, when: 'sink.tool == "today"', then: allow, expires: 2027-01-10}
  - {name: risky, when: 'report.risk > 0.5 && "side_effect" in report.residual', then: block}
`)
	tool := func(name string) func(*Facts) {
		return func(f *Facts) { f.Flow.Payload = "x"; f.Flow.Sink.Tool = name }
	}
	report := func(risk float64) func(*Facts) {
		return func(f *Facts) {
			f.Report = &schema.Report{Risk: risk, ResidualRiskTypes: []schema.ResidualRisk{schema.ResidualSideEffect}}
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		rule   string
		action schema.Action
	}{
		{"publish", nil, "never-publish", schema.DeferToHuman},
		{"another command", tool("exec"), "", 0},
		{"status page", tool("web_fetch"), "status", schema.Allow},
		{"status page look-alike", func(f *Facts) {
			tool("web_fetch")(f)
			f.Flow.Sink.Destination = "https://status.example.com@evil.example/"
		}, "", 0},
		{"secret in a message", func(f *Facts) { tool("x")(f); f.Flow.Sink.Kind = schema.SinkMessage }, "secrets", schema.Block},
		{"expired yesterday", tool("old"), "", 0},
		{"last day", tool("today"), "today", schema.Allow},
		{"report", report(.6), "risky", schema.Block},
		{"report below", report(.5), "", 0},
	} {
		m, err := p.Decide(facts(tt.change))
		if err != nil || m.Rule != tt.rule || m.Matched != (tt.rule != "") || m.Matched && m.Action != tt.action || m.Matched && m.Late != (tt.rule == "risky") {
			t.Errorf("%s: %+v %v", tt.name, m, err)
		}
	}
	if _, err := p.Decide(Facts{}); err == nil {
		t.Error("no facts, no error")
	}
}

// TestRuleThatCannotBeEvaluated: an attacker who makes a rule fail must not
// get past it.
func TestRuleThatCannotBeEvaluated(t *testing.T) {
	for name, when := range map[string]string{
		"index":    `sink.permissions[7] == "x"`,
		"cost":     `payload.matches("(a|b|c|d|e|f|g|h)*x(a|b|c|d|e|f|g|h)*y(a|b|c|d)*z") || payload.matches("(a|b|c|d|e|f|g|h)*q(a|b|c|d|e|f|g|h)*q(a|b|c|d)*q")`,
		"division": `1 / (payload_bytes - payload_bytes) == 1`,
	} {
		p := mustParse(t, "rules: [{name: r, when: '"+when+"', then: block}]")
		m, err := p.Decide(facts(func(f *Facts) { f.Flow.Payload = strings.Repeat("abcdefgh", 1<<17) }))
		if err == nil || m.Matched {
			t.Errorf("%s: %+v, error %v", name, m, err)
		}
		if err != nil && strings.Contains(err.Error(), "abcdefgh") {
			t.Errorf("%s: the error quotes the payload: %v", name, err)
		}
	}
}

// TestAllowMustNameWhatItAllows.
func TestAllowMustNameWhatItAllows(t *testing.T) {
	for when, ok := range map[string]bool{
		`sink.tool == "exec"`:                                        true,
		`"exec" == sink.tool`:                                        true,
		`sink.tool in ["read", "list"]`:                              true,
		`sink.id.startsWith("/ws/out/")`:                             true,
		`sink.host.endsWith(".example.com")`:                         true,
		`sink.destination.matches("^https://example[.]com/")`:        true,
		`payload == "make test"`:                                     true,
		`sink.kind == "exec" && payload in ["make", "make test"]`:    true,
		`sink.tool == "a1" || sink.tool == "b1"`:                     true,
		`surface == "context" ? sink.tool == "a1" : sink.id == "b1"`: true,

		`true`:                                            false,
		`sink.kind == "exec"`:                             false,
		`source.trust == "owner"`:                         false,
		`sink.tool != "exec"`:                             false,
		`!(sink.tool == "exec")`:                          false,
		`sink.tool == "exec" || true`:                     false,
		`sink.tool == "exec" || surface == "a1"`:          false,
		`sink.tool == sink.id`:                            false,
		`sink.tool == ""`:                                 false,
		`sink.tool in []`:                                 false,
		`sink.id.startsWith("")`:                          false,
		`sink.id.startsWith("/")`:                         false,
		`sink.id.contains("/ws/")`:                        false,
		`payload.startsWith("make ")`:                     false,
		`payload.matches("^make test$")`:                  false,
		`sink.destination.matches(".*")`:                  false,
		`sink.destination.matches("example")`:             false,
		`sink.destination.matches("^.*example")`:          false,
		`sink.destination.matches("^abc|.*")`:             false,
		`surface == "context" ? sink.tool == "a1" : true`: false,
	} {
		_, err := Parse([]byte("version: 1\nrules:\n  - name: r\n    when: '" + when + "'\n    then: allow\n"))
		if (err == nil) != ok {
			t.Errorf("%s: error %v", when, err)
		}
		if _, err := Parse([]byte("version: 1\nrules:\n  - name: r\n    when: '" + when + "'\n    then: block\n")); err != nil {
			t.Errorf("%s cannot block: %v", when, err)
		}
	}
}

func TestRulesSeeCleanPaths(t *testing.T) {
	p := mustParse(t, `rules: [{name: r, when: 'sink.id.startsWith("/ws/out/")', then: allow}]`)
	for id, want := range map[string]bool{
		"/ws/out/a": true, "/ws/out/../../etc/passwd": false, "/ws/out/./a": true, "/ws/out/x/../a": true, "//ws//out//a": true, "../ws/out/a": false,
	} {
		m, err := p.Decide(facts(func(f *Facts) { f.Flow.Sink.ID = id }))
		if err != nil || m.Matched != want {
			t.Errorf("%s: %v %v", id, m.Matched, err)
		}
	}
}

func TestModes(t *testing.T) {
	p := mustParse(t, `modes: [{agent: "openclaw:main", mode: audit}, {agent: "openclaw:*", mode: observe}]`)
	for agent, want := range map[string]schema.Mode{
		"openclaw:main": schema.ModeAudit, "openclaw:other": schema.ModeObserve, "claude-code:main": schema.ModeAudit, "": schema.ModeAudit, "x/openclaw:main": schema.ModeAudit,
	} {
		if got := p.Mode(agent); got != want {
			t.Errorf("%s: %v, want %v", agent, got, want)
		}
	}
}

func TestTrust(t *testing.T) {
	p := mustParse(t, `
trust:
  - {kind: web, host: "*.example.com", trust: trusted}
  - {kind: web, host: evil.example, trust: hostile}
  - {kind: file, id: "/home/me/notes/**", trust: trusted}
  - {kind: tool, id: "crm__*", trust: derived}
`)
	for _, tt := range []struct {
		kind  schema.SourceKind
		id    string
		claim schema.Trust
		want  schema.Trust
	}{
		{schema.SourceWeb, "https://docs.example.com/x", schema.Owner, schema.Trusted},
		{schema.SourceWeb, "https://docs.example.com/x", schema.Untrusted, schema.Untrusted},
		{schema.SourceWeb, "https://example.com/x", schema.Owner, schema.Untrusted},
		{schema.SourceWeb, "https://docs.example.com.evil.net/", schema.Owner, schema.Untrusted},
		{schema.SourceWeb, "https://docs.example.com@evil.net/", schema.Owner, schema.Untrusted},
		{schema.SourceWeb, "https://DOCS.example.COM:443/", schema.Owner, schema.Trusted},
		{schema.SourceWeb, "https://evil.example/", schema.Owner, schema.Hostile},
		{schema.SourceWeb, "docs.example.com", schema.Owner, schema.Untrusted},
		{schema.SourceEmail, "https://docs.example.com/x", schema.Owner, schema.Untrusted},
		{schema.SourceFile, "/home/me/notes/a/b.md", schema.Owner, schema.Trusted},
		{schema.SourceFile, "/home/me/notes/../.ssh/x", schema.Owner, schema.Derived},
		{schema.SourceFile, "/home/me/notes", schema.Owner, schema.Derived},
		{schema.SourceTool, "crm__read", schema.Owner, schema.Derived},
		{schema.SourceTool, "other", schema.Owner, schema.Untrusted},
		{schema.SourceUser, "me", schema.Owner, schema.Owner},
		{schema.SourceUser, "me", schema.Hostile, schema.Hostile},
	} {
		src := schema.Source{Kind: tt.kind, ID: tt.id, Trust: tt.claim}
		if got := p.Trust(src, schema.CredentialHook); got != tt.want {
			t.Errorf("%v %s claiming %v: %v, want %v", tt.kind, tt.id, tt.claim, got, tt.want)
		}
		if got := p.Trust(src, schema.CredentialOwner); got != tt.claim {
			t.Errorf("the owner's claim of %v became %v", tt.claim, got)
		}
		if got := p.Trust(src, schema.CredentialNone); got > schema.Untrusted {
			t.Errorf("no credential: %v", got)
		}
	}
}

func TestSuppress(t *testing.T) {
	p := mustParse(t, `
suppressions:
  - {code: ENCODED_PAYLOAD, path: "/ws/fixtures/**", reason: images, expires: 2027-01-10}
  - {code: PII_CONTACT, tool: crm, source: "crm__*", reason: it is a crm, expires: 2027-06-30}
`)
	pre := &schema.Precheck{Signals: []schema.Signal{{Code: schema.EncodedPayload}, {Code: schema.PIIContact}, {Code: schema.EncodedPayload, Severity: schema.Hard}}}
	flow := func(change func(*schema.Flow)) *schema.Flow {
		f := &schema.Flow{Sink: schema.Sink{ID: "/ws/fixtures/a.png", Tool: "write"}}
		if change != nil {
			change(f)
		}
		return f
	}
	for _, tt := range []struct {
		name string
		f    *schema.Flow
		now  string
		want int
	}{
		{"path", flow(nil), "2027-01-10", 1},
		{"expired", flow(nil), "2027-01-11", 0},
		{"climbs out", flow(func(f *schema.Flow) { f.Sink.ID = "/ws/fixtures/../x" }), "2027-01-10", 0},
		{"file source", flow(func(f *schema.Flow) {
			f.Sink.ID = ""
			f.Source = schema.Source{Kind: schema.SourceFile, ID: "/ws/fixtures/b"}
		}), "2027-01-10", 1},
		{"web source", flow(func(f *schema.Flow) {
			f.Sink.ID = ""
			f.Source = schema.Source{Kind: schema.SourceWeb, ID: "/ws/fixtures/b"}
		}), "2027-01-10", 0},
		{"tool and source", flow(func(f *schema.Flow) { f.Sink = schema.Sink{Tool: "crm"}; f.Source.ID = "crm__x" }), "2027-01-10", 1},
		{"tool alone", flow(func(f *schema.Flow) { f.Sink = schema.Sink{Tool: "crm"} }), "2027-01-10", 0},
	} {
		out, rules := p.Suppress(tt.f, pre, day(tt.now))
		n := len(rules)
		if n != tt.want || len(out.Signals) != 3-tt.want || len(pre.Signals) != 3 {
			t.Errorf("%s: %d suppressed, %d left of %d", tt.name, n, len(out.Signals), len(pre.Signals))
		}
	}
	hard := &schema.Precheck{Signals: pre.Signals, HardBlock: true}
	if _, n := p.Suppress(flow(nil), hard, day("2027-01-10")); len(n) != 0 {
		t.Error("a result that blocks was changed")
	}
}

// TestBrokenFiles: each mistake is named with its line.
func TestBrokenFiles(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "EOF"},
		{"no version", "modes: []\n", "version: must be 1"},
		{"wrong version", "version: 2\n", "line 1: version: must be 1"},
		{"unknown field", "version: 1\nrulez: []\n", "line 2: field rulez not found"},
		{"unknown field inside", "version: 1\nrules:\n  - nam: x\n", "line 3: field nam not found"},
		{"two documents", "version: 1\n---\nversion: 1\n", "more than one document"},
		{"not YAML", "version: [\n", "line"},
		{"duplicate key", "version: 1\nversion: 1\n", "line 2"},
		{"wrong type", "version: 1\nworkspaces: 7\n", "line 2"},
		{"unknown word", "version: 1\nmodes:\n  - agent: x\n    mode: off\n", `line 4: unknown mode "off"`},
		{"no mode", "version: 1\nmodes:\n  - agent: x\n", "line 3: modes[0]: mode is missing"},
		{"threshold", "version: 1\nthresholds:\n  small_allow:\n    risk_max: 1.5\n", "line 2: thresholds: small_allow.risk_max"},
		{"no_arbiter", "version: 1\nno_arbiter: allow\n", "line 2: no_arbiter: must be"},
		{"port", "version: 1\nloopback_ports:\n  - 0\n", "line 3: loopback_ports[0]"},
		{"workspace", "version: 1\nworkspaces:\n  - /a\n  - relative\n", "line 4: workspaces[1]"},
		{"workspace root", "version: 1\nworkspaces: [/]\n", "workspaces[0]"},
		{"trust without a place", "version: 1\ntrust:\n  - {kind: web, trust: trusted}\n", "line 3: trust[0]: id or host"},
		{"trust in everything", "version: 1\ntrust:\n  - {kind: web, id: \"**\", trust: trusted}\n", "names nothing"},
		{"trust as the owner", "version: 1\ntrust:\n  - {kind: web, host: a.example, trust: owner}\n", "owner is for"},
		{"trust host glob", "version: 1\ntrust:\n  - {kind: web, host: \"a*.example\", trust: trusted}\n", "host: must be"},
		{"rule without action", "version: 1\nrules:\n  - {name: a, when: 'true'}\n", "line 3: rules[0]: then must be"},
		{"rule that rewrites", "version: 1\nrules:\n  - {name: a, when: 'true', then: rewrite_and_continue}\n", "then must be"},
		{"rule without name", "version: 1\nrules:\n  - {when: 'true', then: block}\n", "name must be set"},
		{"rule twice", "version: 1\nrules:\n  - {name: a, when: 'true', then: block}\n  - {name: a, when: 'true', then: block}\n", "line 4: rules[1]: name: stands there twice"},
		{"unknown variable", "version: 1\nrules:\n  - {name: a, when: 'sink.knd == \"x\"', then: block}\n", "column"},
		{"type error", "version: 1\nrules:\n  - {name: a, when: 'sink.kind == 3', then: block}\n", "column"},
		{"syntax error", "version: 1\nrules:\n  - {name: a, when: 'sink.kind ==', then: block}\n", "column"},
		{"not a truth value", "version: 1\nrules:\n  - {name: a, when: 'sink.kind', then: block}\n", "must be true or false"},
		{"loop", "version: 1\nrules:\n  - {name: a, when: 'precheck.codes.exists(c, c == \"x\")', then: block}\n", "rules[0]: when"},
		{"pattern from the flow", "version: 1\nrules:\n  - {name: a, when: 'payload.matches(sink.id)', then: block}\n", "must be a constant"},
		{"broken pattern", "version: 1\nrules:\n  - {name: a, when: 'payload.matches(\"(\")', then: block}\n", "regular expression"},
		{"bad day", "version: 1\nrules:\n  - {name: a, when: 'true', then: block, expires: soon}\n", "line 3: must be a day"},
		{"suppressed hard code", "version: 1\nsuppressions:\n  - {code: PRIVATE_ENDPOINT, tool: x, reason: r, expires: 2027-01-01}\n", "cannot be suppressed"},
		{"suppressed everywhere", "version: 1\nsuppressions:\n  - {code: PII_CONTACT, reason: r, expires: 2027-01-01}\n", "tool, path or source"},
		{"suppressed for ever", "version: 1\nsuppressions:\n  - {code: PII_CONTACT, tool: x, reason: r}\n", "must be set"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			problems, err := Check(path)
			if err != nil || len(problems) == 0 {
				t.Fatalf("accepted (%v)", err)
			}
			if got := problems[0].Error(); !strings.Contains(got, tt.want) {
				t.Errorf("problem %q, want %q", got, tt.want)
			}
			if _, err := Load(path); err == nil {
				t.Error("Load accepted it")
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a missing file was read")
	}
}

func TestCheckListsEveryProblem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := "version: 1\nworkspaces: [a, b]\nloopback_ports: [0]\nno_arbiter: allow\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	problems, err := Check(path)
	if err != nil || len(problems) != 4 {
		t.Errorf("%d problems: %v (%v)", len(problems), problems, err)
	}
	for i := 1; i < len(problems); i++ {
		if problems[i].Line < problems[i-1].Line {
			t.Error("problems are not in the file's order")
		}
	}
}

func TestDigest(t *testing.T) {
	a, b := mustParse(t, "no_arbiter: block"), mustParse(t, "no_arbiter: defer_to_human")
	if a.Digest() == b.Digest() || a.Digest() != mustParse(t, "no_arbiter: block").Digest() {
		t.Error("the digest does not name the file")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(defaultFile)
	f.Add([]byte("version: 1\nrules:\n  - {name: a, when: 'sink.tool == \"x1\"', then: allow}\n"))
	f.Add([]byte("version: 1\ntrust: [{kind: web, host: \"*.a\", trust: trusted}]\nmodes: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		p, err := Parse(data)
		if err != nil {
			return
		}
		f := facts(nil)
		if m, err := p.Decide(f); err == nil && m.Matched && m.Action == schema.RewriteAndContinue {
			t.Fatal("a rule rewrites")
		}
		p.Suppress(f.Flow, f.Precheck, f.Now)
		p.Trust(f.Flow.Source, schema.CredentialHook)
	})
}

func BenchmarkDecide(b *testing.B) {
	p := mustParse(b, `
rules:
  - {name: a, when: 'sink.kind == "message" && payload.contains("npm publish")', then: block}
  - {name: b, when: '"FINANCIAL_DATA" in precheck.codes && source.trust_level < 2', then: block}
  - {name: c, when: 'sink.id.startsWith("/srv/")', then: allow}
`)
	f := facts(nil)
	b.ReportAllocs()
	for b.Loop() {
		if m, err := p.Decide(f); err != nil || m.Matched {
			b.Fatal(m, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	data := []byte("version: 1\nrules: [{name: a, when: 'sink.kind == \"message\"', then: block}]\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
