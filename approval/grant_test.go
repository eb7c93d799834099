package approval_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/auditd/approval"
	"example.org/auditd/schema"
)

func allowed(t *testing.T, f *fixture, flow *schema.Flow, hard bool) bool {
	t.Helper()
	id, ok, err := f.Allowed(context.Background(), flow, hard)
	if err != nil {
		t.Fatal(err)
	}
	if ok != (id != "") {
		t.Fatalf("ok %v with id %q", ok, id)
	}
	return ok
}

func grant(t *testing.T, f *fixture, payload string, g approval.Grant) (*approval.Grant, error) {
	t.Helper()
	a := ask(t, f.Queue, payload)
	err := f.Answer(context.Background(), a.ID, true, "owner", &g)
	return &g, err
}

func TestGrantUses(t *testing.T) {
	f := setUp(t, nil)
	if allowed(t, f, question(t, "git push").Flow, false) {
		t.Fatal("allowed without a grant")
	}
	g, err := grant(t, f, "git push", approval.Grant{Uses: 5})
	if err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, ok, err := f.Allowed(context.Background(), question(t, "git push").Flow, false); err != nil {
				t.Error(err)
			} else if ok {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 5 {
		t.Errorf("%d uses of 5", won.Load())
	}
	if list, err := f.Grants(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("used up, but listed: %+v, %v", list, err)
	}
	if g.ID == "" || g.By != "owner" {
		t.Errorf("grant: %+v", g)
	}
}

func TestGrantScope(t *testing.T) {
	f := setUp(t, nil)
	if _, err := grant(t, f, "git push", approval.Grant{ThisSession: true}); err != nil {
		t.Fatal(err)
	}
	if !allowed(t, f, question(t, "git push").Flow, false) {
		t.Fatal("not allowed")
	}
	if allowed(t, f, question(t, "git push").Flow, true) {
		t.Error("a hard flow was allowed")
	}
	if allowed(t, f, nil, false) {
		t.Error("nothing was allowed")
	}
	for name, change := range map[string]func(*schema.Flow){
		"command":     func(f *schema.Flow) { f.Payload = "git push --force" },
		"agent":       func(f *schema.Flow) { f.Session.Agent = "other" },
		"session":     func(f *schema.Flow) { f.Session.ID = "s2" },
		"workspace":   func(f *schema.Flow) { f.Session.Workspace = "/other" },
		"tool":        func(f *schema.Flow) { f.Sink.Tool = "other" },
		"sink kind":   func(f *schema.Flow) { f.Sink.Kind = schema.SinkWeb },
		"sink id":     func(f *schema.Flow) { f.Sink.ID = "other" },
		"action":      func(f *schema.Flow) { f.Sink.Action = "other" },
		"destination": func(f *schema.Flow) { f.Sink.Destination = "other" },
		"symbol":      func(f *schema.Flow) { f.Sink.Destination = "⟦S1⟧" },
	} {
		flow := question(t, "git push").Flow
		change(flow)
		if allowed(t, f, flow, false) {
			t.Errorf("another %s was allowed", name)
		}
	}
	list, err := f.Grants(t.Context())
	if err != nil || len(list) != 1 || list[0].Used != 1 || list[0].Session != "s1" {
		t.Fatalf("grants: %+v, %v", list, err)
	}
	// After a restart too, until it is revoked.
	f.db.Close()
	f.db, f.Queue = openQueue(t, f.path, f.clock, nil)
	if !allowed(t, f, question(t, "git push").Flow, false) {
		t.Error("not allowed after a restart")
	}
	if err := f.Revoke(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if allowed(t, f, question(t, "git push").Flow, false) {
		t.Error("allowed after revoking")
	}
	if err := f.Revoke(t.Context(), list[0].ID); !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestGrantTime(t *testing.T) {
	f := setUp(t, nil)
	g, err := grant(t, f, "git push", approval.Grant{Until: f.now().Add(time.Hour)})
	if err != nil || g.Uses != 1000 {
		t.Fatalf("%+v, %v", g, err)
	}
	f.add(time.Hour - 1)
	if !allowed(t, f, question(t, "git push").Flow, false) {
		t.Error("not allowed before its end")
	}
	f.add(1)
	if allowed(t, f, question(t, "git push").Flow, false) {
		t.Error("allowed after its end")
	}
	g, err = grant(t, f, "git pull", approval.Grant{Until: f.now().AddDate(1, 0, 0), Uses: 1 << 40})
	if err != nil || g.Uses != 1000 || g.Until.After(f.now().Add(7*24*time.Hour)) {
		t.Errorf("without limits: %+v, %v", g, err)
	}
}

func TestGrantRefused(t *testing.T) {
	f := setUp(t, nil)
	three := approval.Grant{Uses: 3}
	for name, c := range map[string]struct {
		change func(*schema.Question)
		grant  approval.Grant
		want   error
	}{
		"hard":    {func(q *schema.Question) { q.Hard = true }, three, approval.ErrNoGrant},
		"symbols": {func(q *schema.Question) { q.Flow.Payload = "echo ⟦S1⟧" }, three, approval.ErrNoGrant},
		"shell":   {func(q *schema.Question) { q.Flow.Payload = "bash build" }, three, approval.ErrNoGrant},
		"two":     {func(q *schema.Question) { q.Flow.Payload = "ls; rm x" }, three, approval.ErrNoGrant},
		"tool": {func(q *schema.Question) {
			q.Flow.Sink.Kind, q.Flow.Sink.Tool, q.Flow.Payload = schema.SinkTool, "Bash", "ls; rm x"
		}, three, approval.ErrNoGrant},
		"nothing":    {func(q *schema.Question) {}, approval.Grant{}, approval.ErrGrantForm},
		"negative":   {func(q *schema.Question) {}, approval.Grant{Uses: -1}, approval.ErrGrantForm},
		"past":       {func(q *schema.Question) {}, approval.Grant{Until: f.now().Add(-1)}, approval.ErrGrantForm},
		"no session": {func(q *schema.Question) { q.Flow.Session.ID = "" }, approval.Grant{ThisSession: true}, approval.ErrGrantForm},
	} {
		q := question(t, "git push "+name)
		c.change(q)
		a, err := f.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		g := c.grant
		if err := f.Answer(t.Context(), a.ID, true, "owner", &g); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		// A refused grant leaves the question as it was: it can be answered without.
		if got, _ := f.Get(t.Context(), a.ID); got.Answer != "" {
			t.Errorf("%s: answered all the same", name)
		}
		if err := f.Answer(t.Context(), a.ID, true, "owner", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := ask(t, f.Queue, "ls -l")
	if err := f.Answer(t.Context(), a.ID, false, "owner", &three); err == nil {
		t.Error("a grant came with a no")
	}
	if list, _ := f.Grants(t.Context()); len(list) != 0 {
		t.Errorf("grants: %+v", list)
	}
}

func TestGrantable(t *testing.T) {
	for _, command := range []string{
		"git push", "git add .", "git commit -m fix", "ls -la /tmp", "rm -r build", "cp -r a b", "grep -rn word src", "gh pr list",
		"mkdir -p a/b", "curl -O https://example.org/x", "tar xf a.tar.gz", "date",
	} {
		if !approval.Grantable(command) {
			t.Errorf("%q is refused", command)
		}
	}
	for _, command := range []string{
		"", "  ", "sh", "/bin/sh", "bash -c ls", "dash x", "zsh", "fish", "busybox sh", "python3.12 x.py", "/usr/bin/python x", "PYTHON x",
		"pypy3", "perl x", "ruby x", "node x.js", "nodejs", "deno run x", "php x", "eval ls", "exec ls", "source x", ". x", "sudo ls", "doas ls",
		"su root", "env ls", "env FOO=1 ls", "xargs rm", "ssh host", "ssh host ls", "scp a b", "rsync a b", "nohup ls", "timeout 5 ls", "time ls",
		"watch ls", "nice ls", "find . -exec rm", "find . -execdir rm", "find . -ok rm", "awk x", "sed x", "vim x", "make", "npm run x", "npx x",
		"docker run x", "kubectl exec x", "parallel rm", "git -c core.pager=x log", "git --exec-path=/x log", "tar --to-command=x xf a",
		"tar --to-com=x xf a", "tar --checkpoint-action=exec=sh xf a", "tar -I x xf a", "tar -Ix xf a", "FOO=1 ls", "ls; rm x", "ls | sh", "ls && rm x",
		"ls &", "ls $HOME", "ls `x`", "ls $(x)", "ls > x", "ls < x", "ls *", "ls ~", "ls {a,b}", "ls 'a b'", `ls "a"`, `l\s`, "ls\nrm x", "ls\x00",
		"nohup bash x", "git difftool --extcmd=bash", "!!", "ls # x", "stdbuf -o0 ls", "systemd-run ls", "setsid ls", "powershell x", "cmd.exe /c x",
	} {
		if approval.Grantable(command) {
			t.Errorf("%q may be granted", command)
		}
	}
}
