//go:build agents

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.org/auditd/client"
	"example.org/auditd/install"
	"example.org/auditd/install/provider"
)

// gate is a real OpenClaw gateway with auditd's plugin, a scripted model, and a
// Telegram server of the test's.
type gate struct {
	*desk
	claw     *install.OpenClaw
	model    *provider.Server
	telegram *telegram
	config   map[string]any // before auditd was put into it
	port     int
	output   *bytes.Buffer
	top      *testing.T // the test that the gateway lives in
}

func (x *gate) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.top.Context(), d)
}

// clientOf is a client of the daemon itself, past the front.
func (x *gate) clientOf() *client.Client {
	return &client.Client{URL: "http://" + x.cfg.Listen, Token: x.token}
}

// telegram is as much of the Bot API as OpenClaw's channel uses.
type telegram struct {
	url  string
	mu   sync.Mutex
	next int
	wait []map[string]any // updates
	sent []sent
	more chan struct{} // closed when something changes, guarded by mu
}

type sent struct {
	Method string
	Chat   string
	Text   string
}

func newTelegram(t *testing.T) *telegram {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &telegram{url: "http://" + l.Addr().String(), next: 100, more: make(chan struct{})}
	s := &http.Server{Handler: g}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return g
}

func (g *telegram) changed() {
	close(g.more)
	g.more = make(chan struct{})
}

// say is a person's message to the bot.
func (g *telegram) say(from int, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	who := map[string]any{"id": from, "is_bot": false, "first_name": "P", "username": fmt.Sprint("p", from)}
	g.wait = append(g.wait, map[string]any{"update_id": g.next, "message": map[string]any{"message_id": g.next + 1000, "date": time.Now().Unix(),
		"chat": map[string]any{"id": from, "type": "private", "first_name": "P"}, "from": who, "text": text}})
	g.changed()
}

// messages are those that were sent so far.
func (g *telegram) messages() []sent {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]sent(nil), g.sent...)
}

// until waits for a message that holds text.
func (g *telegram) until(ctx context.Context, text string) bool {
	for {
		g.mu.Lock()
		more := g.more
		for _, m := range g.sent {
			if strings.Contains(m.Text, text) {
				g.mu.Unlock()
				return true
			}
		}
		g.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

func (g *telegram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	var p map[string]any
	json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&p)
	text := func(name string) string {
		if v, ok := p[name]; ok {
			return strings.TrimSuffix(fmt.Sprint(v), ".0")
		}
		return ""
	}
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": v})
	}
	switch method {
	case "getMe":
		answer(map[string]any{"id": 42, "is_bot": true, "first_name": "Bot", "username": "test_bot", "can_join_groups": true, "can_read_all_group_messages": false, "supports_inline_queries": false})
	case "getUpdates":
		offset, _ := p["offset"].(float64)
		end := time.After(15 * time.Second)
		for {
			g.mu.Lock()
			var list []map[string]any
			for _, u := range g.wait {
				if u["update_id"].(int) >= int(offset) {
					list = append(list, u)
				}
			}
			g.wait = list
			more := g.more
			g.mu.Unlock()
			if len(list) > 0 {
				answer(list)
				return
			}
			select {
			case <-more:
			case <-end:
				answer([]any{})
				return
			case <-r.Context().Done():
				return
			}
		}
	case "sendMessage", "editMessageText":
		g.mu.Lock()
		g.next++
		g.sent = append(g.sent, sent{method, text("chat_id"), text("text")})
		id := g.next + 1000
		g.changed()
		g.mu.Unlock()
		answer(map[string]any{"message_id": id, "date": time.Now().Unix(), "chat": map[string]any{"id": p["chat_id"], "type": "private"}, "text": text("text")})
	default:
		answer(true)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// openClawProgram is a program that runs OpenClaw with Node 24, as the one that
// an owner has in PATH does.
func openClawProgram(t *testing.T, dir string) string {
	node, claw := os.Getenv("AUDITD_TEST_NODE"), os.Getenv("AUDITD_TEST_OPENCLAW")
	if node == "" || claw == "" {
		t.Fatal("run this through scripts/agents.sh")
	}
	path := filepath.Join(dir, "openclaw")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec '"+node+"' '"+claw+"' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// newGate prepares an OpenClaw home with auditd in it. The gateway is not started.
func newGate(t *testing.T, change func(*install.OpenClaw)) *gate {
	t.Helper()
	return newGateWith(t, "", "", nil, change)
}

// newGateWith is newGate with a policy, rules of isolation and OpenClaw's
// configuration of the test's.
func newGateWith(t *testing.T, policy, rules string, configure func(map[string]any), change func(*install.OpenClaw)) *gate {
	t.Helper()
	x := &gate{desk: startDaemonWith(t, policy, rules), telegram: newTelegram(t), port: freePort(t), top: t}
	x.agent = openClawProgram(t, x.dir)
	var err error
	if x.model, err = provider.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.model.Close() })
	home, work := filepath.Join(x.dir, "home"), x.path("")
	for _, d := range []string{filepath.Join(home, ".openclaw"), work, filepath.Join(x.dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	x.config = map[string]any{
		"agents": map[string]any{"defaults": map[string]any{"workspace": work, "skipBootstrap": true, "model": map[string]any{"primary": "mock/mock-1"}}},
		"models": map[string]any{"mode": "replace", "providers": map[string]any{"mock": map[string]any{"baseUrl": x.model.URL + "/v1", "apiKey": "k", "api": "openai-completions",
			"models": []any{map[string]any{"id": "mock-1", "name": "Mock", "reasoning": false, "input": []string{"text"}, "cost": map[string]any{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 128000, "maxTokens": 4096}}}}},
		"tools":    map[string]any{"profile": "full", "web": map[string]any{"fetch": map[string]any{"ssrfPolicy": map[string]any{"allowedHostnames": []string{"127.0.0.1"}}}}},
		"plugins":  map[string]any{"allow": []string{"memory-core", "telegram"}},
		"channels": map[string]any{"telegram": map[string]any{"enabled": true, "botToken": "123456:TEST", "apiRoot": x.telegram.url, "dmPolicy": "open", "allowFrom": []string{"*"}}},
		"commands": map[string]any{"ownerAllowFrom": []string{"telegram:777"}},
		"memory":   map[string]any{"search": map[string]any{"provider": "none"}},
		"hooks":    map[string]any{"enabled": true, "token": "hook-token", "path": "/hooks"},
		"logging":  map[string]any{"file": filepath.Join(x.dir, "openclaw.log")},
		"gateway": map[string]any{"mode": "local", "bind": "loopback", "port": x.port, "auth": map[string]any{"mode": "token", "token": "gateway-token"},
			"http": map[string]any{"endpoints": map[string]any{"chatCompletions": map[string]any{"enabled": true}}}},
	}
	x.claw = &install.OpenClaw{Settings: filepath.Join(home, ".openclaw", "openclaw.json"), State: filepath.Join(x.cfg.State, "install"),
		URL: x.front.url, TokenFile: filepath.Join(x.cfg.State, "hook.token"), Timeout: 10 * time.Second, Now: time.Now}
	if configure != nil {
		configure(x.config)
	}
	data, err := json.MarshalIndent(x.config, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.claw.Settings, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(x.claw)
	}
	if _, err := x.claw.Install(); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *gate) env() []string {
	home := filepath.Join(x.dir, "home")
	return []string{"PATH=/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + filepath.Join(x.dir, "tmp"), "OPENCLAW_STATE_DIR=" + filepath.Join(home, ".openclaw"),
		"OPENCLAW_CONFIG_PATH=" + x.claw.Settings, "OPENCLAW_DISABLE_BONJOUR=1"}
}

// start starts the gateway and waits until it answers. On a busy machine
// OpenClaw gives up by itself now and then.
func (x *gate) start() {
	x.t.Helper()
	for try := range 4 {
		if x.startOnce() {
			return
		}
		x.t.Logf("start %d: the gateway ended: %s", try+1, x.output)
		// What it left half done it would refuse to start on.
		home := filepath.Dir(x.claw.Settings)
		entries, err := os.ReadDir(home)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, e := range entries {
			if path := filepath.Join(home, e.Name()); path != x.claw.Settings {
				os.RemoveAll(path)
			}
		}
	}
	x.t.Fatal("the gateway does not start")
}

func (x *gate) startOnce() bool {
	x.t.Helper()
	x.output = new(bytes.Buffer)
	cmd := exec.Command(x.agent, "gateway", "run")
	cmd.Dir, cmd.Env = x.path(""), x.env()
	cmd.Stdout, cmd.Stderr = x.output, x.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	output := x.output
	end := func() {
		// Asked to end, it would wait minutes for what runs in the background.
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
	}
	ctx, cancel := context.WithTimeout(x.t.Context(), 10*time.Minute)
	defer cancel()
	for {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", x.port), nil)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				x.top.Cleanup(func() {
					end()
					if x.top.Failed() {
						x.top.Logf("the gateway said:\n%s", output)
					}
				})
				return true
			}
		}
		select {
		case <-done:
			end()
			return false
		case <-ctx.Done():
			end()
			x.t.Fatalf("the gateway is not ready: %s", output)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// post sends one request to the gateway and returns its answer.
func (x *gate) post(path, token string, body any) (int, string) {
	x.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(x.t.Context(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", x.port, path), bytes.NewReader(data))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		x.t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

// chat plays steps as an owner's turn of a session of its own, and returns what
// came back.
func (x *gate) chat(name string, steps ...provider.Step) string {
	x.t.Helper()
	x.model.Add(name, steps)
	_, answer := x.post("/v1/chat/completions", "gateway-token", map[string]any{"model": "openclaw", "user": name, "messages": []any{map[string]any{"role": "user", "content": provider.Prompt(name)}}})
	return answer
}
