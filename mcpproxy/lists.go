package mcpproxy

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"example.org/auditd/schema"
)

const (
	maxTools    = 512
	listWorkers = 4
)

// tools looks at a list of tools: each definition goes into the model's
// context, word for word. One that is poisoned, or that differs from what was
// pinned, is left out, and calls of it are refused.
func (p *Proxy) tools(ctx context.Context, id jsonrpc.ID, result jsontext.Value) {
	f, err := fieldsOf(result)
	var list []jsontext.Value
	if err == nil {
		err = json.Unmarshal(f.get("tools"), &list)
	}
	if err != nil || len(list) > maxTools {
		p.answerError(ctx, p.client, id, "auditd: the server's list of tools is not one that can be looked at, so it is withheld")
		return
	}
	verdicts := make([]verdict, len(list))
	var wg sync.WaitGroup
	slots := make(chan struct{}, listWorkers)
	for i, tool := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() {
				<-slots
				if v := recover(); v != nil {
					verdicts[i] = verdict{why: "looking at its definition failed."}
				}
			}()
			verdicts[i] = p.tool(ctx, tool)
		})
	}
	wg.Wait()
	kept := []jsontext.Value{}
	undecided := 0
	seen := map[string]bool{}
	for _, v := range verdicts {
		if v.undecided {
			undecided++
		}
		if v.definition == nil || seen[v.name] { // of two with one name nobody knows which is called
			p.refuse(ctx, v.name, v.why)
			continue
		}
		seen[v.name] = true
		p.mu.Lock()
		delete(p.refused, v.name)
		p.mu.Unlock()
		kept = append(kept, v.definition)
	}
	if undecided > 0 && len(kept) == 0 {
		p.answerError(ctx, p.client, id, "auditd: no decision about the server's tools could be had, so none is listed; is `auditd serve` running?")
		return
	}
	v, err := json.Marshal(kept)
	if err != nil {
		p.answerError(ctx, p.client, id, "auditd: the list of tools could not be written")
		return
	}
	p.send(ctx, p.client, &jsonrpc.Response{ID: id, Result: []byte(f.with("tools", v).value())})
}

func (p *Proxy) refuse(ctx context.Context, name, why string) {
	if name == "" {
		return
	}
	if why == "" {
		why = "another tool of the same server has this name."
	}
	p.mu.Lock()
	if len(p.refused) < maxTools {
		p.refused[name] = why
	}
	p.mu.Unlock()
	p.cfg.Logger.WarnContext(ctx, "a tool of the MCP server is not offered", "server", p.cfg.Server, "tool", shortMethod(name), "why", why)
}

// verdict is what comes of one tool's definition; definition is nil when it is
// not offered.
type verdict struct {
	name       string
	definition jsontext.Value
	why        string
	undecided  bool
}

func (p *Proxy) tool(ctx context.Context, definition jsontext.Value) verdict {
	f, err := fieldsOf(definition)
	v := verdict{why: "its definition is not one that can be looked at."}
	if err != nil || json.Unmarshal(f.get("name"), &v.name) != nil || v.name == "" || len(v.name) > 256 {
		v.name = ""
		return v
	}
	hash := definitionHash(f)
	switch p.cfg.Pins.Check(p.cfg.Server, v.name, hash) {
	case Same:
		v.definition = definition
		return v
	case Changed:
		v.why = "its definition has changed since it was first seen, which is how a server that was harmless turns. `auditd mcp forget " + p.cfg.Server + "` in a terminal takes the new one, after you have looked at it."
		return v
	}
	out, o := p.inward(ctx, schema.PhaseInspect, v.name, "", nil, f.with("_meta", nil).value(), false)
	if out == nil || o.Action != schema.Allow {
		// A definition is not mended: nobody knows what the rest of it wants.
		v.why, v.undecided = "what it says about itself would steer the model. "+o.Message, o.Reason == "not_decided"
		return v
	}
	if err := p.cfg.Pins.Add(p.cfg.Server, v.name, hash); err != nil {
		v.why, v.undecided = "its definition could not be pinned.", true
		p.cfg.Logger.ErrorContext(ctx, "couldn't pin a tool", "error", err)
		return v
	}
	v.definition = definition
	return v
}

// definitionHash is over everything but _meta, whatever its order and layout.
func definitionHash(f fields) schema.Digest {
	v := f.with("_meta", nil).value()
	if err := v.Canonicalize(); err != nil {
		return "" // equal to nothing that was pinned
	}
	return schema.DigestOf("mcp-tool", string(v))
}
