package modelproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.org/auditd/schema"
)

// FuzzStreams feeds every dialect's filter with whatever comes: no call goes on
// that was not decided about, and nothing panics or waits for ever.
func FuzzStreams(f *testing.F) {
	for i, s := range speakers() {
		f.Add(byte(i), s.stream("Some text.", []toolCall{fetch, wipe}))
		f.Add(byte(i), s.answer("Some text.", []toolCall{wipe}))
	}
	p, err := New(Config{Token: token, Memory: NewMemory(time.Now), Logger: slog.New(slog.DiscardHandler),
		Report: func(context.Context, *schema.Event) schema.Outcome { return schema.Outcome{} }})
	if err != nil {
		f.Fatal(err)
	}
	dialects := []dialect{anthropic{}, chat{}, responses{}, ollama{}}
	f.Fuzz(func(t *testing.T, which byte, wire string) {
		d := dialects[int(which)%len(dialects)]
		g := &gate{p: p, ctx: t.Context(), t: &target{Provider: Provider{Host: "fuzz", ResolveSymbols: which > 100}}, s: scope{"fuzz", "s"}}
		if n, err := parse([]byte(wire)); err == nil {
			_ = d.answer(g, n)
			_, _ = d.read(n)
		}
		var from reader = newSSE(strings.NewReader(wire))
		if d.lines() {
			from = newLines(strings.NewReader(wire))
		}
		filter := d.stream(g)
		for !filter.done() {
			e, err := from.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && err.Error() == "" {
					t.Error("an error without words")
				}
				break
			}
			out, err := filter.next(e)
			for _, o := range out {
				if _, err := parse([]byte(o.data)); err != nil && o.data != "[DONE]" {
					t.Errorf("not JSON: %q", o.data)
				}
				if strings.ContainsAny(o.data, "\r\n") {
					t.Errorf("an event with a line's end in it: %q", o.data)
				}
			}
			if err != nil {
				break
			}
		}
		if g.left != 0 {
			t.Errorf("%d calls went on that were blocked", g.left)
		}
	})
}

// BenchmarkKnownContext is what the proxy adds to a request of 100 kB whose
// results are known: reading, looking up, and passing on as it came.
func BenchmarkKnownContext(b *testing.B) {
	for _, s := range speakers() {
		b.Run(strings.ReplaceAll(s.name, " ", "-"), func(b *testing.B) {
			p, err := New(Config{Token: token, Memory: NewMemory(time.Now), Logger: slog.New(slog.DiscardHandler),
				Report: func(context.Context, *schema.Event) schema.Outcome { return schema.Outcome{Action: schema.Allow} }})
			if err != nil {
				b.Fatal(err)
			}
			turns := []turn{{user: "Read all of it."}}
			for range 25 {
				turns = append(turns, turn{calls: []toolCall{fetch}, results: []string{strings.Repeat("Some words of a page, as it was read.\n", 105)}})
			}
			body := []byte(js(s.request(turns, true)))
			d := endpoints(s.api)[0].dialect
			if s.name == "openai responses" {
				d = responses{}
			}
			one := func() {
				root, err := parse(body)
				if err != nil {
					b.Fatal(err)
				}
				r, err := d.read(root)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := p.prepare(b.Context(), &target{Provider: Provider{Host: "test"}}, r); err != nil {
					b.Fatal(err)
				}
			}
			one()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				one()
			}
		})
	}
}
