package claudehook

import (
	"context"
	"strings"
	"testing"

	"example.org/auditd/schema"
)

// TestIsolatedSession: the host's model is told how to work with symbols, and a
// result in which nothing is hidden does not end the turn.
func TestIsolatedSession(t *testing.T) {
	a := New(Config{})
	text := "how to work with symbols"
	reported := 0
	report := func(_ context.Context, e *schema.Event) schema.Outcome {
		reported++
		if e.Phase == schema.PhaseSessionStart {
			return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "system_prompt", Text: &text}
		}
		return schema.Outcome{Action: schema.RewriteAndContinue, Reason: schema.ReasonNothingHidden, Result: []byte(`{"file":{"filePath":"/p/a"}}`)}
	}
	ask := func(body string) string {
		return string(a.Answer(t.Context(), "", []byte(body), false, report))
	}
	if got := ask(`{"hook_event_name":"SessionStart","session_id":"s","cwd":"/p","source":"startup"}`); !strings.Contains(got, `"additionalContext":"how to work with symbols"`) {
		t.Errorf("session start: %s", got)
	}
	if got := ask(`{"hook_event_name":"PostToolUse","session_id":"s","cwd":"/p","tool_name":"Read","tool_use_id":"c","tool_input":{},"tool_response":{"file":{"filePath":"/view/a"}}}`); !strings.Contains(got, `"/p/a"`) {
		t.Errorf("after the tool: %s", got)
	}
	fresh := "symu" + strings.Repeat("0", 32) + "u"
	hide := func(context.Context, *schema.Event) schema.Outcome {
		reported++
		return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "symbols", Result: []byte(`{"stdout":"` + fresh + `"}`)}
	}
	for shown, heeded := range map[string]bool{fresh: true, "raw text": false} {
		a.Answer(t.Context(), "", []byte(`{"hook_event_name":"PostToolUse","session_id":"`+shown+`","cwd":"/p","tool_name":"Bash","tool_use_id":"d","tool_input":{},"tool_response":{"stdout":"raw text"}}`), false, hide)
		got := string(a.Answer(t.Context(), "", []byte(`{"hook_event_name":"PostToolBatch","session_id":"`+shown+`","cwd":"/p","tool_calls":[{"tool_name":"Bash","tool_use_id":"d","tool_input":{},"tool_response":"`+shown+`"}]}`), false, hide))
		if strings.Contains(got, `"continue":false`) == heeded {
			t.Errorf("the host shows %q: %s", shown, got)
		}
	}
	// The final message stays as the model wrote it, and the person reads beside it
	// what the symbols stand for.
	resolved := "It says: hello"
	show := func(_ context.Context, e *schema.Event) schema.Outcome {
		if e.Phase != schema.PhaseMessageOut || e.Text != "It says: "+fresh {
			t.Errorf("reported: %+v", e)
		}
		return schema.Outcome{Action: schema.RewriteAndContinue, Reason: "resolved_for_the_person", Text: &resolved}
	}
	got := string(a.Answer(t.Context(), "", []byte(`{"hook_event_name":"Stop","session_id":"s","cwd":"/p","stop_hook_active":false,"last_assistant_message":"It says: `+fresh+`"}`), false, show))
	if !strings.Contains(got, "stand for:\\n"+resolved) || strings.Contains(got, "block") || strings.Contains(got, "reason") || strings.Contains(got, "additionalContext") {
		t.Errorf("the final message: %s", got)
	}
	before := reported
	if got := ask(`{"hook_event_name":"PostToolBatch","session_id":"s","cwd":"/p","tool_calls":[{"tool_name":"Read","tool_use_id":"c","tool_input":{},"tool_response":"x"}]}`); strings.Contains(got, "false") || reported != before {
		t.Errorf("the batch: %s", got)
	}
}
