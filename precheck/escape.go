package precheck

import (
	"strings"
	"unicode/utf8"
)

// percent decodes stretches of %XX that hide letters; those that encode only
// signs and blanks are ordinary links.
func (k *check) percent(p *piece) {
	const fewest = 4 // letters or digits that needed no encoding
	s := p.text
	for i := 0; i < len(s); {
		j := strings.IndexByte(s[i:], '%')
		if j < 0 {
			return
		}
		i += j
		start := i
		var out []byte
		needless := 0
		for i < len(s) {
			if s[i] == '%' && i+2 < len(s) && runClass[s[i+1]]&clsHex != 0 && runClass[s[i+2]]&clsHex != 0 {
				b := unhex(s[i+1])<<4 | unhex(s[i+2])
				if letter(b) || '0' <= b && b <= '9' {
					needless++
				}
				out = append(out, b)
				i += 3
				continue
			}
			if s[i] <= ' ' || s[i] >= utf8.RuneSelf || s[i] == '%' || strings.IndexByte("\"'<>`", s[i]) >= 0 {
				break
			}
			out = append(out, s[i])
			i++
		}
		if needless >= fewest {
			from, to := p.at(start, i)
			k.found(p, "encoded-url", "url", strings.ToValidUTF8(string(out), "?"), from, to)
		}
		if i == start {
			i++
		}
	}
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	default:
		return c&^0x20 - 'A' + 10
	}
}

// escapes decodes runs of \xXX, \uXXXX and octal escapes that spell ASCII
// letters.
func (k *check) escapes(p *piece) {
	const fewest = 5
	s := p.text
	for i := 0; i < len(s); {
		j := strings.IndexByte(s[i:], '\\')
		if j < 0 {
			return
		}
		i += j
		start := i
		var out []byte
		n := 0
		for i < len(s) {
			size, b := escape(s[i:])
			if size == 0 {
				break
			}
			if letter(b) {
				n++
			}
			out = append(out, b)
			i += size
		}
		if n >= fewest {
			from, to := p.at(start, i)
			k.found(p, "encoded-escapes", "escapes", strings.ToValidUTF8(string(out), "?"), from, to)
		}
		if i == start {
			i++
		}
	}
}

// escape reads one escape of an ASCII character, perhaps with a doubled
// backslash as JSON has it.
func escape(s string) (size int, b byte) {
	n := 1
	if len(s) > 1 && s[1] == '\\' {
		n = 2
	}
	if len(s) < n+3 {
		return 0, 0
	}
	digits := 0
	switch s[n] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	default:
		if s[n] >= '0' && s[n] <= '1' && s[n+1] >= '0' && s[n+1] <= '7' && s[n+2] >= '0' && s[n+2] <= '7' {
			return n + 3, (s[n]-'0')<<6 | (s[n+1]-'0')<<3 | (s[n+2] - '0')
		}
		return 0, 0
	}
	if len(s) < n+1+digits {
		return 0, 0
	}
	v := 0
	for _, c := range []byte(s[n+1 : n+1+digits]) {
		if runClass[c]&clsHex == 0 {
			return 0, 0
		}
		v = v<<4 | int(unhex(c))
	}
	if v == 0 || v >= utf8.RuneSelf {
		return 0, 0
	}
	return n + 1 + digits, byte(v)
}
