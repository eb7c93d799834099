package precheck

import (
	"slices"
	"strings"
	"unicode"

	"example.org/auditd/precheck/command"
	"example.org/auditd/precheck/endpoint"
	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// structure raises what the flow's own metadata says, without its payload.
func (k *check) structure() {
	f := k.f
	if k.acts || k.bridges() {
		k.fields, k.isJSON = jsonFields(f.Payload)
	}
	if f.Sink.Kind.Persistent() && f.Source.Trust < schema.Trusted {
		k.raise("persistent-sink-untrusted", false, 0, 0, nil)
	}
	k.recipient()
	k.requests()
	k.target(f.Sink.Destination)
	if f.Sink.ID != f.Sink.Destination {
		k.target(f.Sink.ID)
	}
	switch f.Sink.Kind {
	case schema.SinkTool, schema.SinkPayment, schema.SinkOther:
		k.toolCall()
	}
}

// recipient judges who would get the content.
func (k *check) recipient() {
	f := k.f
	switch f.Sink.Kind {
	case schema.SinkMessage, schema.SinkPayment:
		if f.Sink.Destination == "" && f.Sink.ID == "" {
			k.raise("recipient-missing", false, 0, 0, nil)
		}
	}
	to := strings.ToLower(f.Sink.Destination)
	if to == "" || k.known(to) || !strings.ContainsAny(to, "@.") || strings.HasPrefix(to, "/") || strings.HasPrefix(to, "~") {
		return
	}
	if h := authority(to); endpoint.Parse(h).Kind == endpoint.Public {
		k.raise("external-destination", false, 0, 0, nil)
	}
	if f.Sink.Kind == schema.SinkMessage && len(k.c.cfg.Recipients)+len(k.c.cfg.Domains) > 0 {
		k.raise("recipient-not-listed", false, 0, 0, nil)
	}
}

// known reports whether the owner listed a recipient or its domain.
func (k *check) known(to string) bool {
	for _, r := range k.c.cfg.Recipients {
		if strings.EqualFold(r, to) {
			return true
		}
	}
	host := authority(to)
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if i := strings.IndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	for _, d := range k.c.cfg.Domains {
		if host == d || strings.HasSuffix(host, "."+d) {
			return true
		}
	}
	return false
}

// authority cuts the authority out of a URL, or returns what is none.
func authority(s string) string {
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
	}
	if i := strings.IndexAny(s, "/?#\\"); i >= 0 {
		s = s[:i]
	}
	return s
}

// target judges where the sink would go, as the host reports it.
func (k *check) target(s string) {
	if s == "" {
		return
	}
	if (k.acts || k.f.Sink.Kind == schema.SinkFile || k.f.Sink.Kind == schema.SinkConfig || k.f.Sink.Kind == schema.SinkPolicy || k.f.Sink.Kind == schema.SinkWeb) && (command.Touches(s, &k.env) || k.f.Sink.Kind != schema.SinkWeb && !reading(k.f.Sink.Action) && command.Changes(s, &k.env)) {
		k.raise(string(command.SelfProtection), true, 0, 0, nil)
	}
	if k.f.Sink.Kind == schema.SinkFile && !reading(k.f.Sink.Action) && command.Startup(s) {
		k.startup(0, 0)
	}
	web := k.f.Sink.Kind == schema.SinkWeb
	if (strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, "file:")) && !(web && (strings.HasPrefix(s, "//") || strings.HasPrefix(s, "file:"))) {
		return
	}
	if k.f.Sink.Kind != schema.SinkWeb && strings.Trim(s, "0123456789") == "" {
		return // a chat's or a row's number; only where a URL is expected is it an address
	}
	r := read(normalise.Fold(s).Lower)
	e, private := r.private()
	if !private && (localSchemes[r.scheme] || r.broken && (web || r.scheme != "")) {
		k.raise("endpoint-destination", k.bridges(), 0, 0, nil)
		return
	}
	if !private || k.allowedPort(e) {
		return
	}
	k.raise("endpoint-destination", k.bridges(), 0, 0, nil)
	k.detail("endpoint-destination", e.Kind.String())
	k.own(e, 0, 0)
}

// startup notes that a file would be written which runs something later, or
// lets somebody in.
func (k *check) startup(start, end int) {
	k.raise("path-startup", false, start, end, nil)
	if k.f.Source.Trust < schema.Trusted {
		k.raise("persistent-startup-file", false, start, end, nil)
	}
}

// Verbs of tool calls. Those of the first list act on money, rights or a whole
// thing, and nothing takes them back.
var (
	finalVerbs  = set("refund", "transfer", "payout", "withdraw", "cancel", "terminate", "grant", "revoke", "purge", "drop", "destroy", "wipe", "chargeback", "liquidate", "unsubscribe", "deactivate", "truncate", "unpublish")
	deleteVerbs = set("delete", "remove", "erase", "trash")
	wholeNouns  = set("repo", "repository", "database", "db", "table", "account", "user", "bucket", "instance", "cluster", "project", "volume", "backup", "backups", "all", "calendar", "customer", "organization", "org", "workspace", "mailbox", "collection", "index",
		"namespace", "server", "vm", "site", "domain", "subscription", "member", "collaborator", "key", "secret", "policy", "role", "team", "environment")
	readVerbs = set("get", "list", "read", "search", "find", "describe", "show", "fetch", "query", "view", "check", "lookup", "preview", "count", "explain", "help", "validate", "simulate", "is", "can", "has", "status")
)

// toolCall judges the names in a tool call: what it is called and what its
// action parameters say.
func (k *check) toolCall() {
	f := k.f
	hard, soft := calls(f.Sink.Tool)
	h, s := calls(f.Sink.Action)
	hard, soft = hard || h, soft || s
	start, end := 0, 0
	for i := range k.fields {
		if x := &k.fields[i]; actionKeys[x.key] && len(x.value) <= 64 {
			if h, s := calls(x.value); h || s {
				hard, soft = hard || h && x.key != "name" && x.key != "task", soft || s || h
				start, end = x.start, x.end
			}
		}
	}
	switch {
	case hard:
		k.raise("tool-call-destructive", !f.OwnerAuthorized, start, end, nil)
	case soft:
		k.raise("tool-call-deletes", false, start, end, nil)
	}
}

// calls reads a name such as deleteRepository, billing.refund or DELETE_USER.
func calls(name string) (hard, soft bool) {
	if name == "" || len(name) > 128 || strings.Count(name, " ") > 4 {
		return false, false
	}
	words := split(name)
	if len(words) > 0 && readVerbs[words[0]] {
		return false, false
	}
	for i, w := range words {
		switch {
		case finalVerbs[w]:
			hard = true
		case deleteVerbs[w]:
			soft = true
			for _, n := range words[i+1:] {
				hard = hard || wholeNouns[n]
			}
		}
	}
	// A read verb behind a service's name: stripe.get_refund.
	for _, w := range words {
		if readVerbs[w] {
			return false, false
		}
		if finalVerbs[w] || deleteVerbs[w] {
			break
		}
	}
	return hard, soft
}

// split cuts a name into lower-case words at signs and at camel-case humps.
func split(name string) []string {
	var out []string
	var cur []rune
	flush := func() {
		if len(cur) > 0 {
			out = append(out, strings.ToLower(string(cur)))
			cur = cur[:0]
		}
	}
	prev := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		case unicode.IsUpper(r) && unicode.IsLower(prev):
			flush()
			cur = append(cur, r)
		default:
			cur = append(cur, r)
		}
		prev = r
	}
	flush()
	return out
}

func (k *check) allowedPort(e endpoint.Endpoint) bool {
	return e.Kind == endpoint.Loopback && e.Port != 0 && !k.ownPort(e) && slices.Contains(k.c.cfg.LoopbackPorts, e.Port)
}

func (k *check) ownPort(e endpoint.Endpoint) bool {
	return e.Kind == endpoint.Loopback && (e.Port == k.c.cfg.Port || e.Port == k.c.cfg.ProxyPort)
}

// own raises self-protection when an endpoint is auditd's own.
func (k *check) own(e endpoint.Endpoint, start, end int) {
	if k.ownPort(e) && k.bridges() && k.f.Sink.Kind != schema.SinkMessage {
		k.raise(string(command.SelfProtection), true, start, end, nil)
	}
}
