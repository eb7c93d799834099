package entry

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"

	"example.org/auditd/bench/cases"
	"example.org/auditd/bench/quality"
	"example.org/auditd/schema"
)

// MCP is a client, `auditd mcp`, and a server whose tools answer with a case's
// payload or take it as their arguments. It sends one case at a time.
//
// An MCP proxy hears neither the owner's wish nor where arguments come from:
// they are an agent's whose session has read what nobody knows.
type MCP struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan []byte
	server *http.Server
	next   int

	mu      sync.Mutex
	result  json.RawMessage // of the next call; guarded by mu
	arrived json.RawMessage // arguments that reached the server; nil: none did
}

// StartMCP starts the proxy between both.
func (p *Program) StartMCP(ctx context.Context) (_ *MCP, err error) {
	m := &MCP{lines: make(chan []byte)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the MCP server: %w", err)
	}
	m.server = &http.Server{Handler: m}
	go m.server.Serve(l)
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	m.cmd = exec.CommandContext(ctx, p.Exe, "mcp", "--name", "bench", "--url", "http://"+l.Addr().String()+"/")
	m.cmd.Env, m.cmd.Dir = p.Env, p.Dir
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start auditd mcp: %w", err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start auditd mcp: %w", err)
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start auditd mcp: %w", err)
	}
	go func() {
		defer close(m.lines)
		sc := bufio.NewScanner(out)
		sc.Buffer(nil, maxOutput)
		for sc.Scan() {
			m.lines <- append([]byte(nil), sc.Bytes()...)
		}
	}()
	if _, err := m.call(ctx, "initialize", object("protocolVersion", protocol, "capabilities", object(), "clientInfo", object("name", "bench", "version", "1"))); err != nil {
		return nil, fmt.Errorf("auditd mcp does not answer: %w", err)
	}
	return m, m.write(object("jsonrpc", "2.0", "method", "notifications/initialized"))
}

const protocol = "2025-06-18"

// Close ends the proxy and the server.
func (m *MCP) Close() error {
	m.server.Close()
	if m.cmd == nil || m.cmd.Process == nil {
		return nil
	}
	m.stdin.Close() // the proxy ends with its client
	for range m.lines {
	}
	return m.cmd.Wait()
}

// Send sends a case and judges what reached the server, or the client.
func (m *MCP) Send(ctx context.Context, k *cases.Case) quality.Verdict {
	f := &k.Flow
	inward := f.Sink.Kind == schema.SinkReasoning
	arguments := object()
	said := encode(object("content", []any{object("type", "text", "text", "done")}))
	if inward {
		said = encode(object("content", []any{object("type", "text", "text", f.Payload)}))
	} else {
		arguments = callArguments(f)
	}
	m.mu.Lock()
	m.result, m.arrived = said, nil
	m.mu.Unlock()
	answer, err := m.call(ctx, "tools/call", object("name", toolName(f), "arguments", arguments))
	if err != nil {
		return failed("not_decided")
	}
	m.mu.Lock()
	arrived := m.arrived
	m.mu.Unlock()
	var r struct {
		IsError bool `json:"isError"`
	}
	if json.Unmarshal(answer, &r) != nil {
		return failed("no_answer")
	}
	switch {
	case r.IsError && (inward || arrived == nil):
		return verdict(k, stopped(string(answer)), "", "refused")
	case inward && same(answer, said), !inward && same(arrived, encode(arguments)):
		return verdict(k, schema.Allow, f.Payload, "no_objection")
	case inward:
		return verdict(k, schema.RewriteAndContinue, cases.Leaves(answer), "result_changed")
	case arrived != nil:
		return verdict(k, schema.RewriteAndContinue, cases.Leaves(arrived), "arguments_changed")
	}
	return failed("no_answer")
}

// same reports whether two documents hold the same.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && string(encode(x)) == string(encode(y))
}

func (m *MCP) write(v any) error {
	if _, err := m.stdin.Write(append(encode(v), '\n')); err != nil {
		return fmt.Errorf("write to auditd mcp: %w", err)
	}
	return nil
}

// call sends a request and waits for its answer.
func (m *MCP) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	m.next++
	id := m.next
	if err := m.write(object("jsonrpc", "2.0", "id", id, "method", method, "params", params)); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case line, ok := <-m.lines:
			if !ok {
				return nil, errors.New("auditd mcp has ended")
			}
			var r struct {
				ID     int             `json:"id"`
				Result json.RawMessage `json:"result"`
			}
			if json.Unmarshal(line, &r) != nil || r.ID != id {
				continue // a notification
			}
			if r.Result == nil {
				return nil, errors.New("auditd mcp answers with an error")
			}
			return r.Result, nil
		}
	}
}

// ServeHTTP is the MCP server, by the streamable HTTP transport.
func (m *MCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if json.NewDecoder(io.LimitReader(r.Body, maxOutput)).Decode(&in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var result json.RawMessage
	switch {
	case r.Method != http.MethodPost || len(in.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
		return
	case in.Method == "initialize":
		result = encode(object("protocolVersion", protocol, "capabilities", object("tools", object()), "serverInfo", object("name", "bench", "version", "1")))
	case in.Method == "tools/call":
		m.mu.Lock()
		m.arrived, result = in.Params.Arguments, m.result
		m.mu.Unlock()
	default:
		result = json.RawMessage("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(encode(object("jsonrpc", "2.0", "id", in.ID, "result", result)))
}

// toolName is the tool that a case goes to where the host has none of its own
// for it.
func toolName(f *schema.Flow) string {
	if f.Sink.Tool != "" {
		return f.Sink.Tool
	}
	if f.Sink.Kind == schema.SinkReasoning {
		return "look"
	}
	return f.Sink.Kind.String()
}

// callArguments are a flow's payload as a tool's arguments.
func callArguments(f *schema.Flow) map[string]any {
	var params map[string]any
	if json.Unmarshal([]byte(f.Payload), &params) == nil && params != nil {
		return params
	}
	switch f.Sink.Kind {
	case schema.SinkExec:
		if f.Sink.Tool == "bash" {
			return object("command", f.Payload)
		}
		return object("code", f.Payload)
	case schema.SinkMessage:
		return object("recipient", f.Sink.Destination, "message", f.Payload)
	case schema.SinkWeb:
		if f.Sink.Tool == "web_fetch" {
			return object("url", f.Payload)
		}
		return object("query", f.Payload)
	}
	return object("id", f.Sink.ID, "content", f.Payload)
}
