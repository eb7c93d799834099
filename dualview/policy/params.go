package policy

import (
	"context"
	"fmt"
	"strings"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

// Finding is a use of a symbol that needs a person's answer, or is refused.
type Finding struct {
	Symbol dualview.Symbol
	Param  string // the path of the parameter
	Block  bool   // no answer can allow it
	// Reason is our own sentence: what the symbol would decide.
	Reason string
	Info   dualview.Info
}

// CheckParams looks for symbols in the arguments of a call where untrusted data
// must not be used unseen: destinations, and whatever the owner's usage rules
// name. It fails closed: arguments that cannot be read are an error.
func (p *Policy) CheckParams(ctx context.Context, table *dualview.Table, call Call) ([]Finding, error) {
	root, err := parseTree(call.Params)
	if err != nil {
		return nil, fmt.Errorf("read the arguments of %s: %w", call.Tool, err)
	}
	tool, listed := p.Tool(call.Tool)
	var found []Finding
	err = eachString(root, "", func(path string, n *node, name bool) error {
		for _, s := range table.Symbols(n.text) {
			info, err := table.Info(ctx, call.Owner, s)
			if err != nil {
				return fmt.Errorf("a symbol in %s: %w", path, err)
			}
			if name {
				found = append(found, Finding{s, path, true, "a symbol stands as the name of an argument", info})
				continue
			}
			// The agent's tree has names that are symbols. Who opens a file by
			// such a name opens a file that is there.
			isName := tool.View == AgentView && info.Provenance.Tool == "fileview" && info.Provenance.Field == "name"
			for _, d := range tool.Destinations {
				if matchParam(d, path) && !isName {
					found = append(found, Finding{s, path, false, "untrusted data would decide where this goes", info})
				}
			}
			if !listed && decides(path) {
				found = append(found, Finding{s, path, false, "untrusted data would decide where this goes or what is run, by the parameter's name", info})
			}
			for _, u := range p.usage {
				if u.applies(call.Tool, path, info) {
					found = append(found, Finding{s, path, u.Action == "block", "a usage rule of the owner names this use", info})
				}
			}
		}
		return nil
	})
	return found, err
}

// decides guesses for a tool without a rule whether a parameter is a place or
// code: a wrong guess asks once too often.
func decides(path string) bool {
	name := strings.ToLower(strings.TrimSuffix(path[strings.LastIndexByte(path, '.')+1:], "[]"))
	if name == "to" || name == "cc" || name == "bcc" || name == "ref" || name == "branch" {
		return true
	}
	for _, w := range []string{"url", "uri", "link", "href", "host", "domain", "endpoint", "server", "recipient", "email", "address", "channel", "target", "dest", "path", "file", "dir", "folder", "repo", "bucket", "account", "user", "command", "cmd", "code", "script", "shell", "sql", "exec", "eval", "expression", "program"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

func (u *UsageRule) applies(tool, path string, info dualview.Info) bool {
	if u.Into.Tool != tool || u.Into.Param != "" && !matchParam(u.Into.Param, path) {
		return false
	}
	if u.From.Source.SourceKind != schema.SourceOther && u.From.Source.SourceKind != info.Provenance.Kind || u.From.Tool != "" && u.From.Tool != info.Provenance.Tool {
		return false
	}
	if prefix, ok := strings.CutSuffix(u.From.Origin, "*"); ok {
		return strings.HasPrefix(info.Provenance.Origin, prefix)
	}
	return u.From.Origin == "" || u.From.Origin == info.Provenance.Origin
}

// matchParam reports whether path is the parameter or inside of it.
func matchParam(param, path string) bool {
	return path == param || strings.HasPrefix(path, param+".") || strings.HasPrefix(path, param+"[]")
}

// eachString calls f for every string and every member name below n.
func eachString(n *node, path string, f func(path string, n *node, name bool) error) error {
	switch n.kind {
	case '"':
		return f(path, n, false)
	case '[':
		for _, e := range n.elements {
			if err := eachString(e, path+"[]", f); err != nil {
				return err
			}
		}
	case '{':
		for _, m := range n.members {
			if err := f(path, str(m.name), true); err != nil {
				return err
			}
			if err := eachString(m.value, join(path, m.name), f); err != nil {
				return err
			}
		}
	}
	return nil
}

func contextNamed(name string) (dualview.Context, error) {
	switch name {
	case "raw":
		return dualview.Raw, nil
	case "json":
		return dualview.JSON, nil
	case "yaml":
		return dualview.YAML, nil
	case "csv":
		return dualview.CSV, nil
	case "html":
		return dualview.HTML, nil
	case "url":
		return dualview.URL, nil
	}
	return dualview.ContextUnset, fmt.Errorf("%q is no context: raw, json, yaml, csv, html or url", name)
}

// ResolveParams puts the originals into the arguments of a call of the human
// view, each escaped for its parameter. The parameter with a command line is
// left as it is: package usage resolves that on the parsed command.
func (p *Policy) ResolveParams(ctx context.Context, table *dualview.Table, call Call, g dualview.Grant) (dualview.Original, error) {
	root, err := parseTree(call.Params)
	if err != nil {
		return dualview.Original{}, fmt.Errorf("read the arguments of %s: %w", call.Tool, err)
	}
	tool, _ := p.Tool(call.Tool)
	err = eachString(root, "", func(path string, n *node, name bool) error {
		if name || tool.Executes != "" && path == tool.Executes || len(table.Symbols(n.text)) == 0 {
			return nil
		}
		c := dualview.Raw
		for param, named := range tool.Contexts {
			if matchParam(param, path) {
				if c, err = contextNamed(named); err != nil {
					return err
				}
			}
		}
		o, err := table.Resolve(ctx, n.text, c, g)
		if err != nil {
			return fmt.Errorf("argument %s: %w", path, err)
		}
		n.text = o.Reveal()
		return nil
	})
	if err != nil {
		return dualview.Original{}, fmt.Errorf("resolve the arguments of %s: %w", call.Tool, err)
	}
	enc, err := root.encode()
	if err != nil {
		return dualview.Original{}, fmt.Errorf("encode the arguments of %s: %w", call.Tool, err)
	}
	return dualview.OriginalText(string(enc)), nil
}
