package httpapi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/auditlog"
	"example.org/auditd/marks"
	"example.org/auditd/schema"
)

// Bounds of what the overview is made from.
const (
	overviewHours   = 24
	overviewRecords = 5000            // newest records that are looked at
	overviewFor     = 5 * time.Second // for which one answer is good
)

// overview is the state of the daemon and of its last day.
type overview struct {
	Now     time.Time       `json:"now"`
	Version string          `json:"version"`
	Missing []string        `json:"missing"` // what keeps flows from being decided
	Models  []api.ModelInfo `json:"models"`
	Policy  *api.PolicyInfo `json:"policy,omitempty"`
	Log     *logState       `json:"log,omitempty"`
	// OwnerFileChanged: the passphrase file is not the one in use.
	OwnerFileChanged bool `json:"owner_file_changed"`
	Waiting          int  `json:"waiting"`
	// Storage is what lies in the state directory, the largest first.
	Storage []Stored `json:"storage,omitempty"`
	// Protection is what was tried with which agent, Plugins what runs now.
	Protection []Protected `json:"protection"`
	Plugins    []plugged   `json:"plugins"`
	activity
}

// Protected is an agent that auditd is installed in, and what the last live
// canary saw of it.
type Protected struct {
	Agent     string     `json:"agent"`
	Title     string     `json:"title"`
	Installed time.Time  `json:"installed"`
	Tried     *time.Time `json:"tried,omitempty"` // by the canary; absent: never
	Version   string     `json:"version,omitempty"`
	Paths     []Path     `json:"paths"`
	Changed   bool       `json:"changed"` // the settings are not those that were tried
	Open      []string   `json:"open"`    // paths that are not covered
}

// Path is one path of an agent as the canary found it.
type Path struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
}

// plugged is a plugin that reports.
type plugged struct {
	Host    string    `json:"host"`
	Plugin  string    `json:"plugin"`
	Version string    `json:"version,omitempty"` // of the host
	Last    time.Time `json:"last"`
	Alive   bool      `json:"alive"`
	Fault   string    `json:"fault,omitempty"`
}

func (s *Server) plugged() []plugged {
	out := []plugged{}
	if s.cfg.Heartbeats == nil {
		return out
	}
	now := time.Now()
	for _, b := range s.cfg.Heartbeats.Seen() {
		if !b.Ends {
			out = append(out, plugged{Host: b.Host, Plugin: b.Plugin, Version: b.HostVersion, Last: b.Last, Alive: b.Alive(now), Fault: b.Fault()})
		}
	}
	return out[:min(len(out), 20)]
}

// Stored is one part of the state directory.
type Stored struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// logState is the decision log as it is, and as it was last verified.
type logState struct {
	Records    int64      `json:"records"`
	Checkpoint string     `json:"checkpoint"`
	Verifier   string     `json:"verifier"`
	Failure    string     `json:"failure,omitempty"` // why it takes no more records
	Verified   *verifying `json:"verified,omitempty"`
}

// verifying is what the last verification found.
type verifying struct {
	At      time.Time        `json:"at"`
	TookMS  float64          `json:"took_ms"`
	Summary auditlog.Summary `json:"summary"`
	Problem string           `json:"problem,omitempty"`
}

// activity is what the newest records of the last day say.
type activity struct {
	// Partial says that more records were written in that day than were looked
	// at; Since is then the time of the oldest of them.
	Partial bool      `json:"partial"`
	Since   time.Time `json:"since"`
	Hours   []hour    `json:"hours"`
	Stages  []latency `json:"stages"`
	Whole   *latency  `json:"whole,omitempty"`
	Agents  []agent   `json:"agents"`
	Rules   []count   `json:"rules"`
	Reasons []count   `json:"reasons"`
}

type hour struct {
	Start   time.Time `json:"start"`
	Allow   int       `json:"allow"`
	Rewrite int       `json:"rewrite"`
	Defer   int       `json:"defer"`
	Block   int       `json:"block"`
}

func (h *hour) add(a schema.Action) {
	switch a {
	case schema.Allow:
		h.Allow++
	case schema.RewriteAndContinue:
		h.Rewrite++
	case schema.DeferToHuman:
		h.Defer++
	default:
		h.Block++
	}
}

type latency struct {
	Stage string  `json:"stage"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	Max   float64 `json:"max_ms"`
}

func latencyOf(stage string, ms []float64) latency {
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return latency{Stage: stage, Count: len(ms), P50: at(.5), P95: at(.95), Max: ms[len(ms)-1]}
}

type agent struct {
	Name     string    `json:"name"` // empty when its text was erased
	Last     time.Time `json:"last"`
	Flows    int       `json:"flows"`
	Stopped  int       `json:"stopped"`
	Observed bool      `json:"observed"` // it is only observed
	Paths    []string  `json:"paths"`    // kinds of sinks that it was seen to use
}

type count struct {
	Name    string `json:"name"`
	Flows   int    `json:"flows"`
	Stopped int    `json:"stopped"`
	False   int    `json:"false_alarms,omitempty"` // that the owner has marked
}

// overviewCache spares a page that asks often, or many pages.
type overviewCache struct {
	mu       sync.Mutex // guards activity, at and verified
	activity *activity
	at       time.Time
	verified *verifying

	verifying sync.Mutex // one verification at a time
}

func (s *Server) pageOverview(c *gin.Context) {
	out := overview{Now: time.Now().UTC(), Version: s.cfg.Version, Missing: []string{}, Models: []api.ModelInfo{}, Protection: []Protected{}, Plugins: s.plugged(), OwnerFileChanged: s.cfg.Keeper.OwnerFileChanged()}
	if s.cfg.Ready != nil {
		out.Missing = append(out.Missing, s.cfg.Ready()...)
	}
	if s.cfg.Models != nil {
		out.Models = append(out.Models, s.cfg.Models(c.Request.Context())...)
	}
	if s.cfg.Policy != nil {
		p := s.cfg.Policy()
		out.Policy = &p
	}
	if s.cfg.Protection != nil {
		out.Protection = append(out.Protection, s.cfg.Protection()...)
	}
	if s.cfg.Storage != nil {
		out.Storage = s.cfg.Storage()
	}
	if s.cfg.Approvals != nil {
		list, err := s.cfg.Approvals.Pending(c.Request.Context())
		if err != nil {
			s.fail(c, err)
			return
		}
		out.Waiting = len(list)
	}
	if s.cfg.Log != nil {
		a, verified, err := s.activity(c.Request.Context())
		if err != nil {
			s.fail(c, err)
			return
		}
		out.activity = *a
		out.Log = &logState{Records: s.cfg.Log.Size(), Checkpoint: string(s.cfg.Log.Checkpoint()), Verifier: s.cfg.Log.VerifierKey(), Verified: verified}
		if err := s.cfg.Log.Err(); err != nil {
			out.Log.Failure = err.Error()
		}
	}
	s.answer(c, out)
}

func (s *Server) activity(ctx context.Context) (*activity, *verifying, error) {
	o := &s.page.overview
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); o.activity == nil || now.Sub(o.at) > overviewFor {
		a, err := s.gather(ctx, now)
		if err != nil {
			return nil, nil, err
		}
		o.activity, o.at = a, now
	}
	return o.activity, o.verified, nil
}

// gather reads the newest records of the last day.
func (s *Server) gather(ctx context.Context, now time.Time) (*activity, error) {
	start := now.Truncate(time.Hour).Add(-(overviewHours - 1) * time.Hour).UTC()
	g := gathering{stages: map[string][]float64{}, agents: map[string]*agent{}, rules: map[string]*count{}, reasons: map[string]*count{}}
	g.Since, g.Hours = start, make([]hour, overviewHours)
	for i := range g.Hours {
		g.Hours[i].Start = start.Add(time.Duration(i) * time.Hour)
	}
	size := s.cfg.Log.Size()
	for i := size - 1; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := s.cfg.Log.Get(i)
		if err != nil {
			return nil, err
		}
		if r.Time.Before(start) {
			break
		}
		if size-i > overviewRecords {
			g.Partial, g.Since = true, r.Time
			break
		}
		if r.Decision == nil {
			continue
		}
		v, err := s.cfg.Log.Value(r)
		if err != nil {
			v = nil
		}
		g.add(r, v, s.falseAlarm(r.ID))
	}
	return g.done(), nil
}

type gathering struct {
	activity
	whole   []float64
	stages  map[string][]float64
	agents  map[string]*agent
	rules   map[string]*count
	reasons map[string]*count
}

// falseAlarm reports whether the owner has called a decision one.
func (s *Server) falseAlarm(id string) bool {
	if s.cfg.Marks == nil {
		return false
	}
	m, ok := s.cfg.Marks.Of(id)
	return ok && m.What == marks.FalseAlarm
}

func (g *gathering) add(r *auditlog.Record, v *auditlog.Value, falseAlarm bool) {
	d := r.Decision
	stopped := d.Action == schema.Block || d.Action == schema.DeferToHuman
	if i := int(r.Time.Sub(g.Hours[0].Start) / time.Hour); i >= 0 && i < len(g.Hours) {
		g.Hours[i].add(d.Action)
	}
	g.whole = append(g.whole, d.LatencyMS)
	once := map[string]float64{} // a stage can run twice in a decision
	for _, t := range d.Trace {
		once[t.Stage.String()] += t.DurationMS
	}
	for stage, ms := range once {
		g.stages[stage] = append(g.stages[stage], ms)
	}
	bump(g.reasons, d.Reason, stopped, falseAlarm)
	if d.Precheck != nil {
		seen := map[string]bool{}
		for _, x := range d.Precheck.Signals {
			if x.Rule != "" && !seen[x.Rule] {
				seen[x.Rule] = true
				bump(g.rules, x.Rule, stopped, falseAlarm)
			}
		}
	}
	f := r.Flow
	if f == nil || f.Agent == "" {
		return
	}
	a := g.agents[string(f.Agent)]
	if a == nil {
		a = &agent{Last: r.Time} // records come newest first
		g.agents[string(f.Agent)] = a
	}
	a.Flows++
	if stopped {
		a.Stopped++
	}
	a.Observed = a.Observed || d.Observed != nil
	if v != nil && a.Name == "" {
		a.Name = v.Agent
	}
	if kind := f.SinkKind.String(); !slices.Contains(a.Paths, kind) {
		a.Paths = append(a.Paths, kind)
	}
}

func bump(m map[string]*count, name string, stopped, falseAlarm bool) {
	if m[name] == nil {
		m[name] = &count{Name: name}
	}
	m[name].Flows++
	if stopped {
		m[name].Stopped++
	}
	if falseAlarm {
		m[name].False++
	}
}

func (g *gathering) done() *activity {
	a := &g.activity
	a.Stages, a.Agents = []latency{}, []agent{}
	for s := schema.StageInput; s <= schema.StageLog; s++ { // in the order in which they run
		if ms := g.stages[s.String()]; len(ms) > 0 {
			a.Stages = append(a.Stages, latencyOf(s.String(), ms))
		}
	}
	if len(g.whole) > 0 {
		w := latencyOf("whole", g.whole)
		a.Whole = &w
	}
	for _, x := range g.agents {
		slices.Sort(x.Paths)
		a.Agents = append(a.Agents, *x)
	}
	slices.SortFunc(a.Agents, func(x, y agent) int { return y.Last.Compare(x.Last) })
	a.Rules, a.Reasons = top(g.rules), top(g.reasons)
	return a
}

// top are the most frequent ones.
func top(m map[string]*count) []count {
	out := []count{}
	for _, c := range m {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(x, y count) int {
		if x.Flows != y.Flows {
			return y.Flows - x.Flows
		}
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return out[:min(len(out), 12)]
}

// pageVerify verifies the whole log, once for all who ask at the same time.
func (s *Server) pageVerify(c *gin.Context) {
	if s.cfg.Verify == nil {
		s.fail(c, errAbsent)
		return
	}
	o := &s.page.overview
	if !o.verifying.TryLock() {
		s.fail(c, errPageRate)
		return
	}
	defer o.verifying.Unlock()
	start := time.Now()
	sum, err := s.cfg.Verify()
	v := &verifying{At: start.UTC(), TookMS: float64(time.Since(start).Microseconds()) / 1000, Summary: sum}
	if err != nil {
		v.Problem = err.Error()
		s.cfg.Logger.ErrorContext(c.Request.Context(), "the decision log does not verify", "error", err)
	}
	o.mu.Lock()
	o.verified = v
	o.mu.Unlock()
	s.answer(c, v)
}
