package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// style is how a word is painted. Words carry the meaning alone: a reader
// without colours misses nothing.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "1;31"
	green  style = "1;32"
	yellow style = "1;33"
	blue   style = "34"
)

// painter writes to a person's terminal, or plainly to anything else.
type painter struct {
	w      io.Writer
	colour bool
	width  int
}

// painter returns one for w. Colours go to terminals only, and not when
// NO_COLOR is set.
func (p *program) painter(w io.Writer) *painter {
	out := &painter{w: w, width: 100}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return out
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n >= 40 {
		out.width = min(n, 120)
	}
	out.colour = !p.noColour && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
	return out
}

func (o *painter) paint(s style, text string) string {
	if !o.colour || s == plain {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func (o *painter) printf(format string, args ...any) { fmt.Fprintf(o.w, format, args...) }

// heading begins a part.
func (o *painter) heading(title, rest string) {
	o.printf("\n%s", o.paint(bold, title))
	if rest != "" {
		o.printf("  %s", o.paint(dim, rest))
	}
	o.printf("\n")
}

// field prints one labelled line.
func (o *painter) field(label, value string) {
	o.printf("  %s %s\n", o.paint(dim, fmt.Sprintf("%-11s", label)), value)
}

// bar draws a value in [0,1] with eighths of a character.
func (o *painter) bar(v float64, s style) string {
	const cells = 20
	v = min(max(v, 0), 1)
	eighths := int(v*cells*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if r := eighths % 8; r > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[r-1])
	}
	n := len([]rune(text))
	return o.paint(s, text) + o.paint(dim, strings.Repeat("·", cells-n))
}

// wrap breaks text into lines of at most width, at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// table prints rows in aligned columns. The cells are plain text; styles, when
// given, paints whole columns.
func (o *painter) table(header []string, rows [][]string, styles ...func(cell string) style) {
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], len([]rune(c)))
		}
	}
	line := func(row []string, paint func(i int, c string) string) {
		var b strings.Builder
		for i, c := range row {
			pad := widths[i] - len([]rune(c))
			if i == len(row)-1 {
				pad = 0
			}
			b.WriteString("  " + paint(i, c) + strings.Repeat(" ", pad))
		}
		o.printf("%s\n", b.String())
	}
	line(header, func(_ int, c string) string { return o.paint(dim, c) })
	for _, row := range rows {
		line(row, func(i int, c string) string {
			if i < len(styles) && styles[i] != nil {
				return o.paint(styles[i](c), c)
			}
			return c
		})
	}
}
