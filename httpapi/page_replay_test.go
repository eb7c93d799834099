package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.org/auditd/replay"
	"example.org/auditd/schema"
)

// replayed is the replay of what a world's log holds, by its script.
func (w *world) replayed(ctx context.Context, r *ReplayRequest, progress func(done, of int)) (*replay.Report, error) {
	var records []replay.Recorded
	for i := range w.log.Size() {
		rec, err := w.log.Get(i)
		if err != nil {
			return nil, err
		}
		if rec.Time.Before(r.Since) {
			continue
		}
		v, err := w.log.Value(rec)
		if err != nil {
			return nil, err
		}
		records = append(records, replay.Recorded{Record: rec, Value: v})
	}
	done := 0
	return replay.Run(ctx, records, replay.Config{Limit: r.Limit, Audit: func(_ context.Context, f *schema.Flow) schema.Decision {
		done++
		progress(done, len(records))
		d := script(f)
		if strings.Contains(r.Policy, "no_arbiter: block") && strings.Contains(f.Payload, "benign mail") {
			d.Action, d.Reason = schema.Block, "owner_rule"
		}
		return d
	}})
}

// TestPageReplay: one replay at a time, that can be stopped, and whose failure
// says nothing that the log has.
func TestPageReplay(t *testing.T) {
	begun, end := make(chan struct{}, 1), make(chan error, 1)
	w := newWorld(t, func(c *Config) {
		c.Replay = func(ctx context.Context, r *ReplayRequest, progress func(done, of int)) (*replay.Report, error) {
			progress(1, 2)
			begun <- struct{}{}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case err := <-end:
				if err == nil {
					panic("the payload")
				}
				return nil, err
			}
		}
	})
	cookie, key := w.signIn(t)
	post := func(path, body string) (int, string) {
		rec, answer := w.request(t, http.MethodPost, path, "", body, with(cookie, key))
		return rec.Code, answer
	}
	until := func(want string) {
		t.Helper()
		var got string
		for range 200 {
			if _, got = w.request(t, http.MethodGet, "/ui/replay", "", "", with(cookie, key)); strings.Contains(got, want) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatalf("%s, want %s", got, want)
	}
	for body, code := range map[string]int{`{"hours":0}`: 400, `{"hours":2161}`: 400, `{"hours":1,"policy":"rulez: 1"}`: 400, `{}`: 400, `{"hours":1,"more":1}`: 400} {
		if got, answer := post("/ui/replay", body); got != code {
			t.Errorf("%s: %d %s", body, got, answer)
		}
	}
	until(`"id":0,"running":false`)
	if code, answer := post("/ui/replay", `{"hours":24}`); code != 200 || !strings.Contains(answer, `"running":true`) {
		t.Fatalf("%d %s", code, answer)
	}
	<-begun
	until(`"done":1,"of":2`)
	if code, _ := post("/ui/replay", `{"hours":24}`); code != 409 {
		t.Errorf("a second one: %d", code)
	}
	if code, _ := post("/ui/replay/stop", `{}`); code != 200 {
		t.Errorf("stop: %d", code)
	}
	until(`"stopped":true`)
	for _, cause := range []error{errors.New("the payload"), nil, context.DeadlineExceeded} {
		if code, _ := post("/ui/replay", `{"hours":24}`); code != 200 {
			t.Fatalf("again: %d", code)
		}
		<-begun
		end <- cause
		until(`"problem":"It `)
		if _, got := w.request(t, http.MethodGet, "/ui/replay", "", "", with(cookie, key)); cause != nil && strings.Contains(got, "the payload") {
			t.Errorf("%v: %s", cause, got)
		}
	}
	if rec, _ := w.request(t, http.MethodPost, "/ui/replay", w.hook, `{"hours":24}`); rec.Code != 401 {
		t.Errorf("with the hook token: %d", rec.Code)
	}
	without := newWorld(t, nil)
	cookie, key = without.signIn(t)
	if rec, _ := without.request(t, http.MethodGet, "/ui/replay", "", "", with(cookie, key)); rec.Code != 404 {
		t.Errorf("where there is none: %d", rec.Code)
	}
}
