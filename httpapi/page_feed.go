package httpapi

import (
	"context"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/auditlog"
	"example.org/auditd/escalation"
	"example.org/auditd/marks"
	"example.org/auditd/schema"
)

// Bounds of one page of the feed.
const (
	feedRows    = 400  // rows of one answer
	feedScanned = 4000 // records that a filter may look at for it
)

// row is one decision in the feed.
type row struct {
	Index    int64             `json:"index"`
	ID       string            `json:"id"`
	Time     time.Time         `json:"time"`
	Action   schema.Action     `json:"action"`
	Observed *schema.Action    `json:"observed,omitempty"`
	Stage    string            `json:"stage"`
	Reason   string            `json:"reason"`
	Latency  float64           `json:"latency_ms"`
	Cached   bool              `json:"cached,omitempty"`
	Source   schema.SourceKind `json:"source"`
	Sink     schema.SinkKind   `json:"sink"`
	Surface  string            `json:"surface,omitempty"`
	Codes    []string          `json:"codes,omitempty"`
	Model    string            `json:"model,omitempty"`
	Risk     *float64          `json:"risk,omitempty"`
	// The rest is redacted text, and absent once that was erased.
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Tool    string `json:"tool,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	// Preview is how the payload begins, when the agent itself wrote it: the
	// command, the message.
	Preview string `json:"preview,omitempty"`
}

// feed is a part of the log, the newest first.
type feed struct {
	Rows []row `json:"rows"`
	// Next is where the next part begins; below 0 there is none.
	Next int64 `json:"next"`
	Size int64 `json:"size"`
}

// rowOf describes a record of a decision.
func rowOf(r *auditlog.Record, v *auditlog.Value) row {
	d := r.Decision
	out := row{Index: r.Index, ID: r.ID, Time: r.Time, Action: d.Action, Observed: d.Observed, Reason: d.Reason, Latency: d.LatencyMS, Cached: d.Cached}
	if d.Stage != schema.StageUnset {
		out.Stage = d.Stage.String()
	}
	if f := r.Flow; f != nil {
		out.Source, out.Sink = f.SourceKind, f.SinkKind
		if f.Surface != schema.SurfaceUnset {
			out.Surface = f.Surface.String()
		}
	}
	if p := d.Precheck; p != nil {
		seen := map[schema.Code]bool{}
		for _, x := range p.Signals {
			if !seen[x.Code] {
				seen[x.Code] = true
				out.Codes = append(out.Codes, x.Code.String())
			}
		}
	}
	if d.Report != nil {
		risk := d.Report.Risk
		out.Risk = &risk
	}
	if len(d.Usage) > 0 {
		u := d.Usage[len(d.Usage)-1]
		if out.Model = u.Model; out.Model == "" {
			out.Model = u.Backend
		}
	}
	if v != nil {
		out.Agent, out.Session, out.Tool, out.From = v.Agent, v.Session, v.Tool, v.Source
		if out.To = v.Destination; out.To == "" {
			out.To = v.Sink
		}
		if out.Source == schema.SourceAgent {
			out.Preview = preview(v.Payload)
		}
	}
	return out
}

// filters are what the feed can be narrowed by; an empty one narrows nothing.
type filters struct{ action, surface, code, agent, session, tool, text string }

func filtersOf(c *gin.Context) filters {
	q := func(name string) string {
		v := c.Query(name)
		return v[:min(len(v), schema.MaxName)]
	}
	return filters{q("action"), q("surface"), q("code"), q("agent"), q("session"), q("tool"), q("text")}
}

func (f *filters) match(r *row) bool {
	if f.action != "" && r.Action.String() != f.action || f.surface != "" && r.Surface != f.surface {
		return false
	}
	if f.code != "" {
		found := false
		for _, c := range r.Codes {
			found = found || c == f.code
		}
		if !found {
			return false
		}
	}
	if !same(f.agent, r.Agent) || !same(f.session, r.Session) || !same(f.tool, r.Tool) {
		return false
	}
	if f.text == "" {
		return true
	}
	for _, t := range []string{r.ID, r.Reason, r.Stage, r.Agent, r.Session, r.Tool, r.From, r.To, r.Model} {
		if same(f.text, t) {
			return true
		}
	}
	return false
}

func (s *Server) pageFeed(c *gin.Context) {
	if s.cfg.Log == nil {
		s.fail(c, errAbsent)
		return
	}
	size := s.cfg.Log.Size()
	before, floor := size, int64(0)
	for _, p := range []struct {
		name string
		to   *int64
	}{{"before", &before}, {"from", &floor}} {
		if q := c.Query(p.name); q != "" {
			n, err := strconv.ParseInt(q, 10, 64)
			if err != nil || n < 0 {
				s.fail(c, invalid(p.name, "must be a position in the log"))
				return
			}
			*p.to = n
		}
	}
	f := filtersOf(c)
	out, err := s.feed(c.Request.Context(), &f, min(before, size), floor)
	if err != nil {
		s.fail(c, err)
		return
	}
	out.Size = size
	s.answer(c, out)
}

// feed reads the log backwards from before to floor.
func (s *Server) feed(ctx context.Context, f *filters, before, floor int64) (*feed, error) {
	out := &feed{Rows: []row{}, Next: -1}
	for i, scanned := before-1, 0; i >= floor; i, scanned = i-1, scanned+1 {
		if len(out.Rows) == feedRows || scanned == feedScanned || ctx.Err() != nil {
			out.Next = i + 1
			break
		}
		r, err := s.cfg.Log.Get(i)
		if err != nil {
			return nil, err
		}
		if r.Decision == nil {
			continue
		}
		// A damaged text is for verification to report; the record stands.
		v, err := s.cfg.Log.Value(r)
		if err != nil {
			v = nil
		}
		if x := rowOf(r, v); f.match(&x) {
			out.Rows = append(out.Rows, x)
		}
	}
	return out, ctx.Err()
}

// explained is one decision with all that is known of it.
type explained struct {
	api.Record
	Thresholds *escalation.Thresholds `json:"thresholds,omitempty"`
	// SamePolicy says that those thresholds were in force then.
	SamePolicy bool `json:"same_policy"`
	// ProofHolds says that the proof was checked just now.
	ProofHolds bool `json:"proof_holds"`
	// Whole says that the redacted text is the original byte for byte, so that
	// positions in the record fit it.
	Whole bool `json:"whole"`
	// Mark is what the owner said of it, Suppression what would let it pass.
	Mark        *marks.Mark     `json:"mark,omitempty"`
	Suppression *api.Suggestion `json:"suppression,omitempty"`
	Families    []string        `json:"families,omitempty"` // that a case may have
}

func (s *Server) pageDecision(c *gin.Context) {
	if s.cfg.Log == nil {
		s.fail(c, errAbsent)
		return
	}
	r, err := s.cfg.Log.Find(c.Param("id"))
	if err != nil {
		s.fail(c, err)
		return
	}
	out := explained{Thresholds: s.thresholds()}
	out.Record.Record = *r
	if out.Proof, err = s.cfg.Log.Prove(r.Index); err != nil {
		s.fail(c, err)
		return
	}
	out.ProofHolds = out.Proof.Check(s.cfg.Log.VerifierKey()) == nil
	if out.Value, err = s.cfg.Log.Value(r); err != nil {
		s.fail(c, err)
		return
	}
	if v := out.Value; v != nil && r.Flow != nil {
		out.Whole = len(v.Payload) == r.Flow.Payload.Bytes && s.cfg.Log.Keyed("payload", v.Payload) == r.Flow.Payload.Digest
	}
	if s.cfg.Marks != nil && r.Decision != nil {
		if m, ok := s.cfg.Marks.Of(r.ID); ok {
			out.Mark = &m
		}
		out.Families = marks.Families()
	}
	if s.cfg.Standing != nil && r.Decision != nil {
		suggested := suggest(r, out.Value)
		out.Suppression = &suggested
	}
	if s.cfg.Policy != nil && r.Decision != nil {
		out.SamePolicy = string(s.cfg.Policy().Digest) == r.Decision.PolicyDigest
	}
	s.answer(c, out)
}
