package install

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/claudehook"
	"example.org/auditd/schema"
)

// How our hooks are told from the owner's: by where they lead.
const (
	hookPath    = "/v1/hooks/claude-code"
	hookCommand = " hook claude-code"
)

// maxSettings bounds the file: far more than anybody writes.
const maxSettings = 4 << 20

var errSettings = errors.New("it is not one JSON object; mend it first, nothing was changed")

// member is one name and value of an object. Objects are kept as lists, so
// that the owner's order stays.
type member struct {
	name  string
	value jsontext.Value
}

func members(v jsontext.Value) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, errSettings
	}
	var out []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, errSettings
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, errSettings
		}
		m.value = value.Clone()
		out = append(out, m)
	}
	return out, nil
}

func object(list []member) jsontext.Value {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := jsontext.AppendQuote(nil, m.name)
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func set(list []member, name string, v jsontext.Value) []member {
	for i := range list {
		if list[i].name == name {
			list[i].value = v
			return list
		}
	}
	return append(list, member{name, v})
}

func get(list []member, name string) jsontext.Value {
	for _, m := range list {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// readSettings checks and splits a settings file. Nothing counts as {}.
func readSettings(data []byte) ([]member, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if len(data) > maxSettings {
		return nil, fmt.Errorf("it is over %d bytes", maxSettings)
	}
	var v jsontext.Value
	if err := schema.Decode(data, &v); err != nil {
		return nil, errSettings
	}
	return members(v)
}

// writeSettings formats a settings file as Claude Code does.
func writeSettings(list []member) ([]byte, error) {
	v := object(list)
	if err := v.Format(jsontext.Multiline(true), jsontext.WithIndent("  "), jsontext.PreserveRawStrings(true)); err != nil {
		return nil, errSettings
	}
	return append(bytes.TrimSpace(v), '\n'), nil
}

// withoutOurs returns settings without auditd's hooks, and whether there were
// any. Groups and events that become empty by that go too.
func withoutOurs(list []member) ([]member, bool, error) {
	hooks := get(list, "hooks")
	if hooks == nil {
		return list, false, nil
	}
	events, err := members(hooks)
	if err != nil {
		return nil, false, errSettings
	}
	found := false
	var keptEvents []member
	for _, e := range events {
		var groups []jsontext.Value
		if err := json.Unmarshal(e.value, &groups); err != nil {
			return nil, false, errSettings
		}
		var kept []jsontext.Value
		for _, g := range groups {
			ours, rest, err := split(g)
			if err != nil {
				return nil, false, err
			}
			found = found || ours
			if rest != nil {
				kept = append(kept, rest)
			}
		}
		if len(kept) == 0 && len(groups) > 0 {
			continue
		}
		v, err := json.Marshal(kept)
		if err != nil {
			return nil, false, errSettings
		}
		keptEvents = append(keptEvents, member{e.name, v})
	}
	if !found {
		return list, false, nil
	}
	var out []member
	for _, m := range list {
		if m.name == "hooks" {
			if len(keptEvents) == 0 {
				continue
			}
			m.value = object(keptEvents)
		}
		out = append(out, m)
	}
	return out, true, nil
}

// split takes our hooks out of one group of an event; rest is nil when nothing
// is left of it.
func split(group jsontext.Value) (ours bool, rest jsontext.Value, err error) {
	fields, err := members(group)
	if err != nil {
		return false, nil, errSettings
	}
	var hooks, kept []jsontext.Value
	if err := json.Unmarshal(get(fields, "hooks"), &hooks); err != nil {
		return false, nil, errSettings
	}
	for _, h := range hooks {
		if isOurs(h) {
			ours = true
			continue
		}
		kept = append(kept, h)
	}
	switch {
	case !ours:
		return false, group, nil
	case len(kept) == 0:
		return true, nil, nil
	}
	v, err := json.Marshal(kept)
	if err != nil {
		return false, nil, errSettings
	}
	return true, object(set(fields, "hooks", v)), nil
}

func isOurs(hook jsontext.Value) bool {
	var h struct {
		URL     string                    `json:"url"`
		Command string                    `json:"command"`
		Rest    map[string]jsontext.Value `json:",unknown"`
	}
	if json.Unmarshal(hook, &h) != nil {
		return false
	}
	address, _, _ := strings.Cut(h.URL, "?")
	return strings.HasSuffix(address, hookPath) || strings.HasSuffix(strings.TrimSpace(h.Command), hookCommand)
}

// hook is one of our hooks in a settings file.
type hook struct {
	Type      string            `json:"type"`
	URL       string            `json:"url,omitempty"`
	Command   string            `json:"command,omitempty"`
	Timeout   int               `json:"timeout"`
	OnFailure string            `json:"onFailure"`
	Headers   map[string]string `json:"headers,omitempty"`
}

type group struct {
	Matcher string `json:"matcher,omitempty"`
	Hooks   []hook `json:"hooks"`
}

// withOurs returns settings with our hooks on every event, and none twice.
func (c *ClaudeCode) withOurs(list []member) ([]member, error) {
	list, _, err := withoutOurs(list)
	if err != nil {
		return nil, err
	}
	var events []member
	if hooks := get(list, "hooks"); hooks != nil {
		if events, err = members(hooks); err != nil {
			return nil, err
		}
	}
	for _, name := range claudehook.Events() {
		var groups []jsontext.Value
		if v := get(events, name); v != nil {
			if err := json.Unmarshal(v, &groups); err != nil {
				return nil, errSettings
			}
		}
		g, err := json.Marshal(c.group(name))
		if err != nil {
			return nil, fmt.Errorf("write the hook for %s: %w", name, err)
		}
		// Ours is the first of its event: it is the one to see what was asked for.
		v, err := json.Marshal(append([]jsontext.Value{g}, groups...))
		if err != nil {
			return nil, errSettings
		}
		events = set(events, name, v)
	}
	return set(append([]member(nil), list...), "hooks", object(events)), nil
}

// group is our part of an event's hooks.
func (c *ClaudeCode) group(event string) group {
	h := hook{Type: "http", URL: c.URL + hookPath + "?event=" + event, Timeout: int(c.Timeout.Seconds()), OnFailure: "block",
		Headers: map[string]string{"Authorization": "Bearer " + c.Token}}
	if c.Wait > 0 && event == "PreToolUse" {
		h.URL += "&wait=" + c.Wait.String()
		h.Timeout += int(c.Wait.Seconds())
	}
	// An HTTP hook for the start of a session never arrives (2.1.332).
	if c.Command || event == "SessionStart" {
		h.Type, h.URL, h.Headers = "command", "", nil
		h.Command = shellQuote(c.Binary) + hookCommand
	}
	g := group{Hooks: []hook{h}}
	if strings.HasPrefix(event, "PreTool") || strings.HasPrefix(event, "PostTool") {
		g.Matcher = "*"
	}
	return g
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
