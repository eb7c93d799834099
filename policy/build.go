package policy

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"example.org/auditd/schema"
)

// builder compiles a decoded file and collects every problem with its line.
type builder struct {
	p        *Policy
	root     *yaml.Node
	problems []Problem
}

func (b *builder) build() {
	f := &b.p.file
	if f.Version != Version {
		b.add("version", -1, "must be %d", Version)
	}
	for field, n := range map[string]int{
		"modes": len(f.Modes), "loopback_ports": len(f.LoopbackPorts), "workspaces": len(f.Workspaces), "trust": len(f.Trust),
		"rules": len(f.Rules), "suppressions": len(f.Suppressions),
	} {
		if n > maxEntries {
			b.add(field, -1, "has %d entries, the limit is %d", n, maxEntries)
			return
		}
	}
	if err := f.Thresholds.Validate(); err != nil {
		b.add("thresholds", -1, "%v", err)
	}
	if f.NoArbiter.Set && !f.NoArbiter.Value.Stops() {
		b.add("no_arbiter", -1, "must be defer_to_human or block")
	}
	for i, port := range f.LoopbackPorts {
		if port < 1 || port > 65535 {
			b.add("loopback_ports", i, "must be from 1 to 65535")
		}
	}
	for i, w := range f.Workspaces {
		if !absolutePath(w) {
			b.add("workspaces", i, "must be a clean absolute path below /")
		}
	}
	b.modes()
	b.trust()
	b.rules()
	b.suppressions()
}

func (b *builder) modes() {
	for i, m := range b.p.file.Modes {
		re, err := compileGlob(m.Agent)
		switch {
		case err != nil:
			b.add("modes", i, "agent: %v", err)
		case !m.Mode.Set:
			b.add("modes", i, "mode is missing")
		default:
			b.p.modes = append(b.p.modes, compiledMode{re, m.Mode.Value})
		}
	}
}

func (b *builder) trust() {
	for i, t := range b.p.file.Trust {
		c := compiledTrust{kind: t.Kind.Value, host: t.Host, trust: t.Trust.Value}
		switch {
		case !t.Kind.Set || !t.Trust.Set:
			b.add("trust", i, "kind and trust must be set")
			continue
		case t.ID == "" && t.Host == "":
			b.add("trust", i, "id or host must be set: a rule names its sources")
			continue
		case t.Trust.Value == schema.Owner:
			b.add("trust", i, "trust: owner is for what the owner types, the highest here is trusted")
			continue
		case strings.Contains(strings.TrimPrefix(t.Host, "*."), "*") || t.Host == "*." || len(t.Host) > maxText:
			b.add("trust", i, "host: must be a name, or *. and a name")
			continue
		}
		if t.ID != "" {
			re, err := compileGlob(t.ID)
			if err != nil {
				b.add("trust", i, "id: %v", err)
				continue
			}
			if t.Host == "" && strings.Trim(t.ID, "*/?") == "" && t.Trust.Value > DefaultTrust(t.Kind.Value) {
				b.add("trust", i, "id: matches everything, so that it names nothing")
				continue
			}
			c.id = re
		}
		b.p.trust = append(b.p.trust, c)
	}
}

func (b *builder) rules() {
	if len(b.p.file.Rules) == 0 {
		return // most files have none, and the environment takes milliseconds
	}
	c, err := newCompiler()
	if err != nil {
		b.add("rules", -1, "%v", err)
		return
	}
	b.p.vars = c.vars
	seen := map[string]bool{}
	for i, r := range b.p.file.Rules {
		if seen[r.Name] {
			b.add("rules", i, "name: stands there twice")
			continue
		}
		seen[r.Name] = true
		compiled, err := c.compile(r)
		if err != nil {
			b.add("rules", i, "%v", err)
			continue
		}
		if compiled.late {
			b.p.late = append(b.p.late, compiled)
		} else {
			b.p.early = append(b.p.early, compiled)
		}
	}
}

func (b *builder) suppressions() {
	for i, s := range b.p.file.Suppressions {
		switch {
		case !s.Code.Set || s.Reason == "" || s.Expires.IsZero():
			b.add("suppressions", i, "code, reason and expires must be set")
			continue
		case s.Code.Value.Hard():
			b.add("suppressions", i, "code: %s can block by itself and cannot be suppressed", s.Code.Value)
			continue
		case s.Tool == "" && s.Path == "" && s.Source == "":
			b.add("suppressions", i, "tool, path or source must be set")
			continue
		}
		c := compiledSuppression{Suppression: s}
		var err error
		if s.Path != "" {
			if c.path, err = compileGlob(s.Path); err != nil {
				b.add("suppressions", i, "path: %v", err)
				continue
			}
		}
		if s.Source != "" {
			if c.source, err = compileGlob(s.Source); err != nil {
				b.add("suppressions", i, "source: %v", err)
				continue
			}
		}
		b.p.suppress = append(b.p.suppress, c)
	}
}

// add records a problem at the line of a top-level field, or of its i-th entry.
func (b *builder) add(field string, i int, format string, args ...any) {
	name := field
	if i >= 0 {
		name = fmt.Sprintf("%s[%d]", field, i)
	}
	b.problems = append(b.problems, Problem{b.line(field, i), name + ": " + fmt.Sprintf(format, args...)})
}

func (b *builder) line(field string, i int) int {
	if len(b.root.Content) == 0 || b.root.Content[0].Kind != yaml.MappingNode {
		return 0
	}
	top := b.root.Content[0].Content
	for k := 0; k+1 < len(top); k += 2 {
		if top[k].Value != field {
			continue
		}
		if v := top[k+1]; i >= 0 && v.Kind == yaml.SequenceNode && i < len(v.Content) {
			return v.Content[i].Line
		}
		return top[k].Line
	}
	return 0
}
