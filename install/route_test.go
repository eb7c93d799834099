package install

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// refuser is a proxy that refuses as auditd's does.
func refuser(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":{"message":"the hooks of this session have reported nothing lately"}}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/token"
}

const clawProviders = `{"models":{"mode":"merge","providers":{"mine":{"baseUrl":"http://127.0.0.1:9/v1/","api":"openai-completions","apiKey":"k"},
   "anthropic": {"models":[]}, "near":{"baseUrl":"http://127.0.0.1:9","api":"ollama"}}},
 "agents":{"defaults":{"workspace":"rel/path","model":{"primary":"mine/m-1","fallbacks":["openai/gpt-9"]}}}}`

// TestRoutes: an agent asks its providers through the proxy, the daemon knows
// where they are, and all comes back byte for byte.
func TestRoutes(t *testing.T) {
	c := newOpenClaw(t)
	c.Proxy = "http://127.0.0.1:7842/secret"
	write(t, c.Settings, clawProviders, 0o600)
	for range 2 {
		if _, err := c.Install(); err != nil {
			t.Fatal(err)
		}
	}
	text := content(t, c.Settings)
	for _, want := range []string{`"baseUrl": "http://127.0.0.1:7842/secret/agent-openclaw-mine/v1"`, `"baseUrl": "http://127.0.0.1:7842/secret/agent-openclaw-anthropic"`,
		`"baseUrl": "http://127.0.0.1:7842/secret/agent-openclaw-near"`, `"baseUrl": "http://127.0.0.1:7842/secret/agent-openclaw-openai/v1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	routes := map[string]Route{}
	for _, r := range Routes(c.State) {
		routes[r.Name] = r
	}
	for name, want := range map[string]Route{
		"mine": {API: "openai", URL: "http://127.0.0.1:9/v1"}, "anthropic": {API: "anthropic", URL: anthropicURL},
		"near": {API: "ollama", URL: "http://127.0.0.1:9"}, "openai": {API: "openai", URL: "https://api.openai.com/v1"},
	} {
		if r := routes[routePrefix+name]; r.API != want.API || r.URL != want.URL || r.Host != openClawName {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// Opting out later gives the addresses back and leaves the plugin.
	c.Proxy = ""
	if _, err := c.Install(); err != nil {
		t.Fatal(err)
	}
	if text := content(t, c.Settings); strings.Contains(text, "7842") || !strings.Contains(text, `"http://127.0.0.1:9/v1/"`) || !strings.Contains(text, c.pluginDir()) || len(Routes(c.State)) != 0 {
		t.Errorf("%s %v", text, Routes(c.State))
	}
	if change, err := c.Uninstall(); err != nil || !change.Exact || content(t, c.Settings) != clawProviders {
		t.Errorf("%v %q", err, content(t, c.Settings))
	}

	// Edited since: what is auditd's goes, what was set since stays.
	c.Proxy = "http://127.0.0.1:7842/secret"
	if _, err := c.Install(); err != nil {
		t.Fatal(err)
	}
	write(t, c.Settings, strings.Replace(content(t, c.Settings), `"mode": "merge"`, `"mode": "merge", "later": true`, 1), 0o600)
	if _, err := c.Uninstall(); err != nil {
		t.Fatal(err)
	}
	if text := content(t, c.Settings); strings.Contains(text, "7842") || !strings.Contains(text, "later") || strings.Contains(text, "gpt-9\": {") || strings.Contains(text, `"openai": {`) {
		t.Error(text)
	}

	// A provider that the proxy would not ask is no reason to leave it out.
	write(t, c.Settings, `{"models":{"providers":{"lan":{"baseUrl":"http://10.0.0.7/v1"}}}}`, 0o600)
	if _, err := c.Install(); err == nil || !strings.Contains(err.Error(), "models.providers.lan") || !strings.Contains(err.Error(), "--no-model-proxy") {
		t.Errorf("%v", err)
	}
}

func TestClaudeCodeRoute(t *testing.T) {
	for name, tt := range map[string]struct{ before, upstream, want, refused string }{
		"nothing set":  {before: `{"a":1}`, want: anthropicURL},
		"of the shell": {before: `{"a":1}`, upstream: "https://gateway.example/x/", want: "https://gateway.example/x"},
		"of the file":  {before: `{"env":{"ANTHROPIC_BASE_URL":"https://mine.example"}}`, upstream: "https://gateway.example", want: "https://mine.example"},
		"bedrock":      {before: `{"env":{"CLAUDE_CODE_USE_BEDROCK":"1"}}`, refused: "CLAUDE_CODE_USE_BEDROCK"},
		"plain http":   {before: `{"env":{"ANTHROPIC_BASE_URL":"http://10.0.0.7"}}`, refused: "must be https"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClaudeCode(t)
			c.Proxy, c.Upstream = "http://127.0.0.1:7842/secret", tt.upstream
			write(t, c.Settings, tt.before, 0o600)
			for range 2 {
				if _, err := c.Install(); tt.refused != "" {
					if err == nil || !strings.Contains(err.Error(), tt.refused) || content(t, c.Settings) != tt.before {
						t.Errorf("%v", err)
					}
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if text := content(t, c.Settings); !strings.Contains(text, `"ANTHROPIC_BASE_URL": "http://127.0.0.1:7842/secret/agent-claude-code"`) {
				t.Error(text)
			}
			if r := Routes(c.State); len(r) != 1 || r[0].URL != tt.want || r[0].Host != "claude-code" || r[0].API != "anthropic" {
				t.Errorf("%+v", r)
			}
			write(t, c.Settings, strings.Replace(content(t, c.Settings), `{`, `{"later": true,`, 1), 0o600)
			if _, err := c.Uninstall(); err != nil {
				t.Fatal(err)
			}
			text := content(t, c.Settings)
			if strings.Contains(text, "7842") || strings.Contains(text, "hooks") || !strings.Contains(text, "later") || strings.Contains(tt.before, "mine") != strings.Contains(text, "https://mine.example") || strings.Contains(tt.before, "env") != strings.Contains(text, "env") {
				t.Error(text)
			}
		})
	}
}

// TestProbe: only the refusal that auditd's proxy gives counts.
func TestProbe(t *testing.T) {
	status, body := 0, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer s.Close()
	r := Route{Name: "agent-x", API: "openai"}
	for _, tt := range []struct {
		status int
		body   string
		want   string
	}{
		{400, "the hooks of this session have reported nothing lately", ""}, {200, "the hooks of this session have reported nothing lately", "answered 200"},
		{400, "no", "answered 400"}, {404, "", "restart the daemon"}, {500, "", "answered 500"},
	} {
		status, body = tt.status, tt.body
		if err := r.probe(t.Context(), s.URL+"/secret"); (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	s.Close()
	if err := r.probe(t.Context(), s.URL+"/secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
