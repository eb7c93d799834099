package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"example.org/auditd/schema"
)

// TestHookEdgesStop: whatever is wrong with a request of Claude Code, the
// status is 200 and the body stops in the shape of the event: that host goes
// on after a status code that it does not like.
func TestHookEdgesStop(t *testing.T) {
	w := newWorld(t, nil)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	post := `{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"c","tool_input":{},"tool_response":{"stdout":"RAW","stderr":"","interrupted":false}}`
	pre := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"c","tool_input":{"command":"ls"}}`
	big := strings.Repeat("x", 3<<20)
	for name, tc := range map[string]struct {
		event, token, body string
		change             func(*http.Request)
		want               string
	}{
		"no token, before":        {"PreToolUse", "", pre, nil, `"permissionDecision":"deny"`},
		"no token, after":         {"PostToolUse", "", post, nil, `"updatedToolOutput":{"stdout":"[withheld by auditd]`},
		"wrong token":             {"PreToolUse", "ah_" + strings.Repeat("0", 64), pre, nil, `"permissionDecision":"deny"`},
		"rebound host":            {"PostToolUse", w.hook, post, func(r *http.Request) { r.Host = "evil.example" }, `"updatedToolOutput"`},
		"another page's request":  {"PreToolUse", w.hook, pre, set("Origin", "http://evil.example"), `"permissionDecision":"deny"`},
		"no content type":         {"PreToolUse", w.hook, pre, set("Content-Type", ""), `"permissionDecision":"deny"`},
		"compressed":              {"PreToolUse", w.hook, pre, set("Content-Encoding", "gzip"), `"permissionDecision":"deny"`},
		"garbage before":          {"PreToolUse", w.hook, "\x00", nil, `"permissionDecision":"deny"`},
		"garbage after":           {"PostToolUse", w.hook, "\x00", nil, `"continue":false`},
		"garbage batch":           {"PostToolBatch", w.hook, "{", nil, `"continue":false`},
		"garbage prompt":          {"UserPromptSubmit", w.hook, "[]", nil, `"decision":"block"`},
		"garbage, no event":       {"", w.hook, "[]", nil, `"continue":false`},
		"half a document":         {"PostToolUse", w.hook, post[:len(post)-4], nil, `"updatedToolOutput"`},
		"too large before":        {"PreToolUse", w.hook, pre[:len(pre)-1] + `,"x":"` + big + `"}`, nil, `"permissionDecision":"deny"`},
		"too large after":         {"PostToolUse", w.hook, post[:len(post)-1] + `,"x":"` + big + `"}`, nil, `"updatedToolOutput":{"stdout":"[withheld by auditd]`},
		"result over the limit":   {"PostToolUse", w.hook, strings.Replace(post, "RAW", big[:1<<20+100], 1), nil, `"updatedToolOutput":{"stdout":"[withheld by auditd]`},
		"deep":                    {"PreToolUse", w.hook, strings.Replace(pre, `"ls"`, strings.Repeat("[", 60)+strings.Repeat("]", 60), 1), nil, `"permissionDecision":"deny"`},
		"another event":           {"PreToolUse", w.hook, post, nil, `"updatedToolOutput"`},
		"bad wait":                {"PreToolUse&wait=1000h", w.hook, pre, nil, `"permissionDecision":"deny"`},
		"no session":              {"PreToolUse", w.hook, strings.Replace(pre, `"session_id":"s",`, "", 1), nil, `"permissionDecision":"deny"`},
		"an event nobody expects": {"", w.hook, `{"session_id":"s","hook_event_name":"New"}`, nil, `"continue":false`},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.change
			if change == nil {
				change = func(*http.Request) {}
			}
			rec, body := w.request(t, http.MethodPost, claudeHookPath+"?event="+tc.event, tc.token, tc.body, change)
			if rec.Code != 200 || !strings.Contains(body, tc.want) || strings.Contains(body, "RAW") {
				t.Errorf("%d %.300s, want %s", rec.Code, body, tc.want)
			}
			if strings.Contains(body, `"allow"`) {
				t.Errorf("it allows: %s", body)
			}
		})
	}
}

func TestHookOverloadAndPanicStop(t *testing.T) {
	full := newWorld(t, func(c *Config) { c.MaxInFlight = 1 })
	full.slots <- struct{}{}
	failing := newWorld(t, func(c *Config) {
		c.Event = func(context.Context, *schema.Event, schema.Credential) schema.Outcome { panic("canary") }
	})
	stopping := newWorld(t, nil)
	stopping.draining = true
	for name, w := range map[string]*world{"full": full, "panic": failing, "stopping": stopping} {
		body := `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`
		rec, answer := w.request(t, http.MethodPost, claudeHookPath+"?event=PreToolUse", w.hook, body)
		if rec.Code != 200 || !strings.Contains(answer, `"permissionDecision":"deny"`) || strings.Contains(answer, "canary") {
			t.Errorf("%s: %d %s", name, rec.Code, answer)
		}
	}
}
