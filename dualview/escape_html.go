package dualview

import (
	"fmt"
	"html"
	"strings"

	nethtml "golang.org/x/net/html"
)

// newHTMLEscaper finds out with a real tokenizer where in the document each
// token stands. Text and quoted attribute values can be escaped; script, style,
// comments, tag and attribute names, unquoted values, event handlers and style
// attributes cannot hold foreign text safely and are refused, and an address
// must be http, https, mailto or relative.
func newHTMLEscaper(text string) escaper {
	z := nethtml.NewTokenizer(strings.NewReader(text))
	at, rawIn := 0, ""
	var kind nethtml.TokenType
	var raw string
	return func(text string, p piece) (string, error) {
		for at+len(raw) <= p.start {
			at += len(raw)
			kind = z.Next()
			if kind == nethtml.ErrorToken {
				raw = text[at:]
				break
			}
			raw = string(z.Raw())
			switch name, _ := z.TagName(); {
			case kind == nethtml.StartTagToken:
				rawIn = rawTextElement(string(name))
			case kind == nethtml.EndTagToken:
				rawIn = ""
			}
		}
		switch {
		case kind == nethtml.TextToken && rawIn == "":
			return html.EscapeString(p.value), nil
		case kind == nethtml.StartTagToken || kind == nethtml.SelfClosingTagToken:
			return escapeAttribute(raw[:p.start-at], p.value)
		}
		return "", fmt.Errorf("%w: not into script, style, a comment or markup", ErrContext)
	}
}

func rawTextElement(name string) string {
	switch name {
	case "script", "style", "iframe", "noembed", "noframes", "noscript", "plaintext", "xmp":
		return name
	}
	return ""
}

// escapeAttribute escapes a value for the attribute that is open at the end of
// the tag's beginning.
func escapeAttribute(before, value string) (string, error) {
	var quote byte
	name, opened := "", 0
	for i := 0; i < len(before); i++ {
		c := before[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.HasSuffix(strings.TrimRight(before[:i], " \t\r\n"), "="):
			quote, opened = c, i+1
			n := strings.TrimRight(before[:i], "= \t\r\n")
			name = strings.ToLower(n[strings.LastIndexAny(n, " \t\r\n/\"'")+1:])
		}
	}
	if quote == 0 {
		return "", fmt.Errorf("%w: not into markup outside a quoted attribute value", ErrContext)
	}
	if strings.HasPrefix(name, "on") || name == "style" || name == "srcdoc" || name == "srcset" {
		return "", fmt.Errorf("%w: not into an attribute that holds code", ErrContext)
	}
	switch name {
	case "href", "src", "action", "formaction", "poster", "data", "cite", "background", "ping", "xlink:href", "manifest", "code", "codebase", "archive", "longdesc", "usemap", "profile":
		if opened == len(before) && !safeAddress(value) {
			return "", fmt.Errorf("%w: the address is neither http, https, mailto nor relative", ErrContext)
		}
	}
	return html.EscapeString(value), nil
}

func safeAddress(value string) bool {
	scheme, _, ok := strings.Cut(strings.TrimLeft(value, "\x00\t\n\f\r "), ":")
	if !ok || strings.ContainsAny(scheme, "/?#") {
		return true
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	}
	return false
}
