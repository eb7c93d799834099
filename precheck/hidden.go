package precheck

import (
	"strings"

	"example.org/auditd/precheck/normalise"
	"example.org/auditd/schema"
)

// hiddenWays are what a page's author writes to keep text from a reader and
// not from a model; the element's text up to maxHidden bytes is looked at.
var hiddenWays = []string{"display:none", "display: none", "visibility:hidden", "visibility: hidden", "font-size:0", "font-size: 0", "font-size:1px", "font-size: 1px",
	"opacity:0", "opacity: 0", "aria-hidden=\"true\"", "aria-hidden='true'", " hidden>", " hidden ", "color:white", "color: white", "color:#fff", "color: #fff",
	"text-indent:-", "text-indent: -", "left:-9", "left: -9", "width:0", "height:0"}

// maxHidden bounds the text that one hidden element or comment is given.
const maxHidden = 4 << 10

// hiddenHTML reports comments and hidden elements that hold what a rule about
// instructions found. Pages are full of harmless comments: hiding alone says
// nothing.
func (k *check) hiddenHTML(p *piece, t *normalise.Text) {
	const most = 256 // regions; more would make the comparison below costly
	n := 0
	s := t.Lower
	for i := 0; i < len(s) && n < most; {
		j := strings.IndexByte(s[i:], '<')
		if j < 0 {
			return
		}
		i += j
		if strings.HasPrefix(s[i:], "<!--") {
			end := strings.Index(s[i:min(len(s), i+maxHidden)], "-->")
			if end < 0 {
				end = min(len(s)-i, maxHidden)
			}
			n++
			k.hidden(p, t, i, i+end)
			i += max(end, 1)
			continue
		}
		end := strings.IndexByte(s[i:min(len(s), i+512)], '>')
		if end < 0 {
			i++
			continue
		}
		if hides(s[i : i+end+1]) {
			stop := strings.IndexByte(s[i+end+1:min(len(s), i+end+1+maxHidden)], '<')
			if stop < 0 {
				stop = min(len(s)-i-end-1, maxHidden)
			}
			n++
			k.hidden(p, t, i, i+end+1+stop)
		}
		i += end + 1
	}
}

func hides(tag string) bool {
	if len(tag) < 8 {
		return false
	}
	for _, w := range hiddenWays {
		if strings.Contains(tag, w) {
			return true
		}
	}
	return false
}

// hidden raises hidden-html when a signal about instructions lies in the
// folded part [start,end).
func (k *check) hidden(p *piece, t *normalise.Text, start, end int) {
	from, to := p.at(t.Span(start, end))
	for i := range k.signals {
		s := &k.signals[i]
		switch s.Code {
		case schema.PromptControl, schema.ToolOutputPoisoning, schema.AuthorityCrossing, schema.PersistentContextUntrusted, schema.ExternalSink, schema.DangerousSideEffect:
			for _, sp := range s.Spans {
				if sp.Start >= from && sp.End <= to {
					k.decoder("html-hidden")
					k.raise("hidden-html", false, from, to, p.via)
					return
				}
			}
		}
	}
}
