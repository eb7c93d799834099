package main

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"example.org/auditd/credential"
	"example.org/auditd/schema"
)

// person is somebody at a terminal of their own, who runs one command.
type person struct {
	t    *testing.T
	file io.ReadWriteCloser
	cmd  *exec.Cmd
	out  *lockedBuffer
	read chan struct{}
}

// sits starts a command with a new terminal as its controlling one.
func (h *home) sits(t *testing.T, args ...string) *person {
	t.Helper()
	exe, err := exec.LookPath("auditd")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(h.env(), "TERM=xterm-256color", "NO_COLOR=")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	x := &person{t: t, file: f, cmd: cmd, out: new(lockedBuffer), read: make(chan struct{})}
	go func() {
		defer close(x.read)
		_, _ = io.Copy(x.out, f) // ends with an error when the terminal does
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // does nothing to one that has ended
		f.Close()
	})
	return x
}

// sees waits until the terminal shows want.
func (x *person) sees(want string) {
	x.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(x.out.String(), want) {
			return
		}
	}
	x.t.Fatalf("never seen: %q in\n%s", want, x.out)
}

func (x *person) types(text string) {
	x.t.Helper()
	if _, err := io.WriteString(x.file, text); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for the command, wants its exit code, and returns all it showed.
func (x *person) ends(code int) string {
	x.t.Helper()
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		x.t.Fatalf("it does not end:\n%s", x.out)
	}
	<-x.read
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d:\n%s", got, code, x.out)
	}
	return x.out.String()
}

var idForm = regexp.MustCompile(`q-[a-z2-7]{10}`)

// asks has an agent ask for something.
func (h *home) asks(t *testing.T, payload, ticket string) schema.Decision {
	t.Helper()
	d, err := h.client().Audit(t.Context(), &schema.Flow{Payload: payload, Ticket: ticket, Source: schema.Source{Kind: schema.SourceAgent, Trust: schema.Derived},
		Sink: schema.Sink{Kind: schema.SinkExec, Tool: "bash"}, Session: schema.Session{Agent: "claude-code:main", ID: "s-1", Workspace: "/srv/shop"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newOwned(t *testing.T) *home {
	t.Helper()
	h := newHome(t, noModel)
	if err := credential.SetPassphrase(filepath.Join(h.dir, "c", "auditd", "owner.json"), testPassphrase, "test", time.Now(), false); err != nil {
		t.Fatal(err)
	}
	h.start(t, "serve")
	return h
}

// TestTerminalApprove: a person at a terminal sees what waits, approves it, and
// the agent goes on, once.
func TestTerminalApprove(t *testing.T) {
	h := newOwned(t)
	const command = "git push origin main \x1b]0;owned\x07\u202ecod.exe"
	d := h.asks(t, command, "")
	if d.Action != schema.DeferToHuman || d.Question == "" {
		t.Fatalf("%+v", d)
	}
	list := h.sits(t, "pending").ends(0)
	if !strings.Contains(list, d.Question) || !strings.Contains(list, "\x1b[") || strings.Contains(list, "git push") {
		t.Errorf("pending shows %q", list)
	}
	full := h.sits(t, "pending", "--full")
	full.sees("Owner's passphrase: ")
	full.types(testPassphrase + "\r")
	if got := full.ends(0); !strings.Contains(got, "git push origin main") || strings.Contains(got, testPassphrase) || strings.Contains(got, "\x1b]0") || strings.Contains(got, "\u202e") {
		t.Errorf("with the payload: %q", got)
	}

	wrong := h.sits(t, "approve", d.Question)
	wrong.sees("Owner's passphrase: ")
	wrong.types("not the passphrase\r")
	if got := wrong.ends(1); strings.Contains(got, "git push") {
		t.Errorf("shown without the passphrase: %q", got)
	}
	unsure := h.sits(t, "approve", d.Question)
	unsure.sees("Owner's passphrase: ")
	unsure.types(testPassphrase + "\r")
	unsure.sees("Allow this? Type yes: ")
	unsure.types("y\r")
	if got := unsure.ends(1); !strings.Contains(got, "it still waits") {
		t.Errorf("unsure: %q", got)
	}
	if again := h.asks(t, command, d.Ticket); again.Action != schema.DeferToHuman {
		t.Errorf("it went on: %+v", again)
	}
	sure := h.sits(t, "approve", d.Question)
	sure.sees("Owner's passphrase: ")
	sure.types(testPassphrase + "\r")
	sure.sees("Allow this? Type yes: ")
	sure.types("yes\r")
	got := sure.ends(0)
	if !strings.Contains(got, d.Question+" is approved.") || strings.Contains(got, testPassphrase) || strings.Contains(got, "\x1b]0") || strings.Contains(got, "\u202e") {
		t.Errorf("approved: %q", got)
	}
	if on := h.asks(t, command, d.Ticket); on.Action != schema.Allow || on.Reason != "approved" {
		t.Errorf("the agent does not go on: %+v", on)
	}
	if once := h.asks(t, command, d.Ticket); once.Action == schema.Allow {
		t.Errorf("the ticket is good twice: %+v", once)
	}
}

// TestTerminalDeny: a no is one command.
func TestTerminalDeny(t *testing.T) {
	h := newOwned(t)
	d := h.asks(t, "npm publish", "")
	no := h.sits(t, "deny", d.Question)
	no.sees("Owner's passphrase: ")
	no.types(testPassphrase + "\r")
	if got := no.ends(0); !strings.Contains(got, d.Question+" is denied.") {
		t.Errorf("denied: %q", got)
	}
	if after := h.asks(t, "npm publish", d.Ticket); after.Action == schema.Allow {
		t.Errorf("it goes on: %+v", after)
	}
	late := h.sits(t, "approve", d.Question)
	late.sees("Owner's passphrase: ")
	late.types(testPassphrase + "\r")
	if got := late.ends(1); !strings.Contains(got, "answered already") {
		t.Errorf("too late: %q", got)
	}
}

// TestTerminalWatch: what waits and what is decided appears by itself.
func TestTerminalWatch(t *testing.T) {
	h := newOwned(t)
	pending, feed := h.sits(t, "pending", "--watch"), h.sits(t, "feed", "--watch")
	time.Sleep(100 * time.Millisecond)
	d := h.asks(t, "git push origin main", "")
	pending.sees(d.Question)
	feed.sees("ASKED")
	deny := h.sits(t, "deny", d.Question)
	deny.sees("Owner's passphrase: ")
	deny.types(testPassphrase + "\r")
	deny.ends(0)
	pending.sees(d.Question + " no longer waits.")
	second := h.asks(t, "git push --tags", "")
	pending.sees(second.Question)
	for _, x := range []*person{pending, feed} {
		x.types("\x03")
	}
	got := pending.ends(0)
	feed.ends(0)
	ids := idForm.FindAllString(got, -1)
	count := map[string]int{}
	for _, id := range ids {
		count[id]++
	}
	if count[second.Question] != 1 {
		t.Errorf("%s is shown %d times in %q", second.Question, count[second.Question], got)
	}
}

// TestTerminalPassphrase: only a person can set it.
func TestTerminalPassphrase(t *testing.T) {
	h := newHome(t, noModel)
	word := regexp.MustCompile(`type ([a-z2-7]{7}): `)
	begin := func() (*person, string) {
		t.Helper()
		x := h.sits(t, "passphrase", "set")
		x.sees(": ")
		m := word.FindStringSubmatch(x.out.String())
		if m == nil {
			t.Fatalf("no word in %q", x.out)
		}
		return x, m[1]
	}
	x, _ := begin()
	x.types("another\r")
	if got := x.ends(1); !strings.Contains(got, "that was not the word") {
		t.Errorf("%q", got)
	}
	set := func(first, second string, code int, want string) {
		t.Helper()
		x, shown := begin()
		x.types(shown + "\r")
		x.sees("New passphrase")
		x.types(first + "\r")
		x.sees("Once more: ")
		x.types(second + "\r")
		if got := x.ends(code); !strings.Contains(got, want) || strings.Contains(got, first) {
			t.Errorf("%q", got)
		}
	}
	set("one long passphrase", "another long passphrase", 1, "not the same")
	set("short", "short", 1, fmt.Sprint(credential.MinPassphrase))
	set(testPassphrase, testPassphrase, 0, "The passphrase is set.")
	h.start(t, "serve")
	login := h.sits(t, "login")
	login.sees("Owner's passphrase: ")
	login.types(testPassphrase + "\r")
	if got := login.ends(0); !strings.Contains(got, "/#code=") {
		t.Errorf("login: %q", got)
	}
}
