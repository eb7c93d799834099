package ollama

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"

	"example.org/auditd/inference"
)

// await returns nil when the model is loaded, waits while it is being loaded,
// and fails when it can't be.
func (b *Backend) await(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return inference.HTTPError(ctx, "ollama", err)
		}
		b.mu.Lock()
		if b.state == stateReady && b.cfg.Now().After(b.fresh) {
			b.load() // the server has dropped it by now
		}
		s, changed, err := b.state, b.changed, b.readyLocked()
		b.mu.Unlock()
		if s != stateLoading {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &inference.Error{Cause: inference.CauseOf(ctx.Err()), Backend: "ollama", Err: err}
		}
	}
}

// used notes that the server has the model loaded.
func (b *Backend) used() {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A margin, so that a call does not meet a model that is just leaving.
	b.fresh = b.cfg.Now().Add(b.cfg.KeepAlive - b.cfg.KeepAlive/10)
}

// doubt has the model looked at again after a call that failed in a way that
// an unloaded or removed model would explain.
func (b *Backend) doubt(err error) {
	switch inference.CauseOf(err) {
	case inference.CauseTimeout, inference.CauseUnavailable, inference.CauseStatus:
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.state == stateReady {
			b.load()
		}
	}
}

func (b *Backend) set(s state, err error) {
	b.state, b.err = s, err
	close(b.changed)
	b.changed = make(chan struct{})
}

// load starts loading a model that is idle or was ready; one that failed is
// tried again by the goroutine that failed. b.mu is held. Nothing
// but Close stops it: a server that is told that nobody waits any more throws
// half a loaded model away, and the next call would start from nothing.
func (b *Backend) load() {
	if b.state == stateLoading || b.state == stateFailed || b.run == nil || b.run.Err() != nil {
		return
	}
	b.set(stateLoading, nil)
	b.wg.Go(func() {
		for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
			err := b.loadOnce()
			b.mu.Lock()
			if err != nil {
				err = &inference.Error{Cause: inference.CauseUnavailable, Backend: "ollama", Err: err}
			}
			if err == nil {
				b.set(stateReady, nil)
				b.mu.Unlock()
				b.probeOnce()
				return
			}
			b.set(stateFailed, err)
			b.mu.Unlock()
			b.cfg.Log.WarnContext(b.run, "the auditor's model is not loaded", "model", b.cfg.Model, "error", err)
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-b.run.Done():
				timer.Stop()
				return
			}
			b.mu.Lock()
			b.set(stateLoading, nil)
			b.mu.Unlock()
		}
	})
}

// loadOnce finds the model, loads it, and leaves the stable part of the prompt
// in the server's prefix cache.
func (b *Backend) loadOnce() error {
	ctx, cancel := context.WithTimeout(b.run, b.cfg.LoadTimeout)
	defer cancel()
	version, err := b.client.Version(ctx)
	if err != nil {
		return b.serverError(ctx, err)
	}
	digest, err := b.findDigest(ctx)
	if err != nil {
		return err
	}
	show, err := b.client.Show(ctx, &api.ShowRequest{Model: b.cfg.Model})
	if err != nil {
		return b.serverError(ctx, err)
	}
	if show.RemoteHost != "" && !b.cfg.Remote {
		return b.unavailable("the model " + b.cfg.Model + " runs on another machine, which the server passes everything on to")
	}
	b.mu.Lock()
	if b.digest != "" && b.digest != digest {
		b.cfg.Log.WarnContext(ctx, "the model behind the name has changed", "model", b.cfg.Model, "was", b.digest, "is", digest)
		b.probe = nil
	}
	b.version, b.digest = version, digest
	b.thinks = slices.Contains(show.Capabilities, model.CapabilityThinking)
	b.mu.Unlock()

	system, user, err := b.render.Stable()
	if err != nil {
		return err
	}
	resp, err := b.chat(ctx, b.request(system, user, nil, 1))
	if err != nil {
		return err
	}
	if resp.PromptEvalCount <= 0 {
		return &inference.Error{Cause: inference.CauseTruncated, Backend: "ollama", Err: errors.New("the server does not count tokens, so a cut prompt could not be found out")}
	}
	b.mu.Lock()
	// The end of a chat template may be shorter than that of another message.
	b.base = resp.PromptEvalCount - templateTokens
	b.system = system
	b.mu.Unlock()
	b.used()
	return nil
}

func (b *Backend) findDigest(ctx context.Context) (string, error) {
	list, err := b.client.List(ctx)
	if err != nil {
		return "", b.serverError(ctx, err)
	}
	for _, m := range list.Models {
		if m.Name == b.cfg.Model || strings.TrimSuffix(m.Name, ":latest") == b.cfg.Model {
			return m.Digest, nil
		}
	}
	return "", b.unavailable("the server has no model " + b.cfg.Model + "; get it with: auditd pull " + b.cfg.Model)
}
