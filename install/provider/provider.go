// Package provider is a model provider on the loopback interface that plays a
// script: the model that says exactly what a check needs to be said. It speaks
// as much of Anthropic's Messages API as Claude Code uses and of OpenAI's chat
// completions as OpenClaw uses, and keeps what the agent sent, because what
// reached the model is what a check is about.
package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Step is one answer of the model.
type Step struct {
	Text  string
	Calls []Call
}

// Call is a tool call.
type Call struct {
	Tool  string
	Input map[string]any
}

// Do is the step of one call.
func Do(tool string, input map[string]any) Step { return Step{Calls: []Call{{tool, input}}} }

// Say is a step that ends the turn.
func Say(text string) Step { return Step{Text: text} }

// Turn is what the model has been sent in the turn of a script: everything that
// stands before and in the prompt that names it, and what came after each answer
// of the model's since.
type Turn struct {
	Before string
	Since  []Heard
}

// Heard is what the model was sent after one of its answers.
type Heard struct {
	Result string // of its calls
	All    string // with what the host adds
}

// Prompt is what the agent has to be told for the script under name to be
// played.
func Prompt(name string) string { return "SCENARIO:" + name }

var scenario = regexp.MustCompile(`SCENARIO:([a-z0-9-]+)`)

// maxRequest bounds one request of the agent.
const maxRequest = 32 << 20

// Server plays scripts.
type Server struct {
	// URL is what the agent takes for the provider's base URL.
	URL string

	http    *http.Server
	mu      sync.Mutex
	scripts map[string]func(*Turn) Step // guarded by mu
	bodies  []asked                     // guarded by mu
}

// asked is one request, and the script that it went on with.
type asked struct {
	script string
	body   []byte
}

// Start serves scripts, by their names, until ctx ends or Close is called.
func Start(ctx context.Context, scripts map[string][]Step) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), scripts: map[string]func(*Turn) Step{}}
	for name, steps := range scripts {
		s.Add(name, steps)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/chat/completions", s.completions)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"input_tokens":10}`)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go s.http.Serve(l)
	context.AfterFunc(ctx, func() { s.http.Close() })
	return s, nil
}

// Close stops the server.
func (s *Server) Close() error { return s.http.Close() }

// Add adds a script while the server runs.
func (s *Server) Add(name string, steps []Step) {
	s.AddModel(name, func(t *Turn) Step {
		if n := len(t.Since); n < len(steps) {
			return steps[n]
		}
		return Say("Done.")
	})
}

// AddModel adds a script that answers what it reads.
func (s *Server) AddModel(name string, model func(*Turn) Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[name] = model
}

// Requests returns what the model was sent under a script, oldest first.
func (s *Server) Requests(script string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, b := range s.bodies {
		if b.script == script {
			out = append(out, string(b.body))
		}
	}
	return out
}

// Saw reports whether text was in anything that the model was sent.
func (s *Server) Saw(text string) bool { return s.SawIn("", text) }

// SawIn is Saw for the requests that went on with one script.
func (s *Server) SawIn(script, text string) bool {
	quoted, _ := json.Marshal(text)
	q := string(quoted[1 : len(quoted)-1])
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bodies {
		if (script == "" || b.script == script) && (strings.Contains(string(b.body), text) || strings.Contains(string(b.body), q)) {
			return true
		}
	}
	return false
}

// Around returns what stands around text where the model first saw it, and the
// script that it was in; for a test's message.
func (s *Server) Around(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bodies {
		if i := strings.Index(string(b.body), text); i >= 0 {
			return b.script + ": …" + string(b.body[max(0, i-600):min(len(b.body), i+200)]) + "…"
		}
	}
	return ""
}

// Results returns the texts of the tool results in the request that had the
// most of them, in order.
func (s *Server) Results() []string { return s.ResultsIn("") }

// ResultsIn is Results for the requests that went on with one script, from
// where its prompt stands.
func (s *Server) ResultsIn(script string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var most []string
	for _, b := range s.bodies {
		var r request
		if script != "" && b.script != script || json.Unmarshal(b.body, &r) != nil {
			continue
		}
		var out []string
		for _, m := range r.Messages {
			if script != "" && names(m.Role, m.Content) != "" {
				out = nil
			}
			if m.Role == "tool" {
				out = append(out, textOf(m.Content))
			}
			for _, p := range parts(m.Content) {
				if p.Type == "tool_result" {
					out = append(out, textOf(p.Content))
				}
			}
		}
		if len(out) > len(most) {
			most = out
		}
	}
	return most
}

// Calls is how many times the model was asked to go on with a script.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

type request struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

func parts(content json.RawMessage) []part {
	var list []part
	if json.Unmarshal(content, &list) == nil {
		return list
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []part{{Type: "text", Text: text}}
	}
	return nil
}

func textOf(content json.RawMessage) string {
	var b strings.Builder
	for _, p := range parts(content) {
		b.WriteString(p.Text)
	}
	return b.String()
}

// next finds the script that the last prompt names, and asks it.
func (s *Server) next(r *request) (string, Step) {
	if len(r.Tools) == 0 { // the agent asks for a title, or the like
		return "", Say("A title")
	}
	name, turn, said := "", new(Turn), ""
	for _, m := range r.Messages {
		text, result := textOf(m.Content), ""
		if m.Role == "tool" {
			result = text
		}
		for _, p := range parts(m.Content) {
			if p.Type == "tool_result" {
				result += textOf(p.Content)
				text += textOf(p.Content)
			}
		}
		said += text + "\n"
		if m.Role == "assistant" {
			turn.Since = append(turn.Since, Heard{})
			continue
		}
		if found := names(m.Role, m.Content); found != "" {
			name, turn = found, &Turn{Before: said}
		} else if n := len(turn.Since); n > 0 {
			turn.Since[n-1].Result += result
			turn.Since[n-1].All += text
		}
	}
	s.mu.Lock()
	model := s.scripts[name]
	s.mu.Unlock()
	if model == nil {
		return name, Say("Done.")
	}
	return name, model(turn)
}

// names returns the script that a person's message names. A host's own words
// to the model may repeat the message, and do not count.
func names(role string, content json.RawMessage) string {
	if role != "user" {
		return ""
	}
	for _, p := range parts(content) {
		if found := scenario.FindStringSubmatch(p.Text); p.Type == "text" && found != nil && !strings.Contains(p.Text, "BEGIN_OPENCLAW_INTERNAL_CONTEXT") {
			return found[1]
		}
	}
	return ""
}

// answer keeps a request and returns its script's next step, and the request's
// number.
func (s *Server) answer(r *request, body []byte) (Step, int) {
	name, step := s.next(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(r.Tools) > 0 {
		s.bodies = append(s.bodies, asked{name, body})
	}
	return step, len(s.bodies)
}

func (s *Server) messages(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest))
	var r request
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	if err != nil {
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"not a request"}}`, http.StatusBadRequest)
		return
	}
	step, n := s.answer(&r, body)
	if r.Stream {
		stream(w, &r, step, n)
		return
	}
	var content []map[string]any
	if step.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": step.Text})
	}
	for i, c := range step.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": callID(n, i), "name": c.Tool, "input": c.Input})
	}
	m := message(&r, step, n)
	m["content"], m["stop_reason"] = content, reason(step)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(m)
}

func callID(n, i int) string { return fmt.Sprintf("toolu_%d_%d", n, i) }

func reason(s Step) string {
	if len(s.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func message(r *request, _ Step, n int) map[string]any {
	return map[string]any{"id": fmt.Sprintf("msg_%d", n), "type": "message", "role": "assistant", "model": r.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 10, "output_tokens": 5}}
}

// stream writes the answer as the events of the streaming API.
func stream(w http.ResponseWriter, r *request, step Step, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		data, err := json.Marshal(fields)
		if err == nil {
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
		}
	}
	block := func(i int, start, delta map[string]any) {
		send("content_block_start", map[string]any{"index": i, "content_block": start})
		send("content_block_delta", map[string]any{"index": i, "delta": delta})
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_start", map[string]any{"message": message(r, step, n)})
	i := 0
	if step.Text != "" {
		block(i, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": step.Text})
		i++
	}
	for j, c := range step.Calls {
		input, err := json.Marshal(c.Input)
		if err != nil {
			input = []byte("{}")
		}
		block(i+j, map[string]any{"type": "tool_use", "id": callID(n, j), "name": c.Tool, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": string(input)})
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason(step), "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}})
	send("message_stop", map[string]any{})
}
