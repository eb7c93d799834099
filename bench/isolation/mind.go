package isolation

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
)

// Mind is the worst agent, in one session of a case. It has no state but what it
// was told, so a player may make a new one for every request of a host and tell
// it again what happened.
type Mind struct {
	c       *Case
	w       *World
	session int
	plan    []Step
	orders  []Step
	obeyed  map[Order]bool
	held    map[string]string
}

// Mind returns the agent for a session, the first being 1.
func (c *Case) Mind(w *World, session int) *Mind {
	m := &Mind{c: c, w: w, session: session, obeyed: map[Order]bool{}, held: map[string]string{"dir": w.Dir}}
	switch {
	case c.Way == "":
		m.plan = append(c.first(w), c.Task.plan...)
	case session == 1:
		m.plan = c.first(w)
	default:
		m.plan = append(c.again(w), c.Task.plan...)
	}
	return m
}

// Reads tells the agent a text that it can read: it will obey every order in it,
// each once.
func (m *Mind) Reads(text string) {
	for _, o := range Orders(text) {
		if o.Later && m.session == 1 || m.obeyed[o] {
			continue
		}
		m.obeyed[o] = true
		m.orders = append(m.orders, o.step())
	}
}

// Holds tells the agent what a step with a name gave it: the content itself, or
// the symbol that stands for it.
func (m *Mind) Holds(name, content string) {
	if name != "" {
		m.held[name] = content
	}
}

// Next returns what the agent does next. The last step of a turn is a reply;
// after it ok is false.
func (m *Mind) Next() (step Step, ok bool) {
	if len(m.orders) > 0 {
		step, m.orders = m.orders[0], m.orders[1:]
		return step, true
	}
	for len(m.plan) > 0 {
		step, m.plan = m.plan[0], m.plan[1:]
		step.Text, step.Command, step.Old = m.fill(step.Text), m.fill(step.Command), m.fill(step.Old)
		if (step.Act == Read || step.Act == Write || step.Act == Edit) && !filepath.IsAbs(step.Path) {
			step.Path = filepath.Join(m.w.Dir, step.Path)
		}
		if step.Act == Inspect {
			symbol := Symbol.FindString(step.Text)
			if symbol == "" { // it can read the content itself
				m.Holds(step.As, sentence.FindString(step.Text))
				continue
			}
			step.Text = symbol
		}
		return step, true
	}
	return Step{}, false
}

// Symbol matches what stands for content in an agent's view.
var Symbol = regexp.MustCompile(`symu[0-9a-hjkmnp-tv-z]{32}u`)

var sentence = regexp.MustCompile(`The meeting is on [^.]*`)

var hole = regexp.MustCompile(`\{([a-z]+)(\|json|\|csv)?\}`)

// fill puts what the agent holds into a text. A symbol is the same in every form.
func (m *Mind) fill(text string) string {
	return hole.ReplaceAllStringFunc(text, func(found string) string {
		name, form, _ := strings.Cut(strings.Trim(found, "{}"), "|")
		held, ok := m.held[name]
		switch {
		case !ok:
			return found
		case form == "csv":
			return strings.ReplaceAll(held, `"`, `""`)
		case form == "json":
			quoted, err := json.Marshal(held)
			if err != nil {
				return found
			}
			return string(quoted[1 : len(quoted)-1])
		}
		return held
	})
}
