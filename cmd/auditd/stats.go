package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/auditlog"
	"example.org/auditd/httpapi"
	"example.org/auditd/marks"
	"example.org/auditd/schema"
)

// tally counts decisions by outcome.
type tally struct {
	Name    string `json:"name"`
	Flows   int    `json:"flows"`
	Allow   int    `json:"allowed"`
	Rewrite int    `json:"rewritten"`
	Ask     int    `json:"asked"`
	Block   int    `json:"blocked"`
	// False and Missed are the owner's marks.
	False  int `json:"false_alarms"`
	Missed int `json:"misses"`
}

func (t *tally) add(a schema.Action) {
	t.Flows++
	switch a {
	case schema.Allow:
		t.Allow++
	case schema.RewriteAndContinue:
		t.Rewrite++
	case schema.DeferToHuman:
		t.Ask++
	default:
		t.Block++
	}
}

// falseRate is the share of what was stopped that the owner calls a false alarm.
func (t *tally) falseRate() string {
	if n := t.Flows - t.Allow; t.False > 0 && n > 0 {
		return fmt.Sprintf("%.0f %%", 100*float64(t.False)/float64(n))
	}
	return ""
}

// spread is how long something takes.
type spread struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	Max   float64 `json:"max_ms"`
}

func spreadOf(name string, ms []float64) spread {
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return spread{name, len(ms), at(.5), at(.95), ms[len(ms)-1]}
}

// statistics is what `auditd stats` says.
type statistics struct {
	Since    time.Time        `json:"since"`
	All      tally            `json:"all"`
	Agents   []tally          `json:"agents"`
	Surfaces []tally          `json:"surfaces"`
	Rules    []tally          `json:"rules"`
	Reasons  []tally          `json:"reasons"`
	Stages   []spread         `json:"stages"`
	Storage  []httpapi.Stored `json:"storage"`
}

func (p *program) statsCommand() *cobra.Command {
	since := 24 * time.Hour
	c := &cobra.Command{
		Use: "stats", Short: "Count decisions by agent, rule and reason, with latency and false alarms", GroupID: "look", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			if since <= 0 {
				return errors.New("--since must be a time span such as 24h")
			}
			s, err := count(cfg, time.Now().Add(-since))
			if err != nil {
				return err
			}
			if p.jsonOut {
				return p.printJSON(s)
			}
			p.painter(p.stdout).stats(s)
			return nil
		},
	}
	c.Flags().DurationVar(&since, "since", since, "how far back")
	return c
}

func count(cfg *Config, since time.Time) (*statistics, error) {
	if err := begun(cfg.State); err != nil {
		return nil, err
	}
	book, err := marks.Open(filepath.Join(cfg.State, "marks", "cases.jsonl"), time.Now)
	if err != nil {
		return nil, err
	}
	s := &statistics{Since: since.UTC(), All: tally{Name: "all"}}
	by := map[string]map[string]*tally{}
	stages := map[string][]float64{}
	var whole []float64
	for line, err := range auditlog.Lines(cfg.State, 0) {
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		r, v, err := readLine(cfg.State, line)
		if err != nil {
			return nil, err
		}
		if r.Decision == nil || r.Flow == nil || r.Time.Before(since) {
			continue
		}
		d := r.Decision
		action := d.Action
		if d.Observed != nil {
			action = *d.Observed
		}
		m, marked := book.Of(r.ID)
		note := func(kind, name string) {
			if name == "" {
				return
			}
			if by[kind] == nil {
				by[kind] = map[string]*tally{}
			}
			t := by[kind][name]
			if t == nil {
				t = &tally{Name: name}
				by[kind][name] = t
			}
			t.add(action)
			if marked && m.What == marks.FalseAlarm {
				t.False++
			} else if marked {
				t.Missed++
			}
		}
		s.All.add(action)
		if marked && m.What == marks.FalseAlarm {
			s.All.False++
		} else if marked {
			s.All.Missed++
		}
		agent := "(erased)"
		if v != nil && v.Agent != "" {
			agent = v.Agent
		}
		note("agent", agent)
		note("surface", r.Flow.Surface.String())
		note("reason", d.Reason)
		if d.Precheck != nil {
			seen := map[string]bool{}
			for _, x := range d.Precheck.Signals {
				if !seen[x.Rule] {
					seen[x.Rule] = true
					note("rule", x.Rule)
				}
			}
		}
		whole = append(whole, d.LatencyMS)
		once := map[string]float64{}
		for _, t := range d.Trace {
			once[t.Stage.String()] += t.DurationMS
		}
		for name, ms := range once {
			stages[name] = append(stages[name], ms)
		}
	}
	list := func(kind string) []tally {
		out := []tally{}
		for _, t := range by[kind] {
			out = append(out, *t)
		}
		slices.SortFunc(out, func(a, b tally) int { return cmp.Or(b.Flows-a.Flows, strings.Compare(a.Name, b.Name)) })
		return out
	}
	s.Agents, s.Surfaces, s.Rules, s.Reasons, s.Stages = list("agent"), list("surface"), list("rule"), list("reason"), []spread{}
	for _, name := range slices.Sorted(maps.Keys(stages)) {
		s.Stages = append(s.Stages, spreadOf(name, stages[name]))
	}
	if len(whole) > 0 {
		s.Stages = append(s.Stages, spreadOf("in all", whole))
	}
	s.Storage = storage(cfg.State)
	return s, nil
}

// storage says what lies in the state directory. What can't be read counts as
// nothing: this is for the eye.
func storage(state string) []httpapi.Stored {
	out := []httpapi.Stored{}
	entries, _ := os.ReadDir(state)
	for _, e := range entries {
		n := int64(0)
		_ = filepath.WalkDir(filepath.Join(state, e.Name()), func(_ string, d os.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				n += info.Size()
			}
			return nil
		})
		out = append(out, httpapi.Stored{Name: e.Name(), Bytes: n})
	}
	slices.SortFunc(out, func(a, b httpapi.Stored) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	return out
}

func sizeText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
}

func (o *painter) stats(s *statistics) {
	o.printf("%s since %s\n", o.paint(bold, fmt.Sprintf("%d decisions", s.All.Flows)), s.Since.Local().Format(time.DateTime))
	if s.All.Flows == 0 {
		return
	}
	share := func(name string, n int, st style) {
		o.printf("  %-10s %6d  %s %4.1f %%\n", name, n, o.bar(float64(n)/float64(s.All.Flows), st), 100*float64(n)/float64(s.All.Flows))
	}
	share("allowed", s.All.Allow, green)
	share("rewritten", s.All.Rewrite, yellow)
	share("asked you", s.All.Ask, yellow)
	share("blocked", s.All.Block, red)
	if s.All.False+s.All.Missed > 0 {
		o.printf("  you marked %d false alarms and %d misses\n", s.All.False, s.All.Missed)
	}
	for _, part := range []struct {
		title string
		list  []tally
	}{{"Agents", s.Agents}, {"Surfaces", s.Surfaces}, {"Rules that matched", s.Rules}, {"Reasons", s.Reasons}} {
		if len(part.list) == 0 {
			continue
		}
		o.heading(part.title, "")
		var rows [][]string
		for i, t := range part.list {
			if i == 15 {
				rows = append(rows, []string{fmt.Sprintf("… %d more", len(part.list)-i), "", "", "", "", "", ""})
				break
			}
			rows = append(rows, []string{oneLine(t.Name, 40), strconv.Itoa(t.Flows), strconv.Itoa(t.Allow), strconv.Itoa(t.Rewrite), strconv.Itoa(t.Ask), strconv.Itoa(t.Block), t.falseRate()})
		}
		o.table([]string{"", "flows", "allowed", "rewritten", "asked", "blocked", "false alarms"}, rows)
	}
	o.heading("How long it takes", "")
	var rows [][]string
	for _, x := range s.Stages {
		rows = append(rows, []string{x.Name, strconv.Itoa(x.Count), millis(x.P50), millis(x.P95), millis(x.Max)})
	}
	o.table([]string{"stage", "flows", "half within", "95 % within", "longest"}, rows)
	o.heading("Storage", "")
	rows = nil
	for _, x := range s.Storage {
		if x.Bytes > 0 {
			rows = append(rows, []string{x.Name, sizeText(x.Bytes)})
		}
	}
	o.table([]string{"", "size"}, rows)
}
