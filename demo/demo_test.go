package demo

import (
	"context"
	"strings"
	"testing"

	"example.org/auditd/schema"
)

func TestUnguardedIsHarmedAndServed(t *testing.T) {
	stories, err := Play(t.Context(), nil)
	if err != nil || len(stories) != 2 {
		t.Fatal(err)
	}
	for _, s := range stories {
		if !s.Harmed || !s.Served {
			t.Errorf("%s: harmed %v, served %v: %+v", s.Title, s.Harmed, s.Served, s.Lines)
		}
	}
}

// TestAGuardThatBlocksEverything: nothing is done, and no event is one that
// the daemon would refuse for its shape.
func TestAGuardThatBlocksEverything(t *testing.T) {
	stories, err := Play(t.Context(), func(_ context.Context, e *schema.Event) schema.Outcome {
		if err := e.Complete(0); err != nil {
			t.Error(err)
		}
		return schema.Outcome{Reason: "x", Message: "Blocked. Really."}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		if s.Harmed || s.Served {
			t.Errorf("%s: harmed %v, served %v", s.Title, s.Harmed, s.Served)
		}
	}
}

// TestOneOpenStepIsEnough: the stories are of attacks that work at the step
// that is left open, not only when everything is.
func TestOneOpenStepIsEnough(t *testing.T) {
	readingIsOpen := func(_ context.Context, e *schema.Event) schema.Outcome {
		if e.Phase == schema.PhaseBeforeTool && (e.Tool == "exec" || strings.Contains(string(e.Params), "collect.example.net")) {
			return schema.Outcome{Reason: "x", Message: "Blocked."}
		}
		return schema.Outcome{Action: schema.Allow, Reason: "x"}
	}
	stories, err := Play(t.Context(), readingIsOpen)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		if s.Harmed || !s.Served {
			t.Errorf("%s: harmed %v, served %v: %+v", s.Title, s.Harmed, s.Served, s.Lines)
		}
	}
}
