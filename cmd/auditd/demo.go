package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/demo"
	"example.org/auditd/schema"
)

// demoLoading is how long the demo waits for the auditor.
const demoLoading = 10 * time.Second

func (p *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Watch two attacks on an agent, unprotected and protected", GroupID: "look", Args: cobra.NoArgs,
		Long: `demo plays an immediate and a stored prompt injection against a scripted agent that
obeys every sentence it reads: on the left nobody guards it, on the right every
step is asked of a daemon that runs for the demo alone, with your configuration's
auditor and the built-in policy. The agent and its machine are made up and live in
a temporary folder; nothing of yours is touched and nothing leaves this machine.

It exits with 2 when an attack on the protected agent succeeded.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.demo(c.Context()) },
	}
}

func (p *program) demo(ctx context.Context) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "auditd-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	cfg.State, cfg.Listen, cfg.Socket, cfg.Policy = filepath.Join(dir, "state"), "127.0.0.1:0", socketOff, ""
	d, err := newDaemon(ctx, cfg, p.getenv, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer d.Close()
	for d.judges.loading() && time.Since(start) < demoLoading && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	missing := d.missing()
	alone, err := demo.Play(ctx, nil)
	if err != nil {
		return err
	}
	guarded, err := demo.Play(ctx, func(ctx context.Context, e *schema.Event) schema.Outcome {
		return d.event(ctx, e, schema.CredentialHook)
	})
	if err != nil {
		return err
	}
	w := p.painter(p.stdout)
	harmed := 0
	for i := range alone {
		w.sideBySide(alone[i], guarded[i])
		if guarded[i].Harmed {
			harmed++
		}
	}
	w.printf("\n")
	w.score("unprotected", alone)
	w.score("with auditd", guarded)
	for _, m := range missing {
		w.printf("  %s\n", w.paint(yellow, "Something is missing, so more is stopped than need be: "+oneLine(m, 200)))
	}
	w.printf("  %s\n", w.paint(dim, fmt.Sprintf("%d decisions in a log of the demo's own, %s in all", d.log.Size(), time.Since(start).Round(10*time.Millisecond))))
	if harmed > 0 {
		return errStop
	}
	return nil
}

func (o *painter) score(who string, stories []demo.Story) {
	harmed, served := 0, 0
	for _, s := range stories {
		if s.Harmed {
			harmed++
		}
		if s.Served {
			served++
		}
	}
	s := green
	if harmed > 0 {
		s = red
	}
	o.printf("  %s %s, %d of %d tasks done\n", fmt.Sprintf("%-12s", who), o.paint(s, fmt.Sprintf("%d of %d attacks succeeded", harmed, len(stories))), served, len(stories))
}

// sideBySide shows a story's two performances in two columns.
func (o *painter) sideBySide(left, right demo.Story) {
	o.heading(left.Title, "")
	column := (o.width - 5) / 2
	a, b := o.column("unprotected", left, column), o.column("with auditd", right, column)
	for i := range max(len(a), len(b)) {
		var l, r cell
		if i < len(a) {
			l = a[i]
		}
		if i < len(b) {
			r = b[i]
		}
		line := "  " + o.paint(l.style, l.text) + strings.Repeat(" ", column-len([]rune(l.text))) + o.paint(dim, "│ ") + o.paint(r.style, r.text)
		o.printf("%s\n", strings.TrimRight(line, " "))
	}
}

// cell is one line of a column.
type cell struct {
	text  string
	style style
}

func (o *painter) column(head string, s demo.Story, width int) []cell {
	cells := []cell{{head, bold}}
	for _, l := range s.Lines {
		who := l.Who
		if who != "" {
			who = fmt.Sprintf("%-7s", who)
		}
		st := map[demo.Kind]style{demo.Said: plain, demo.Harm: red, demo.Stopped: green, demo.Done: blue}[l.Kind]
		for i, text := range wrap(oneLine(l.Text, 400), width-9) {
			if i > 0 {
				who = strings.Repeat(" ", len(who))
			}
			for _, piece := range chop(text, width-9) {
				cells = append(cells, cell{who + piece, st})
			}
		}
	}
	return cells
}

// chop cuts a word that is wider than a column.
func chop(text string, width int) []string {
	var out []string
	r := []rune(text)
	for len(r) > width && width > 0 {
		out, r = append(out, string(r[:width])), r[width:]
	}
	return append(out, string(r))
}
