package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/auditd/api"
	"example.org/auditd/approval"
	"example.org/auditd/auditlog"
	"example.org/auditd/client"
	"example.org/auditd/credential"
	"example.org/auditd/escalation"
	"example.org/auditd/firewall"
	"example.org/auditd/heartbeat"
	"example.org/auditd/httpapi"
	"example.org/auditd/internal/durable"
	"example.org/auditd/marks"
	"example.org/auditd/modelproxy"
	"example.org/auditd/policy"
	"example.org/auditd/precheck"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
	"example.org/auditd/standing"
)

// daemon is everything that `auditd serve` holds, put together. Nothing here
// decides; what decides is in the packages that are joined.
type daemon struct {
	cfg      *Config
	logger   *slog.Logger
	db       *sql.DB
	log      *auditlog.Log
	queue    *approval.Queue
	standing *standing.Store
	marks    *marks.Book
	keeper   *credential.Keeper
	policies *policy.Keeper
	checker  atomic.Pointer[precheck.Checker] // of the policy in force
	judges   *judges
	beats    *heartbeat.Board
	firewall *firewall.Firewall
	isolated *isolation // nil: the policy isolates no agent
	server   *httpapi.Server
	memory   *modelproxy.Memory // of what hooks and the model proxy had decided
	getenv   func(string) string
	stop     context.CancelFunc // of background work
	close    []func() error     // in the order of opening
}

// newDaemon opens the stores and joins the parts. It does not listen. A model
// or library that is missing is no error here: what needs it is then not
// allowed, and `/readyz` and `auditd doctor` say what is missing.
func newDaemon(ctx context.Context, cfg *Config, getenv func(string) string, logger *slog.Logger) (*daemon, error) {
	return newDaemonWith(ctx, cfg, getenv, logger, nil)
}

// newDaemonWith is newDaemon with judges of the caller's; a benchmark's.
func newDaemonWith(ctx context.Context, cfg *Config, getenv func(string) string, logger *slog.Logger, judging *judges) (_ *daemon, err error) {
	ctx, stop := context.WithCancel(ctx)
	d := &daemon{cfg: cfg, logger: logger, stop: stop, getenv: getenv, beats: heartbeat.New(time.Now), memory: modelproxy.NewMemory(time.Now)}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if _, err := loadPolicy(cfg.Policy); err != nil { // a file that was named must be there
		return nil, err
	}
	d.policies, err = policy.OpenKeeper(policy.KeeperConfig{Path: cfg.policyFile, BuiltIn: cfg.Policy == "", History: filepath.Join(cfg.State, "policies"), Now: time.Now,
		Prepare: func(p *policy.Policy) (func(), error) {
			// A flow that is under way may meet the new lists and the old rules;
			// each of them is the owner's.
			c, err := newChecker(p, cfg, getenv)
			return func() { d.checker.Store(c) }, err
		}})
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(cfg.State); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	if err := d.openStores(); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "auditd_model_failures_total", Help: "Failed model calls by backend and cause; each stopped its flow."}, []string{"backend", "cause"})
	registry.MustRegister(failures)
	if d.judges = judging; judging == nil {
		d.judges = newJudges(ctx, cfg, getenv, logger, func(backend, cause string) { failures.WithLabelValues(backend, cause).Inc() })
	}
	d.close = append(d.close, d.judges.Close)

	d.firewall, err = firewall.New(firewall.Config{
		Check:  func(f *schema.Flow) *schema.Precheck { return d.checker.Load().Check(f) },
		Redact: func(s string) (string, map[string]string) { return d.checker.Load().Redact(s) },
		Append: d.append,
		Ask:    d.queue.Ask, Redeem: d.queue.RedeemEither, Allowed: d.queue.Allowed,
		Orders:  d.standing.Covering,
		Policy:  d.policies.Policy,
		Auditor: d.judges.auditor, Arbiter: d.judges.arbiter,
		Deadline: time.Duration(cfg.Deadline), MaxPayload: cfg.MaxPayload,
		Now: time.Now, Logger: logger, Ablation: cfg.ablation,
	})
	if err != nil {
		return nil, err
	}
	if d.isolated, err = openIsolation(ctx, d, func(text string) [][2]int { return d.checker.Load().Secrets(text) }, getenv); err != nil {
		return nil, err
	}
	// An interface that holds a nil pointer would not be nil.
	var joined httpapi.Isolation
	if d.isolated != nil {
		joined = d.isolated
	}
	d.server, err = httpapi.New(httpapi.Config{
		Isolation: joined,
		Audit:     d.firewall.Audit, Event: d.event, Review: d.firewall.Review,
		Approvals: d.queue, Log: d.log, Standing: d.standing, Marks: d.marks, Heartbeats: d.beats,
		Ready: d.missing, Models: d.judges.Models, Policy: d.policyInfo,
		Policies:   d.policies,
		Thresholds: func() escalation.Thresholds { return d.policies.Policy().Thresholds() },
		Storage:    func() []httpapi.Stored { return storage(cfg.State) },
		Replay:     d.replay,
		Protection: func() []httpapi.Protected { return protection(installState(cfg)) },
		Verify:     func() (auditlog.Summary, error) { return auditlog.Verify(cfg.State) },
		Keeper:     d.keeper, Registry: registry, Logger: logger, Version: version(),
		MaxPayload: cfg.MaxPayload, MaxInFlight: cfg.MaxInFlight, Deadline: time.Duration(cfg.Deadline),
	})
	if err != nil {
		return nil, err
	}
	if err := d.openNotifier(ctx); err != nil {
		return nil, err
	}
	go d.housekeep(ctx)
	return d, nil
}

// openStores opens what is on the disk: credentials, database, log.
func (d *daemon) openStores() error {
	hook, err := credential.HookToken(client.TokenPath(d.cfg.State))
	if err != nil {
		return err
	}
	d.keeper, err = credential.NewKeeper(credential.Config{HookToken: hook, PassphrasePath: d.cfg.ownerFile, SessionTTL: time.Duration(d.cfg.SessionTTL)})
	if err != nil {
		return err
	}
	d.log, err = auditlog.Open(auditlog.Config{Dir: d.cfg.State, Now: time.Now, Log: d.logger,
		Redact: func(s string) string { out, _ := d.checker.Load().Redact(s); return out }})
	if errors.Is(err, auditlog.ErrLocked) {
		return hint(fmt.Errorf("open the decision log: %w", err), "another auditd uses %s; `auditd doctor` shows it", d.cfg.State)
	}
	if err != nil {
		return hint(fmt.Errorf("open the decision log: %w", err), "`auditd log verify` says what is wrong with it")
	}
	d.close = append(d.close, d.log.Close)
	d.standing, err = standing.Open(filepath.Join(d.cfg.State, "standing.json"), time.Now, func(payload string) string { return string(d.log.Keyed("payload", payload)) })
	if err != nil {
		return hint(err, "a refusal that can't be read would not hold, so nothing starts without it; put the file right, or away")
	}
	if d.marks, err = marks.Open(filepath.Join(d.cfg.State, "marks", "cases.jsonl"), time.Now); err != nil {
		return hint(err, "put the file away to start a new one")
	}
	d.db, err = sqlite.Open(filepath.Join(d.cfg.State, "auditd.db"), nil)
	if err != nil {
		return err
	}
	d.close = append(d.close, d.db.Close)
	d.queue, err = approval.New(approval.Config{DB: d.db, Now: time.Now, TTL: time.Duration(d.cfg.QuestionTTL), Command: commandShape})
	return err
}

// append writes a decision to the log.
func (d *daemon) append(ctx context.Context, e firewall.Entry) (int64, error) {
	return d.log.Append(ctx, auditlog.Entry{Decision: e.Decision, Flow: e.Flow, RedactedPayload: e.RedactedPayload, RedactedRewrite: e.RedactedRewrite, Sent: e.Sent})
}

// missing says what keeps flows from being decided.
func (d *daemon) missing() []string {
	missing := d.judges.Missing()
	if m := d.isolated.Missing(); m != "" {
		missing = append(missing, m)
	}
	if err := d.log.Err(); err != nil {
		missing = append(missing, "the decision log: "+err.Error())
	}
	return missing
}

func (d *daemon) policyInfo() api.PolicyInfo {
	text, source := d.policies.Text()
	return api.PolicyInfo{Digest: d.policies.Policy().Digest(), Source: source, Text: text}
}

// housekeep does what is due from time to time, until ctx ends.
func (d *daemon) housekeep(ctx context.Context) {
	// What loading needed and running does not is given back: an idle daemon
	// is small.
	debug.FreeOSMemory()
	every := time.NewTicker(time.Hour)
	defer every.Stop()
	for {
		if err := d.queue.Purge(ctx); err != nil && ctx.Err() == nil {
			d.logger.WarnContext(ctx, "questions were not purged", "error", err)
		}
		if err := d.isolated.collect(ctx); err != nil && ctx.Err() == nil {
			d.logger.WarnContext(ctx, "old symbols were not dropped", "error", err)
		}
		before := time.Now().Add(-time.Duration(d.cfg.KeepTexts))
		if _, err := d.log.ExpireValues(ctx, before, "retention"); err != nil && ctx.Err() == nil {
			d.logger.WarnContext(ctx, "old texts were not erased", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// Serve listens and answers until ctx ends.
func (d *daemon) Serve(ctx context.Context, listeners []net.Listener) error {
	return d.server.Serve(ctx, listeners...)
}

// Close ends background work and closes the stores, the last opened first.
func (d *daemon) Close() error {
	d.stop()
	var errs []error
	for i := len(d.close) - 1; i >= 0; i-- {
		errs = append(errs, d.close[i]())
	}
	d.close = nil
	return errors.Join(errs...)
}

func loadPolicy(path string) (*policy.Policy, error) {
	if path == "" {
		return policy.Default()
	}
	p, err := policy.Load(path)
	if err != nil {
		return nil, hint(err, "`auditd policy check %s` lists everything that is wrong with it", path)
	}
	return p, nil
}

// policyText returns the text of the policy file, or of the built-in policy.
func policyText(path string) (text, source string, err error) {
	if path == "" {
		return string(policy.DefaultText()), "built in", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("read the policy: %w", err)
	}
	return string(data), path, nil
}
