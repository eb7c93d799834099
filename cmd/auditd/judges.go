package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.org/auditd/api"
	"example.org/auditd/inference"
	"example.org/auditd/inference/anthropic"
	"example.org/auditd/inference/ollama"
	"example.org/auditd/inference/onnx"
	"example.org/auditd/inference/openai"
	"example.org/auditd/install"
	"example.org/auditd/policy"
	"example.org/auditd/precheck"
	"example.org/auditd/schema"
)

// newChecker makes the precheck from the policy's lists, and tells it what of
// this machine is auditd's own, which agents must not touch.
func newChecker(p *policy.Policy, cfg *Config, getenv func(string) string) (*precheck.Checker, error) {
	n, _ := strconv.Atoi(cfg.Listen[strings.LastIndexByte(cfg.Listen, ':')+1:]) // 0, chosen by the system, leaves the default
	var proxyPort int
	if cfg.Proxy.Listen != off {
		proxyPort, _ = strconv.Atoi(cfg.Proxy.Listen[strings.LastIndexByte(cfg.Proxy.Listen, ':')+1:])
	}
	protected := append([]string{cfg.State, configDir(getenv), cacheDir(getenv)}, install.Files(installState(cfg))...)
	if cfg.Socket != socketOff {
		protected = append(protected, cfg.Socket)
	}
	home := getenv("HOME")
	var guarded []string
	if home != "" {
		guarded = append(guarded, filepath.Join(home, ".claude", "settings.json"))
	}
	if self, err := os.Executable(); err == nil {
		guarded = append(guarded, self)
	}
	return precheck.New(precheck.Config{
		LoopbackPorts: p.LoopbackPorts(), Workspaces: p.Workspaces(), Recipients: p.Recipients(), Domains: p.Domains(),
		Home: home, Protected: protected, Guarded: guarded, Port: n, ProxyPort: proxyPort,
	})
}

// judges are the models. Whatever could not be made stands here as one that is
// never ready and says why.
type judges struct {
	auditor inference.Auditor
	arbiter inference.Arbiter // nil when it is off
	// inspector is the model that inspections of symbols ask; nil when there is
	// none.
	inspector inference.Completer
	names     []api.ModelInfo
	ready     []func() error
	close     []func() error
	gone      bool // something could not be made, so there is no use in waiting
}

// loading reports whether the auditor is on its way.
func (j *judges) loading() bool { return !j.gone && j.auditor.Ready() != nil }

// newJudges makes the auditor and the arbiter that cfg names. It never fails:
// the daemon runs with the precheck alone while a model is missing, and then
// allows nothing that needs one.
func newJudges(ctx context.Context, cfg *Config, getenv func(string) string, logger *slog.Logger, failed func(backend, cause string)) *judges {
	j := new(judges)
	count := func(backend string, cause inference.Cause) { failed(backend, cause.String()) }
	one := func(name string) inference.Auditor {
		a, err := j.open(ctx, name, cfg, getenv, logger)
		if err != nil {
			a, j.gone = absent{name, err}, true
		}
		if c, ok := a.(inference.Completer); ok && cfg.Inspector.Backend == "auditor" {
			j.inspector = c
		}
		return inference.NewChecked(a, inference.CheckedConfig{Count: count})
	}
	switch cfg.Auditor {
	case "none":
		j.gone = true
		j.auditor = absent{"none", errors.New("no auditor is configured (auditor: none)")}
	case "cascade":
		second := inference.NewQueue(one(cfg.Cascade), inference.QueueConfig{Concurrent: 1})
		j.auditor = inference.NewDedup(inference.NewCascade(one("onnx"), second, undecided))
	case "onnx": // has a queue of its own
		j.auditor = inference.NewDedup(one("onnx"))
	default:
		j.auditor = inference.NewDedup(inference.NewQueue(one(cfg.Auditor), inference.QueueConfig{Concurrent: concurrency(cfg.Auditor)}))
	}
	j.names = append(j.names, api.ModelInfo{Name: cfg.Auditor, Backend: cfg.Auditor, Role: "auditor"})
	j.ready = append(j.ready, j.auditor.Ready)

	if cfg.Arbiter.Backend != "off" {
		a, err := j.openArbiter(ctx, &cfg.Arbiter, cfg, logger)
		if err != nil {
			a = absent{cfg.Arbiter.Backend, err}
		}
		j.arbiter = inference.NewCheckedArbiter(a, inference.CheckedConfig{Count: count})
		j.names = append(j.names, api.ModelInfo{Name: cfg.Arbiter.Model, Backend: cfg.Arbiter.Backend, Role: "arbiter"})
		j.ready = append(j.ready, j.arbiter.Ready)
	}
	if b := cfg.Inspector.Backend; b != "off" && b != "auditor" {
		c, err := j.openInspector(ctx, &cfg.Inspector, cfg, logger)
		if err != nil {
			c = absent{b, err}
		}
		j.inspector = c
		j.names = append(j.names, api.ModelInfo{Name: cfg.Inspector.Model, Backend: b, Role: "inspector"})
		j.ready = append(j.ready, c.Ready)
	}
	return j
}

// concurrency is how many calls a backend takes at once: an Ollama server on a
// CPU gains nothing from a second, an inference server batches.
func concurrency(backend string) int {
	if backend == "openai" {
		return 4
	}
	return 1
}

// undecided sends to the language model what the encoder is not sure of.
func undecided(_ *schema.Record, r *schema.Report) bool {
	return r.NeedsLargeReview || r.Uncertainty > 0.25 || r.Risk > 0.20 && r.Risk < 0.75
}

func (j *judges) open(ctx context.Context, name string, cfg *Config, getenv func(string) string, logger *slog.Logger) (inference.Auditor, error) {
	switch name {
	case "onnx":
		return j.openOnnx(cfg, getenv, logger)
	case "ollama":
		b, err := ollama.New(ollama.Config{URL: cfg.Ollama.URL, Model: ollamaModel(cfg), Context: cfg.Ollama.Context, Threads: cfg.Ollama.Threads,
			LoadTimeout: time.Duration(cfg.Ollama.LoadTimeout), StateDir: cfg.State, Log: logger})
		if err != nil {
			return nil, err
		}
		b.Start(ctx)
		j.close = append(j.close, func() error { b.Close(); return nil })
		return b, nil
	case "openai":
		b, err := openai.New(openai.Config{URL: cfg.OpenAI.URL, Model: cfg.OpenAI.Model, KeyFile: cfg.OpenAI.KeyFile, Context: cfg.OpenAI.Context})
		if err != nil {
			return nil, err
		}
		go func() {
			if err := b.Check(ctx); err != nil && ctx.Err() == nil {
				logger.WarnContext(ctx, "the auditor's server does not answer", "error", err)
			}
		}()
		return b, nil
	}
	return nil, fmt.Errorf("there is no auditor called %s", name)
}

func (j *judges) openOnnx(cfg *Config, getenv func(string) string, logger *slog.Logger) (inference.Auditor, error) {
	c := onnx.Config{Library: cfg.Onnx.Library, CacheDir: cacheDir(getenv), Threads: cfg.Onnx.Threads, Log: logger}
	if cfg.Onnx.Model != "" {
		c.Model = os.DirFS(cfg.Onnx.Model) // the owner's choice, and its digest is in the identity
	} else {
		digest, err := shippedDigest()
		if err != nil {
			return nil, err
		}
		c.Digest = digest
	}
	a, err := onnx.New(c)
	if err != nil {
		return nil, err
	}
	j.close = append(j.close, a.Close)
	return a, nil
}

// shippedDigest is what models.txt says of the model in the binary.
func shippedDigest() (schema.Digest, error) {
	list, err := knownModels()
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if m.Backend == "onnx" && m.Digest != "" {
			return schema.Digest("sha256:" + m.Digest), nil
		}
	}
	return "", errors.New("models.txt gives no digest for the ONNX auditor")
}

func (j *judges) openArbiter(ctx context.Context, a *ArbiterConfig, cfg *Config, logger *slog.Logger) (inference.Arbiter, error) {
	switch a.Backend {
	case "ollama":
		b, err := ollama.New(ollama.Config{URL: a.URL, Model: a.Model, LoadTimeout: time.Duration(cfg.Ollama.LoadTimeout), StateDir: cfg.State, Log: logger})
		if err != nil {
			return nil, err
		}
		b.Start(ctx)
		j.close = append(j.close, func() error { b.Close(); return nil })
		return b, nil
	case "openai":
		b, err := openai.New(openai.Config{URL: a.URL, Model: a.Model, KeyFile: a.KeyFile, Hosted: a.KeyFile != ""})
		if err != nil {
			return nil, err
		}
		go func() {
			if err := b.Check(ctx); err != nil && ctx.Err() == nil {
				logger.WarnContext(ctx, "the arbiter's server does not answer", "error", err)
			}
		}()
		return b, nil
	case "anthropic":
		return anthropic.New(anthropic.Config{URL: a.URL, Model: a.Model, KeyFile: a.KeyFile})
	}
	return nil, fmt.Errorf("there is no arbiter called %s", a.Backend)
}

func (j *judges) openInspector(ctx context.Context, i *InspectorConfig, cfg *Config, logger *slog.Logger) (inference.Completer, error) {
	switch i.Backend {
	case "ollama":
		b, err := ollama.New(ollama.Config{URL: i.URL, Model: i.Model, Context: i.Context, Threads: cfg.Ollama.Threads, LoadTimeout: time.Duration(cfg.Ollama.LoadTimeout), StateDir: cfg.State, Log: logger})
		if err != nil {
			return nil, err
		}
		b.Start(ctx)
		j.close = append(j.close, func() error { b.Close(); return nil })
		return b, nil
	case "openai":
		return openai.New(openai.Config{URL: i.URL, Model: i.Model, KeyFile: i.KeyFile, Context: i.Context, Hosted: i.KeyFile != ""})
	case "anthropic":
		return anthropic.New(anthropic.Config{URL: i.URL, Model: i.Model, KeyFile: i.KeyFile, MaxPrompt: i.Context})
	}
	return nil, fmt.Errorf("there is no inspector called %s", i.Backend)
}

// Missing says what is not ready, in a person's words.
func (j *judges) Missing() []string {
	var out []string
	for i, ready := range j.ready {
		if err := ready(); err != nil {
			out = append(out, "the "+j.names[i].Role+": "+oneLine(strings.ReplaceAll(err.Error(), "\n", "; "), 300))
		}
	}
	return out
}

// Models describes what is in use.
func (j *judges) Models(context.Context) []api.ModelInfo {
	out := make([]api.ModelInfo, len(j.names))
	for i, m := range j.names {
		err := j.ready[i]()
		m.Ready = err == nil
		if err != nil {
			m.Detail = oneLine(err.Error(), 300)
		}
		switch m.Role {
		case "auditor":
			m.Name = j.auditor.Identity()
		case "arbiter":
			m.Name = j.arbiter.Identity()
		case "inspector":
			m.Name = j.inspector.Identity()
		}
		out[i] = m
	}
	return out
}

func (j *judges) String() string {
	s := j.auditor.Identity()
	if j.arbiter != nil {
		s += ", arbiter " + j.arbiter.Identity()
	}
	return s
}

// Close frees the models.
func (j *judges) Close() error {
	var errs []error
	for _, c := range j.close {
		errs = append(errs, c())
	}
	j.close = nil
	return errors.Join(errs...)
}

// absence is an error that waiting does not mend.
type absence struct{ err error }

func (a absence) Error() string   { return a.err.Error() }
func (a absence) Unwrap() []error { return []error{a.err, inference.ErrAbsent} }

// absent is a judge that could not be made. It is never ready, so what would be
// asked of it waits for a person or is blocked.
type absent struct {
	name string
	err  error
}

func (a absent) Identity() string { return a.name + " (missing)" }
func (a absent) Ready() error     { return absence{a.err} }

func (a absent) Audit(context.Context, *schema.Record) (schema.Report, schema.Usage, error) {
	return schema.Report{}, schema.Usage{}, a.fail()
}

func (a absent) Arbitrate(context.Context, *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error) {
	return schema.ArbiterReport{}, schema.Usage{}, a.fail()
}

// Window is never looked at: what would be asked fails first.
func (a absent) Window() int { return 1 << 20 }

func (a absent) Complete(context.Context, *inference.Completion) (string, schema.Usage, error) {
	return "", schema.Usage{}, a.fail()
}

func (a absent) fail() error {
	return &inference.Error{Cause: inference.CauseUnavailable, Backend: a.name, Err: a.err}
}
