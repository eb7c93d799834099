package mcpproxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"example.org/auditd/schema"
)

var errShape = errors.New("it is not an object")

// fromServer handles a message of the server.
func (p *Proxy) fromServer(ctx context.Context, m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		x := p.take(p.toServer, m.ID)
		if x == nil {
			return // nobody asked, or it was answered
		}
		if x.method == "initialize" { // the client waits for it before anything else
			p.answerToClient(ctx, x, m)
			return
		}
		p.guard(1, func() { p.answerToClient(ctx, x, m) }, func() { p.stopRequest(ctx, x, m.ID, "auditd failed while it decided, so the result is withheld") })
	case *jsonrpc.Request:
		if !m.IsCall() {
			p.notifyClient(ctx, m)
			return
		}
		x := &exchange{method: m.Method, stop: func() {}}
		if !p.begin(p.toClient, m.ID, x) {
			p.answerError(ctx, p.server, m.ID, "this request's id is in use")
			return
		}
		p.guard(1, func() { p.requestOfServer(ctx, m) }, func() {
			p.take(p.toClient, m.ID)
			p.answerError(ctx, p.server, m.ID, "refused")
		})
	}
}

// requestOfServer looks at what a server asks of the client: that its model
// say something, or its person.
func (p *Proxy) requestOfServer(ctx context.Context, m *jsonrpc.Request) {
	params, err := strict(m.Params)
	if err == nil && len(params) > 0 && m.Method != "ping" && m.Method != "roots/list" {
		var o schema.Outcome
		if params, o = p.inward(ctx, schema.PhaseInspect, m.Method, fmt.Sprint(m.ID.Raw()), nil, params, false); params == nil {
			p.cfg.Logger.WarnContext(ctx, "refused a request of the MCP server", "method", shortMethod(m.Method), "reason", o.Reason)
			err = errors.New("stopped")
		}
	}
	if err != nil {
		p.take(p.toClient, m.ID)
		p.answerError(ctx, p.server, m.ID, "refused by the client's firewall")
		return
	}
	forward := *m
	forward.Params = []byte(params)
	p.send(ctx, p.client, &forward)
}

// notifyClient passes a notification on when it holds no text, or harmless
// text. It runs in the order of arrival.
func (p *Proxy) notifyClient(ctx context.Context, m *jsonrpc.Request) {
	params, err := strict(m.Params)
	if err != nil {
		return
	}
	if m.Method == "notifications/cancelled" {
		p.send(ctx, p.client, m)
		return
	}
	if f, err := fieldsOf(params); err == nil {
		said := f.with("progressToken", nil).with("progress", nil).with("total", nil).with("_meta", nil).with("level", nil)
		if len(said) > 0 {
			if out, _ := p.inward(ctx, schema.PhaseInspect, m.Method, "", nil, said.value(), false); out == nil || string(out) != string(said.value()) {
				if m.Method != "notifications/progress" {
					return
				}
				params = f.only("progressToken", "progress", "total", "_meta").value()
			}
		}
	}
	forward := *m
	forward.Params = []byte(params)
	p.send(ctx, p.client, &forward)
}

// answerToClient looks at a server's answer.
func (p *Proxy) answerToClient(ctx context.Context, x *exchange, m *jsonrpc.Response) {
	id := fmt.Sprint(m.ID.Raw())
	if m.Error != nil {
		p.errorToClient(ctx, x, m, id)
		return
	}
	result, err := strict(m.Result)
	if err != nil {
		p.stopRequest(ctx, x, m.ID, "auditd: the server's answer is not one JSON document without doubled names, so it is withheld")
		return
	}
	switch x.method {
	case "initialize", "server/discover":
		p.initialized(ctx, m.ID, result)
	case "tools/list":
		p.tools(ctx, m.ID, result)
	case "tools/call":
		p.toolResult(ctx, x, m.ID, id, result)
	case "ping":
		p.send(ctx, p.client, &jsonrpc.Response{ID: m.ID, Result: []byte(`{}`)})
	default:
		if string(result) == "{}" {
			p.send(ctx, p.client, &jsonrpc.Response{ID: m.ID, Result: []byte(result)})
			return
		}
		out, o := p.inward(ctx, schema.PhaseAfterTool, x.method, id, jsontext.Value(x.params), result, false)
		if out == nil {
			p.stopRequest(ctx, x, m.ID, explain(o))
			return
		}
		p.send(ctx, p.client, &jsonrpc.Response{ID: m.ID, Result: []byte(out)})
	}
}

// errorToClient passes an error on when its text may be read.
func (p *Proxy) errorToClient(ctx context.Context, x *exchange, m *jsonrpc.Response, id string) {
	code, doc := int64(jsonrpc.CodeInternalError), map[string]any{"message": m.Error.Error()}
	var wire *jsonrpc.Error
	if errors.As(m.Error, &wire) {
		code, doc["message"] = wire.Code, wire.Message
		if data, err := strict(wire.Data); err != nil {
			p.stopRequest(ctx, x, m.ID, "auditd: the server's error is not valid, so it is withheld")
			return
		} else if data != nil {
			doc["data"] = data
		}
	}
	v, err := schema.Encode(doc)
	if err == nil {
		tool := x.method
		if x.tool != "" {
			tool = x.tool
		}
		var o schema.Outcome
		if out, got := p.inward(ctx, schema.PhaseAfterTool, tool, id, nil, v, true); out != nil && got.Action == schema.Allow {
			p.send(ctx, p.client, m)
			return
		} else {
			o = got
		}
		p.send(ctx, p.client, &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{Code: code, Message: explain(o)}})
		return
	}
	p.answerError(ctx, p.client, m.ID, "auditd: the server's error is withheld")
}

// initialized looks at what a server says about itself: its instructions go
// into the model's context.
func (p *Proxy) initialized(ctx context.Context, id jsonrpc.ID, result jsontext.Value) {
	f, err := fieldsOf(result)
	if err != nil {
		p.answerError(ctx, p.client, id, "auditd: the server's answer is not an object")
		return
	}
	if text := f.only("instructions", "serverInfo"); len(text) > 0 {
		out, o := p.inward(ctx, schema.PhaseInspect, "initialize", "", nil, text.value(), false)
		switch {
		case out == nil || o.Action != schema.Allow:
			p.cfg.Logger.WarnContext(ctx, "the MCP server's instructions are withheld", "reason", o.Reason)
			f = f.with("instructions", nil)
			if f.get("serverInfo") != nil {
				f = f.with("serverInfo", jsontext.Value(`{"name":"`+p.cfg.Server+`","version":"0"}`))
			}
		}
	}
	p.send(ctx, p.client, &jsonrpc.Response{ID: id, Result: []byte(f.value())})
}

// toolResult looks at what a tool returned: all of it that a model may read.
func (p *Proxy) toolResult(ctx context.Context, x *exchange, id jsonrpc.ID, callID string, result jsontext.Value) {
	f, err := fieldsOf(result)
	if err != nil {
		p.stopRequest(ctx, x, id, "auditd: the tool's result is not an object, so it is withheld")
		return
	}
	said := f.with("_meta", nil).with("isError", nil).with("resultType", nil)
	arguments := jsontext.Value(nil)
	if params, err := fieldsOf(jsontext.Value(x.params)); err == nil {
		arguments = params.get("arguments")
	}
	out, o := p.inward(ctx, schema.PhaseAfterTool, x.tool, callID, arguments, said.value(), string(f.get("isError")) == "true")
	switch {
	case out == nil:
		p.send(ctx, p.client, &jsonrpc.Response{ID: id, Result: []byte(toolError(explain(o)))})
		return
	case o.Action == schema.Allow:
		p.send(ctx, p.client, &jsonrpc.Response{ID: id, Result: []byte(result)})
		return
	}
	changed, err := fieldsOf(out)
	if err != nil {
		p.send(ctx, p.client, &jsonrpc.Response{ID: id, Result: []byte(toolError(explain(o)))})
		return
	}
	for _, c := range changed {
		f = f.with(c.name, c.value)
	}
	p.send(ctx, p.client, &jsonrpc.Response{ID: id, Result: []byte(f.value())})
}

// shortMethod bounds a method's name for the log: the server wrote it.
func shortMethod(m string) string { return cleanName(m) }
