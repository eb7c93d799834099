package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/auditlog"
	"example.org/auditd/client"
	"example.org/auditd/credential"
	"example.org/auditd/dualview/shell"
	"example.org/auditd/inference/ollama"
	"example.org/auditd/inference/onnx"
	"example.org/auditd/install"
	"example.org/auditd/policy"
)

// finding is one line of the doctor's report.
type finding struct {
	Part   string `json:"part"`
	State  string `json:"state"` // ok, warning or failed
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"`
}

// doctor looks and changes nothing.
type doctor struct {
	p        *program
	cfg      *Config
	findings []finding
}

func (d *doctor) say(part, state, detail, mend string) {
	d.findings = append(d.findings, finding{part, state, detail, mend})
}

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what runs, what would fail, and how to mend it", GroupID: "run", Args: cobra.NoArgs,
		Long: "doctor looks at everything that a decision needs and changes nothing. Exit code 1 when something would fail.",
		RunE: func(c *cobra.Command, _ []string) error { return p.doctor(c.Context()) },
	}
}

func (p *program) doctor(ctx context.Context) error {
	d := &doctor{p: p}
	cfg, err := p.config()
	if err != nil {
		d.say("configuration", "failed", err.Error(), "docs/configuration.md describes every field")
		return d.report()
	}
	d.cfg = cfg
	source := p.configFile
	if source == "" {
		source = filepath.Join(configDir(p.getenv), "config.yaml")
		if _, err := os.Stat(source); err != nil {
			source = "the built-in defaults; there is no " + source
		}
	}
	d.say("configuration", "ok", source, "")
	d.policy()
	d.isolation(ctx)
	d.state()
	running := d.daemon(ctx)
	d.proxy(ctx, running)
	d.owner()
	if cfg.Auditor == "onnx" || cfg.Auditor == "cascade" {
		d.onnx(ctx)
	}
	if cfg.Auditor == "ollama" || cfg.Auditor == "cascade" && cfg.Cascade == "ollama" {
		d.ollama(ctx)
	}
	if cfg.Auditor == "none" {
		d.say("auditor", "warning", "none: whatever the precheck leaves open waits for a person or is blocked", "set auditor in the configuration, or run `auditd use onnx`")
	}
	d.log(running)
	return d.report()
}

func (d *doctor) report() error {
	failed := 0
	for _, f := range d.findings {
		if f.State == "failed" {
			failed++
		}
	}
	if d.p.jsonOut {
		if err := d.p.printJSON(map[string]any{"findings": d.findings}); err != nil {
			return err
		}
	} else {
		o := d.p.painter(d.p.stdout)
		for _, f := range d.findings {
			mark, s := "✓", green
			switch f.State {
			case "warning":
				mark, s = "!", yellow
			case "failed":
				mark, s = "✗", red
			}
			for i, line := range wrap(oneLine(f.Detail, 600), o.width-19) {
				if i == 0 {
					o.printf("%s %-14s %s\n", o.paint(s, mark), f.Part, line)
				} else {
					o.printf("  %-14s %s\n", "", line)
				}
			}
			if f.Mend != "" {
				o.printf("  %-14s %s %s\n", "", o.paint(blue, "→"), f.Mend)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d things would fail", failed)
	}
	return nil
}

// proxy looks at the model proxy, and at what agents were given it.
func (d *doctor) proxy(ctx context.Context, running bool) {
	routes := len(install.Routes(installState(d.cfg)))
	switch address := d.cfg.Proxy.Listen; {
	case address == off && routes > 0:
		d.say("model proxy", "failed", fmt.Sprintf("off, and %d base URLs of agents lead to it", routes), "set proxy.listen, or install with --no-model-proxy")
	case address == off:
		d.say("model proxy", "warning", "off: what a hook misses reaches the model", "set proxy.listen in the configuration")
	case !running:
		d.say("model proxy", "ok", fmt.Sprintf("will answer on %s; %d base URLs of agents lead to it", address, routes), "")
	default:
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			d.say("model proxy", "failed", "nothing answers on "+address, "restart the daemon")
			return
		}
		conn.Close()
		d.say("model proxy", "ok", fmt.Sprintf("%s; %d base URLs of agents lead to it", address, routes), "")
	}
}

func (d *doctor) policy() {
	if d.cfg.Policy == "" {
		d.say("policy", "ok", "built in", "")
		return
	}
	problems, err := policy.Check(d.cfg.Policy)
	switch {
	case err != nil:
		d.say("policy", "failed", err.Error(), "")
	case len(problems) > 0:
		d.say("policy", "failed", fmt.Sprintf("%s: %s (%d problems)", d.cfg.Policy, problems[0], len(problems)), "`auditd policy check` lists them")
	default:
		d.say("policy", "ok", d.cfg.Policy, "")
	}
}

// isolation says whether this machine can isolate, where the policy says that it
// has to. It tries the shell out as the daemon does at its start.
func (d *doctor) isolation(ctx context.Context) {
	p, err := loadPolicy(d.cfg.Policy)
	if err != nil {
		return // said already
	}
	agents := strings.Join(p.Isolates(), ", ")
	if _, err := loadIsolation(d.cfg.isolationFile); err != nil {
		d.say("isolation", "failed", err.Error(), "`auditd policy check` checks it again")
		return
	}
	if agents == "" {
		d.say("isolation", "ok", "off: the policy isolates no agent", "")
		return
	}
	if err := shell.Probe(ctx); err != nil {
		d.say("isolation", "failed", agents+" are refused: "+oneLine(err.Error(), 400), "bubblewrap must be installed, and the kernel must let it make user namespaces")
		return
	}
	if _, err := exec.LookPath("git"); err != nil {
		d.say("isolation", "failed", agents+" are refused: git is missing", "install git")
		return
	}
	d.say("isolation", "ok", agents+": the isolated shell works on this machine", "")
}

// state looks at what others may read, and at the room on the disk: a log that
// can't be written stops every flow.
func (d *doctor) state() {
	info, err := os.Stat(d.cfg.State)
	if errors.Is(err, fs.ErrNotExist) {
		d.say("state", "ok", d.cfg.State+" does not exist yet; the first start makes it", "")
		return
	}
	if err != nil {
		d.say("state", "failed", err.Error(), "")
		return
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		d.say("state", "failed", fmt.Sprintf("%s has mode %#o: others can read it", d.cfg.State, perm), "chmod 700 "+d.cfg.State)
	} else {
		d.say("state", "ok", d.cfg.State, "")
	}
	var disk syscall.Statfs_t
	if syscall.Statfs(d.cfg.State, &disk) == nil {
		free := disk.Bavail * uint64(disk.Bsize) >> 20
		if free < 100 {
			d.say("disk", "failed", fmt.Sprintf("%d MiB are free; a decision that can't be recorded is a block", free), "free some space")
		}
	}
	if _, err := credential.ReadHookToken(client.TokenPath(d.cfg.State)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.say("hook token", "failed", err.Error(), "")
	}
}

// daemon asks the daemon, and if there is none, who has its port.
func (d *doctor) daemon(ctx context.Context) bool {
	c, err := d.p.client()
	if err != nil {
		d.say("daemon", "failed", err.Error(), "")
		return false
	}
	c.Timeout = 3 * time.Second
	h, err := c.Health(ctx)
	if err != nil {
		if conn, dialErr := net.DialTimeout("tcp", d.cfg.Listen, time.Second); dialErr == nil {
			conn.Close()
			d.say("daemon", "failed", "not running, and another program listens on "+d.cfg.Listen, "stop that program, or set listen in the configuration")
			return false
		}
		d.say("daemon", "failed", "not running", "auditd serve")
		return false
	}
	d.say("daemon", "ok", "runs, version "+h.Version, "")
	if h.Version != version() {
		d.say("version", "warning", "this program is "+version()+", the daemon is "+h.Version, "restart the daemon")
	}
	if r, err := c.IsolationRules(ctx); err == nil && r.Edited {
		d.say("isolation", "warning", "isolation.yaml was edited; what held before still holds", "auditd policy reload, if it was you")
	}
	ready, err := c.Ready(ctx)
	switch {
	case err != nil:
		d.say("ready", "failed", err.Error(), "")
	case ready.Ready:
		d.say("ready", "ok", "every flow can be decided", "")
	default:
		for _, m := range ready.Missing {
			d.say("ready", "warning", m+"; until then what needs it waits for a person or is blocked", "")
		}
	}
	return true
}

func (d *doctor) owner() {
	p, err := credential.ReadPassphrase(d.cfg.ownerFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.say("owner", "warning", "no passphrase: nothing can be approved, deferred flows expire", "auditd passphrase set")
	case err != nil:
		d.say("owner", "failed", err.Error(), "")
	default:
		d.say("owner", "ok", "passphrase set on "+p.SetAt.Local().Format(time.DateTime)+" at "+oneLine(p.Terminal, 40)+" (if that was not you, somebody else approves in your name)", "")
	}
}

func (d *doctor) onnx(ctx context.Context) {
	lib, err := onnx.FindLibrary(d.cfg.Onnx.Library, cacheDir(d.p.getenv))
	if err != nil {
		d.say("ONNX Runtime", "failed", err.Error(), "make deps, or set onnx.library in the configuration")
		return
	}
	d.say("ONNX Runtime", "ok", lib, "")
	a, err := new(judges).openOnnx(d.cfg, d.p.getenv, nil)
	if err != nil {
		d.say("auditor", "failed", err.Error(), "")
		return
	}
	defer a.(*onnx.Auditor).Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	start := time.Now()
	if err := a.(*onnx.Auditor).Wait(ctx); err != nil {
		d.say("auditor", "failed", err.Error(), "")
		return
	}
	if err := a.Ready(); err != nil {
		d.say("auditor", "failed", err.Error(), "")
		return
	}
	d.say("auditor", "ok", a.Identity()+", loads in "+time.Since(start).Round(time.Millisecond).String(), "")
}

// ollama looks for the server where the configuration says and, when it is not
// there, where it usually hides: on the host of a container or of WSL.
func (d *doctor) ollama(ctx context.Context) {
	b, err := ollama.New(ollama.Config{URL: d.cfg.Ollama.URL, Model: ollamaModel(d.cfg), StateDir: d.cfg.State, Threads: d.cfg.Ollama.Threads, LoadTimeout: 20 * time.Second})
	if err != nil {
		d.say("Ollama", "failed", err.Error(), "")
		return
	}
	if !answers(d.cfg.Ollama.URL) {
		mend := "ollama serve, or set ollama.url in the configuration"
		for _, url := range []string{"http://host.docker.internal:11434", "http://" + gateway() + ":11434"} {
			if answers(url) {
				mend = "a server answers at " + url + ": set ollama.url to it"
				break
			}
		}
		d.say("Ollama", "failed", "no server at "+d.cfg.Ollama.URL, mend)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	b.Start(ctx)
	defer b.Close()
	for b.Ready() != nil && ctx.Err() == nil { // it may be loading
		time.Sleep(50 * time.Millisecond)
	}
	s := b.Status()
	if s.Problem != "" || b.Ready() != nil {
		d.say("Ollama", "failed", s.URL+", model "+s.Model+": "+s.Problem, "auditd pull "+s.Model)
		return
	}
	d.say("Ollama", "ok", fmt.Sprintf("%s version %s, model %s %s", s.URL, s.Version, s.Model, oneLine(s.Digest, 20)), "")
	if q := s.Probe; q != nil {
		state := "ok"
		if !q.Answers || !q.Schema || q.Thinks && !q.ThinkOff {
			state = "warning"
		}
		d.say("probe", state, fmt.Sprintf("keeps to the schema: %t; thinking can be switched off: %t; refuses what does not fit: %t; answers a plain record: %t %s(first call %s, again %s)",
			q.Schema, q.ThinkOff || !q.Thinks, q.RefusesLong, q.Answers, q.Problem, millis(q.FirstMS), millis(q.RepeatMS)), "")
	}
}

func answers(url string) bool {
	host := strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://")
	host, _, _ = strings.Cut(host, "/")
	if host == "" || strings.HasPrefix(host, ":") {
		return false
	}
	conn, err := net.DialTimeout("tcp", host, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// gateway is the address that a container or WSL reaches its host by, or
// nothing.
func gateway() string {
	data, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
			return f[1]
		}
	}
	return ""
}

func (d *doctor) log(running bool) {
	if !isDir(filepath.Join(d.cfg.State, "log")) {
		d.say("decision log", "ok", "there is none yet", "")
		return
	}
	sum, err := auditlog.Verify(d.cfg.State)
	if err != nil {
		d.say("decision log", "failed", err.Error(), "keep a copy of "+d.cfg.State+"; auditd serves nothing on a log that does not verify")
		return
	}
	d.say("decision log", "ok", fmt.Sprintf("%d records verify, %.1f MiB", sum.Records, float64(sum.Bytes)/(1<<20)), "")
	if !running && (sum.Pending > 0 || sum.TornBytes > 0) {
		d.say("decision log", "warning", "a crash left an unfinished end, of which nobody was told", "the next start repairs it")
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
