package main

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.org/auditd/api"
	"example.org/auditd/client"
	"example.org/auditd/credential"
	"example.org/auditd/schema"
)

// terminal is the owner's: the controlling terminal, whatever the streams are.
// The passphrase is asked there and nowhere else, so that it is never in a
// file, an environment variable, an argument or a pipe that an agent could
// fill or read.
type terminal struct{ f *os.File }

func openTerminal() (*terminal, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil && !term.IsTerminal(int(f.Fd())) {
		f.Close()
		err = errors.New("it is none")
	}
	if err != nil {
		return nil, hint(errors.New("this needs a person at a terminal, and there is no terminal"), "run it yourself in a terminal; it can't be done by a script or an agent, which is the point")
	}
	return &terminal{f}, nil
}

func (t *terminal) close() { t.f.Close() }

// secret asks for a line without showing it.
func (t *terminal) secret(prompt string) (string, error) {
	fmt.Fprint(t.f, prompt)
	b, err := term.ReadPassword(int(t.f.Fd()))
	fmt.Fprintln(t.f)
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	return string(b), nil
}

// line asks for a line, shown.
func (t *terminal) line(prompt string) (string, error) {
	fmt.Fprint(t.f, prompt)
	var b strings.Builder
	one := make([]byte, 1)
	for b.Len() < 1024 {
		if _, err := t.f.Read(one); err != nil {
			return "", fmt.Errorf("read from the terminal: %w", err)
		}
		if one[0] == '\n' {
			break
		}
		b.WriteByte(one[0])
	}
	return strings.TrimSpace(b.String()), nil
}

func (p *program) passphraseCommand() *cobra.Command {
	c := &cobra.Command{Use: "passphrase", Short: "Set the owner's passphrase", GroupID: "setup", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(&cobra.Command{
		Use: "set", Short: "Set or change the passphrase that approving asks for", Args: cobra.NoArgs,
		Long: `set asks for a passphrase on the terminal and stores its hash.

Agents run as your user and can do what you can do without being asked, so
approving must need something that is only in your head. set therefore works
at a terminal only, wants a word typed back that it shows there, asks for the
old passphrase when there is one, and writes down when and where it was set;
the daemon tells you when the file changes behind its back. An agent that
already runs unguarded as your user can still replace the file while no daemon
runs: if that worries you, run the daemon as a user of its own.`,
		RunE: func(*cobra.Command, []string) error { return p.setPassphrase() },
	})
	return c
}

func (p *program) setPassphrase() error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	tty, err := openTerminal()
	if err != nil {
		return err
	}
	defer tty.close()
	old, err := credential.ReadPassphrase(cfg.ownerFile)
	if err == nil {
		fmt.Fprintf(tty.f, "The passphrase was set on %s at %s.\n", old.SetAt.Local().Format(time.DateTime), oneLine(old.Terminal, 40))
		given, err := tty.secret("Old passphrase: ")
		if err != nil {
			return err
		}
		if !old.Matches(given) {
			return credential.ErrWrong
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	word := make([]byte, 4)
	rand.Read(word)
	shown := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(word))
	typed, err := tty.line("To show that you are a person at this terminal, type " + shown + ": ")
	if err != nil {
		return err
	}
	if typed != shown {
		return errors.New("that was not the word")
	}
	first, err := tty.secret(fmt.Sprintf("New passphrase (at least %d characters): ", credential.MinPassphrase))
	if err != nil {
		return err
	}
	again, err := tty.secret("Once more: ")
	if err != nil {
		return err
	}
	if first != again {
		return errors.New("the two are not the same")
	}
	if err := credential.SetPassphrase(cfg.ownerFile, first, ttyName(), time.Now(), old != nil); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "The passphrase is set.")
	if old != nil {
		fmt.Fprintln(p.stdout, "A running daemon still takes the old one until it is restarted.")
	}
	return nil
}

// ttyName is for the owner who later wonders where the passphrase was set.
func ttyName() string {
	name, err := os.Readlink("/proc/self/fd/0")
	if err != nil || !strings.HasPrefix(name, "/dev/") {
		return "a terminal"
	}
	return name
}

// owner asks for the passphrase and returns a client with the owner's rights.
func (p *program) owner(ctx context.Context) (*client.Client, error) {
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	health, err := c.Health(ctx) // before anybody types a passphrase
	if err != nil {
		return nil, err
	}
	tty, err := openTerminal()
	if err != nil {
		return nil, err
	}
	defer tty.close()
	if !health.Owner {
		return nil, hint(credential.ErrNoPassphrase, "run `auditd passphrase set` first")
	}
	passphrase, err := tty.secret("Owner's passphrase: ")
	if err != nil {
		return nil, err
	}
	s, err := c.Login(ctx, passphrase)
	if err != nil {
		return nil, err
	}
	return c.With(s.Token), nil
}

func (p *program) loginCommand() *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "Print a link that opens one owner session in a browser", GroupID: "decide", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := p.config()
			if err != nil {
				return err
			}
			owner, err := p.owner(c.Context())
			if err != nil {
				return err
			}
			link, err := owner.Link(c.Context())
			if err != nil {
				return err
			}
			// The code stands after #, which browsers send to nobody.
			_, err = fmt.Fprintf(p.stdout, "http://%s/#code=%s\nThe link works once, until %s.\n", cfg.Listen, link.Code, link.Expires.Local().Format(time.TimeOnly))
			return err
		},
	}
}

func (p *program) pendingCommand() *cobra.Command {
	var full, watch bool
	c := &cobra.Command{
		Use: "pending", Short: "List what waits for you", GroupID: "decide", Args: cobra.NoArgs,
		Long: "pending lists the questions that wait for an answer; --watch goes on with those that come, and says when one no longer waits. With --json and --watch each new question is one line.",
		RunE: func(c *cobra.Command, _ []string) error {
			get := func() (*client.Client, error) { return p.client() }
			if full {
				get = func() (*client.Client, error) { return p.owner(c.Context()) }
			}
			cl, err := get()
			if err != nil {
				return err
			}
			list, err := cl.Pending(c.Context())
			switch {
			case err != nil:
				return err
			case watch:
				return p.watchPending(c.Context(), cl, list)
			case p.jsonOut:
				return p.printJSON(api.Questions{Questions: list})
			}
			p.painter(p.stdout).questions(list)
			return nil
		},
	}
	c.Flags().BoolVar(&full, "full", false, "show the payloads; asks for the passphrase")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "go on with what comes")
	return c
}

// watchEvery is how often watching asks: a local call that costs next to
// nothing, and less than a person notices.
const watchEvery = time.Second

// watchPending shows list and then what changes, until ctx ends.
func (p *program) watchPending(ctx context.Context, cl *client.Client, list []schema.Question) error {
	o := p.painter(p.stdout)
	shown := map[string]bool{}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		still := map[string]bool{}
		for i := range list {
			q := &list[i]
			still[q.ID] = true
			switch {
			case shown[q.ID]:
			case p.jsonOut:
				if err := p.printJSON(q); err != nil {
					return err
				}
			default:
				o.question(q)
			}
		}
		for id := range shown {
			if !still[id] && !p.jsonOut {
				o.printf("%s\n\n", o.paint(dim, id+" no longer waits."))
			}
		}
		shown = still
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var err error
		if list, err = cl.Pending(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

func (o *painter) questions(list []schema.Question) {
	if len(list) == 0 {
		o.printf("Nothing waits for you.\n")
		return
	}
	for i := range list {
		o.question(&list[i])
	}
	o.printf("%s\n", o.paint(dim, "auditd approve ID · auditd deny ID · auditd pending --full shows the payloads"))
}

func (o *painter) question(q *schema.Question) {
	o.printf("%s  %s\n", o.paint(yellow, "? "+q.ID), oneLine(q.Summary, o.width-len(q.ID)-6))
	if f := q.Flow; f != nil {
		o.field("flow", f.Source.Kind.String()+note(f.Source.ID)+" → "+f.Sink.Kind.String()+note(f.Sink.Tool)+note(f.Sink.ID)+note(f.Sink.Destination))
		if f.Session.Agent != "" {
			o.field("agent", oneLine(f.Session.Agent, 60))
		}
		if f.Payload != "" {
			o.text("payload", fmt.Sprintf("%d bytes", len(f.Payload)), f.Payload)
		}
	}
	if len(q.Reasons) > 0 {
		o.field("because", oneLine(strings.Join(q.Reasons, ", "), o.width-16))
	}
	left := time.Until(q.Expires).Round(time.Second)
	o.field("expires", fmt.Sprintf("in %s; silence is a no", left))
	if q.Hard {
		o.field("hard", "no wider grant can be made from it")
	}
	o.field("decision", q.Decision)
	o.printf("\n")
}

func (p *program) approveCommand() *cobra.Command {
	var g api.Grant
	var duration time.Duration
	c := &cobra.Command{
		Use: "approve ID", Short: "Allow what waits; asks for the passphrase", GroupID: "decide", Args: cobra.ExactArgs(1),
		Long: `approve allows exactly the payload and the sink that the question shows, once.
With --uses, --session or --for it also allows further calls of the same agent
with the same tool, sink and command.`,
		RunE: func(c *cobra.Command, args []string) error {
			a := api.Approval{Answer: "approve"}
			if duration > 0 {
				g.Until = time.Now().Add(duration).UTC()
			}
			if g.Uses > 0 || g.Session || !g.Until.IsZero() {
				a.Grant = &g
			}
			return p.answerQuestion(c.Context(), args[0], a)
		},
	}
	c.Flags().IntVar(&g.Uses, "uses", 0, "also allow this many further calls")
	c.Flags().BoolVar(&g.Session, "session", false, "only in the session that asked")
	c.Flags().DurationVar(&duration, "for", 0, "only for so long, such as 1h")
	return c
}

func (p *program) denyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny ID", Short: "Refuse what waits; asks for the passphrase", GroupID: "decide", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.answerQuestion(c.Context(), args[0], api.Approval{Answer: "deny"})
		},
	}
}

func (p *program) answerQuestion(ctx context.Context, id string, a api.Approval) error {
	owner, err := p.owner(ctx)
	if err != nil {
		return err
	}
	// The owner sees the exact payload before it is allowed.
	q, err := owner.Question(ctx, id)
	if err != nil {
		return err
	}
	o := p.painter(p.stdout)
	if a.Answer == "approve" && q.Answer == "" {
		o.question(q)
		tty, err := openTerminal()
		if err != nil {
			return err
		}
		defer tty.close()
		yes, err := tty.line("Allow this? Type yes: ")
		if err != nil {
			return err
		}
		if yes != "yes" {
			return errors.New("not approved; it still waits")
		}
	}
	if q, err = owner.Answer(ctx, id, a); err != nil {
		return err
	}
	if p.jsonOut {
		return p.printJSON(q)
	}
	o.printf("%s is %s.\n", q.ID, q.Answer)
	return nil
}
