package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.org/auditd/schema"
)

// TestNotifications: a daemon tells a webhook that a question waits, without a
// word of it; by default it tells nobody.
func TestNotifications(t *testing.T) {
	heard := make(chan string, 16)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		heard <- r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
	}))
	defer receiver.Close()
	for name, config := range map[string]string{"off": "", "on": "notify: {webhook_file: URLFILE, token_file: TOKENFILE, form: ntfy}\n"} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, noModel)
			for file, text := range map[string]string{"url": receiver.URL + "/topic\n", "token": "tk_1\n"} {
				h.write(t, file, text)
			}
			path := filepath.Join(h.dir, "c", "auditd")
			data, err := os.ReadFile(filepath.Join(path, "config.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			h.write(t, "config.yaml", string(data)+strings.NewReplacer("URLFILE", filepath.Join(path, "url"), "TOKENFILE", filepath.Join(path, "token")).Replace(config))
			h.start(t, "serve")
			d, err := h.client().Audit(t.Context(), &schema.Flow{Payload: "send-the-harbour-plan to Bob", Source: schema.Source{Kind: schema.SourceWeb, Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkIdentity, Tool: "harbour-tool"}, Session: schema.Session{Agent: "harbour-agent"}})
			if err != nil || d.Action != schema.DeferToHuman {
				t.Fatalf("%+v %v", d, err)
			}
			select {
			case got := <-heard:
				if name == "off" {
					t.Errorf("it tells of it: %s", got)
				}
				if got != "/topic Bearer tk_1 1 question waits for you." {
					t.Errorf("sent %s", got)
				}
			case <-time.After(map[string]time.Duration{"on": 20 * time.Second, "off": 300 * time.Millisecond}[name]):
				if name == "on" {
					t.Error("nothing was sent")
				}
			}
		})
	}
}
