package modelproxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestUpstreamEdges: whatever a provider does wrong, nothing of it is passed on
// raw, and the error has the dialect's own shape.
func TestUpstreamEdges(t *testing.T) {
	const raw = "RAW-UPSTREAM-TEXT"
	media := func(s speaker, stream bool) string {
		if stream {
			return s.media
		}
		return "application/json"
	}
	body := func(s speaker, stream bool) string {
		if stream {
			return s.stream(raw, nil)
		}
		return s.answer(raw, nil)
	}
	status := func(code int, say string) func(speaker, bool) http.HandlerFunc {
		return func(speaker, bool) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(code)
				io.WriteString(w, say)
			}
		}
	}
	type of = func(s speaker, stream bool) http.HandlerFunc
	write := func(kind func(speaker, bool) string, text func(speaker, bool) string) of {
		return func(s speaker, stream bool) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind(s, stream))
				io.WriteString(w, text(s, stream))
			}
		}
	}
	for _, e := range []struct {
		name string
		do   of
		want int
		// partial: text that came before the fault may have been shown.
		partial bool
	}{
		{"redirect", status(302, raw), 502, false},
		{"bad request", status(400, `{"error":{"message":"`+raw+`"}}`), 400, false},
		{"no credential", status(401, raw), 401, false},
		{"not found", status(404, raw), 404, false},
		{"too many", status(429, raw), 429, false},
		{"failure", status(500, raw), 500, false},
		{"overloaded", status(529, raw), 529, false},
		{"no content", status(204, ""), 502, false},
		{"garbage", write(media, func(speaker, bool) string { return "<html>" + raw + "</html>" }), 502, false},
		{"empty", write(media, func(speaker, bool) string { return "" }), 502, false},
		{"another document", write(media, func(s speaker, stream bool) string {
			if stream && s.media == "text/event-stream" {
				return "data: [\"" + raw + "\"]\n\n"
			}
			return `["` + raw + `"]` + "\n"
		}), 502, false},
		{"doubled names", write(media, func(s speaker, stream bool) string {
			return strings.ReplaceAll(body(s, stream), `"model":"m-1"`, `"model":"m-1","model":"`+raw+`"`)
		}), 502, false},
		{"wrong type", write(func(speaker, bool) string { return "text/html" }, body), 502, false},
		{"the other type", write(func(s speaker, stream bool) string { return media(s, !stream) }, body), 502, false},
		{"compressed", func(s speaker, stream bool) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				write(media, body)(s, stream)(w, r)
			}
		}, 502, false},
		{"an unknown field", write(media, func(s speaker, stream bool) string {
			return strings.ReplaceAll(body(s, stream), `"model":"m-1"`, `"model":"m-1","aside":"`+raw+` and more"`)
		}), 502, true},
		{"cut off", write(media, func(s speaker, stream bool) string { b := body(s, stream); return b[:len(b)-20] }), 502, true},
		{"an error in it", write(media, func(s speaker, stream bool) string {
			if stream && s.media == "text/event-stream" {
				return "data: " + `{"type":"error","error":{"type":"overloaded_error","message":"` + raw + ` x"}}` + "\n\n"
			}
			return `{"error":"` + raw + ` x"}` + "\n"
		}), 0, false},
		{"huge", write(media, func(s speaker, stream bool) string { return body(s, stream) + strings.Repeat(" ", 300<<10) }), 0, true},
		{"broken off", func(s speaker, stream bool) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 100000\r\n\r\n%s", media(s, stream), body(s, stream)[:10])
					c.Close()
				}
			}
		}, 502, false},
		{"never answers", func(speaker, bool) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}, 504, false},
		{"stops in the middle", func(s speaker, stream bool) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", media(s, stream))
				io.WriteString(w, body(s, stream)[:len(body(s, stream))/3])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}, 504, true},
	} {
		t.Run(e.name, func(t *testing.T) {
			each(t, func(t *testing.T, s speaker, stream bool) {
				r := newRig(t, s.api, func(c *Config) {
					c.HeaderWait, c.IdleWait, c.MaxResponse = 500*time.Millisecond, 500*time.Millisecond, 256<<10
				})
				r.serve(e.do(s, stream))
				status, got := r.ask(s.path, js(s.request([]turn{{user: "Hello."}}, stream)))
				_, calls, _, problem := s.read(got, stream && status == 200)
				if e.name == "huge" && stream {
					return // what follows the end of a stream is not read
				}
				if problem == "" || len(calls) > 0 || status == 200 && !stream || e.want != 0 && status != e.want && status != 200 {
					t.Errorf("status %d, problem %q in %s", status, problem, got)
				}
				if status == 200 && !e.partial || !e.partial && strings.Contains(got, raw) || strings.Contains(problem, raw) || strings.Contains(r.log.String(), raw) {
					t.Errorf("passed on: %d %s\n%s", status, got, r.log.String())
				}
			})
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		each(t, func(t *testing.T, s speaker, stream bool) {
			r := newRig(t, s.api)
			r.upstream.Close()
			status, got := r.ask(s.path, js(s.request([]turn{{user: "Hello."}}, stream)))
			if _, _, _, problem := s.read(got, false); status != 502 || !strings.Contains(problem, "cannot be reached") || strings.Contains(got, "127.0.0.1") {
				t.Errorf("%d %s", status, got)
			}
		})
	})
}
