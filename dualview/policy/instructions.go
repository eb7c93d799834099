package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

// toolName is a tool's name in an origin. Another one is left out, so that a
// server's choice of it matches no rule about a tool.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// InstructionsOrigin names a text that steers a model from the outset: a system
// prompt, or with tool the description of one. It is the text's SHA-256 that
// stands in it, so that a rule about it is about nothing else.
func InstructionsOrigin(host, tool string, describes bool, text []byte) string {
	sum := sha256.Sum256(text)
	if !describes {
		return host + "/system-prompt/" + hex.EncodeToString(sum[:])
	}
	if !toolName.MatchString(tool) {
		tool = ""
	}
	return host + "/tool/" + tool + "/" + hex.EncodeToString(sum[:])
}

// InstructionsTrust says what the owner's rules say about such a text: "trusted",
// "untrusted", or nothing.
func (p *Policy) InstructionsTrust(from string) string {
	return p.originTrust(origin{kind: "instructions", value: from})
}

// ShowText shows a text that somebody vouches for, but for what is known to come
// from a value and for secrets: a runtime may have copied a file into it.
func (p *Policy) ShowText(ctx context.Context, table *dualview.Table, call Call, text string) (string, error) {
	w := &walk{ctx: ctx, policy: p, table: table, call: call, tool: Tool{Source: SourceKind{schema.SourceOther}}, trust: "trusted"}
	return w.finish(str(text), "text")
}

// ShowDocument is ShowText for a JSON document.
func (p *Policy) ShowDocument(ctx context.Context, table *dualview.Table, call Call, doc []byte) ([]byte, error) {
	root, err := parseTree(doc)
	if err != nil {
		return nil, err
	}
	w := &walk{ctx: ctx, policy: p, table: table, call: call, tool: Tool{Source: SourceKind{schema.SourceOther}}, trust: "trusted"}
	shown, err := w.resolve(root, "document")
	if err != nil {
		return nil, err
	}
	return shown.encode()
}

// SymboliseArguments hides what a model is said to have called a tool with: one
// object again, whose only member is a symbol.
func (p *Policy) SymboliseArguments(ctx context.Context, table *dualview.Table, call Call, args []byte) ([]byte, error) {
	w := &walk{ctx: ctx, policy: p, table: table, call: call, tool: Tool{Source: SourceKind{schema.SourceOther}}}
	out, err := w.resolve(str(string(args)), otherMember)
	if err != nil {
		return nil, err
	}
	return (&node{kind: '{', members: []named{{otherMember, out}}}).encode()
}
