package precheck

import (
	"net/url"
	"strings"

	"example.org/auditd/precheck/endpoint"
	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// localSchemes reach files, sockets or services that speak no HTTP: nothing
// that an agent fetches from the web has one.
var localSchemes = set("file", "unix", "gopher", "dict", "ldap", "ldaps", "ldapi", "tftp", "jar", "netdoc", "phar", "npipe", "view-source")

// slashed are the schemes behind which a browser takes any number of slashes,
// backward ones too, for two.
var slashed = set("http", "https", "ws", "wss", "ftp")

// readings are the authorities that parsers see in one URL.
type readings struct {
	scheme      string
	authorities []string
	odd         bool // not what a well-behaved program writes
	broken      bool // no host at all can be read
}

// read reads a folded, lower-case URL as browsers do, and as others do where
// they differ. A reader of only one would let "http://a.com\@127.0.0.1" pass.
func read(s string) readings {
	s = strings.TrimLeft(s, " \t\r\n\x00")
	if strings.ContainsAny(s, "\t\r\n") {
		s = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(s)
	}
	var r readings
	rest := s
	if i := strings.IndexByte(s, ':'); i > 0 && i <= 16 && strings.Trim(s[:i], "abcdefghijklmnopqrstuvwxyz0123456789+.-") == "" && lowerLetter(s[0]) {
		if name := s[:i]; slashed[name] || localSchemes[name] || strings.HasPrefix(s[i:], "://") {
			r.scheme, rest = name, s[i+1:]
		}
	}
	trimmed := strings.TrimLeft(rest, `/\`)
	slashes := rest[:len(rest)-len(trimmed)]
	r.odd = strings.Contains(slashes, `\`) || r.scheme != "" && slashes != "//"
	if r.scheme == "" && slashes != "" && len(slashes) < 2 {
		return r // a path
	}
	first := trimmed
	if i := strings.IndexAny(first, `/\?#`); i >= 0 {
		first = first[:i]
	}
	r.authorities = []string{first}
	if i := strings.IndexAny(trimmed, "/?#"); i < 0 || i > len(first) {
		all := trimmed
		if i >= 0 {
			all = trimmed[:i]
		}
		if all != first && strings.Trim(all[len(first):], `\`) != "" {
			r.odd = true
			r.authorities = append(r.authorities, all)
		}
	}
	host := first
	if u, err := url.PathUnescape(first); err == nil {
		host = u
	} else {
		r.broken = true
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if i := strings.IndexByte(host, '%'); i >= 0 && strings.HasPrefix(host, "[") {
		host = host[:i] // a zone
	}
	for i := 0; i < len(host); i++ {
		if c := host[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`<>^|%"`+"`", c) >= 0 {
			r.broken = true
		}
	}
	r.broken = r.broken || host == "" && r.scheme != ""
	return r
}

func lowerLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// private returns the first reading that names a private host.
func (r readings) private() (endpoint.Endpoint, bool) {
	for _, a := range r.authorities {
		if e := endpoint.Parse(a); e.Kind != endpoint.Public {
			return e, true
		}
		// Of a host that is cut short by a character that some parsers stop at.
		if i := strings.IndexByte(a, '%'); i > 0 {
			if e := endpoint.Parse(a[:i]); e.Kind != endpoint.Public {
				return e, true
			}
		}
	}
	return endpoint.Endpoint{}, false
}

// requests judges the URLs that the payload of a request or a fetching tool
// consists of, in every spelling.
func (k *check) requests() {
	const longest, most = 2048, 64
	if !k.bridges() {
		return
	}
	f := k.f
	fetches := f.Sink.Kind == schema.SinkWeb || k.isJSON && fetching(f.Sink.Tool)
	for i := range k.fields {
		x := &k.fields[i]
		if hostKeys[x.key] && len(x.value) <= longest && (fetches || !strings.HasPrefix(x.value, "file:")) {
			k.request(x.value, x.start, x.end, fetches)
		}
	}
	if f.Sink.Kind != schema.SinkWeb || k.isJSON {
		return
	}
	if s := strings.TrimSpace(f.Payload); len(s) <= longest && !strings.ContainsAny(s, " \n") {
		k.request(s, 0, len(f.Payload), true)
		return
	}
	n := 0
	for i := 0; i < len(f.Payload) && n < most; {
		j := strings.Index(f.Payload[i:], "http")
		if j < 0 {
			return
		}
		i += j
		end := i
		for end < len(f.Payload) && end-i < longest && f.Payload[end] > ' ' && strings.IndexByte("\"'<>`)", f.Payload[end]) < 0 {
			end++
		}
		if r := read(normalise.Fold(f.Payload[i:end]).Lower); r.odd && slashed[r.scheme] {
			if _, ok := r.private(); ok {
				k.request(f.Payload[i:end], i, end, true)
			}
		}
		i = max(end, i+4)
		n++
	}
}

func fetching(tool string) bool {
	low := strings.ToLower(tool)
	for _, w := range []string{"fetch", "browse", "navigate", "http", "web", "url", "request", "curl", "scrape", "crawl", "download", "goto"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// request judges one URL that would be connected to.
func (k *check) request(s string, start, end int, fetches bool) {
	r := read(normalise.Fold(s).Lower)
	e, private := r.private()
	switch {
	case localSchemes[r.scheme]:
		k.raise("endpoint-private", fetches, start, end, nil)
		k.detail("endpoint-private", "scheme "+r.scheme)
	case private && (r.scheme != "" || r.odd || strings.HasPrefix(s, "//")):
		k.endpoint(e, start, end, nil, true)
	case r.broken && fetches && r.scheme != "":
		k.raise("endpoint-private", true, start, end, nil)
		k.detail("endpoint-private", "unreadable host")
	}
}
