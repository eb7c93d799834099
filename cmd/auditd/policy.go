package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"example.org/auditd/dualview"
	dvpolicy "example.org/auditd/dualview/policy"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/sqlite"
)

// policyCommand is for both of the owner's files: policy.yaml says what is done
// for whom and what may happen, isolation.yaml what isolated agents may read.
func (p *program) policyCommand() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Check, show and try out the owner's policy", GroupID: "setup", Args: cobra.NoArgs,
		Long: `The policy lies in two files of the configuration directory. policy.yaml says what
is done for which agent, whom to trust, and what may happen. isolation.yaml adds
to the shipped rules about what isolated agents may read in clear and where
untrusted values may go; changes of it that an agent proposes are questions to you.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	test := &cobra.Command{
		Use: "test TOOL [FILE|-]", Short: "Show what an isolated agent would read of a tool's result", Args: cobra.RangeArgs(1, 2),
		Long: `test prints a tool's result (JSON in a file, or on standard input) as an isolated
agent would read it under the rules in force. Nothing is kept.`,
		Example: `  echo '{"details":{"url":"https://a.test/","status":200,"text":"hello"}}' | auditd policy test web_fetch --params '{"url":"https://a.test/"}'`,
	}
	params := test.Flags().String("params", "{}", "the call's arguments, as JSON")
	agent := test.Flags().Bool("agent-view", false, "as if the call had run in the agent's view")
	test.RunE = func(c *cobra.Command, args []string) error {
		return p.policyTest(c.Context(), args, *params, *agent)
	}
	c.AddCommand(
		&cobra.Command{Use: "check [FILE]", Short: "List everything that is wrong with the policy, or with a file", Args: cobra.MaximumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return p.policyCheck(args) }},
		&cobra.Command{Use: "show", Short: "Print the policy in force", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return p.policyShow() }},
		test,
		&cobra.Command{Use: "dry-run FILE [DIR]", Short: "Say which files of a directory another isolation.yaml would hide or show", Args: cobra.RangeArgs(1, 2),
			RunE: func(_ *cobra.Command, args []string) error { return p.policyDryRun(args) }},
		&cobra.Command{Use: "reload", Short: "Put an edited isolation.yaml into force; asks for the passphrase", Args: cobra.NoArgs,
			Long: `reload lets the running daemon follow isolation.yaml as it is now. An edit does not
hold by itself before the next start: an agent runs as your user and could have
made it.`,
			RunE: func(c *cobra.Command, _ []string) error { return p.policyReload(c.Context()) }},
		p.policyApplyCommand(), p.policyHistoryCommand(), p.policyUndoCommand(),
	)
	return c
}

func (p *program) policyReload(ctx context.Context) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if _, err := loadIsolation(cfg.isolationFile); err != nil {
		return err
	}
	owner, err := p.owner(ctx)
	if err != nil {
		return err
	}
	r, err := owner.ReloadRules(ctx)
	switch {
	case err != nil:
		return err
	case r.Problem != "":
		return fmt.Errorf("the rules that held still hold: %s", r.Problem)
	case p.jsonOut:
		return p.printJSON(r)
	}
	_, err = fmt.Fprintf(p.stdout, "%s is in force\n", cfg.isolationFile)
	return err
}

func (p *program) policyCheck(args []string) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if filepath.Base(args[0]) == filepath.Base(cfg.isolationFile) {
			return p.checkIsolation(args[0])
		}
		return p.checkPolicy(args[0])
	}
	if cfg.Policy == "" {
		fmt.Fprintln(p.stdout, "there is no policy file; the built-in policy holds")
	} else if err := p.checkPolicy(cfg.Policy); err != nil {
		return err
	}
	if _, err := os.Stat(cfg.isolationFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return p.checkIsolation(cfg.isolationFile)
}

func (p *program) checkPolicy(path string) error {
	problems, err := policy.Check(path)
	if err != nil {
		return err
	}
	for _, x := range problems {
		fmt.Fprintf(p.stderr, "%s: %s\n", path, x)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems in %s", len(problems), path)
	}
	_, err = fmt.Fprintf(p.stdout, "%s is a valid policy\n", path)
	return err
}

func (p *program) checkIsolation(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the rules of isolation: %w", err)
	}
	if _, err := dvpolicy.New(data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = fmt.Fprintf(p.stdout, "%s holds valid rules of isolation\n", path)
	return err
}

func (p *program) policyShow() error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	text, source, err := policyText(cfg.Policy)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "# %s\n%s", source, text)
	own, err := os.ReadFile(cfg.isolationFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the rules of isolation: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "\n# %s\n%s", cfg.isolationFile, own)
	return err
}

// policyTest symbolises a result with a table of its own that is thrown away.
func (p *program) policyTest(ctx context.Context, args []string, params string, agentView bool) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	rules, err := loadIsolation(cfg.isolationFile)
	if err != nil {
		return err
	}
	in := p.stdin
	if len(args) == 2 && args[1] != "-" {
		f, err := os.Open(args[1])
		if err != nil {
			return fmt.Errorf("read the result: %w", err)
		}
		defer f.Close()
		in = f
	}
	result, err := io.ReadAll(io.LimitReader(in, schema.DefaultMaxPayload+1))
	if err != nil {
		return fmt.Errorf("read the result: %w", err)
	}
	if len(result) > schema.DefaultMaxPayload {
		return fmt.Errorf("the result is over %d bytes", schema.DefaultMaxPayload)
	}
	dir, err := os.MkdirTemp("", "auditd-")
	if err != nil {
		return fmt.Errorf("make a table to try it with: %w", err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "try.db"), dualview.Migrations())
	if err != nil {
		return err
	}
	defer db.Close()
	table, err := dualview.New(ctx, dualview.Config{DB: db, Dir: filepath.Join(dir, "values")})
	if err != nil {
		return err
	}
	defer table.Close()
	r, err := rules.SymboliseResult(ctx, table, dvpolicy.Call{Owner: ownerName, Tool: args[0], Params: []byte(params), Attested: agentView}, result)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s\n", r.JSON)
	if !r.Listed {
		fmt.Fprintln(p.stderr, "no rule names this tool: all of its result is untrusted")
	}
	return nil
}

// policyDryRun compares what the rules in force and those of a file say about
// the files of a directory.
func (p *program) policyDryRun(args []string) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	now, err := loadIsolation(cfg.isolationFile)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read the rules of isolation: %w", err)
	}
	then, err := dvpolicy.New(data)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	root := "."
	if len(args) == 2 {
		root = args[1]
	}
	if root, err = filepath.Abs(root); err != nil {
		return fmt.Errorf("find the directory: %w", err)
	}
	files, changed := 0, 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		files++
		before, after := now.FileTrust(path, root), then.FileTrust(path, root)
		if before == after || before != "untrusted" && after != "untrusted" {
			return nil
		}
		changed++
		word := "shown"
		if after == "untrusted" {
			word = "hidden"
		}
		fmt.Fprintf(p.stdout, "%-6s  %s\n", word, oneLine(strings.TrimPrefix(path, root+"/"), 400))
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at the files: %w", err)
	}
	fmt.Fprintf(p.stdout, "%d of %d files would be shown otherwise than now\n", changed, files)
	return nil
}
