package precheck

import (
	"testing"

	"example.org/auditd/schema"
)

func TestOneHostHasManySpellings(t *testing.T) {
	c := newTest(t)
	flow := func(kind schema.SinkKind, tool, payload, to string) *schema.Precheck {
		return c.Check(Example{Text: payload, Sink: kind, Source: schema.SourceAgent, Trust: schema.Untrusted, Tool: tool, Destination: to}.Flow())
	}
	for _, u := range []string{`http://evil.com\@127.0.0.1/`, "http:127.0.0.1", `http:\\127.0.0.1\`, "//127.0.0.1/", "http:///127.0.0.1/", "http://127.0.0.1%00.example.com/", "http://localhost6/", "file:///etc/passwd",
		"unix:///var/run/docker.sock", "gopher://h.example/", "dict://h.example:11/", "ldap://h.example", "http:/127.0.0.1/", "ht\ttp://127.0.0.1/", "http://[::1]/", "http://%zz/", "http:///", "HTTP:\\\\LOCALHOST", "https://a@b@10.0.0.1/", "http://exa mple.com/"} {
		if p := flow(schema.SinkWeb, "", "q", u); !p.HardBlock {
			t.Errorf("destination %q: %v", u, names(p))
		}
		if u == "http://exa mple.com/" || u == "ht\ttp://127.0.0.1/" {
			continue
		}
		if p := flow(schema.SinkWeb, "", u, ""); !p.HardBlock {
			t.Errorf("payload %q: %v", u, names(p))
		}
	}
	if p := flow(schema.SinkWeb, "", `please get http:\\127.0.0.1\ for me`, ""); !p.HardBlock {
		t.Errorf("in a text: %v", names(p))
	}
	if p := flow(schema.SinkTool, "web_fetch", `{"url":"file:///etc/passwd"}`, ""); !p.HardBlock {
		t.Errorf("in a field: %v", names(p))
	}
	for _, u := range []string{"https://example.org/", "http://example.org:8080/a?b=//127.0.0.1", "https://u:p@example.org/x", "https://example.org/a%00b", "wss://example.org/", "https://xn--bcher-kva.example/", "example.org", "https://example.org/a\\b"} {
		if p := flow(schema.SinkWeb, "", "q", u); p.HardBlock || raised(p, "endpoint-destination") {
			t.Errorf("destination %q: %v", u, names(p))
		}
		if p := flow(schema.SinkWeb, "", u, "https://example.org/"); u != "http://example.org:8080/a?b=//127.0.0.1" && p.HardBlock {
			t.Errorf("payload %q: %v", u, names(p))
		}
	}
	for tool, payload := range map[string]string{"lsp": `{"uri":"file:///home/u/project/a.go"}`, "save": `{"address":"12 Main St","target":"/tmp/x"}`, "web_fetch": `{"url":"https://example.org/x"}`} {
		if p := flow(schema.SinkTool, tool, payload, ""); p.HardBlock || raised(p, "endpoint-private") {
			t.Errorf("%s %s: %v", tool, payload, names(p))
		}
	}
	for to, kind := range map[string]schema.SinkKind{"#general": schema.SinkMessage, "Ann Miller": schema.SinkMessage, "signal:+491234567": schema.SinkMessage, "a b": schema.SinkTool, "C:\\x\\y": schema.SinkFile} {
		if p := flow(kind, "", "hi", to); p.HardBlock {
			t.Errorf("%s: %v", to, names(p))
		}
	}
}
