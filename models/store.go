package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/ollama/ollama/api"

	"example.org/auditd/inference"
	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// Config says where models come from and go to.
type Config struct {
	URL   string  // of the Ollama server
	List  []Model // from models.txt
	State string  // file of recorded digests; empty records nothing
	// Insecure lets the server pull over plain HTTP; only for a registry on
	// this machine.
	Insecure bool
	Log      *slog.Logger     // nil means silence
	Now      func() time.Time // nil means time.Now
}

// Store is the models of one Ollama server. It is safe for concurrent use.
type Store struct {
	cfg    Config
	client *api.Client
	mu     sync.Mutex // guards the state file
}

// New checks the configuration. It does not connect.
func New(cfg Config) (*Store, error) {
	u, err := inference.CheckURL(cfg.URL, false)
	if err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	// A pull reports its progress for hours, so the answer has no bound.
	return &Store{cfg: cfg, client: api.NewClient(u, inference.NewHTTPClient(0))}, nil
}

// Installed is one model of models.txt, or one that was imported, and what the
// server has of it.
type Installed struct {
	Model
	Present bool
	Actual  string // digest that the server has
	Want    string // digest that it should have; empty when none is known
	Bytes   int64  // on disk
}

// Problem says what is wrong with the model, or nothing.
func (i Installed) Problem() string {
	if i.Present && i.Want != "" && i.Actual != i.Want {
		return fmt.Sprintf("its digest is %s, not %s", short(i.Actual), short(i.Want))
	}
	return ""
}

// List returns every model of models.txt and every recorded one for Ollama,
// with what the server has.
func (s *Store) List(ctx context.Context) ([]Installed, error) {
	have, err := s.have(ctx)
	if err != nil {
		return nil, err
	}
	recorded, err := s.recorded()
	if err != nil {
		return nil, err
	}
	var out []Installed
	for _, m := range s.cfg.List {
		i := Installed{Model: m, Want: m.Digest}
		if i.Want == "" {
			i.Want = recorded[m.Name].Digest
		}
		if h, ok := have[m.Name]; ok && m.Backend == "ollama" {
			i.Present, i.Actual, i.Bytes = true, h.Digest, h.Size
		}
		out = append(out, i)
	}
	for name, r := range recorded {
		if _, ok := Find(s.cfg.List, name); ok {
			continue
		}
		i := Installed{Model: Model{Name: name, Backend: "ollama", Purpose: "imported from a file"}, Want: r.Digest}
		if h, ok := have[name]; ok {
			i.Present, i.Actual, i.Bytes = true, h.Digest, h.Size
		}
		out = append(out, i)
	}
	return out, nil
}

// Verify returns nil when the server has the model with the digest that it
// should have.
func (s *Store) Verify(ctx context.Context, name string) error {
	list, err := s.List(ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Name != name {
			continue
		}
		if !i.Present {
			return &Error{Problem: "the server has no model " + name, Advice: "get it with: auditd pull " + name}
		}
		if p := i.Problem(); p != "" {
			return digestError(name, i.Actual, i.Want)
		}
		return nil
	}
	return &Error{Problem: name + " is not in models.txt and was not imported"}
}

// have asks the server for its models by every name that they go by.
func (s *Store) have(ctx context.Context) (map[string]api.ListModelResponse, error) {
	list, err := s.client.List(ctx)
	if err != nil {
		return nil, s.explain(ctx, "", err)
	}
	out := map[string]api.ListModelResponse{}
	for _, m := range list.Models {
		out[m.Name] = m
		if name, ok := strings.CutSuffix(m.Name, ":latest"); ok {
			out[name] = m
		}
	}
	return out, nil
}

// record is the digest of a model at its first pull or its import.
type record struct {
	Digest string    `json:"digest"`
	Time   time.Time `json:"time"`
}

type stateFile struct {
	Version int               `json:"version"`
	Models  map[string]record `json:"models"`
}

func (s *Store) recorded() (map[string]record, error) {
	if s.cfg.State == "" {
		return nil, nil
	}
	data, err := os.ReadFile(s.cfg.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the recorded digests: %w", err)
	}
	var f stateFile
	if err := schema.Decode(data, &f); err != nil {
		return nil, fmt.Errorf("read the recorded digests in %s: %w", s.cfg.State, err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("read the recorded digests in %s: version %d is not known", s.cfg.State, f.Version)
	}
	return f.Models, nil
}

// settle compares what the server has with what it should have, and records
// the digest when nothing is known yet.
func (s *Store) settle(ctx context.Context, name, want string) (Result, error) {
	have, err := s.have(ctx)
	if err != nil {
		return Result{}, err
	}
	h, ok := have[name]
	if !ok {
		return Result{}, &Error{Problem: "the server says that it has finished and does not list " + name}
	}
	r := Result{Name: name, Digest: h.Digest, Bytes: h.Size}
	s.mu.Lock()
	defer s.mu.Unlock()
	recorded, err := s.recorded()
	if err != nil {
		return Result{}, err
	}
	if want == "" {
		want = recorded[name].Digest
	}
	switch {
	case want == "":
		r.Recorded = true
		return r, s.remember(recorded, name, h.Digest)
	case want != h.Digest:
		return Result{}, digestError(name, h.Digest, want)
	}
	return r, nil
}

func (s *Store) remember(recorded map[string]record, name, digest string) error {
	if s.cfg.State == "" {
		return nil
	}
	f := stateFile{Version: 1, Models: map[string]record{}}
	for k, v := range recorded {
		f.Models[k] = v
	}
	f.Models[name] = record{Digest: digest, Time: s.cfg.Now().UTC().Truncate(time.Second)}
	data, err := json.Marshal(f, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("record the digest of %s: %w", name, err)
	}
	if err := durable.WriteFile(s.cfg.State, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("record the digest of %s: %w", name, err)
	}
	return nil
}

// Error is something that the owner can mend. Its text is for the terminal.
type Error struct {
	Problem string
	Advice  string // what to do, or empty
	Detail  string // what the server said, bounded; or empty
	Digest  bool   // the model is not the one that it should be
}

func (e *Error) Error() string {
	text := e.Problem
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	if e.Detail != "" {
		text += " (the server said: " + e.Detail + ")"
	}
	return text
}

func digestError(name, got, want string) *Error {
	return &Error{
		Problem: fmt.Sprintf("the digest of %s is %s, and %s was expected", name, short(got), short(want)),
		Advice: "somebody has changed what the name stands for: if that was meant to happen, remove the model with `ollama rm " + name +
			"`, delete its line in the recorded digests, and pull it again",
		Digest: true,
	}
}

func short(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}

// explain says in plain words what is wrong.
func (s *Store) explain(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var status api.StatusError
	text := err.Error()
	if errors.As(err, &status) {
		text = status.ErrorMessage
	} else if e := inference.HTTPError(ctx, "ollama", err); e.Cause == inference.CauseUnavailable {
		return &Error{
			Problem: "no Ollama server answers at " + s.cfg.URL,
			Advice:  "start it with `ollama serve`, or name another address in the configuration",
		}
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	e := &Error{Detail: bounded(text)}
	switch {
	case has("x509", "certificate"):
		e.Problem = "the Ollama server does not trust the certificate of the model registry"
		e.Advice = "if a proxy inspects the traffic, add its CA to the trust store of the machine that Ollama runs on, or import the model from a file: auditd models import FILE"
	case has("file does not exist", "manifest unknown", "not found"):
		e.Problem = "the model registry has no model " + name
		e.Advice = "check the name; auditd models lists the known ones"
	case has("no space left"):
		e.Problem = "the disk that Ollama keeps its models on is full"
	case has("newer version of Ollama"), status.StatusCode == http.StatusPreconditionFailed:
		e.Problem = "this model needs a newer Ollama server"
	case has("digest mismatch"):
		e.Problem = "the download of " + name + " was damaged"
		e.Advice = "pull it again"
	case has("insecure protocol", "server gave HTTP response to HTTPS client"):
		e.Problem = "the model registry speaks plain HTTP"
	case has("no such host", "dial tcp", "proxyconnect", "i/o timeout", "TLS handshake timeout", "connection refused", "connection reset", "EOF", "max retries"):
		e.Problem = "the Ollama server cannot reach the model registry"
		e.Advice = "behind a proxy set HTTPS_PROXY for the Ollama server, not for auditd; without a network import the model from a file: auditd models import FILE"
	default:
		e.Problem = "the Ollama server could not do it"
	}
	return e
}

// bounded makes what a server said fit for a terminal.
func bounded(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}
