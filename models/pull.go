package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

// Progress is how far a pull or an import has come.
type Progress struct {
	Status    string // such as "pulling manifest", as the server says it
	Layer     string // digest of the file that is on its way; empty between files
	Completed int64  // bytes of it
	Total     int64
}

// Result is a model that the server now has.
type Result struct {
	Name     string
	Digest   string
	Bytes    int64
	Recorded bool // nothing was known about its digest; it is held to this one from now on
}

// attempts is how often a pull is taken up again after the connection to the
// server, or the server's to the registry, was cut. What has arrived is kept.
const attempts = 5

// Pull has the server get a model of models.txt. progress may be nil.
func (s *Store) Pull(ctx context.Context, name string, progress func(Progress)) (Result, error) {
	m, ok := Find(s.cfg.List, name)
	if !ok {
		return Result{}, &Error{Problem: name + " is not in models.txt", Advice: "auditd models lists the known ones"}
	}
	if m.Backend != "ollama" {
		return Result{}, &Error{Problem: name + " does not come from a model registry; it is built with auditd"}
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	var err error
	for try := range attempts {
		if try > 0 {
			timer := time.NewTimer(time.Duration(try) * time.Second)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return Result{}, ctx.Err()
			}
		}
		moved := false
		if moved, err = s.pullOnce(ctx, name, progress); err == nil {
			return s.settle(ctx, name, m.Digest)
		}
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		// Nothing came at all: trying again changes nothing, unless the server
		// put this pull behind one of the same file that is just being given up.
		if !moved && !othersPull(err) {
			break
		}
		s.cfg.Log.WarnContext(ctx, "the pull was cut and goes on", "model", name, "error", err)
	}
	return Result{}, s.explain(ctx, name, err)
}

// othersPull reports whether the server says that a pull was cancelled although
// this one was not: two pulls share a file's download, and the end of the first,
// which somebody gave up, takes a second with it that came a moment later.
func othersPull(err error) bool {
	var status api.StatusError
	text := err.Error()
	if errors.As(err, &status) {
		text = status.ErrorMessage
	}
	return strings.Contains(text, context.Canceled.Error())
}

// pullOnce returns whether any bytes arrived.
func (s *Store) pullOnce(ctx context.Context, name string, progress func(Progress)) (moved bool, err error) {
	done := false
	first := map[string]int64{}
	err = s.client.Pull(ctx, &api.PullRequest{Model: name, Insecure: s.cfg.Insecure}, func(r api.ProgressResponse) error {
		if at, ok := first[r.Digest]; !ok {
			first[r.Digest] = r.Completed
		} else if r.Completed > at {
			moved = true
		}
		done = r.Status == "success"
		progress(Progress{Status: r.Status, Layer: r.Digest, Completed: r.Completed, Total: r.Total})
		return nil
	})
	if err == nil && !done { // the client takes a cut stream for its end
		err = io.ErrUnexpectedEOF
	}
	return moved, err
}

// Import makes a model on the server out of a GGUF file, without a network.
func (s *Store) Import(ctx context.Context, name, file string, progress func(Progress)) (Result, error) {
	if !nameRE.MatchString(name) {
		return Result{}, &Error{Problem: "the name for the model is not one of letters, digits and ._:/-"}
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	f, err := os.Open(file)
	if err != nil {
		return Result{}, fmt.Errorf("import a model: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Result{}, fmt.Errorf("import a model: %w", err)
	}
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != "GGUF" {
		return Result{}, &Error{Problem: file + " is not a GGUF file"}
	}
	read := func(status string, w io.Writer) io.Reader {
		return &counted{ctx: ctx, from: f, to: w, report: func(n int64) {
			progress(Progress{Status: status, Layer: file, Completed: n, Total: info.Size()})
		}}
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Result{}, fmt.Errorf("import a model: %w", err)
	}
	if _, err := io.Copy(io.Discard, read("reading the file", h)); err != nil {
		return Result{}, fmt.Errorf("import a model: %w", err)
	}
	digest := "sha256:" + hex.EncodeToString(h.Sum(nil))
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Result{}, fmt.Errorf("import a model: %w", err)
	}
	if err := s.client.CreateBlob(ctx, digest, read("copying the file to the server", io.Discard)); err != nil {
		return Result{}, s.explain(ctx, name, err)
	}
	done := false
	err = s.client.Create(ctx, &api.CreateRequest{Model: name, Files: map[string]string{"model.gguf": digest}}, func(r api.ProgressResponse) error {
		done = r.Status == "success"
		progress(Progress{Status: r.Status})
		return nil
	})
	if err == nil && !done {
		err = errors.New("the server did not finish")
	}
	if err != nil {
		return Result{}, s.explain(ctx, name, err)
	}
	m, _ := Find(s.cfg.List, name)
	return s.settle(ctx, name, m.Digest)
}

// counted reports how much was read, at most once a mebibyte, and ends with
// its context.
type counted struct {
	ctx    context.Context
	from   io.Reader
	to     io.Writer
	report func(int64)
	n, at  int64
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(p)
	c.to.Write(p[:n])
	if c.n += int64(n); c.n-c.at >= 1<<20 || err == io.EOF {
		c.at = c.n
		c.report(c.n)
	}
	return n, err
}
