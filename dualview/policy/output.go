package policy

import (
	"math"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxLines bounds the output that is read line by line.
const maxLines = 2000

// visitOutput shows those parts of a command's output that the command's schema
// trusts. Output that does not look as the schema says is untrusted whole: a
// program that prints what it likes gets nothing through.
func (w *walk) visitOutput(n *node, r *Rule, field string) *node {
	if n.text == "" {
		w.bits++
		return n
	}
	if w.call.Attested {
		return w.show(n, field)
	}
	c := w.policy.command(at(w.params, r.param))
	if c == nil || w.call.IsError {
		return w.hide(n, field)
	}
	switch {
	case c.line != nil:
		return w.outputLines(n, c, field)
	case c.JSON != nil:
		return w.outputJSON(n, c.JSON, field)
	default:
		return w.outputJSONLines(n, c.JSONLines, field)
	}
}

func (w *walk) outputJSON(n *node, r *Rule, field string) *node {
	doc, err := parseTree([]byte(n.text))
	if err != nil {
		return w.hide(n, field)
	}
	shown := w.visit(doc, r, field)
	text := str("")
	w.rebuild = append(w.rebuild, func() error {
		enc, err := shown.encode()
		text.text = string(enc) + "\n"
		return err
	})
	return text
}

func (w *walk) outputJSONLines(n *node, r *Rule, field string) *node {
	lines := strings.Split(strings.TrimSuffix(n.text, "\n"), "\n")
	if len(lines) > maxLines {
		return w.hide(n, field)
	}
	list := &node{kind: '['}
	for _, line := range lines {
		doc, err := parseTree([]byte(line))
		if err != nil {
			return w.hide(n, field)
		}
		list.elements = append(list.elements, doc)
	}
	shown := w.visitArray(list, &Rule{kind: array, element: r}, field)
	text := str("")
	w.rebuild = append(w.rebuild, func() error {
		var b strings.Builder
		for _, e := range shown.elements {
			enc, err := e.encode()
			if err != nil {
				return err
			}
			b.Write(enc)
			b.WriteByte('\n')
		}
		text.text = b.String()
		return nil
	})
	return text
}

func (w *walk) outputLines(n *node, c *Command, field string) *node {
	body, final := strings.CutSuffix(n.text, "\n")
	lines := strings.Split(body, "\n")
	if len(lines) > maxLines {
		return w.hide(n, field)
	}
	matches := make([][]int, len(lines))
	for i, line := range lines {
		if line == "" {
			continue
		}
		if matches[i] = c.line.FindStringSubmatchIndex(line); matches[i] == nil {
			return w.hide(n, field)
		}
	}
	w.bits += math.Log2(float64(len(lines) + 1))
	var parts []*node
	names := c.line.SubexpNames()
	for i, line := range lines {
		pos := 0
		for g := 1; g < len(names) && matches[i] != nil; g++ {
			from, to := matches[i][2*g], matches[i][2*g+1]
			if from < pos {
				continue // not matched, or inside another group
			}
			parts = append(parts, str(line[pos:from]), w.visit(lineValue(line[from:to], c.Fields[names[g]]), c.Fields[names[g]], join(field, names[g])))
			pos = to
		}
		parts = append(parts, str(line[pos:]))
		if i < len(lines)-1 || final {
			parts = append(parts, str("\n"))
		}
	}
	text := str("")
	w.rebuild = append(w.rebuild, func() error {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.text)
		}
		text.text = b.String()
		return nil
	})
	return text
}

var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$`)

// lineValue makes of a word in a line the JSON value that its rule is about.
func lineValue(s string, r *Rule) *node {
	if (r.kind == integer || r.kind == number) && numberForm.MatchString(s) {
		return &node{kind: '0', text: s}
	}
	return str(s)
}

// command finds the schema for a command line that is one simple command of
// fixed words. Anything else (a pipe, an assignment, a redirection, an
// expansion, a function) may print whatever it likes.
func (p *Policy) command(line *node) *Command {
	if line == nil || line.kind != '"' {
		return nil
	}
	words := simpleWords(line.text)
	if words == nil {
		return nil
	}
	for _, c := range p.commands {
		if matchWords(c.words, words) {
			return c
		}
	}
	return nil
}

func simpleWords(line string) []string {
	if len(line) > 64<<10 {
		return nil
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(f.Stmts) != 1 {
		return nil
	}
	s := f.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(s.Redirs) > 0 || s.Background || s.Coprocess || s.Negated {
		return nil
	}
	var words []string
	for _, word := range call.Args {
		text, ok := literal(word.Parts)
		if !ok {
			return nil
		}
		words = append(words, text)
	}
	return words
}

func literal(parts []syntax.WordPart) (string, bool) {
	var b strings.Builder
	for _, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(x.Value, `\*?[~{`) {
				return "", false
			}
			b.WriteString(x.Value)
		case *syntax.SglQuoted:
			if x.Dollar {
				return "", false
			}
			b.WriteString(x.Value)
		case *syntax.DblQuoted:
			for _, inner := range x.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

func matchWords(pattern, words []string) bool {
	for i, p := range pattern {
		if p == "..." && i == len(pattern)-1 {
			return true
		}
		if i >= len(words) || p != "*" && p != words[i] {
			return false
		}
	}
	return len(pattern) == len(words)
}
