package approval

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"example.org/auditd/schema"
)

// Words of schema.Question.Answer.
const (
	answerApproved = "approved"
	answerDenied   = "denied"
	answerExpired  = "expired"
)

const columns = `id, binding, created, expires, hard, answer, answered, answered_by, redeemable, redeemed, body`

// row is a stored question.
type row struct {
	id, binding, answer, by                          string
	created, expires, answered, redeemable, redeemed int64
	hard                                             bool
	body                                             []byte
}

func scanRow(s interface{ Scan(...any) error }) (*row, error) {
	r := new(row)
	err := s.Scan(&r.id, &r.binding, &r.created, &r.expires, &r.hard, &r.answer, &r.answered, &r.by, &r.redeemable, &r.redeemed, &r.body)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// question makes the question of a row as it stands now. The columns outrank
// the body; a question whose body was deleted has no flow.
func (r *row) question(now time.Time) (*schema.Question, error) {
	q := new(schema.Question)
	if r.body != nil {
		if err := schema.Decode(r.body, q); err != nil {
			return nil, fmt.Errorf("read a stored question: %w", err)
		}
		if q.Flow == nil || q.Flow.Binding() != schema.Digest(r.binding) {
			return nil, errors.New("read a stored question: it is bound to another flow than its own")
		}
	}
	q.ID, q.Ticket, q.Binding, q.Hard = r.id, "", schema.Digest(r.binding), r.hard
	q.Created, q.Expires = time.Unix(0, r.created).UTC(), time.Unix(0, r.expires).UTC()
	q.Answer, q.By, q.Answered = r.answer, r.by, nil
	if r.answered != 0 {
		t := time.Unix(0, r.answered).UTC()
		q.Answered = &t
	}
	if q.Answer == "" && r.expires <= now.UnixNano() {
		q.Answer = answerExpired
	}
	return q, nil
}

// Get returns a question as it stands, without a ticket.
func (q *Queue) Get(ctx context.Context, id string) (*schema.Question, error) {
	r, err := scanRow(q.cfg.DB.QueryRowContext(ctx, `SELECT `+columns+` FROM approval_questions WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read a question: %w", err)
	}
	return r.question(q.cfg.Now())
}

// Pending returns the questions that wait for an answer, the oldest first.
func (q *Queue) Pending(ctx context.Context) ([]*schema.Question, error) {
	now := q.cfg.Now()
	return q.list(ctx, now, `answer = '' AND expires > ?`, now.UnixNano())
}

// Answered returns the questions that a person has answered and that are still
// kept, the oldest first.
func (q *Queue) Answered(ctx context.Context) ([]*schema.Question, error) {
	return q.list(ctx, q.cfg.Now(), `answer IN ('approved', 'denied')`)
}

func (q *Queue) list(ctx context.Context, now time.Time, where string, args ...any) ([]*schema.Question, error) {
	rows, err := q.cfg.DB.QueryContext(ctx, `SELECT `+columns+` FROM approval_questions WHERE `+where+` ORDER BY created, rowid`, args...)
	if err != nil {
		return nil, fmt.Errorf("list the questions: %w", err)
	}
	defer rows.Close()
	var out []*schema.Question
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return nil, fmt.Errorf("list the questions: %w", err)
		}
		question, err := r.question(now)
		if err != nil {
			return nil, err
		}
		out = append(out, question)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list the questions: %w", err)
	}
	return out, nil
}

// Wait returns the question once it has been answered or has expired, or ctx's
// error when that ends first; the question goes on waiting then. It reads the
// database twice, however long it waits.
func (q *Queue) Wait(ctx context.Context, id string) (*schema.Question, error) {
	wake := q.listen(id)
	defer q.unlisten(id, wake)
	question, err := q.Get(ctx, id)
	if err != nil || question.Answer != "" {
		return question, err
	}
	timer := time.NewTimer(question.Expires.Sub(q.cfg.Now()))
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	question, err = q.Get(ctx, id)
	if err == nil && question.Answer == "" {
		// The clocks of timer and Now differ by a little; the time is over.
		question.Answer = answerExpired
	}
	return question, err
}

// Changes returns a channel that receives whenever the questions have changed
// since it was last read, until ctx ends. It says no more than that, so a slow
// reader misses nothing.
func (q *Queue) Changes(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	q.mu.Lock()
	q.watchers[c] = struct{}{}
	q.mu.Unlock()
	context.AfterFunc(ctx, func() {
		q.mu.Lock()
		delete(q.watchers, c)
		q.mu.Unlock()
	})
	return c
}

func (q *Queue) listen(id string) chan struct{} {
	c := make(chan struct{}, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiters[id] == nil {
		q.waiters[id] = map[chan struct{}]struct{}{}
	}
	q.waiters[id][c] = struct{}{}
	return c
}

func (q *Queue) unlisten(id string, c chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiters[id], c)
	if len(q.waiters[id]) == 0 {
		delete(q.waiters, id)
	}
}

// wake tells everybody who waits for question id, and all subscribers.
func (q *Queue) wake(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, set := range []map[chan struct{}]struct{}{q.waiters[id], q.watchers} {
		for c := range set {
			select {
			case c <- struct{}{}:
			default: // it has been told already
			}
		}
	}
}

// Purge deletes what is kept no longer: bodies after KeepBody, rows after
// KeepRow. The database overwrites what it deletes (secure_delete), and the
// write-ahead log is emptied, so that no copy stays there.
func (q *Queue) Purge(ctx context.Context) error {
	now := q.cfg.Now()
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`UPDATE approval_questions SET answer = 'expired', answered = expires WHERE answer = '' AND expires <= ?`, []any{now.UnixNano()}},
		{`UPDATE approval_questions SET body = NULL, instead = NULL WHERE body IS NOT NULL AND answer <> '' AND max(answered, redeemable) <= ?`,
			[]any{now.Add(-q.cfg.KeepBody).UnixNano()}},
		{`DELETE FROM approval_questions WHERE answer <> '' AND max(answered, redeemable) <= ?`, []any{now.Add(-q.cfg.KeepRow).UnixNano()}},
		{`DELETE FROM approval_grants WHERE max(expires, revoked) <= ?`, []any{now.Add(-q.cfg.KeepRow).UnixNano()}},
		{`PRAGMA wal_checkpoint(TRUNCATE)`, nil},
	} {
		if _, err := q.cfg.DB.ExecContext(ctx, step.query, step.args...); err != nil {
			return fmt.Errorf("delete old questions: %w", err)
		}
	}
	return nil
}

// purgeNowAndThen purges at most once in five minutes. Its failure stops
// nothing: what cannot be deleted now is tried again later.
func (q *Queue) purgeNowAndThen(ctx context.Context) {
	now := q.cfg.Now().UnixNano()
	q.mu.Lock()
	due := now-q.lastPurge >= int64(5*time.Minute)
	if due {
		q.lastPurge = now
	}
	q.mu.Unlock()
	if due {
		_ = q.Purge(ctx)
	}
}

func migrationsFS() (fs.FS, error) { return fs.Sub(migrations, "migrations") }
