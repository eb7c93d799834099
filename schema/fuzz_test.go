package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// seed adds every golden document of one kind.
func seed(f *testing.F, kind string) {
	f.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/vectors", kind+".json"))
	if err != nil {
		f.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(b, &vectors); err != nil {
		f.Fatal(err)
	}
	for _, v := range vectors {
		f.Add([]byte(v.Doc))
	}
}

// checkError holds for every refusal: it is short, valid text and a FieldError.
func checkError(t *testing.T, err error) {
	t.Helper()
	if !isFieldError(err) {
		t.Fatalf("refusal is a %T: %v", err, err)
	}
	if len(err.Error()) > 400 || !utf8.ValidString(err.Error()) {
		t.Fatalf("refusal has %d bytes or is not UTF-8", len(err.Error()))
	}
}

func FuzzDecodeFlow(f *testing.F) {
	seed(f, "flow")
	f.Fuzz(func(t *testing.T, data []byte) {
		flow, err := DecodeFlow(data, 1<<16)
		if err != nil {
			checkError(t, err)
			return
		}
		if flow.Surface == SurfaceUnset || flow.Boundary == BoundaryUnset {
			t.Fatal("accepted flow is not complete")
		}
		for _, s := range flow.Spans {
			if !utf8.ValidString(flow.Payload[s.Start:s.End]) {
				t.Fatal("span cuts a character")
			}
		}
		// What was accepted survives a round trip with the same key.
		out, err := Encode(flow)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeFlow(out, 1<<16)
		if err != nil || again.Key() != flow.Key() {
			t.Fatalf("round trip: %v", err)
		}
	})
}

func FuzzDecodeReport(f *testing.F) {
	seed(f, "report")
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeReport(data)
		if err != nil {
			checkError(t, err)
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("accepted report does not validate: %v", err)
		}
		if r.Decision == Allow && r.Rewrite != nil {
			t.Fatal("an allow carries a rewrite")
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	seed(f, "event")
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEvent(data, 1<<16)
		if err != nil {
			checkError(t, err)
			return
		}
		if e.Phase == PhaseUnset || e.Session == "" {
			t.Fatal("accepted event is not complete")
		}
	})
}

// TestErrorsNeverQuoteThePayload plants a canary in every string of a document
// that is wrong in one place.
func TestErrorsNeverQuoteThePayload(t *testing.T) {
	const canary = "CANARY-9f2c-a secret that somebody pasted into the wrong field entirely"
	for _, doc := range []string{
		`{"payload":"` + canary + `","source":{"kind":"` + canary + `"},"sink":{"kind":"exec"}}`,
		`{"payload":"` + canary + `","source":{"kind":"web"},"sink":{"kind":3}}`,
		`{"payload":["` + canary + `"]}`,
		`{"payload":"` + canary + `","source":{"kind":"web"},"sink":{"kind":"exec"},"deadline_ms":"` + canary + `"}`,
		`{"payload":"` + canary,
	} {
		_, err := DecodeFlow([]byte(doc), 0)
		if err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("error quotes the payload or is nil: %v", err)
		}
	}
}

func TestKeysTellFlowsApart(t *testing.T) {
	base := Flow{Payload: "p", Source: Source{Kind: SourceWeb, ID: "a"}, Sink: Sink{Kind: SinkFile, ID: "b"}}
	if err := base.Complete(0); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(*Flow){
		"payload":     func(f *Flow) { f.Payload = "q" },
		"sink id":     func(f *Flow) { f.Sink.ID = "c" },
		"tool":        func(f *Flow) { f.Sink.Tool = "t" },
		"destination": func(f *Flow) { f.Sink.Destination = "d" },
		"agent":       func(f *Flow) { f.Session.Agent = "x" },
		"workspace":   func(f *Flow) { f.Session.Workspace = "/w" },
		"permissions": func(f *Flow) { f.Sink.Permissions = []string{"net"} },
	}
	for name, change := range changes {
		f := base
		change(&f)
		if f.Binding() == base.Binding() {
			t.Errorf("%s does not change the binding", name)
		}
	}
	changes["trust"] = func(f *Flow) { f.Source.Trust = Owner }
	changes["intent"] = func(f *Flow) { f.Intent = "i" }
	changes["source"] = func(f *Flow) { f.Source.ID = "z" }
	changes["authorised"] = func(f *Flow) { f.OwnerAuthorized = true }
	for name, change := range changes {
		f := base
		change(&f)
		if f.Key() == base.Key() {
			t.Errorf("%s does not change the key", name)
		}
	}
	// Moving bytes between fields must not keep the digest.
	f := base
	f.Sink.ID, f.Sink.Tool = "", "b"
	if f.Binding() == base.Binding() {
		t.Error("a value moved to the next field keeps the binding")
	}
}

func BenchmarkDecodeFlow(b *testing.B) {
	doc, err := Encode(Flow{Payload: strings.Repeat("word ", 2048), Source: Source{Kind: SourceWeb}, Sink: Sink{Kind: SinkReasoning}, Surface: Context, Boundary: BoundaryReasoning})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeFlow(doc, 0); err != nil {
			b.Fatal(err)
		}
	}
}
