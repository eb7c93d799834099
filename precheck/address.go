package precheck

import (
	"strings"

	"example.org/auditd/precheck/endpoint"
	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// hostWords stand in private hosts that are written without a scheme.
var hostWords = []string{"localhost", "127.", "169.254.", "192.168.", "10.", "172.", "0.0.0.0", "100.100.100.200", "[::", "metadata.google", ".internal", ".local", ".corp", ".intranet", "nip.io", "sslip.io", "localtest.me", "lvh.me"}

// url judges the URL whose "://" stands at i, and notes it in the
// segmentation. It returns where the URL ends.
func (k *check) url(p *piece, t *normalise.Text, i, last int) int {
	const longest = 2048
	s := t.Lower
	if i < last {
		return last // inside another URL's query: its own host is seen as a bare one
	}
	start := i
	for start > 0 && i-start < 16 && (wordByte(s[start-1]) || s[start-1] == '+' || s[start-1] == '-' || s[start-1] == '.') {
		start--
	}
	end := i + 3
	if i < k.urlEnd && k.urlText == s {
		end = k.urlEnd // within the same unbroken run: it was measured already
	}
	for end < len(s) && end-i < longest && s[end] > ' ' && strings.IndexByte("\"'<>`)]}|", s[end]) < 0 || end < len(s) && s[end] == ']' && strings.IndexByte(s[i:end], '[') >= 0 && end-i < 64 {
		end++
	}
	k.urlEnd, k.urlText = end, s
	host := authority(s[i:min(end, i+512)])
	if host == "" || start == i {
		return last
	}
	from, to := p.at(t.Span(start, end))
	k.segment(schema.Span{Start: from, End: to, Category: schema.SpanEndpoint})
	scheme := s[start:i]
	if scheme == "file" || scheme == "data" {
		return i + 3
	}
	e := endpoint.Parse(host)
	if e.Kind != endpoint.Public {
		hard := k.bridges() && k.connects(from)
		k.endpoint(e, from, to, via(p, t, start, end), hard)
	}
	// Another URL may follow in the query; its scheme is looked for again.
	return i + 3 + len(host)
}

// connects reports whether an address at a place of the payload would be used
// and not only be written down: everywhere in a command or a request but in
// what only prints, and in a tool's parameters only in those for addresses.
func (k *check) connects(pos int) bool {
	if k.isJSON {
		f := k.fieldAt(pos)
		return f == nil || hostKeys[f.key] || commandKeys[f.key] || k.f.Sink.Kind == schema.SinkWeb
	}
	return true
}

// endpoint raises the rule for a kind of host. In a command line the verdict
// waits until the line was parsed.
func (k *check) endpoint(e endpoint.Endpoint, start, end int, via []string, hard bool) {
	if k.allowedPort(e) {
		return
	}
	rule := "endpoint-private"
	switch e.Kind {
	case endpoint.Metadata:
		rule = "endpoint-metadata"
	case endpoint.Rebind:
		rule = "endpoint-rebinding"
	case endpoint.Internal:
		rule = "endpoint-internal-name"
	}
	if strings.HasSuffix(e.Host, ".localtest.me") || strings.HasSuffix(e.Host, ".lvh.me") || e.Host == "localtest.me" || e.Host == "lvh.me" {
		rule = "endpoint-rebinding"
	}
	if hard && k.f.Sink.Kind == schema.SinkExec && !k.isJSON {
		k.pending = append(k.pending, pendingEndpoint{rule: rule, endpoint: e, start: start, end: end, via: via})
		k.raise(rule, false, start, end, via)
		return
	}
	k.raise(rule, hard, start, end, via)
	k.detail(rule, e.Kind.String())
	if hard {
		k.own(e, start, end)
	}
}

// pendingEndpoint is an address in a command line: hard unless it lies in a
// call that only prints.
type pendingEndpoint struct {
	rule       string
	endpoint   endpoint.Endpoint
	start, end int
	via        []string
}

func (k *check) settle() {
	for _, p := range k.pending {
		printed := false
		for _, a := range k.inert {
			printed = printed || a.Start <= p.start && p.end <= a.End
		}
		if !printed {
			k.raise(p.rule, true, p.start, p.end, p.via)
			k.own(p.endpoint, p.start, p.end)
		}
	}
}

// host judges a word that a command connects to.
func (k *check) host(word string, start, end int, via []string, hard bool) {
	r := read(normalise.Fold(word).Lower)
	if localSchemes[r.scheme] {
		k.raise("endpoint-private", hard, start, end, via)
		k.detail("endpoint-private", "scheme "+r.scheme)
		return
	}
	e, private := r.private()
	if !private || k.allowedPort(e) {
		return
	}
	rule := "endpoint-private"
	switch e.Kind {
	case endpoint.Metadata:
		rule = "endpoint-metadata"
	case endpoint.Rebind:
		rule = "endpoint-rebinding"
	case endpoint.Internal:
		rule = "endpoint-internal-name"
	}
	k.raise(rule, hard, start, end, via)
	k.detail(rule, e.Kind.String())
	if hard {
		k.own(e, start, end)
	}
}

// bareHost judges a private host that stands in the text without a scheme. An
// address alone is evidence; with a port, or as a parameter for an address, it
// is meant to be connected to.
func (k *check) bareHost(p *piece, t *normalise.Text, i, wordEnd int) {
	s := t.Lower
	start, end := i, wordEnd
	for start > 0 && i-start < 64 && hostByte(s[start-1]) {
		start--
	}
	for end < len(s) && end-i < 128 && hostByte(s[end]) {
		end++
	}
	for end > start && (s[end-1] == '.' || s[end-1] == '-') {
		end--
	}
	if start > 0 && strings.IndexByte("/@\\$%=&~", s[start-1]) >= 0 && !(s[start-1] == '=' || s[start-1] == '@') || i > start && s[start] == '.' {
		return // part of a URL or a path, which was looked at as such
	}
	if i < start || end <= i {
		return
	}
	host := s[start:end]
	port := ""
	if end < len(s) && s[end] == ':' {
		j := end + 1
		for j < len(s) && j-end < 7 && '0' <= s[j] && s[j] <= '9' {
			j++
		}
		if j-end > 2 {
			port = s[end:j]
			end = j
		}
	}
	if port == "" && end < len(s) && (wordByte(s[end]) || s[end] == '[') {
		return
	}
	numeric := strings.Trim(host, "0123456789.") == ""
	if numeric && strings.Count(host, ".") != 3 {
		return // a version
	}
	e := endpoint.Parse(host + port)
	if e.Kind == endpoint.Public || e.Kind == endpoint.Internal && port == "" && (strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".home") || end < len(s) && (s[end] == '(' || s[end] == '=')) {
		return
	}
	if e.Kind == endpoint.Loopback && port == "" && host == "localhost" {
		// The bare word is everywhere; only an address parameter uses it.
		if f := k.fieldAt(p.start + start); !p.exact || f == nil || !hostKeys[f.key] {
			return
		}
	}
	from, to := p.at(t.Span(start, end))
	hard := k.bridges() && p.depth == 0 && k.f.Sink.Kind != schema.SinkExec && (port != "" && k.connects(from))
	if f := k.fieldAt(from); f != nil && hostKeys[f.key] && k.bridges() {
		hard = true
	}
	k.endpoint(e, from, to, via(p, t, start, end), hard)
}

func hostByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c == '.' || c == '-' || c == '_'
}
