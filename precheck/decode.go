package precheck

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Thresholds of the decoders.
const (
	// minBase64 is the shortest run that is tried: 16 characters are 12 bytes,
	// shorter than any instruction.
	minBase64 = 16
	minHex    = 16
	// minOpaque is the shortest run that is called opaque when nothing decodes
	// it: longer than keys, digests and signatures of everyday use.
	minOpaque = 256
	// maxInflated bounds one decompressed stream.
	maxInflated = 256 << 10
	// probe is how much of a run is decoded to see whether it is text.
	probe = 48
)

// Character classes of the run scan.
const (
	clsBase64 = 1 << iota // A-Z a-z 0-9 + / - _
	clsHex
)

var runClass = func() (t [256]byte) {
	for c := range 256 {
		b := byte(c)
		if 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '+' || b == '/' || b == '-' || b == '_' {
			t[c] |= clsBase64
		}
		if '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F' {
			t[c] |= clsHex
		}
	}
	return t
}()

// decode finds what is encoded in the piece and scans what it yields.
func (k *check) decode(p *piece) {
	k.runs(p)
	if strings.IndexByte(p.text, '%') >= 0 {
		k.percent(p)
	}
	if strings.IndexByte(p.text, '\\') >= 0 {
		k.escapes(p)
	}
}

// runs walks the unbroken runs of base64 characters, joining lines of wrapped
// base64, and tries each long one.
func (k *check) runs(p *piece) {
	s := p.text
	for i := 0; i < len(s); i++ {
		if runClass[s[i]]&clsBase64 == 0 {
			continue
		}
		start := i
		for i < len(s) && runClass[s[i]]&clsBase64 != 0 {
			i++
		}
		if i-start < minBase64 {
			continue
		}
		end, lines := i, 1
		line := i - start
		// Mail and PEM wrap at 60 to 76 characters.
		for line >= 40 && line <= 80 && end+1 < len(s) {
			j := end
			if s[j] == '\r' {
				j++
			}
			if j >= len(s) || s[j] != '\n' {
				break
			}
			j++
			from := j
			for j < len(s) && runClass[s[j]]&clsBase64 != 0 {
				j++
			}
			if j-from < 2 || j-from > line {
				break
			}
			lines++
			end = j
			if j-from < line {
				break
			}
		}
		for end < len(s) && s[end] == '=' && end-i < 1<<20 {
			end++
			if end-start > 2 && s[end-1] == '=' && end < len(s) && s[end] != '=' {
				break
			}
		}
		k.run(p, start, end, lines > 1)
		i = end - 1
	}
}

// run tries the decoders on one run.
func (k *check) run(p *piece, start, end int, wrapped bool) {
	raw := p.text[start:end]
	if wrapped {
		raw = strings.NewReplacer("\r", "", "\n", "").Replace(raw)
	}
	from, to := p.at(start, end)
	if allHex(raw) {
		if len(raw) >= minHex {
			if b, err := hex.DecodeString(raw[:len(raw)&^1]); err == nil && readable(b) {
				k.found(p, "encoded-hex", "hex", string(b), from, to)
			}
		}
		return
	}
	if !mixed(raw) {
		return
	}
	if b, ok := unbase64(raw); ok {
		switch {
		case compressed(b):
			k.raise("encoded-gzip", false, from, to, p.via)
			if text, limited := inflate(b); text != "" || limited {
				if limited {
					k.limit("gzip-size")
				}
				k.child(p, text, from, to, "gzip")
			}
			return
		case readable(b):
			// Identifiers such as "012:Organization1" are looked at too, but
			// only text with blanks, or a long one, is worth a signal.
			text := strings.ToValidUTF8(string(b), "?")
			if len(text) >= 40 || strings.IndexByte(text, ' ') >= 0 {
				k.raise("encoded-base64", false, from, to, p.via)
			}
			k.child(p, text, from, to, "base64")
			return
		}
	}
	if len(raw) >= minOpaque && opaque(raw) && !dataURI(p.text, start) {
		k.raise("encoded-opaque", false, from, to, p.via)
	}
}

func (k *check) found(p *piece, rule, decoder, text string, start, end int) {
	k.raise(rule, false, start, end, p.via)
	k.child(p, text, start, end, decoder)
}

func allHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if runClass[s[i]]&clsHex == 0 {
			return false
		}
	}
	return true
}

// mixed reports whether a run looks like base64 and not like a word, a path or
// a name: it changes between capitals, small letters and digits as those do not.
func mixed(s string) bool {
	s = s[:min(len(s), 96)]
	lower, upper, digit, changes := 0, 0, 0, 0
	prev := byte(0)
	for i := 0; i < len(s); i++ {
		var cls byte
		switch c := s[i]; {
		case 'a' <= c && c <= 'z':
			cls = 1
			lower++
		case 'A' <= c && c <= 'Z':
			cls = 2
			upper++
		case '0' <= c && c <= '9':
			cls = 3
			digit++
		default:
			cls = 4
		}
		if prev != 0 && cls != prev {
			changes++
		}
		prev = cls
	}
	return upper >= 2 && lower >= 1 && changes*5 >= len(s)
}

// unbase64 decodes standard and URL base64 with or without padding. A few
// characters put in front of it shift it: the alignments are tried on a probe.
func unbase64(s string) ([]byte, bool) {
	s = strings.TrimRight(s, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.RawURLEncoding
		if strings.ContainsAny(s, "+/") {
			return nil, false
		}
	}
	for shift := 0; shift < 4 && len(s)-shift >= minBase64; shift++ {
		t := s[shift:]
		head, err := enc.DecodeString(t[:min(len(t), probe)&^3])
		if err != nil || !compressed(head) && !readable(head) {
			continue
		}
		n := len(t)
		if n%4 == 1 {
			n--
		}
		if b, err := enc.DecodeString(t[:n]); err == nil {
			return b, true
		}
	}
	return nil, false
}

// readable reports whether bytes are text: valid UTF-8 (a cut character at the
// end is forgiven), hardly a control character, and letters.
func readable(b []byte) bool {
	if len(b) < 6 {
		return false
	}
	letters, bad, n := 0, 0, 0
	ascii := true
	for i := 0; i < len(b); n++ {
		c := b[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
				bad++
			} else if letter(c) || c == ' ' {
				letters++
			}
			i++
			continue
		}
		ascii = false
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size <= 1 {
			if len(b)-i < utf8.UTFMax && i > 3 {
				break
			}
			bad += 2
		}
		i += max(size, 1)
		if size > 2 {
			letters++
		}
	}
	// Tokens are half digits; random bytes are never all printable for long.
	token := ascii && bad == 0 && n >= 16 && letters*4 >= n
	return bad*20 <= n && (letters*2 >= n || token)
}

func compressed(b []byte) bool {
	return len(b) > 10 && (b[0] == 0x1f && b[1] == 0x8b && b[2] == 8 || b[0] == 0x78 && (b[1] == 0x01 || b[1] == 0x9c || b[1] == 0xda))
}

// inflate decompresses up to maxInflated bytes.
func inflate(b []byte) (text string, limited bool) {
	var r io.Reader
	if b[0] == 0x78 {
		z, err := zlib.NewReader(bytes.NewReader(b))
		if err != nil {
			r = flate.NewReader(bytes.NewReader(b[2:]))
		} else {
			r = z
		}
	} else {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return "", false
		}
		r = z
	}
	out, _ := io.ReadAll(io.LimitReader(r, maxInflated+1)) // what came before a damaged end counts
	if limited = len(out) > maxInflated; limited {
		out = out[:maxInflated]
	}
	if !readable(out[:min(len(out), 4096)]) {
		return "", limited
	}
	return strings.ToValidUTF8(string(out), "?"), limited
}

// opaque reports whether a long run has the entropy of encoded bytes.
func opaque(s string) bool {
	s = s[:min(len(s), 1024)]
	var n [256]int
	for i := 0; i < len(s); i++ {
		n[s[i]]++
	}
	e := 0.0
	for _, c := range n {
		if c > 0 {
			p := float64(c) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e > 4.8
}

// dataURI reports whether the run is an embedded image or font.
func dataURI(s string, start int) bool {
	head := s[max(0, start-40):start]
	return strings.HasSuffix(head, ";base64,") && (strings.Contains(head, "image/") || strings.Contains(head, "font/") || strings.Contains(head, "audio/"))
}
