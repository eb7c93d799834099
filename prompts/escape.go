package prompts

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote writes s as one JSON string on one line. Beyond what JSON asks for it
// escapes
//   - every character that does not print (zero-width, bidi, tag, private use,
//     line separators), so that the model sees what a person would not;
//   - '<', and '[' before a capital or a slash, because servers turn words such
//     as <|im_end|> and [INST] into the control tokens of their chat template
//     wherever these stand in the text.
func Quote(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8 + 2)
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '<', r == '[' && i+1 < len(s) && (s[i+1] == '/' || s[i+1] >= 'A' && s[i+1] <= 'Z'):
			fmt.Fprintf(&b, `\u%04x`, r)
		case r == ' ' || r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// EstimateTokens returns how many tokens text is likely to cost at most. It
// counts every digit, sign and non-ASCII byte as one token, three letters of an
// ordinary word as one, and letters of a long run, which are seldom a word,
// almost one each. Text made to be expensive can cost up to about twice as
// much; therefore a backend also tells its server never to cut a prompt, and
// compares the server's own count.
func EstimateTokens(text string) int {
	tokens, letters := 0, 0
	flush := func() {
		if letters > 16 {
			tokens += (letters*4 + 4) / 5
		} else {
			tokens += (letters + 2) / 3
		}
		letters = 0
	}
	space := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' {
			letters++
			space = false
			continue
		}
		flush()
		if c == ' ' && !space {
			space = true // joins the word that follows
			continue
		}
		space = false
		tokens++
	}
	flush()
	return tokens
}
