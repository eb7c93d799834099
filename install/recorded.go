package install

import (
	"slices"
	"time"
)

// Recorded is an installation as its record has it. It starts no agent, so it
// does not know whether the agent's version is still the one that was tried:
// Status does.
type Recorded struct {
	Agent     string
	Title     string
	Installed time.Time
	Verified  *Verified // nil: nothing was tried yet
	Changed   bool      // the settings are not those that were tried
	Open      []string  // paths that it does not cover
}

// Records reads the records in state. One that is damaged is left out: it says
// nothing that could be relied on.
func Records(state string) []Recorded {
	var out []Recorded
	for _, a := range []struct {
		name, title string
		watched     func([]byte) string
		open        func() []string
	}{
		{claudeCodeName, "Claude Code", watched, OpenPaths},
		{openClawName, "OpenClaw", (&OpenClaw{State: state}).watched, OpenClawOpenPaths},
	} {
		r, err := (&editor{name: a.name, state: state}).readRecord()
		if err != nil || r == nil {
			continue
		}
		x := Recorded{Agent: a.name, Title: a.title, Installed: r.Installed, Verified: r.Verified, Open: slices.Clone(a.open())}
		if r.Verified != nil {
			settings, _, err := read(r.Settings)
			x.Changed = err != nil || a.watched(settings) != r.Verified.Hooks
		}
		out = append(out, x)
	}
	return out
}
