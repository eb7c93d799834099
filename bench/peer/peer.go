// Package peer asks another program about the benchmark's cases, through a
// small description of how that program is called and what its answers mean,
// so that both are measured on the same cases in the same run.
package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"gopkg.in/yaml.v3"

	"example.org/auditd/bench/cases"
	"example.org/auditd/schema"
)

// file is how an adapter is written. Its vocabulary is closed.
type file struct {
	Name    string
	OnError string `yaml:"on_error"` // what the host does when the program gives no verdict: allow or block
	HTTP    *struct {
		URL     string
		Headers map[string]string
		Body    string // template
	}
	Command *struct {
		Argv  []string
		Stdin string // template
	}
	Regex   []string
	Verdict verdict
}

// verdict says what an answer means. An answer that nothing maps is an error.
type verdict struct {
	Path  string // of a value in a JSON answer, such as results.0.flagged; empty: the whole answer's text
	Block []string
	Defer []string
	Allow []string
	Exit  map[int]string // of a command, looked at first
}

// Peer is a program that can be asked. It is safe for concurrent use.
type Peer struct {
	Name string
	// OnError is what a host does when the program gives no verdict.
	OnError schema.Action

	file   file
	body   *template.Template
	regexp []*regexp.Regexp
	client *http.Client
}

const (
	maxAdapter = 1 << 20
	maxAnswer  = 4 << 20
	patience   = 60 * time.Second
)

// Parse reads an adapter.
func Parse(data []byte) (*Peer, error) {
	if len(data) > maxAdapter {
		return nil, fmt.Errorf("the adapter is over %d bytes", maxAdapter)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	p := &Peer{client: &http.Client{Timeout: patience}}
	if err := d.Decode(&p.file); err != nil {
		return nil, fmt.Errorf("not an adapter: %w", err)
	}
	f := &p.file
	p.Name = f.Name
	kinds := 0
	for _, set := range []bool{f.HTTP != nil, f.Command != nil, len(f.Regex) > 0} {
		if set {
			kinds++
		}
	}
	switch {
	case p.Name == "":
		return nil, errors.New("name: is missing")
	case kinds != 1:
		return nil, errors.New("exactly one of http, command and regex must be set")
	case f.OnError != "allow" && f.OnError != "block":
		return nil, errors.New("on_error: must be allow or block, as the program's host does it")
	case f.Command != nil && len(f.Command.Argv) == 0, f.HTTP != nil && f.HTTP.URL == "":
		return nil, errors.New("command.argv or http.url: is missing")
	}
	if f.OnError == "allow" {
		p.OnError = schema.Allow
	}
	for exit, word := range f.Verdict.Exit {
		if word != "allow" && word != "block" && word != "defer" && word != "output" {
			return nil, fmt.Errorf("verdict.exit: %d must be allow, block, defer or output", exit)
		}
	}
	for _, text := range f.Regex {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("regex: %w", err)
		}
		p.regexp = append(p.regexp, re)
	}
	text := ""
	switch {
	case f.HTTP != nil:
		text = f.HTTP.Body
	case f.Command != nil:
		text = f.Command.Stdin
	}
	var err error
	p.body, err = template.New("request").Option("missingkey=error").Funcs(template.FuncMap{"json": quote}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the request's template: %w", err)
	}
	return p, nil
}

// quote makes a JSON string, with its quotes.
func quote(s string) (string, error) {
	data, err := json.Marshal(s)
	return string(data), err
}

// Decide asks about one case. With an error the action is what the program's
// host would do.
func (p *Peer) Decide(ctx context.Context, c *cases.Case) (schema.Action, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := p.ask(ctx, c)
	if err != nil {
		return p.OnError, err
	}
	return a, nil
}

func (p *Peer) ask(ctx context.Context, c *cases.Case) (schema.Action, error) {
	if len(p.regexp) > 0 {
		for _, re := range p.regexp {
			if re.MatchString(c.Flow.Payload) {
				return schema.Block, nil
			}
		}
		return schema.Allow, nil
	}
	var body bytes.Buffer
	f := &c.Flow
	err := p.body.Execute(&body, map[string]any{"Payload": f.Payload, "Intent": f.Intent, "Source": f.Source.Kind.String(), "SourceID": f.Source.ID,
		"Sink": f.Sink.Kind.String(), "SinkID": f.Sink.ID, "Tool": f.Sink.Tool, "Destination": f.Sink.Destination, "Surface": f.Surface.String()})
	if err != nil {
		return 0, fmt.Errorf("make the request: %w", err)
	}
	if p.file.HTTP != nil {
		return p.post(ctx, body.Bytes())
	}
	return p.exec(ctx, body.Bytes())
}

func (p *Peer) post(ctx context.Context, body []byte) (schema.Action, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.file.HTTP.URL, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range p.file.HTTP.Headers {
		req.Header.Set(k, v)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask %s: %w", p.Name, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("read the answer of %s: %w", p.Name, err)
	}
	if resp.StatusCode/100 != 2 {
		return 0, fmt.Errorf("%s answered %d", p.Name, resp.StatusCode)
	}
	return p.file.Verdict.read(data)
}

func (p *Peer) exec(ctx context.Context, body []byte) (schema.Action, error) {
	cmd := exec.CommandContext(ctx, p.file.Command.Argv[0], p.file.Command.Argv[1:]...)
	cmd.Stdin = bytes.NewReader(body)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("run %s: %w", p.Name, err)
	}
	code := cmd.ProcessState.ExitCode()
	switch word := p.file.Verdict.Exit[code]; word {
	case "allow":
		return schema.Allow, nil
	case "block":
		return schema.Block, nil
	case "defer":
		return schema.DeferToHuman, nil
	case "output":
	default:
		if code != 0 || len(p.file.Verdict.Exit) > 0 {
			return 0, fmt.Errorf("%s ended with %d, which verdict.exit does not map", p.Name, code)
		}
	}
	return p.file.Verdict.read(out.Bytes())
}

// read maps an answer. Empty output may be mapped by an empty word.
func (v *verdict) read(data []byte) (schema.Action, error) {
	text := strings.TrimSpace(string(data))
	if v.Path != "" {
		var at any
		if len(text) > 0 {
			if err := json.Unmarshal(data, &at); err != nil {
				return 0, errors.New("the answer is not JSON")
			}
		}
		text = ""
		for step := range strings.SplitSeq(v.Path, ".") {
			at = into(at, step)
		}
		if at != nil {
			text = fmt.Sprint(at)
		}
	}
	for action, words := range map[schema.Action][]string{schema.Block: v.Block, schema.DeferToHuman: v.Defer, schema.Allow: v.Allow} {
		if slices.Contains(words, text) {
			return action, nil
		}
	}
	return 0, errors.New("the answer is none that verdict maps")
}

func into(v any, step string) any {
	switch x := v.(type) {
	case map[string]any:
		return x[step]
	case []any:
		var i int
		if _, err := fmt.Sscan(step, &i); err == nil && i >= 0 && i < len(x) {
			return x[i]
		}
	}
	return nil
}
