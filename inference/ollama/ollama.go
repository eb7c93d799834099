// Package ollama is the auditor, the arbiter and the quarantined model that a
// local Ollama server runs. The server is trusted with the record but not with the answer: it may
// cut a prompt, ignore a schema, think although told not to, answer with half a
// document or not at all, and every one of these is found out and blocks.
package ollama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/ollama/ollama/api"

	"example.org/auditd/inference"
	"example.org/auditd/inference/textmodel"
	"example.org/auditd/prompts"
	"example.org/auditd/schema"
)

// DefaultURL is where an Ollama server listens unless told otherwise.
const DefaultURL = "http://127.0.0.1:11434"

// Config says which model to use and what it may cost.
type Config struct {
	URL   string // empty means DefaultURL
	Model string // as the server names it
	// Context is the context length in tokens that the model is loaded with; 0
	// means 8192. The server's own default may be smaller than the prompt.
	Context     int
	MaxOutput   int           // tokens of an answer; 0 means 384, three times what one needs
	MaxWindows  int           // calls that one long payload may take; 0 means 4
	KeepAlive   time.Duration // how long the server keeps the model loaded; 0 means 30 minutes
	LoadTimeout time.Duration // for loading the model, apart from any call; 0 means 5 minutes
	// Threads is how many threads the server runs the model with; 0 leaves it
	// to the server. One less than there are cores is many times faster than
	// all of them on a machine that does other things too, because the threads
	// spin while they wait for each other.
	Threads int
	// Remote allows a model that the local server only passes on to its maker's
	// machines. An auditor sees every flow before anything was taken out of it.
	Remote   bool
	StateDir string           // where probe results are kept; empty means nowhere
	Log      *slog.Logger     // nil means silence
	Rand     io.Reader        // of the prompts' codes; nil means crypto/rand
	Now      func() time.Time // nil means time.Now
}

// Backend is an inference.Auditor, an inference.Arbiter and an
// inference.Completer.
type Backend struct {
	cfg    Config
	client *api.Client
	render *prompts.Renderer
	model  *textmodel.Model

	mu      sync.Mutex
	state   state
	err     error         // why state is failed
	changed chan struct{} // closed and replaced whenever state changes
	digest  string        // of the loaded model
	version string        // of the server
	base    int           // the server's count of tokens of a prompt without a case
	system  string        // the system text that base belongs to
	thinks  bool          // the model can think, so it is told not to
	fresh   time.Time     // when the model is unloaded unless it is used again
	probe   *Probe
	probed  string // digest of the model whose probe has been tried
	// testOnlyNoProbe keeps the background from asking the model anything.
	testOnlyNoProbe bool
	run             context.Context // of everything in the background; nil before Start
	stop            context.CancelFunc
	wg              sync.WaitGroup
}

type state uint8

const (
	stateIdle    state = iota // Start has not been called
	stateLoading              // calls wait
	stateFailed               // calls fail; loading is tried again
	stateReady
)

// New checks the configuration. It does not connect; Start does.
func New(cfg Config) (*Backend, error) {
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	if cfg.Model == "" {
		return nil, errors.New("ollama: no model is named")
	}
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("ollama: the URL of the server is not an http or https URL")
	}
	for _, d := range []struct {
		value *int
		def   int
	}{{&cfg.Context, 8192}, {&cfg.MaxOutput, 384}, {&cfg.MaxWindows, 4}} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&cfg.KeepAlive, 30 * time.Minute}, {&cfg.LoadTimeout, 5 * time.Minute}} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	render, err := prompts.New(prompts.Config{MaxTokens: cfg.Context - cfg.MaxOutput - templateTokens, MaxWindows: cfg.MaxWindows, Rand: cfg.Rand})
	if err != nil {
		return nil, err
	}
	b := &Backend{
		cfg: cfg, render: render, changed: make(chan struct{}),
		// 1 MiB: an answer has a few hundred bytes, a list of models some kilobytes.
		client: api.NewClient(base, inference.NewHTTPClient(1<<20)),
	}
	b.model = &textmodel.Model{Backend: "ollama", Render: render, Send: b.send}
	return b, nil
}

// templateTokens is what a chat template adds to a prompt at most.
const templateTokens = 64

// Start loads the model in the background and keeps it loaded. ctx bounds the
// life of the background work, not the loading.
func (b *Backend) Start(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run != nil {
		return
	}
	b.run, b.stop = context.WithCancel(ctx)
	b.load()
}

// Close ends the background work and waits for it.
func (b *Backend) Close() {
	b.mu.Lock()
	if b.stop != nil {
		b.stop()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// Identity names the model by its digest once the server has told it.
func (b *Backend) Identity() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("ollama:%s@%s ctx=%d prompt=%s", b.cfg.Model, b.digest, b.cfg.Context, b.render.Version())
}

// Ready says whether the model is loaded.
func (b *Backend) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readyLocked()
}

func (b *Backend) readyLocked() error {
	switch b.state {
	case stateReady:
		return nil
	case stateFailed:
		return b.err
	case stateLoading:
		return b.unavailable("the model " + b.cfg.Model + " is being loaded")
	default:
		return b.unavailable("it was not started")
	}
}

func (b *Backend) unavailable(why string) *inference.Error {
	return &inference.Error{Cause: inference.CauseUnavailable, Backend: "ollama", Err: errors.New(why)}
}

// Audit asks the model about the record.
func (b *Backend) Audit(ctx context.Context, rec *schema.Record) (rep schema.Report, usage schema.Usage, err error) {
	usage = b.usage()
	defer b.timed(&usage)()
	rep, err = b.model.Audit(ctx, rec, &usage)
	return rep, usage, err
}

// Arbitrate asks the model to decide an escalated flow.
func (b *Backend) Arbitrate(ctx context.Context, rec *schema.ArbiterRecord) (rep schema.ArbiterReport, usage schema.Usage, err error) {
	usage = b.usage()
	defer b.timed(&usage)()
	rep, err = b.model.Arbitrate(ctx, rec, &usage)
	return rep, usage, err
}

// Complete asks the model a plain question.
func (b *Backend) Complete(ctx context.Context, c *inference.Completion) (text string, usage schema.Usage, err error) {
	usage = b.usage()
	defer b.timed(&usage)()
	text, err = b.complete(ctx, c, &usage)
	return text, usage, err
}

// Window is the context length that the model is loaded with, less what a chat
// template adds.
func (b *Backend) Window() int { return b.cfg.Context - templateTokens }

func (b *Backend) usage() schema.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return schema.Usage{Backend: "ollama", Model: b.cfg.Model, Digest: b.digest}
}

func (b *Backend) timed(u *schema.Usage) func() {
	start := b.cfg.Now()
	return func() { u.DurationMS = float64(b.cfg.Now().Sub(start)) / float64(time.Millisecond) }
}
