package onnx

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"example.org/auditd/schema"
)

//go:embed model
var embedded embed.FS

// ErrNoModel says that no model was found where one should be.
var ErrNoModel = errors.New("no ONNX auditor model")

// Embedded returns the folder with the model that the binary carries.
func Embedded() fs.FS {
	dir, err := fs.Sub(embedded, "model")
	if err != nil {
		panic("onnx: internal error: " + err.Error()) // a constant, valid path
	}
	return dir
}

// Manifest is model.json: what the training pipeline says about its export.
// Further fields are for people.
type Manifest struct {
	Contract        int               `json:"contract"` // version of the agreement on text, inputs and outputs
	Name            string            `json:"name"`
	Version         string            `json:"version"`
	Opset           int               `json:"opset"`
	Window          int               `json:"window"` // payload tokens of a window
	Stride          int               `json:"stride"`
	MaxHeaderTokens int               `json:"max_header_tokens"`
	Temperature     float64           `json:"temperature"`
	WindowBias      float64           `json:"window_bias"`
	Thresholds      Thresholds        `json:"thresholds"`
	Span            SpanRule          `json:"span"`
	Stage1          *Stage1           `json:"stage1"`
	SHA256          map[string]string `json:"sha256"` // by file name
}

// Thresholds are on the calibrated attack probability.
type Thresholds struct {
	Stop float64 `json:"stop"` // at or over it a record is not allowed
}

// SpanRule says which tokens make an unsafe span.
type SpanRule struct {
	Threshold float64 `json:"threshold"`  // probability that a token is unsafe
	Gap       int     `json:"gap"`        // tokens between two parts of one span
	MinTokens int     `json:"min_tokens"` // shorter spans are noise
}

// contract is the only version that this package reads.
const contract = 2

// maxSeq is the longest row that the model has positions for.
const maxSeq = 256

// Set is a checked model: every file has the digest that the manifest names.
type Set struct {
	Manifest
	Digest    schema.Digest // of model.json, which names all the others
	Model     []byte
	Tokenizer []byte
	Linear    []byte // of the first stage; nil without one
}

// LoadSet reads and checks the model in dir. A non-empty want is the digest
// that model.json must have.
func LoadSet(dir fs.FS, want schema.Digest) (*Set, error) {
	raw, err := fs.ReadFile(dir, "model.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: model.json is missing", ErrNoModel)
	}
	if err != nil {
		return nil, fmt.Errorf("read model.json: %w", err)
	}
	s := &Set{Digest: fileDigest(raw)}
	if want != "" && s.Digest != want {
		return nil, fmt.Errorf("model.json has digest %s, expected %s: the model was damaged or replaced", s.Digest, want)
	}
	if err := json.Unmarshal(raw, &s.Manifest); err != nil {
		return nil, fmt.Errorf("read model.json: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("model.json: %w", err)
	}
	if s.Model, err = s.file(dir, "model.onnx"); err != nil {
		return nil, err
	}
	if s.Tokenizer, err = s.file(dir, "tokenizer.json"); err != nil {
		return nil, err
	}
	if s.Stage1 != nil {
		if s.Linear, err = s.file(dir, s.Stage1.File); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (m *Manifest) check() error {
	switch {
	case m.Contract != contract:
		return fmt.Errorf("contract is %d, this build reads %d", m.Contract, contract)
	case m.Name == "" || m.Version == "":
		return errors.New("name or version is missing")
	case m.Window < 16 || m.MaxHeaderTokens < 16 || m.Window+m.MaxHeaderTokens+3 > maxSeq:
		return fmt.Errorf("window %d and max_header_tokens %d do not fit a row of %d", m.Window, m.MaxHeaderTokens, maxSeq)
	case m.Stride < 1 || m.Stride > m.Window:
		return fmt.Errorf("stride is %d with a window of %d", m.Stride, m.Window)
	case !(m.Temperature > 0) || !(m.WindowBias >= 0):
		return errors.New("temperature must be over 0, window_bias at least 0")
	case !(m.Thresholds.Stop > 0 && m.Thresholds.Stop < 1):
		return errors.New("thresholds.stop is not between 0 and 1")
	case !(m.Span.Threshold > 0 && m.Span.Threshold < 1) || m.Span.Gap < 0 || m.Span.MinTokens < 1:
		return errors.New("span is not a valid rule")
	}
	return nil
}

func (s *Set) file(dir fs.FS, name string) ([]byte, error) {
	want, ok := s.SHA256[name]
	if !ok {
		return nil, fmt.Errorf("model.json names no sha256 for %s", name)
	}
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		return nil, fmt.Errorf("read model file: %w", err)
	}
	if got := fileDigest(data); string(got) != "sha256:"+want {
		return nil, fmt.Errorf("%s has digest %s, model.json names sha256:%s: the file was damaged or replaced", name, got, want)
	}
	return data, nil
}

func fileDigest(data []byte) schema.Digest {
	sum := sha256.Sum256(data)
	return schema.Digest("sha256:" + hex.EncodeToString(sum[:]))
}
