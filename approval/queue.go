package approval

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

//go:embed migrations
var migrations embed.FS

// Errors that callers branch on. All of them mean no.
var (
	ErrFull     = errors.New("too many questions wait for an answer already")
	ErrNotFound = errors.New("there is no such question")
	ErrAnswered = errors.New("the question has been answered already")
	ErrExpired  = errors.New("the question has expired, which is a no")
)

// Config is what a queue needs. Zero durations and limits have the defaults
// that stand beside them.
type Config struct {
	DB  *sql.DB
	Now func() time.Time

	TTL       time.Duration // 1h: how long a question waits for an answer
	TicketTTL time.Duration // 10m: how long an approved question's ticket is good
	// Cooldown is how long the same question is not asked again after a no: an
	// agent that tries again must not wear the person down.
	Cooldown time.Duration // 10m
	// KeepBody is how long the payload of an answered or expired question is
	// kept, KeepRow how long everything else about it.
	KeepBody time.Duration // 24h
	KeepRow  time.Duration // 30 days

	// MaxPending bounds the questions that wait, MaxPerAgent those of one agent.
	// When full, new ones are refused and the old ones stay: otherwise an agent
	// could push a question out of sight.
	MaxPending  int // 200
	MaxPerAgent int // 50

	// Command returns the normalised command of a flow into a tool or a command
	// line, for the scope of grants; ok is false when there is none, and then no
	// grant can cover the flow. When nil the exact payload is the command.
	Command func(*schema.Flow) (command string, ok bool)
	// HoldsSymbol reports whether a flow holds symbols of isolated content. When
	// nil every flow with a '⟦' in it does.
	HoldsSymbol func(*schema.Flow) bool
}

const maxInstead = 16 << 20 // bytes, above every payload's limit

const maxTickets = 16 // per question; asking once more retires the oldest

// Queue holds the questions. Its methods may be called concurrently. Only one
// process may have the queue of a database open: waiting is done in memory.
type Queue struct {
	cfg Config

	// mu guards what wakes waiters and subscribers.
	mu       sync.Mutex
	waiters  map[string]map[chan struct{}]struct{} // by question
	watchers map[chan struct{}]struct{}

	// refused counts, by agent, the questions that found no place; guarded by
	// mu too.
	refused map[string]int

	// lastPurge, in nanoseconds, is guarded by mu too.
	lastPurge int64
}

// New opens the queue in cfg.DB, creating its tables when they are missing.
func New(cfg Config) (*Queue, error) {
	if cfg.DB == nil || cfg.Now == nil {
		return nil, errors.New("open the approval queue: DB and Now must be set")
	}
	orDuration := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	orDuration(&cfg.TTL, time.Hour)
	orDuration(&cfg.TicketTTL, 10*time.Minute)
	orDuration(&cfg.Cooldown, 10*time.Minute)
	orDuration(&cfg.KeepBody, 24*time.Hour)
	orDuration(&cfg.KeepRow, 30*24*time.Hour)
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = 200
	}
	if cfg.MaxPerAgent <= 0 {
		cfg.MaxPerAgent = 50
	}
	sub, err := migrationsFS()
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(context.Background(), cfg.DB, sub); err != nil {
		return nil, fmt.Errorf("open the approval queue: %w", err)
	}
	return &Queue{cfg: cfg, waiters: map[string]map[chan struct{}]struct{}{}, watchers: map[chan struct{}]struct{}{}, refused: map[string]int{}}, nil
}

// Ask stores a question and returns it with its ID, a ticket, and the time at
// which silence becomes a no. It is durable when Ask returns.
//
// A question with the same binding that still waits, that was approved and not
// used, or that was denied a moment ago is returned in place of a new one; its
// Answer then says so. One that was denied comes without a ticket.
func (q *Queue) Ask(ctx context.Context, question *schema.Question) (*schema.Question, error) {
	if question == nil || question.Flow == nil {
		return nil, errors.New("ask a person: the question has no flow")
	}
	ask := *question
	ask.Binding = ask.Flow.Binding()
	if question.Binding != "" && question.Binding != ask.Binding {
		return nil, errors.New("ask a person: the question is bound to another flow than its own")
	}
	q.purgeNowAndThen(ctx)
	flow := *ask.Flow
	flow.Ticket = "" // a secret of the caller
	ask.Flow = &flow
	ask.Group = group(&ask)
	now := q.cfg.Now()
	var out *schema.Question
	asked := false
	err := sqlite.WithTx(ctx, q.cfg.DB, func(tx *sql.Tx) error {
		same, err := q.same(ctx, tx, ask.Binding, now)
		if err != nil {
			return err
		}
		if same != nil {
			if out = same; same.Answer == answerDenied {
				return nil
			}
			out.Ticket, err = newTicket(ctx, tx, same.ID, now)
			return err
		}
		asked = true
		out, err = q.insert(ctx, tx, &ask, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask a person: %w", err)
	}
	if asked {
		q.wake("")
	}
	return out, nil
}

// same returns a question with the binding that need not be asked again.
func (q *Queue) same(ctx context.Context, tx *sql.Tx, binding schema.Digest, now time.Time) (*schema.Question, error) {
	r, err := scanRow(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM approval_questions
		WHERE binding = ? AND body IS NOT NULL AND redeemed = 0 ORDER BY created DESC, rowid DESC LIMIT 1`, string(binding)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := now.UnixNano()
	switch {
	case r.answer == "" && r.expires > n,
		r.answer == answerApproved && r.redeemable > n,
		r.answer == answerDenied && r.answered+int64(q.cfg.Cooldown) > n:
		return r.question(now)
	}
	return nil, nil
}

func (q *Queue) insert(ctx context.Context, tx *sql.Tx, ask *schema.Question, now time.Time) (*schema.Question, error) {
	var all, own int
	if err := tx.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE agent = ?) FROM approval_questions
		WHERE answer = '' AND expires > ?`, ask.Flow.Session.Agent, now.UnixNano()).Scan(&all, &own); err != nil {
		return nil, err
	}
	if all >= q.cfg.MaxPending || own >= q.cfg.MaxPerAgent {
		q.noteRefused(ask.Flow.Session.Agent)
		return nil, ErrFull
	}
	ask.ID = newID("q")
	ask.Created, ask.Expires = now.UTC(), now.Add(q.cfg.TTL).UTC()
	ask.Answer, ask.Answered, ask.By = "", nil, ""
	body, err := schema.Encode(ask)
	if err != nil {
		return nil, fmt.Errorf("encode the question: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO approval_questions (id, binding, agent, created, expires, hard, body)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, ask.ID, string(ask.Binding), ask.Flow.Session.Agent, ask.Created.UnixNano(),
		ask.Expires.UnixNano(), ask.Hard, body); err != nil {
		return nil, err
	}
	ask.Ticket, err = newTicket(ctx, tx, ask.ID, now)
	return ask, err
}

// Redeem uses up the right that a person's answer gave: it reports whether
// ticket belongs to an approved question with this binding whose right has
// neither been used nor run out. Of any number of concurrent calls one wins. An
// approval of another text is no right to this one: see RedeemEither.
func (q *Queue) Redeem(ctx context.Context, ticket string, binding schema.Digest) (bool, error) {
	ok, _, err := q.redeem(ctx, ticket, binding, ` AND instead IS NULL`)
	return ok, err
}

// RedeemEither is Redeem for a caller that can send another text than the one
// that was asked about: when instead is set, that alone was approved.
func (q *Queue) RedeemEither(ctx context.Context, ticket string, binding schema.Digest) (ok bool, instead *string, err error) {
	return q.redeem(ctx, ticket, binding, "")
}

func (q *Queue) redeem(ctx context.Context, ticket string, binding schema.Digest, only string) (bool, *string, error) {
	if ticket == "" || binding == "" {
		return false, nil, nil
	}
	now := q.cfg.Now().UnixNano()
	var instead []byte
	err := q.cfg.DB.QueryRowContext(ctx, `UPDATE approval_questions SET redeemed = ?
		WHERE id = (SELECT question FROM approval_tickets WHERE digest = ?)
		AND binding = ? AND answer = 'approved' AND redeemed = 0 AND redeemable > ?`+only+` RETURNING instead`,
		now, ticketDigest(ticket), string(binding), now).Scan(&instead)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil, nil
	case err != nil:
		return false, nil, fmt.Errorf("redeem a ticket: %w", err)
	case instead == nil:
		return true, nil, nil
	}
	text := string(instead)
	return true, &text, nil
}

// Answer records a person's answer. A grant may come with an approval, and is
// stored in the same transaction: it is a copy of the question's scope with
// the limits that the caller set.
func (q *Queue) Answer(ctx context.Context, id string, approve bool, by string, grant *Grant) error {
	return q.answer(ctx, id, approve, by, grant, nil)
}

// AnswerInstead approves another text than the one that was asked about; the
// caller has had it audited.
func (q *Queue) AnswerInstead(ctx context.Context, id, instead, by string) error {
	if len(instead) > maxInstead {
		return fmt.Errorf("answer a question: the text has %d bytes, the limit is %d", len(instead), maxInstead)
	}
	return q.answer(ctx, id, true, by, nil, []byte(instead))
}

func (q *Queue) answer(ctx context.Context, id string, approve bool, by string, grant *Grant, instead []byte) error {
	if len(by) > schema.MaxName {
		return errors.New("answer a question: the name of who answers is too long")
	}
	if grant != nil && !approve {
		return errors.New("answer a question: a grant cannot come with a no")
	}
	now := q.cfg.Now()
	err := sqlite.WithTx(ctx, q.cfg.DB, func(tx *sql.Tx) error {
		r, err := scanRow(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM approval_questions WHERE id = ?`, id))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return ErrNotFound
		case err != nil:
			return err
		case r.answer == answerExpired || r.answer == "" && r.expires <= now.UnixNano():
			return ErrExpired
		case r.answer != "":
			return ErrAnswered
		}
		answer, redeemable := answerDenied, int64(0)
		if approve {
			answer, redeemable = answerApproved, now.Add(q.cfg.TicketTTL).UnixNano()
		}
		if grant != nil {
			if err := q.insertGrant(ctx, tx, r, grant, by, now); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE approval_questions SET answer = ?, answered = ?, answered_by = ?, redeemable = ?, instead = ?
			WHERE id = ? AND answer = ''`, answer, now.UnixNano(), by, redeemable, instead, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("answer a question: %w", err)
	}
	q.wake(id)
	return nil
}

const maxRefused = 100 // agents that are remembered; an agent chooses its name

func (q *Queue) noteRefused(agent string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.refused[agent]; known || len(q.refused) < maxRefused {
		q.refused[agent]++
	}
}

// Refused says how many questions of which agents found no place since the queue
// was opened.
func (q *Queue) Refused() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.refused)
}

// Fair puts questions in the order in which they are best answered: each
// agent's oldest first, one of each agent in turn, so that many of one do not
// hide one of another. list has the oldest first.
func Fair(list []*schema.Question) []*schema.Question {
	turn := map[*schema.Question]int{}
	asked := map[string]int{}
	for _, q := range list {
		agent := ""
		if q.Flow != nil {
			agent = q.Flow.Session.Agent
		}
		turn[q] = asked[agent]
		asked[agent]++
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b *schema.Question) int { return turn[a] - turn[b] })
	return out
}

// group digests what a question is about apart from the payload.
func group(q *schema.Question) schema.Digest {
	f := q.Flow
	return schema.DigestOf(append([]string{"group", f.Session.Agent, f.Surface.String(), f.Source.Kind.String(), f.Sink.Kind.String(),
		f.Sink.ID, f.Sink.Tool, f.Sink.Action, f.Sink.Destination}, q.Reasons...)...)
}

// newTicket makes a ticket for a question and stores its digest.
func newTicket(ctx context.Context, tx *sql.Tx, id string, now time.Time) (string, error) {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	ticket := base64.RawURLEncoding.EncodeToString(b)
	if _, err := tx.ExecContext(ctx, `DELETE FROM approval_tickets WHERE question = ? AND digest NOT IN
		(SELECT digest FROM approval_tickets WHERE question = ? ORDER BY created DESC LIMIT ?)`, id, id, maxTickets-1); err != nil {
		return "", err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO approval_tickets (digest, question, created) VALUES (?, ?, ?)`,
		ticketDigest(ticket), id, now.UnixNano())
	return ticket, err
}

// ticketDigest need not be slow or keyed: a ticket has 256 random bits.
func ticketDigest(ticket string) string {
	sum := sha256.Sum256([]byte("ticket:" + ticket))
	return hex.EncodeToString(sum[:])
}

// newID makes an identifier that a person can type.
func newID(prefix string) string {
	b := make([]byte, 10)
	rand.Read(b) // never fails
	return prefix + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(b))[:10]
}
