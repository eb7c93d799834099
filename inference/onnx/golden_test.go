package onnx

import (
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"slices"
	"testing"

	"example.org/auditd/schema"
)

// golden is one line of testdata/golden.json, which training writes with the
// model.
type golden struct {
	Note     string       `json:"note"`
	Text     *string      `json:"text"`
	Bytes    []byte       `json:"base64"`
	Meta     *goldenMeta  `json:"meta"`
	Prepared string       `json:"prepared"`
	Header   []int32      `json:"header_ids"`
	IDs      []int32      `json:"ids"`
	Windows  []int32      `json:"windows"`
	Ranges   [][2]int     `json:"token_bytes"`
	Decision [][4]float64 `json:"decision_logits"`
	Scores   [][3]float64 `json:"scores"`
	Residual [][8]float64 `json:"residual"`
	P        float64      `json:"probability"`
	Stage1   []int        `json:"stage1"` // raw score of each window
	Spans    [][2]int     `json:"spans"`
}

type goldenMeta struct {
	Surface  string  `json:"surface"`
	Boundary string  `json:"boundary"`
	Channel  string  `json:"channel"`
	Trust    string  `json:"trust"`
	Sink     string  `json:"sink"`
	Intent   *string `json:"intent"`
}

func (g *golden) payload() string {
	if g.Text != nil {
		return *g.Text
	}
	return string(g.Bytes)
}

func (g *golden) flow(t *testing.T) *schema.Flow {
	t.Helper()
	if g.Meta == nil {
		return nil
	}
	f := new(schema.Flow)
	for _, x := range []struct {
		v    interface{ UnmarshalText([]byte) error }
		text string
	}{
		{&f.Surface, g.Meta.Surface}, {&f.Boundary, g.Meta.Boundary}, {&f.Source.Kind, g.Meta.Channel},
		{&f.Source.Trust, g.Meta.Trust}, {&f.Sink.Kind, g.Meta.Sink},
	} {
		if err := x.v.UnmarshalText([]byte(x.text)); err != nil {
			t.Fatal(err)
		}
	}
	if g.Meta.Intent != nil {
		f.Intent = *g.Meta.Intent
	}
	return f
}

// TestGolden holds text, ids, windows and scores of the shipped model equal to
// the Python side.
func TestGolden(t *testing.T) {
	model, file := Embedded(), "testdata/golden.json"
	if dir := os.Getenv("AUDITD_ONNX_MODEL"); dir != "" {
		model, file = os.DirFS(dir), dir+"/golden.json"
	}
	if _, err := fs.Stat(model, "model.json"); err != nil {
		t.Fatal("no model is embedded")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	a := testAuditor(t, func(c *Config) { c.Model = model })
	// Equal runtimes agree to 1e-4; processors and versions round the
	// activations differently (training's contract).
	const tolerance = 0.05
	worst, here := 0.0, 0.0 // of all texts, of this one
	near := func(note, what string, got float32, want float64) {
		t.Helper()
		// The distance as a probability: logits far out may differ more.
		d := math.Abs(float64(got) - want)
		if what == "decision" {
			d = math.Abs(sigmoid(float64(got)) - sigmoid(want))
		}
		here = max(here, d)
		if worst = max(worst, d); !(d <= tolerance) {
			t.Errorf("%s: %s is %v, want %v", note, what, got, want)
		}
	}
	j := &job{done: make(chan struct{}, 1)}
	l := a.engines[0].lane()
	defer l.close()
	for _, g := range all {
		f := g.flow(t)
		here = 0
		if err := a.cut(j, f, g.payload()); err != nil {
			t.Fatal(err)
		}
		if got := string(j.text.Bytes()); got != g.Prepared {
			t.Errorf("%s: prepared %q, want %q", g.Note, got, g.Prepared)
			continue
		}
		if !slices.Equal(j.header, g.Header) {
			t.Errorf("%s: header %v, want %v", g.Note, j.header, g.Header)
			continue
		}
		if !slices.Equal(j.toks.IDs, g.IDs) || !slices.Equal(j.starts, g.Windows) {
			t.Errorf("%s: ids or windows differ", g.Note)
			continue
		}
		for i, want := range g.Ranges {
			if from, to := j.text.Original(int(j.toks.Start[i]), int(j.toks.End[i])); from != want[0] || to != want[1] {
				t.Errorf("%s: token %d is [%d,%d), want %v", g.Note, i, from, to, want)
			}
		}
		for w, want := range g.Stage1 {
			from := int(j.starts[w])
			if got := a.first.score(j.toks.IDs[from:min(from+j.window, len(j.toks.IDs))]); got != want {
				t.Errorf("%s: first stage says %d of window %d, want %d", g.Note, got, w, want)
			}
		}
		if len(j.todo) != len(g.Decision) {
			t.Errorf("%s: %d windows for the encoder, want %d", g.Note, len(j.todo), len(g.Decision))
			continue
		}
		for k, w := range j.todo { // golden scores are of the windows that ran
			if err := a.window(l, j, int(w)); err != nil {
				t.Fatal(err)
			}
			for i, want := range g.Decision[k] {
				near(g.Note, "decision", j.classes[w][i], want)
			}
			for i, want := range g.Scores[k] {
				near(g.Note, "score", j.scores[w][i], want)
			}
			for i, want := range g.Residual[k] {
				near(g.Note, "residual", j.residual[w][i], want)
			}
		}
		s := a.merge(j)
		near(g.Note, "probability", float32(s.P()), g.P)
		// Where the numbers agree, so do the spans, to the byte. A processor that
		// rounds otherwise may let a token on the threshold fall to the other side.
		least := 1.0
		if here > 1e-3 {
			least = 0.85
		}
		if f1 := overlap(len(g.payload()), s.Spans, g.Spans); f1 < least {
			t.Errorf("%s: spans %v, want %v: F1 %.2f", g.Note, s.Spans, g.Spans, f1)
		}
	}
	t.Logf("%d texts, largest difference %.2g", len(all), worst)
}

// overlap is the F1 of the marked bytes; 1 when neither side marks any.
func overlap(n int, got []schema.Span, want [][2]int) float64 {
	marks := make([]byte, n)
	for _, s := range got {
		for i := s.Start; i < s.End; i++ {
			marks[i] |= 1
		}
	}
	for _, s := range want {
		for i := s[0]; i < s[1]; i++ {
			marks[i] |= 2
		}
	}
	var both, either int
	for _, m := range marks {
		switch m {
		case 3:
			both++
		case 1, 2:
			either++
		}
	}
	if both+either == 0 {
		return 1
	}
	return 2 * float64(both) / float64(2*both+either)
}
