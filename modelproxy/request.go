package modelproxy

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"example.org/auditd/schema"
)

// maxPlaces bounds the texts of one request; auditWorkers how many of those
// that nobody has decided about are decided about at the same time.
const (
	maxPlaces    = 1 << 15
	auditWorkers = 4
)

// request is what a dialect finds in a request.
type request struct {
	root    *node
	stream  bool
	model   string
	session string // the host's own name for it; empty when it says none
	places  []*place
	calls   map[string]call // the model's, by their ids
	// attach puts text at the end of the system prompt.
	attach func(text string)
	// previous is the id of an earlier answer that the provider has kept.
	previous string
}

// call is a tool call in the conversation.
type call struct {
	tool string
	args []byte
}

// place is something in a request that the model reads.
type place struct {
	kind   kind
	at     string // for the refusal that it may end in
	node   *node
	tool   string
	callID string
	failed bool
	// embedded: the node is a string that holds JSON.
	embedded bool
}

func (r *request) add(p *place) { r.places = append(r.places, p) }

// prepare decides about everything in a request, and changes what has to be
// changed. changed is false when it may go on exactly as it came.
func (p *Proxy) prepare(ctx context.Context, t *target, r *request) (s scope, changed bool, err error) {
	if len(r.places) > maxPlaces {
		return s, false, badRequest("the request holds more than %d texts", maxPlaces)
	}
	s = scope{t.Host, r.session}
	if s.session == "" {
		s.session = p.marked(t, r)
	}
	if s.session == "" {
		s.session = p.conversation(r)
	}
	if t.Hooks && !p.cfg.Memory.watched(s) {
		return s, false, refuse(400, "invalid_request_error", "the hooks of this session have reported nothing lately, so its requests are not passed on; run `auditd status`, or begin the session anew")
	}
	if r.previous != "" && !p.cfg.Memory.lookup(p.cfg.Memory.digest(kindResponse, s, "", r.previous)).passed {
		return s, false, badRequest("the request builds on an answer that did not come through this proxy")
	}
	var open []*place
	digests := map[*place]digest{}
	for _, x := range r.places {
		if x.kind == kindSystem || x.kind == kindDefinition {
			if t.TrustInstructions {
				continue
			}
		}
		d := p.digest(s, x)
		digests[x] = d
		switch k := p.cfg.Memory.lookup(d); {
		case k.passed, x.kind == kindResult && p.textsKnown(s, x):
		case k.stopped != "" || k.replace != nil:
			if err := p.apply(x, k); err != nil {
				return s, false, err
			}
			changed = true
		default:
			open = append(open, x)
		}
	}
	var resolved bool
	p.cfg.Memory.session(s, func(x *state) { resolved = x.resolved })
	found := make([]known, len(open)) // the zero value stops nothing and passes nothing
	slots := make(chan struct{}, auditWorkers)
	var wg sync.WaitGroup
	for i, x := range open {
		if x.kind == kindSaid && resolved {
			return s, false, badRequest("%s: the model is said to have said what it did not, in a session in which symbols were shown resolved", x.at)
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() {
				<-slots
				if v := recover(); v != nil {
					p.panicked(ctx, v)
				}
			}()
			found[i] = p.look(ctx, t, s, r, x)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return s, false, refuse(408, "timeout_error", "the request was given up while it was decided about")
	}
	for i, x := range open {
		k := found[i]
		switch {
		case !k.passed && k.stopped == "" && k.replace == nil:
			k.stopped = "auditd failed while it decided."
		case !k.waits:
			p.cfg.Memory.note(digests[x], k)
		}
		if k.passed {
			continue
		}
		if err := p.apply(x, k); err != nil {
			return s, false, err
		}
		changed = true
	}
	return s, p.greet(ctx, s, r) || changed, nil
}

// marked returns the session that the system prompt names.
func (p *Proxy) marked(t *target, r *request) (session string) {
	for _, x := range r.places {
		if x.kind == kindSystem {
			if found := p.cfg.Memory.marked(t.Host, x.node.text); found != "" {
				session = found
			}
		}
	}
	return session
}

// conversation names a conversation whose host gives it no name: by how it
// begins, which every request of it repeats.
func (p *Proxy) conversation(r *request) string {
	h := hmac.New(sha256.New, p.cfg.Memory.key[:])
	for _, x := range r.places {
		if x.kind == kindPrompt {
			h.Write(x.node.encode())
			break
		}
	}
	return "conversation-" + hex.EncodeToString(h.Sum(nil)[:12])
}

// digest is what a place is known by.
func (p *Proxy) digest(s scope, x *place) digest {
	m := p.cfg.Memory
	switch x.kind {
	case kindResult:
		return m.digest(kindDocument, s, x.tool, string(plain(x.node).encode()))
	case kindCalled:
		return m.digest(kindCalled, s, x.tool, canonical(x.arguments()))
	case kindSaid:
		return m.digest(kindSaid, s, "", strings.TrimSpace(x.node.text))
	case kindDefinition:
		return m.digest(kindDefinition, scope{host: s.host}, "", string(plain(x.node).encode()))
	case kindSystem: // the same for every session of a host
		return m.digest(kindSystem, scope{host: s.host}, "", x.node.text)
	default:
		return m.digest(x.kind, s, "", x.node.text)
	}
}

// arguments are a call's arguments as JSON.
func (x *place) arguments() []byte {
	if !x.embedded {
		return x.node.encode()
	}
	return argumentsOf(x.node.text)
}

// argumentsOf returns the JSON that a string of arguments is; where it is none,
// the string itself as JSON.
func argumentsOf(s string) []byte {
	if strings.TrimSpace(s) == "" {
		return []byte("{}")
	}
	if n, err := parse([]byte(s)); err == nil {
		return n.encode()
	}
	return str(s).encode()
}

// plain is a value without what moves from request to request and is no
// content.
func plain(n *node) *node {
	c := n.copy()
	c.strip()
	return c
}

func (n *node) strip() {
	if n.kind == '{' {
		n.drop("cache_control")
	}
	for _, k := range n.kids {
		k.strip()
	}
}

// textsKnown reports whether a hook has let pass every single text of a result.
func (p *Proxy) textsKnown(s scope, x *place) bool {
	var texts []string
	if !plain(x.node).texts(&texts) {
		return false
	}
	for _, t := range texts {
		if !p.cfg.Memory.lookup(p.cfg.Memory.digest(kindResult, s, x.tool, t)).passed {
			return false
		}
	}
	return true
}

// look reports a place as an event.
func (p *Proxy) look(ctx context.Context, t *target, s scope, r *request, x *place) known {
	e := p.event(s, schema.PhaseInspect)
	e.CallID, e.Tool = x.callID, x.tool
	switch x.kind {
	case kindSystem:
		e.Text, e.Origin = x.node.text, "system-prompt"
	case kindPrompt:
		e.Phase, e.Text, e.Sender = schema.PhasePrompt, x.node.text, "unknown"
		if t.OwnerTexts {
			e.Sender = "owner"
		}
	case kindSaid:
		e.Text, e.Origin = x.node.text, "conversation"
	case kindDefinition:
		e.Tool, e.Result = "tool-definition", plain(x.node).encode()
	case kindCalled:
		e.Result, e.Origin = x.arguments(), "conversation"
	case kindResult:
		e.Phase, e.Result, e.IsError = schema.PhaseAfterTool, plain(x.node).encode(), x.failed
		if c, ok := r.calls[x.callID]; ok {
			e.Params = c.args
		}
		if e.Tool == "" {
			e.Tool = "unknown"
		}
	}
	o := p.ask(ctx, p.cfg.Report, e)
	switch {
	case o.Action == schema.Allow:
		return known{passed: true}
	case o.Action == schema.RewriteAndContinue && o.Text != nil:
		return known{replace: str(*o.Text).encode()}
	case o.Action == schema.RewriteAndContinue && len(o.Result) > 0:
		return known{replace: o.Result}
	}
	return known{stopped: explain(o), waits: o.Action == schema.DeferToHuman}
}

// event is what every event of a session has.
func (p *Proxy) event(s scope, phase schema.Phase) *schema.Event {
	e := &schema.Event{Host: s.host, Agent: "main", Session: s.session, Phase: phase}
	p.cfg.Memory.session(s, func(x *state) { e.Workspace = x.workspace })
	return e
}

// ask reports e, and once more with the ticket when the owner has approved what
// was deferred.
func (p *Proxy) ask(ctx context.Context, report Report, e *schema.Event) schema.Outcome {
	o := report(ctx, e)
	if o.Action != schema.DeferToHuman || o.Ticket == "" || p.cfg.Answered == nil {
		return o
	}
	for _, d := range o.Decisions {
		if d.Action == schema.DeferToHuman && (d.Question == "" || p.cfg.Answered(ctx, d.Question) != "approved") {
			return o
		}
	}
	again := *e
	again.Ticket = o.Ticket
	return report(ctx, &again)
}

// explain is what the model reads in place of what was stopped.
func explain(o schema.Outcome) string {
	text := o.Message
	if text == "" {
		text = "Blocked."
	}
	return text + o.HowToApprove("exactly the same may be tried again")
}

const withheld = "[withheld by auditd] "

// apply puts what was decided into the request. What cannot be put there
// refuses the request.
func (p *Proxy) apply(x *place, k known) error {
	if k.replace == nil {
		return x.withhold(k.stopped)
	}
	n, err := parse(k.replace)
	if err != nil {
		return badRequest("%s: what is to take its place is not valid", x.at)
	}
	switch {
	case x.embedded:
		x.node.text = string(k.replace)
	case n.kind != x.node.kind:
		return badRequest("%s: what is to take its place has another shape", x.at)
	case n.kind == '"':
		x.node.text = n.text
	default:
		// What moves from request to request stays where it is.
		n.keep(x.node)
		n.names = append([]string(nil), n.names...)
		*x.node = *n
	}
	return nil
}

// keep takes the cache marks of old, where both are alike.
func (n *node) keep(old *node) {
	if n.kind != old.kind || n.kind == '"' {
		return
	}
	if n.kind == '{' {
		if v := old.get("cache_control"); v != nil && n.get("cache_control") == nil {
			n.set("cache_control", v)
		}
		for i, name := range n.names {
			if o := old.get(name); o != nil {
				n.kids[i].keep(o)
			}
		}
		return
	}
	if len(n.kids) == len(old.kids) {
		for i := range n.kids {
			n.kids[i].keep(old.kids[i])
		}
	}
}

// withhold takes all content out of a place and says why.
func (x *place) withhold(why string) error {
	text := withheld + why
	switch x.kind {
	case kindSystem:
		return refuse(400, "invalid_request_error", "%s: the system prompt was stopped. %s", x.at, why)
	case kindDefinition:
		withholdDefinition(x.node, text)
	case kindCalled:
		args := obj("withheld", str(text))
		if x.embedded {
			x.node.text = string(args.encode())
		} else {
			*x.node = *args
		}
	default:
		if x.node.kind == '"' {
			x.node.text = text
			return nil
		}
		block := obj("type", str("text"), "text", str(text))
		for _, old := range x.node.kids {
			if v := old.get("cache_control"); v != nil {
				block.set("cache_control", v)
			}
			if strings.HasPrefix(old.str("type"), "input_") { // the Responses API's word
				block.set("type", str("input_text"))
			}
		}
		*x.node = *arr(block)
	}
	return nil
}

// withholdDefinition leaves a tool its name, and nothing that explains it.
func withholdDefinition(n *node, text string) {
	if f := n.get("function"); f != nil && f.kind == '{' {
		withholdDefinition(f, text)
		return
	}
	for i, name := range n.names {
		switch name {
		case "name", "type", "cache_control", "strict":
		case "input_schema", "parameters":
			n.kids[i] = obj("type", str("object"), "properties", obj())
		default:
			if !n.kids[i].inert() {
				n.kids[i] = str(text)
			}
		}
	}
	n.set("description", str(text))
}

// greet asks once for each session what isolation has to tell its model, and
// reports whether it added that.
func (p *Proxy) greet(ctx context.Context, s scope, r *request) bool {
	if r.attach == nil {
		return false
	}
	var known bool
	var text string
	p.cfg.Memory.session(s, func(x *state) { known, text = x.greeted, x.appendix })
	if !known {
		e := p.event(s, schema.PhaseBootstrap)
		e.Origin = "system-prompt"
		if o := p.cfg.Report(ctx, e); !o.Action.Stops() {
			if o.Text != nil {
				text = *o.Text
			}
			p.cfg.Memory.session(s, func(x *state) { x.greeted, x.appendix = true, text })
		}
	}
	if text == "" {
		return false
	}
	for _, x := range r.places {
		if x.kind == kindSystem && strings.Contains(x.node.text, text) {
			return false // a plugin has added it already
		}
	}
	r.attach(text)
	return true
}
