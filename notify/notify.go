// Package notify tells an owner who looks elsewhere that questions wait: on the
// desktop, or through a webhook. It says how many, and nothing of what they are
// about: what is sent passes through other people's servers and stands on
// locked screens, and an agent that could choose words of it would write to its
// owner in auditd's name.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config is what a Notifier needs. Changes, Waiting and Logger must be set.
type Config struct {
	Desktop bool
	Webhook *Webhook // nil for none

	Changes <-chan struct{}                             // receives after questions have changed
	Waiting func(ctx context.Context) ([]string, error) // ids of those that wait
	Page    string                                      // address of the page
	Every   time.Duration                               // least time between two, default 30s
	Logger  *slog.Logger
}

// Bounds of what a channel may cost.
const (
	timeout    = 5 * time.Second
	maxBackoff = 15 * time.Minute // between tries of a channel that fails
)

// Notifier tells of new questions until its context ends.
type Notifier struct {
	cfg      Config
	channels []*channel
}

// channel is one way to the owner. A failure of one does not hold up another,
// and no failure holds up a decision.
type channel struct {
	name   string
	send   func(context.Context, *message) error
	seen   map[string]bool // questions that it has told of, as far as they still wait
	next   time.Time       // before which nothing is sent
	failed int             // in a row
}

// message is all that leaves.
type message struct {
	Title   string `json:"title"`
	Text    string `json:"text"`
	Waiting int    `json:"waiting"`
	Page    string `json:"page,omitempty"`
}

func newMessage(waiting int, page string) *message {
	m := &message{Title: "auditd", Text: "1 question waits for you.", Waiting: waiting, Page: page}
	if waiting != 1 {
		m.Text = fmt.Sprintf("%d questions wait for you.", waiting)
	}
	return m
}

// New returns a notifier; nil when nothing is switched on.
func New(c Config) (*Notifier, error) {
	if !c.Desktop && c.Webhook == nil {
		return nil, nil
	}
	if c.Changes == nil || c.Waiting == nil || c.Logger == nil {
		return nil, errors.New("notify: Changes, Waiting and Logger must be set")
	}
	if c.Every <= 0 {
		c.Every = 30 * time.Second
	}
	n := &Notifier{cfg: c}
	if c.Desktop {
		n.channels = append(n.channels, &channel{name: "desktop", send: desktop})
	}
	if c.Webhook != nil {
		send, err := c.Webhook.sender()
		if err != nil {
			return nil, err
		}
		n.channels = append(n.channels, &channel{name: "webhook", send: send})
	}
	return n, nil
}

// Run tells of new questions until ctx ends. Those that wait already when it
// starts are told of too: the owner may not have been there.
func (n *Notifier) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.cfg.Changes:
		case <-timer.C:
		}
		ids, err := n.cfg.Waiting(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			n.cfg.Logger.WarnContext(ctx, "what waits could not be read for a notification", "error", err)
			timer.Reset(n.cfg.Every)
			continue
		}
		if wait := n.tell(ctx, ids, time.Now()); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// tell brings every channel up to date, and says when to look again; 0 for when
// something has changed.
func (n *Notifier) tell(ctx context.Context, ids []string, now time.Time) (again time.Duration) {
	for _, c := range n.channels {
		fresh := false
		still := make(map[string]bool, len(ids))
		for _, id := range ids {
			if c.seen[id] {
				still[id] = true
			} else {
				fresh = true
			}
		}
		c.seen = still
		if !fresh {
			continue
		}
		wait := c.next.Sub(now)
		if wait <= 0 {
			wait = n.try(ctx, c, ids, now)
		}
		if wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
	}
	return again
}

// try sends through one channel. It returns when to try again after a failure.
func (n *Notifier) try(ctx context.Context, c *channel, ids []string, now time.Time) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.send(ctx, newMessage(len(ids), n.cfg.Page))
	if err == nil {
		for _, id := range ids {
			c.seen[id] = true
		}
		c.next, c.failed = now.Add(n.cfg.Every), 0
		return 0
	}
	if errors.Is(err, context.Canceled) {
		return 0 // the daemon stops
	}
	c.failed++
	wait := min(n.cfg.Every<<min(c.failed-1, 10), maxBackoff)
	c.next = now.Add(wait)
	n.cfg.Logger.WarnContext(ctx, "a notification did not get out", "channel", c.name, "cause", err.Error(), "try_again_in", wait)
	return wait
}
