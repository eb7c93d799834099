//go:build integration

package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// registry is a model registry on loopback that holds one model: manifests and
// blobs with ranges, which is all that a pull asks for.
type registry struct {
	url     string
	served  atomic.Int64 // bytes of blobs
	hold    atomic.Int64 // blobs stop after this many bytes; 0 means never
	stopped chan struct{}
}

func newRegistry(t *testing.T, gguf string) *registry {
	t.Helper()
	model, err := os.ReadFile(gguf)
	if err != nil {
		t.Fatal(err)
	}
	// The server has the file itself already; bytes after its end make it another.
	model = append(model, make([]byte, 4096)...)
	config := []byte(`{"model_format":"gguf","model_family":"llama","model_families":["llama"],"model_type":"134.52M","file_type":"Q4_1","architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`)
	template := []byte("{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n")
	blobs := map[string][]byte{}
	layer := func(mediaType string, data []byte) map[string]any {
		sum := sha256.Sum256(data)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		blobs[digest] = data
		return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(data)}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
		"config": layer("application/vnd.docker.container.image.v1+json", config),
		"layers": []any{layer("application/vnd.ollama.image.model", model), layer("application/vnd.ollama.image.template", template)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &registry{stopped: make(chan struct{}, 64)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Path == "/v2/library/tiny/manifests/latest":
			w.Write(manifest)
		case strings.HasPrefix(req.URL.Path, "/v2/library/tiny/blobs/"):
			data, ok := blobs[path.Base(req.URL.Path)]
			if !ok {
				http.NotFound(w, req)
				return
			}
			// A registry sends the client to another host for the data, and
			// the real server insists on it.
			_, port, _ := strings.Cut(req.Host, ":")
			if req.Method == http.MethodGet && !strings.HasPrefix(req.Host, "localhost") {
				http.Redirect(w, req, "http://localhost:"+port+req.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			http.ServeContent(&blobWriter{w, r, req.Context()}, req, "", time.Time{}, strings.NewReader(string(data)))
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
		}
	}))
	t.Cleanup(srv.Close)
	r.url = strings.TrimPrefix(srv.URL, "http://")
	return r
}

type blobWriter struct {
	http.ResponseWriter
	r   *registry
	ctx context.Context
}

func (w *blobWriter) Write(p []byte) (int, error) {
	if hold := w.r.hold.Load(); hold > 0 && w.r.served.Load() > hold {
		select {
		case w.r.stopped <- struct{}{}:
		default:
		}
		<-w.ctx.Done() // the line is dead and nobody says so
		return 0, w.ctx.Err()
	}
	n, err := w.ResponseWriter.Write(p)
	w.r.served.Add(int64(n))
	return n, err
}

func realStore(t *testing.T, names ...string) (*Store, string) {
	t.Helper()
	url, gguf := os.Getenv("AUDITD_TEST_OLLAMA"), os.Getenv("AUDITD_TEST_GGUF")
	if url == "" || gguf == "" {
		t.Fatal("set AUDITD_TEST_OLLAMA and AUDITD_TEST_GGUF, or run scripts/testmodel.sh")
	}
	var list strings.Builder
	for _, n := range names {
		fmt.Fprintf(&list, "%s ollama - Apache-2.0 98MB a test\n", n)
	}
	l, err := Parse(list.String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{URL: url, List: l, State: filepath.Join(t.TempDir(), "models.json"), Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	return s, gguf
}

// TestRealPull pulls a real model from a registry on loopback through a real
// Ollama server; the first time the line dies half-way and the owner gives up,
// and the second pull goes on from there.
func TestRealPull(t *testing.T) {
	_, gguf := realStore(t)
	r := newRegistry(t, gguf)
	name := r.url + "/library/tiny:latest"
	s, _ := realStore(t, name, r.url+"/library/none:latest")
	info, err := os.Stat(gguf)
	if err != nil {
		t.Fatal(err)
	}

	r.hold.Store(info.Size() / 2)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-r.stopped; cancel() }()
	if _, err := s.Pull(ctx, name, nil); err != context.Canceled {
		t.Fatalf("the pull that was given up: %v", err)
	}
	r.hold.Store(0)
	var last Progress
	var most int64
	res, err := s.Pull(t.Context(), name, func(p Progress) { last = p; most = max(most, p.Completed) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("served %d bytes for a model of %d", r.served.Load(), info.Size())
	if over := r.served.Load() - info.Size(); over > info.Size()/3 {
		t.Errorf("the second pull started anew: %d bytes too many", over)
	}
	if !res.Recorded || len(res.Digest) != 64 || last.Status != "success" || most != info.Size()+4096 {
		t.Errorf("%+v, last progress %+v, at most %d", res, last, most)
	}
	if err := s.Verify(t.Context(), name); err != nil {
		t.Error(err)
	}
	if res, err = s.Pull(t.Context(), name, nil); err != nil || res.Recorded {
		t.Errorf("again: %+v, %v", res, err)
	}
	if _, err := s.Pull(t.Context(), r.url+"/library/none:latest", nil); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("a model that is not there: %v", err)
	}
}

func TestRealImport(t *testing.T) {
	s, gguf := realStore(t)
	var read int64
	res, err := s.Import(t.Context(), "imported:1", gguf, func(p Progress) { read = max(read, p.Completed) })
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(gguf)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Recorded || read != info.Size() {
		t.Errorf("%+v, read %d of %d", res, read, info.Size())
	}
	if err := s.Verify(t.Context(), "imported:1"); err != nil {
		t.Error(err)
	}
}
