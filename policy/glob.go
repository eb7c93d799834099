package policy

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Glob matches the ids of sources and sinks: paths and URLs. The zero Glob
// matches nothing.
type Glob struct{ re *regexp.Regexp }

// NewGlob compiles a glob: * and ? stay within a path element, ** does not.
func NewGlob(glob string) (Glob, error) {
	re, err := compileGlob(glob)
	return Glob{re}, err
}

// Match reports whether id matches, after "." and ".." in it were resolved.
func (g Glob) Match(id string) bool { return g.re != nil && matchID(g.re, id) }

// compileGlob makes a matcher out of a glob: * and ? stay within a path
// element, ** does not. The matcher takes time linear in its input, which
// attackers write.
func compileGlob(glob string) (*regexp.Regexp, error) {
	if glob == "" || len(glob) > maxText {
		return nil, fmt.Errorf("must have 1 to %d bytes", maxText)
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); {
		switch {
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i += 2
		case glob[i] == '*':
			b.WriteString("[^/]*")
			i++
		case glob[i] == '?':
			b.WriteString("[^/]")
			i++
		default:
			n := strings.IndexAny(glob[i:], "*?")
			if n < 0 {
				n = len(glob) - i
			}
			b.WriteString(regexp.QuoteMeta(glob[i : i+n]))
			i += n
		}
	}
	b.WriteString(`\z`)
	return regexp.Compile(b.String())
}

// cleanID resolves "." and ".." in the id of a path or URL, so that a glob
// over a folder cannot be left by climbing out of it. An id that climbs above
// its start matches nothing.
func cleanID(id string) (string, bool) {
	if strings.Contains(id, "://") && strings.Contains(id, "%2") { // an encoded "." or "/"
		return "", false
	}
	if !strings.Contains(id, "..") && !strings.Contains(id, "/./") && !strings.Contains(id, "//") {
		return id, true
	}
	prefix := ""
	if i := strings.Index(id, "://"); i >= 0 {
		prefix, id = id[:i+3], id[i+3:]
	}
	rooted := strings.HasPrefix(id, "/")
	var parts []string
	for _, p := range strings.Split(id, "/") {
		switch p {
		case "", ".":
		case "..":
			if len(parts) == 0 {
				return "", false
			}
			parts = parts[:len(parts)-1]
		default:
			parts = append(parts, p)
		}
	}
	id = strings.Join(parts, "/")
	if rooted {
		id = "/" + id
	}
	return prefix + id, true
}

// hostOf returns the lower-case host of a URL, without its port, or "" when id
// is none. A URL with credentials in it has no host here: what stands before
// the @ is there to be mistaken for one.
func hostOf(id string) string {
	if !strings.Contains(id, "://") {
		return ""
	}
	u, err := url.Parse(id)
	if err != nil || u.User != nil || strings.ContainsAny(u.Host, "\\%") {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// hostMatches compares a host with a name or with "*.name" for all below it.
func hostMatches(pattern, host string) bool {
	pattern = strings.ToLower(pattern)
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasPrefix(below, ".") && len(host) > len(below) && strings.HasSuffix(host, below)
	}
	return host != "" && host == pattern
}
