//go:build integration

package quarantine

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"example.org/auditd/dualview"
	"example.org/auditd/inference/ollama"
	"example.org/auditd/schema"
)

// TestRealInspect asks a real model behind a real Ollama server, as
// scripts/testmodel.sh makes it. The model is far too small to answer well, so
// this checks the protocol: the server holds it to the form, and the answer
// becomes symbols. Forms and window are small, because a CPU writes slowly.
func TestRealInspect(t *testing.T) {
	cfg := ollama.Config{URL: os.Getenv("AUDITD_TEST_OLLAMA"), Model: os.Getenv("AUDITD_TEST_MODEL"), Threads: 1, Context: 1024,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if cfg.URL == "" || cfg.Model == "" {
		t.Fatal("set AUDITD_TEST_OLLAMA and AUDITD_TEST_MODEL, or run scripts/testmodel.sh")
	}
	b, err := ollama.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.Start(t.Context())
	t.Cleanup(b.Close)
	e := newEnv(t, allClear, func(c *Config) { c.Model, c.Timeout, c.Logger, c.Output = b, 10*time.Minute, cfg.Log, 48 })
	s := e.symbol("Dear Ann, the invoice 4711 over 200 euros is due on Friday. Yours, Bob")
	res, err := e.q.Inspect(t.Context(), e.request("Is this an invoice or an offer, and who wrote it?",
		`{"type":"object","properties":{"kind":{"type":"string","enum":["invoice","offer"]},"writer":{"type":"string","maxLength":8}}}`, s))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Result struct {
			Kind   string          `json:"kind"`
			Writer dualview.Symbol `json:"writer"`
		} `json:"result"`
	}
	if err := schema.Decode(res.JSON, &got); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: writer is %q", res.JSON, e.reveal(got.Result.Writer))
	if k := got.Result.Kind; k != "invoice" && k != "offer" {
		t.Errorf("kind is %q", k)
	}
}
