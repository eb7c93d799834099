//go:build integration

package modelproxy

import (
	"os"
	"testing"
)

// TestRealOllama: what a real server sends passes in all three dialects that it
// speaks, streamed and not. scripts/testmodel.sh starts it.
func TestRealOllama(t *testing.T) {
	url, model := os.Getenv("AUDITD_TEST_OLLAMA"), os.Getenv("AUDITD_TEST_MODEL")
	if url == "" || model == "" {
		t.Fatal("run this through scripts/testmodel.sh")
	}
	for _, s := range []speaker{chatSpeaker(), responsesSpeaker(), ollamaSpeaker()} {
		for _, stream := range []bool{false, true} {
			r := newRig(t, "ollama", func(c *Config) { c.Providers[0].URL = url })
			req := s.request([]turn{{user: "Say hello."}}, stream)
			req["model"] = model
			delete(req, "tools") // the model has none
			status, got := r.ask(s.path, js(req))
			if text, _, finish, problem := s.read(got, stream); status != 200 || text == "" || finish == "" || problem != "" {
				t.Errorf("%s, stream %v: %d %q %q %q in %s", s.name, stream, status, text, finish, problem, got)
			}
		}
	}
	r := newRig(t, "ollama", func(c *Config) { c.Providers[0].URL = url })
	req := chatSpeaker().request([]turn{{user: "Hello."}}, true)
	req["model"] = "no-such-model"
	if status, got := r.ask("/v1/chat/completions", js(req)); status != 404 {
		t.Errorf("a model that is not there: %d %s", status, got)
	}
}
