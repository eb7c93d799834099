package dualview

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// jsonText returns s as the inside of a JSON string. Bytes that are not UTF-8
// become U+FFFD, which is all that JSON has for them.
func jsonText(s string) string {
	enc, err := json.Marshal(s) // escapes <, >, &, U+2028 too, so that it may stand in HTML's script
	if err != nil {
		panic("dualview: internal error: " + err.Error()) // a string always encodes
	}
	return string(enc[1 : len(enc)-1])
}

// newJSONEscaper tells by the text before a token whether it stands inside a
// string; outside of one it becomes a string.
func newJSONEscaper(text string) escaper {
	at, in := 0, false
	return func(_ string, p piece) (string, error) {
		for ; at < p.start; at++ {
			switch {
			case in && text[at] == '\\':
				at++
			case text[at] == '"':
				in = !in
			}
		}
		if in {
			return jsonText(p.value), nil
		}
		return `"` + jsonText(p.value) + `"`, nil
	}
}

// yamlText is jsonText for YAML, which takes two more characters for line ends
// or drops them.
func yamlText(s string) string {
	return strings.NewReplacer("\u0085", `\u0085`, "\ufeff", `\ufeff`, "\x7f", `\u007f`).Replace(jsonText(s))
}

var yamlSafe = regexp.MustCompile(`^[A-Za-z0-9_./ -]*$`)

// newYAMLEscaper handles the four places that a token can have in a line of
// YAML: a quoted scalar of either kind, a whole plain scalar, a part of one,
// and a line of a block scalar. A value that would need more than its place
// allows is refused.
func newYAMLEscaper(string) escaper {
	return func(text string, p piece) (string, error) {
		lineStart := strings.LastIndexByte(text[:p.start], '\n') + 1
		before := text[lineStart:p.start]
		rest, _, _ := strings.Cut(text[p.end:], "\n")
		indent := before[:len(before)-len(strings.TrimLeft(before, " "))]
		if inBlockScalar(text[:lineStart], len(indent)) {
			if strings.ContainsFunc(p.value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
				return "", fmt.Errorf("%w: control characters in a YAML block", ErrContext)
			}
			if before == indent && strings.HasPrefix(p.value, " ") || strings.HasPrefix(p.value, "\t") {
				return "", fmt.Errorf("%w: it would change the indentation of a YAML block", ErrContext)
			}
			return strings.ReplaceAll(p.value, "\n", "\n"+indent), nil
		}
		switch yamlQuote(before) {
		case '"':
			return yamlText(p.value), nil
		case '\'':
			if strings.ContainsFunc(p.value, func(r rune) bool { return r < ' ' || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
				return "", fmt.Errorf("%w: line breaks in a single-quoted YAML scalar", ErrContext)
			}
			return strings.ReplaceAll(p.value, "'", "''"), nil
		}
		lead := strings.TrimRight(before, " ")
		opens := lead == "" || strings.HasSuffix(lead, ":") || strings.HasSuffix(lead, "-") || strings.HasSuffix(lead, "[") || strings.HasSuffix(lead, ",") || strings.HasSuffix(lead, "{")
		tail := strings.TrimLeft(rest, " ")
		ends := tail == "" || tail[0] == '\r' || tail[0] == ',' || tail[0] == ']' || tail[0] == '}' || tail[0] == ':' || strings.HasPrefix(tail, "#") && tail != rest
		if opens && ends {
			return `"` + yamlText(p.value) + `"`, nil
		}
		if !yamlSafe.MatchString(p.value) {
			return "", fmt.Errorf("%w: it is a part of a plain YAML scalar: put the scalar into double quotes", ErrContext)
		}
		return p.value, nil
	}
}

// yamlQuote says which quotation is open at the end of a line's beginning.
func yamlQuote(before string) byte {
	var open byte
	for i := 0; i < len(before); i++ {
		switch c := before[i]; {
		case open == '"' && c == '\\':
			i++
		case open != 0 && c == open:
			open = 0
		case open == 0 && (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" [{,:", before[i-1]) >= 0):
			open = c
		}
	}
	return open
}

var yamlBlockHeader = regexp.MustCompile(`(^|[ :-])[|>][0-9+-]{0,2} *(#.*)?$`)

// inBlockScalar reports whether a line with this indentation continues a block
// scalar, going back to the line that is indented less.
func inBlockScalar(above string, indent int) bool {
	if indent == 0 {
		return false
	}
	for above != "" {
		above = strings.TrimSuffix(above, "\n")
		i := strings.LastIndexByte(above, '\n') + 1
		line := strings.TrimRight(above[i:], " \r")
		above = above[:i]
		if line == "" {
			continue
		}
		if len(line)-len(strings.TrimLeft(line, " ")) < indent {
			return yamlBlockHeader.MatchString(line)
		}
	}
	return false
}

// escapeURL puts a value into a part of a URL. At the very beginning of the
// text it must itself be an http or https URL; a value never says which host a
// URL goes to when the text has said so already.
func escapeURL(text string, p piece) (string, error) {
	if p.start == 0 {
		u, err := url.Parse(p.value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsFunc(p.value, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return "", fmt.Errorf("%w: it is not an http URL", ErrContext)
		}
		return p.value, nil
	}
	before := text[:p.start]
	if scheme, rest, ok := strings.Cut(before, "://"); !ok || scheme == "" || !strings.ContainsAny(rest, "/?#") {
		return "", fmt.Errorf("%w: it would choose the host of a URL", ErrContext)
	}
	return strings.ReplaceAll(url.QueryEscape(p.value), "+", "%20"), nil
}

// placeShell resolves a text that is one shell argument and quotes the whole of
// it as one word. A value must not turn the argument into an option.
func placeShell(text string, pieces []piece) (string, [][2]int, error) {
	resolved, _, err := placeRanges(text, pieces, Raw)
	if err != nil {
		return "", nil, err
	}
	if strings.HasPrefix(resolved, "-") && len(pieces) > 0 && pieces[0].start == 0 {
		return "", nil, fmt.Errorf("%w: it would be an option: write it after --, or join it to the option's name", ErrContext)
	}
	quoted, err := syntax.Quote(resolved, syntax.LangBash)
	if err != nil {
		return "", nil, fmt.Errorf("%w: a shell argument cannot hold it", ErrContext)
	}
	ranges := make([][2]int, len(pieces))
	for i := range ranges {
		ranges[i] = [2]int{0, len(quoted)}
	}
	return quoted, ranges, nil
}

// placeCSV resolves symbols field by field, and quotes the fields that need it
// after that.
func placeCSV(text string, pieces []piece) (string, [][2]int, error) {
	var b strings.Builder
	ranges := make([][2]int, len(pieces))
	i, at, next := 0, 0, 0 // at: written up to here; next: a field starts here
	for i < len(pieces) {
		start, end, quoted := csvField(text, next, pieces[i].start)
		b.WriteString(text[at:start])
		// The field's parts: text and values in turn.
		var parts []string
		first, from, needs := i, start, false
		for ; i < len(pieces) && pieces[i].start < end; i++ {
			v := strings.ToValidUTF8(pieces[i].value, "\uFFFD")
			begins := pieces[i].start == start || quoted && pieces[i].start == start+1
			// A spreadsheet takes what begins with one of these for a formula.
			if begins && v != "" && strings.IndexByte("=+-@\t\r", v[0]) >= 0 {
				v = "'" + v
			}
			needs = needs || strings.ContainsAny(v, ",;\t\"\r\n")
			parts = append(parts, text[from:pieces[i].start], v)
			from = pieces[i].end
		}
		parts = append(parts, text[from:end])
		double := strings.NewReplacer(`"`, `""`)
		if !quoted && needs {
			b.WriteByte('"')
		}
		for k, part := range parts {
			value := k%2 == 1
			if (value && quoted) || !quoted && needs {
				part = double.Replace(part)
			}
			if value {
				ranges[first+k/2][0] = b.Len()
			}
			b.WriteString(part)
			if value {
				ranges[first+k/2][1] = b.Len()
			}
		}
		if !quoted && needs {
			b.WriteByte('"')
		}
		at, next = end, end+1
	}
	b.WriteString(text[at:])
	return b.String(), ranges, nil
}

// csvField returns the field of text that holds offset pos; start is where some
// field at or before it starts.
func csvField(text string, start, pos int) (from, end int, quoted bool) {
	for ; ; start = end + 1 {
		end = start
		if quoted = end < len(text) && text[end] == '"'; quoted {
			for end++; end < len(text); end++ {
				if text[end] != '"' {
					continue
				}
				if end+1 >= len(text) || text[end+1] != '"' {
					end++
					break
				}
				end++ // a doubled quote is a quote inside the field
			}
		}
		for end < len(text) && strings.IndexByte(",;\t\r\n", text[end]) < 0 {
			end++
		}
		if pos < end || end >= len(text) {
			return start, end, quoted
		}
	}
}
