package mcpproxy

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"example.org/auditd/schema"
)

// plain are requests of a client whose parameters carry no content.
var plain = map[string]bool{
	"initialize": true, "ping": true, "logging/setLevel": true, "tools/list": true, "prompts/list": true, "resources/list": true,
	"resources/templates/list": true, "server/discover": true,
}

// fromClient handles a message of the client. It returns before what it starts
// has been decided.
func (p *Proxy) fromClient(ctx context.Context, m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		x := p.take(p.toClient, m.ID)
		if x == nil {
			return // nobody asked
		}
		p.guard(0, func() { p.answerToServer(ctx, x, m) }, func() { p.answerError(ctx, p.server, m.ID, "auditd failed") })
	case *jsonrpc.Request:
		if !m.IsCall() {
			p.notifyServer(ctx, m)
			return
		}
		look, stop := context.WithCancel(ctx)
		x := &exchange{method: m.Method, params: m.Params, stop: stop}
		if !p.begin(p.toServer, m.ID, x) {
			stop()
			p.answerError(ctx, p.client, m.ID, "auditd: this request's id is in use")
			return
		}
		p.noteClient(m.Params)
		if m.Method == "initialize" { // nothing may overtake it
			p.send(ctx, p.server, m)
			return
		}
		p.guard(0, func() { p.request(look, ctx, x, m) }, func() {
			p.take(p.toServer, m.ID)
			p.stopRequest(ctx, x, m.ID, "auditd failed while it decided, so this is stopped")
		})
	}
}

// noteClient takes the client's name for the agent's. Since protocol version
// 2026-07-28 there is no initialize, and every request carries it.
func (p *Proxy) noteClient(params []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agent != unknownAgent {
		return
	}
	type implementation struct {
		Name string                    `json:"name"`
		Rest map[string]jsontext.Value `json:",unknown"`
	}
	var i struct {
		Client implementation `json:"clientInfo"`
		Meta   struct {
			Client implementation            `json:"io.modelcontextprotocol/clientInfo"`
			Rest   map[string]jsontext.Value `json:",unknown"`
		} `json:"_meta"`
		Rest map[string]jsontext.Value `json:",unknown"`
	}
	if json.Unmarshal(params, &i) != nil {
		return
	}
	if name := i.Client.Name + i.Meta.Client.Name; name != "" {
		p.agent = cleanName(name)
	}
}

// notifyServer passes a notification on. One that cancels a request stops the
// look at it, too.
func (p *Proxy) notifyServer(ctx context.Context, m *jsonrpc.Request) {
	if m.Method == "notifications/cancelled" {
		var c struct {
			ID   any                       `json:"requestId"`
			Rest map[string]jsontext.Value `json:",unknown"`
		}
		if json.Unmarshal(m.Params, &c) == nil {
			if id, err := jsonrpc.MakeID(c.ID); err == nil {
				p.mu.Lock()
				if x := p.toServer[id]; x != nil {
					x.cancelled = true
					x.stop()
				}
				p.mu.Unlock()
			}
		}
	}
	p.send(ctx, p.server, m)
}

// request looks at a client's request and sends it on, or answers it. look ends
// when the client cancels; ctx does not.
func (p *Proxy) request(look, ctx context.Context, x *exchange, m *jsonrpc.Request) {
	defer x.stop()
	params, err := strict(m.Params)
	if err != nil {
		p.take(p.toServer, m.ID)
		p.answerError(ctx, p.client, m.ID, "auditd: the request's parameters are not one JSON document without doubled names")
		return
	}
	id := fmt.Sprint(m.ID.Raw())
	var o schema.Outcome
	switch {
	case m.Method == "tools/call":
		params, o = p.call(look, x, id, params)
	case plain[m.Method] || len(params) == 0:
		o.Action = schema.Allow
	default:
		params, o = p.outward(look, m.Method, id, params)
	}
	p.mu.Lock()
	cancelled := x.cancelled
	p.mu.Unlock()
	if cancelled || params == nil && len(m.Params) > 0 {
		p.take(p.toServer, m.ID)
		if !cancelled { // to a request that was cancelled there is no answer
			p.stopRequest(ctx, x, m.ID, explain(o))
		}
		return
	}
	forward := *m
	forward.Params = []byte(params)
	p.send(ctx, p.server, &forward)
}

// stopRequest answers a request that does not go on. A tool call gets a result
// that the model reads; anything else an error.
func (p *Proxy) stopRequest(ctx context.Context, x *exchange, id jsonrpc.ID, why string) {
	if x.method == "tools/call" {
		p.send(ctx, p.client, &jsonrpc.Response{ID: id, Result: []byte(toolError(why))})
		return
	}
	p.answerError(ctx, p.client, id, why)
}

// toolError is a tool's result that says why.
func toolError(why string) jsontext.Value {
	v, err := schema.Encode(map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": why}}})
	if err != nil {
		return jsontext.Value(`{"isError":true,"content":[{"type":"text","text":"auditd: stopped"}]}`)
	}
	return v
}

// call looks at a tool call's arguments.
func (p *Proxy) call(ctx context.Context, x *exchange, id string, params jsontext.Value) (jsontext.Value, schema.Outcome) {
	fields, err := fieldsOf(params)
	var name string
	if err != nil || json.Unmarshal(fields.get("name"), &name) != nil || name == "" {
		return nil, schema.Outcome{Message: "Blocked: the call does not name its tool."}
	}
	x.tool = name
	p.mu.Lock()
	why, refused := p.refused[name]
	p.mu.Unlock()
	if refused {
		return nil, schema.Outcome{Message: "Blocked: " + why}
	}
	arguments := fields.get("arguments")
	if arguments == nil {
		arguments = jsontext.Value("{}")
	}
	// What is not arguments and not the protocol's own goes to the server too:
	// what a person filled in, for example, while the call went on.
	if rest := fields.with("name", nil).with("arguments", nil).with("_meta", nil); len(rest) > 0 {
		if out, o := p.outward(ctx, name, id, rest.value()); out == nil || o.Action != schema.Allow {
			return nil, o
		}
	}
	out, o := p.outward(ctx, name, id, arguments)
	switch {
	case out == nil:
		return nil, o
	case o.Action == schema.Allow:
		return params, o // as it came, with its _meta
	}
	return fields.with("arguments", out).value(), o
}

// answerToServer looks at a client's answer to a request of the server: what a
// person filled in, or the model said.
func (p *Proxy) answerToServer(ctx context.Context, x *exchange, m *jsonrpc.Response) {
	if m.Error != nil || x.method == "ping" || x.method == "roots/list" {
		p.send(ctx, p.server, m)
		return
	}
	result, err := strict(m.Result)
	if err != nil {
		p.answerError(ctx, p.server, m.ID, "refused")
		return
	}
	out, o := p.outward(ctx, x.method, fmt.Sprint(m.ID.Raw()), result)
	if out == nil {
		p.cfg.Logger.WarnContext(ctx, "kept an answer from the MCP server", "method", shortMethod(x.method), "reason", o.Reason)
		p.answerError(ctx, p.server, m.ID, "refused by the client's firewall")
		return
	}
	p.send(ctx, p.server, &jsonrpc.Response{ID: m.ID, Result: []byte(out)})
}
