package command

import "strings"

// printf writes out what printf prints of words that the text gives.
func (w *walker) printf(c *call, words origin) origin {
	args := c.args
	if len(args) > 0 && args[0].s == "--" {
		args = args[1:]
	}
	if len(args) == 0 || strings.IndexByte(args[0].s, '%') < 0 {
		o := w.echo(c, words)
		o.literal = ansiC(o.literal)
		return o
	}
	o := origin{known: true, fetched: words.fetched, decoded: words.decoded, secret: words.secret}
	format, rest := args[0].s, args[1:]
	var b strings.Builder
	for again := true; again && b.Len() < maxExpanded; {
		again = false
		for i := 0; i < len(format); i++ {
			if format[i] != '%' {
				b.WriteByte(format[i])
				continue
			}
			for i++; i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0; i++ {
			}
			if i >= len(format) || format[i] == '%' {
				b.WriteByte('%')
				continue
			}
			if len(rest) > 0 {
				s := rest[0].s
				if rest = rest[1:]; format[i] == 'c' && len(s) > 1 {
					s = s[:1]
				}
				b.WriteString(s)
				again = len(rest) > 0 // the format is used again for what is left
			}
			if b.Len() > maxExpanded {
				break
			}
		}
	}
	for _, a := range args {
		o.known = o.known && a.known()
	}
	o.literal = ansiC(strings.ReplaceAll(b.String(), unknown, "_"))
	return o
}
