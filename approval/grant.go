package approval

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// Limits of what one click may open.
const (
	maxUses  = 1000
	maxGrant = 7 * 24 * time.Hour
)

// Errors about grants.
var (
	ErrNoGrant   = errors.New("no wider grant may be made from this question")
	ErrGrantForm = errors.New("a grant needs a number of uses, a session or a time limit")
)

// Scope is what a grant covers: exactly these five, nothing near them.
type Scope struct {
	Agent    string          `json:"agent"`
	Tool     string          `json:"tool"`
	SinkKind schema.SinkKind `json:"sink_kind"`
	// Sink holds the sink's id, action, destination and workspace.
	Sink    [4]string `json:"sink"`
	Command string    `json:"command"` // normalised
}

func (s *Scope) digest() string {
	return string(schema.DigestOf("scope", s.Agent, s.Tool, s.SinkKind.String(), s.Sink[0], s.Sink[1], s.Sink[2], s.Sink[3], s.Command))
}

// Grant is a right for more than one flow. The caller of Answer sets Uses,
// ThisSession and Until, at least one of them; the rest is filled.
type Grant struct {
	ID          string    `json:"id"`
	Question    string    `json:"question"`
	Scope       Scope     `json:"scope"`
	Uses        int       `json:"uses"`              // left; at most 1000
	ThisSession bool      `json:"this_session"`      // only in the session that asked
	Until       time.Time `json:"until"`             // at most seven days away
	Used        int       `json:"used"`              // so far
	Session     string    `json:"session,omitempty"` // which one ThisSession means
	Created     time.Time `json:"created"`
	By          string    `json:"by"`
	Revoked     bool      `json:"revoked,omitempty"`
}

// scopeOf returns the scope of a flow; ok is false when no grant may cover it.
func (q *Queue) scopeOf(f *schema.Flow) (s Scope, ok bool) {
	holds := q.cfg.HoldsSymbol
	if holds == nil {
		holds = holdsBracket
	}
	if holds(f) {
		return s, false
	}
	command, ok := f.Payload, true
	if q.cfg.Command != nil {
		command, ok = q.cfg.Command(f)
	}
	if !ok || command == "" {
		return s, false
	}
	if (f.Sink.Kind == schema.SinkExec || isRunner(f.Sink.Tool)) && !Grantable(command) {
		return s, false
	}
	return Scope{Agent: f.Session.Agent, Tool: f.Sink.Tool, SinkKind: f.Sink.Kind,
		Sink: [4]string{f.Sink.ID, f.Sink.Action, f.Sink.Destination, f.Session.Workspace}, Command: command}, true
}

// ScopeOf returns what a wider grant from a question would cover, so that a
// person sees it before giving one; ok is false when none may be given.
func (q *Queue) ScopeOf(question *schema.Question) (s Scope, ok bool) {
	if question == nil || question.Hard || question.Flow == nil {
		return Scope{}, false
	}
	return q.scopeOf(question.Flow)
}

// holdsBracket looks for the mark that symbols and placeholders begin with.
func holdsBracket(f *schema.Flow) bool {
	for _, s := range []string{f.Payload, f.Sink.ID, f.Sink.Tool, f.Sink.Action, f.Sink.Destination} {
		if strings.ContainsRune(s, '⟦') {
			return true
		}
	}
	return false
}

func (q *Queue) insertGrant(ctx context.Context, tx *sql.Tx, r *row, grant *Grant, by string, now time.Time) error {
	question, err := r.question(now)
	if err != nil {
		return err
	}
	scope, ok := q.ScopeOf(question)
	if !ok {
		return ErrNoGrant
	}
	g := *grant
	if g.Uses < 0 || g.Uses == 0 && !g.ThisSession && g.Until.IsZero() || g.ThisSession && question.Flow.Session.ID == "" {
		return ErrGrantForm
	}
	if g.Uses == 0 || g.Uses > maxUses {
		g.Uses = maxUses
	}
	if last := now.Add(maxGrant); g.Until.IsZero() || g.Until.After(last) {
		g.Until = last
	}
	if !g.Until.After(now) {
		return ErrGrantForm
	}
	g.ID, g.Question, g.Scope, g.Used, g.Created, g.By, g.Revoked = newID("g"), r.id, scope, 0, now.UTC(), by, false
	if g.Session = ""; g.ThisSession {
		g.Session = question.Flow.Session.ID
	}
	body, err := schema.Encode(&g)
	if err != nil {
		return fmt.Errorf("encode a grant: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO approval_grants (id, question, scope, session, created, expires, uses, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, g.ID, g.Question, scope.digest(), g.Session, now.UnixNano(), g.Until.UnixNano(), g.Uses, body); err != nil {
		return fmt.Errorf("store a grant: %w", err)
	}
	*grant = g
	return nil
}

// Allowed reports whether a grant covers the flow, and uses it once. A hard
// flow is covered by none, whatever was granted before.
func (q *Queue) Allowed(ctx context.Context, f *schema.Flow, hard bool) (grantID string, ok bool, err error) {
	if f == nil || hard {
		return "", false, nil
	}
	scope, ok := q.scopeOf(f)
	if !ok {
		return "", false, nil
	}
	now := q.cfg.Now().UnixNano()
	const usable = `scope = ? AND revoked = 0 AND uses > 0 AND expires > ? AND (session = '' OR session = ?)`
	args := []any{scope.digest(), now, f.Session.ID}
	// Most flows have no grant: they are told so without taking the write lock.
	var n int
	if err := q.cfg.DB.QueryRowContext(ctx, `SELECT count(*) FROM approval_grants WHERE `+usable, args...).Scan(&n); err != nil {
		return "", false, fmt.Errorf("look for a grant: %w", err)
	}
	if n == 0 {
		return "", false, nil
	}
	err = sqlite.WithTx(ctx, q.cfg.DB, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `UPDATE approval_grants SET uses = uses - 1, used = used + 1
			WHERE id = (SELECT id FROM approval_grants WHERE `+usable+` ORDER BY expires LIMIT 1) RETURNING id`, args...).Scan(&grantID)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil // another flow took the last use
	}
	if err != nil {
		return "", false, fmt.Errorf("use a grant: %w", err)
	}
	return grantID, true, nil
}

// Grants lists the grants that still cover something, the newest first.
func (q *Queue) Grants(ctx context.Context) ([]Grant, error) {
	rows, err := q.cfg.DB.QueryContext(ctx, `SELECT body, uses, used FROM approval_grants
		WHERE revoked = 0 AND uses > 0 AND expires > ? ORDER BY created DESC, rowid DESC`, q.cfg.Now().UnixNano())
	if err != nil {
		return nil, fmt.Errorf("list the grants: %w", err)
	}
	defer rows.Close()
	var out []Grant
	for rows.Next() {
		var body []byte
		var uses, used int
		if err := rows.Scan(&body, &uses, &used); err != nil {
			return nil, fmt.Errorf("list the grants: %w", err)
		}
		var g Grant
		if err := schema.Decode(body, &g); err != nil {
			return nil, fmt.Errorf("read a stored grant: %w", err)
		}
		g.Uses, g.Used = uses, used
		out = append(out, g)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list the grants: %w", err)
	}
	return out, nil
}

// Revoke ends a grant at once.
func (q *Queue) Revoke(ctx context.Context, id string) error {
	res, err := q.cfg.DB.ExecContext(ctx, `UPDATE approval_grants SET revoked = ? WHERE id = ? AND revoked = 0`, q.cfg.Now().UnixNano(), id)
	if err != nil {
		return fmt.Errorf("revoke a grant: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("revoke a grant: %w", ErrNotFound)
	}
	q.wake("")
	return nil
}
