package models

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/auditd"
)

func TestShippedList(t *testing.T) {
	list, err := Parse(auditd.ModelsTxt())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"qwen3:4b", "qwen3:4b-instruct-2507-q4_K_M", "qwen3:1.7b", "qwen3:8b", "qwen3:14b", "auditd-minilm"} {
		if m, ok := Find(list, name); !ok || m.Size == 0 || m.Purpose == "" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestParse(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	list, err := Parse("# c\n\n m  ollama " + digest + " MIT 1.5GB  a b  c \nn onnx - MIT 23MB x")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if want := (Model{"m", "ollama", digest[7:], "MIT", 1_500_000_000, "a b c"}); list[0] != want {
		t.Errorf("%+v", list[0])
	}
	for line, want := range map[string]string{
		"m ollama - MIT 1GB":           "fields",
		"-m ollama - MIT 1GB x":        "name",
		"m$ ollama - MIT 1GB x":        "name",
		"m vllm - MIT 1GB x":           "backend",
		"m ollama abc MIT 1GB x":       "digest",
		"m ollama sha256:AB MIT 1GB x": "digest",
		"m ollama - M/T 1GB x":         "licence",
		"m ollama - MIT 1TB x":         "size",
		"m ollama - MIT GB x":          "size",
		"m ollama - MIT -1GB x":        "size",
		"n ollama - MIT 1GB x":         "line 2",
	} {
		if _, err := Parse("# one\nn onnx - MIT 1MB x\n" + line); err == nil || !strings.HasPrefix(err.Error(), "models.txt:3: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(auditd.ModelsTxt())
	f.Add("m ollama - MIT 1GB x\nm ollama - MIT 1GB x")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse(text)
		if err != nil && list != nil {
			t.Fatal("a list came together with an error")
		}
		for _, m := range list {
			if m.Name == "" || m.Size < 0 || m.Purpose == "" {
				t.Fatalf("%+v", m)
			}
		}
	})
}

const digestA, digestB = "aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb"

// server plays an Ollama server: pull answers /api/pull, digest is what it
// lists for m:1.
func server(t *testing.T, digest *string, pull http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/tags":
			fmt.Fprintf(w, `{"models":[{"name":"m:1","digest":%q,"size":7}]}`, *digest)
		case "/api/pull":
			pull(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func store(t *testing.T, url, state string, list string) *Store {
	t.Helper()
	l, err := Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{URL: url, List: l, State: state})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const success = `{"status":"pulling manifest"}` + "\n" + `{"status":"pulling x","digest":"d","total":9,"completed":9}` + "\n" + `{"status":"success"}` + "\n"

// TestDigest: the first pull is recorded, and later ones are held to it.
func TestDigest(t *testing.T) {
	digest := digestA
	url := server(t, &digest, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, success) })
	state := filepath.Join(t.TempDir(), "models.json")
	s := store(t, url, state, "m:1 ollama - MIT 1GB x")
	var seen []string
	r, err := s.Pull(t.Context(), "m:1", func(p Progress) { seen = append(seen, p.Status) })
	if err != nil || !r.Recorded || r.Digest != digestA || r.Bytes != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
	if fmt.Sprint(seen) != "[pulling manifest pulling x success]" {
		t.Errorf("progress is %v", seen)
	}
	if r, err = s.Pull(t.Context(), "m:1", nil); err != nil || r.Recorded {
		t.Errorf("again: %+v, %v", r, err)
	}
	if err := s.Verify(t.Context(), "m:1"); err != nil {
		t.Error(err)
	}
	digest = digestB
	var e *Error
	if _, err := s.Pull(t.Context(), "m:1", nil); !asError(err, &e) || !e.Digest {
		t.Errorf("a changed model: %v", err)
	}
	if err := s.Verify(t.Context(), "m:1"); !asError(err, &e) || !e.Digest {
		t.Errorf("a changed model: %v", err)
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Present || list[0].Problem() == "" {
		t.Errorf("%+v, %v", list, err)
	}
	pinned := store(t, url, "", "m:1 ollama sha256:"+strings.Repeat("ab", 32)+" MIT 1GB x")
	if _, err := pinned.Pull(t.Context(), "m:1", nil); !asError(err, &e) || !e.Digest {
		t.Errorf("not the pinned model: %v", err)
	}
	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pull(t.Context(), "m:1", nil); err == nil {
		t.Error("an unreadable record was taken for none")
	}
}

func asError(err error, e **Error) bool {
	x, ok := err.(*Error)
	*e = x
	return ok
}

// TestPullGoesOn: a stream that is cut is taken up while bytes arrive.
func TestPullGoesOn(t *testing.T) {
	digest := digestA
	tries := 0
	url := server(t, &digest, func(w http.ResponseWriter, r *http.Request) {
		tries++
		if tries < 3 {
			fmt.Fprintf(w, `{"status":"pulling x","digest":"d","total":9,"completed":%d}`+"\n", tries)
			fmt.Fprintf(w, `{"status":"pulling x","digest":"d","total":9,"completed":%d}`+"\n", tries+1)
			return
		}
		io.WriteString(w, success)
	})
	if _, err := store(t, url, "", "m:1 ollama - MIT 1GB x").Pull(t.Context(), "m:1", nil); err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
}

// TestPullAfterOneGivenUp: a server that still ends a pull of the same file,
// which somebody gave up a moment before, ends this one with it.
func TestPullAfterOneGivenUp(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"as a line":  func(w http.ResponseWriter) { fmt.Fprintln(w, `{"error":"context canceled"}`) },
		"as a state": func(w http.ResponseWriter) { w.WriteHeader(500); fmt.Fprint(w, `{"error":"context canceled"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			digest, calls := strings.Repeat("a", 64), 0
			url := server(t, &digest, func(w http.ResponseWriter, _ *http.Request) {
				if calls++; calls == 1 {
					answer(w)
					return
				}
				io.WriteString(w, success)
			})
			s := store(t, url, filepath.Join(t.TempDir(), "models.json"), "m:1 ollama - MIT 1GB a test\n")
			if _, err := s.Pull(t.Context(), "m:1", nil); err != nil || calls != 2 {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	}
}

// TestPlainWords: what goes wrong is said so that its owner can mend it.
func TestPlainWords(t *testing.T) {
	digest := digestA
	said := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, `{"error":%q}`, text) }
	}
	for name, row := range map[string]struct {
		pull http.HandlerFunc
		want string
	}{
		"no name":     {said(`pull model manifest: Get "https://x/v2": dial tcp: lookup x: no such host`), "HTTPS_PROXY"},
		"proxy":       {said(`Get "https://x": proxyconnect tcp: EOF`), "HTTPS_PROXY"},
		"certificate": {said(`Get "https://x": tls: failed to verify certificate: x509: certificate signed by unknown authority`), "CA"},
		"no model":    {said("pull model manifest: file does not exist"), "no model m:1"},
		"disk":        {said("write /x: no space left on device"), "disk"},
		"version": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(412)
			io.WriteString(w, `{"error":"upgrade"}`)
		}, "newer Ollama"},
		"damaged":    {said("digest mismatch, file must be downloaded again"), "damaged"},
		"other":      {said("it hurts\x1b[31m" + strings.Repeat("x", 5000)), "could not do it"},
		"garbage":    {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }, "could not do it"},
		"nothing":    {func(w http.ResponseWriter, r *http.Request) {}, "registry"},
		"no success": {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"status":"pulling manifest"}`) }, "registry"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store(t, server(t, &digest, row.pull), "", "m:1 ollama - MIT 1GB x").Pull(t.Context(), "m:1", nil)
			if err == nil || !strings.Contains(err.Error(), row.want) || len(err.Error()) > 900 || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%v, want %q in it", err, row.want)
			}
		})
	}
	s := store(t, "http://127.0.0.1:1", "", "m:1 ollama - MIT 1GB x\no onnx - MIT 1MB x")
	for name, want := range map[string]string{"m:1": "ollama serve", "z": "models.txt", "o": "registry"} {
		if _, err := s.Pull(t.Context(), name, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", name, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Pull(ctx, "m:1", nil); err != context.Canceled {
		t.Error(err)
	}
}

func TestImportRefuses(t *testing.T) {
	s := store(t, "http://127.0.0.1:1", "", "")
	bad := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(bad, []byte("PK\x03\x04 not a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string][2]string{
		"not there": {"m", bad + "x"}, "not a model": {"m", bad}, "name": {"../m", bad},
	} {
		if _, err := s.Import(t.Context(), row[0], row[1], nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := New(Config{URL: "x"}); err == nil {
		t.Error("a bad address was accepted")
	}
}
