package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"example.org/auditd"
	"example.org/auditd/bench"
	"example.org/auditd/inference"
	"example.org/auditd/internal/durable"
	"example.org/auditd/models"
	"example.org/auditd/schema"
)

// knownModels are those of models.txt.
func knownModels() ([]models.Model, error) { return models.Parse(auditd.ModelsTxt()) }

// ollamaModel is the configured model, or the first of models.txt.
func ollamaModel(cfg *Config) string {
	if cfg.Ollama.Model != "" {
		return cfg.Ollama.Model
	}
	list, err := knownModels()
	if err != nil {
		return "" // the backend says that a model is missing
	}
	for _, m := range list {
		if m.Backend == "ollama" {
			return m.Name
		}
	}
	return ""
}

func (p *program) store() (*models.Store, *Config, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, nil, err
	}
	list, err := knownModels()
	if err != nil {
		return nil, nil, err
	}
	s, err := models.New(models.Config{URL: cfg.Ollama.URL, List: list, State: filepath.Join(cfg.State, "models", "digests.json"), Insecure: p.getenv("AUDITD_INSECURE_REGISTRY") != ""})
	return s, cfg, err
}

// advised turns a model error's advice into a hint.
func advised(err error) error {
	var e *models.Error
	if errors.As(err, &e) && e.Advice != "" {
		return hint(errors.New(joinNonEmpty(e.Problem, e.Detail)), "%s", e.Advice)
	}
	return err
}

func joinNonEmpty(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + oneLine(b, 300)
}

func (p *program) pullCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pull [NAME]", Short: "Bring a model to the local Ollama server", GroupID: "setup", Args: cobra.MaximumNArgs(1),
		Long: `pull has the local Ollama server fetch a model of models.txt, shows how far it is,
and goes on where an interrupted pull stopped. The model is held to the digest in
models.txt or, where there is none, to the one of the first pull.`,
		RunE: func(c *cobra.Command, args []string) error {
			store, cfg, err := p.store()
			if err != nil {
				return err
			}
			name := ollamaModel(cfg)
			if len(args) == 1 {
				name = args[0]
			}
			progress, done := p.transfers()
			r, err := store.Pull(c.Context(), name, progress)
			done()
			if err != nil {
				return advised(err)
			}
			return p.fetched(r)
		},
	}
}

// transfers shows one bar for each file on a terminal.
func (p *program) transfers() (show func(models.Progress), done func()) {
	bars := p.bars()
	if bars == nil {
		last := ""
		return func(x models.Progress) {
			if x.Status != last {
				last = x.Status
				fmt.Fprintln(p.stderr, oneLine(x.Status, 100))
			}
		}, func() {}
	}
	files := map[string]*mpb.Bar{}
	return func(x models.Progress) {
		if x.Layer == "" || x.Total <= 0 {
			return
		}
		bar := files[x.Layer]
		if bar == nil {
			bar = bars.AddBar(x.Total, mpb.PrependDecorators(decor.Name(oneLine(x.Status, 30)+" ")),
				mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f"), decor.EwmaETA(decor.ET_STYLE_GO, 30, decor.WC{W: 8})))
			files[x.Layer] = bar
		}
		bar.SetCurrent(x.Completed)
	}, bars.Shutdown
}

func (p *program) fetched(r models.Result) error {
	if p.jsonOut {
		return p.printJSON(map[string]any{"name": r.Name, "digest": r.Digest, "bytes": r.Bytes, "recorded": r.Recorded})
	}
	fmt.Fprintf(p.stdout, "%s is there (%.1f MiB, sha256 %.12s…)\n", r.Name, float64(r.Bytes)/(1<<20), r.Digest)
	if r.Recorded {
		fmt.Fprintln(p.stdout, "Nothing was known about its digest; from now on it is held to this one.")
	}
	return nil
}

func (p *program) modelsCommand() *cobra.Command {
	list := func(c *cobra.Command, _ []string) error { return p.listModels(c.Context()) }
	c := &cobra.Command{Use: "models", Short: "List the models, or import one from a file", GroupID: "setup", Args: cobra.NoArgs, RunE: list}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List the models of models.txt and what is there", Args: cobra.NoArgs, RunE: list})
	name := ""
	imp := &cobra.Command{
		Use: "import FILE", Short: "Make a model out of a GGUF file, without a network", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			store, _, err := p.store()
			if err != nil {
				return err
			}
			if name == "" {
				name = modelName(args[0])
			}
			progress, done := p.transfers()
			r, err := store.Import(c.Context(), name, args[0], progress)
			done()
			if err != nil {
				return advised(err)
			}
			return p.fetched(r)
		},
	}
	imp.Flags().StringVar(&name, "name", "", "its name (default: the file's)")
	c.AddCommand(imp)
	return c
}

var notInName = regexp.MustCompile(`[^a-z0-9._-]+`)

func modelName(file string) string {
	base := filepath.Base(file)
	base = base[:len(base)-len(filepath.Ext(base))]
	return notInName.ReplaceAllString(strings.ToLower(base), "-")
}

func (p *program) listModels(ctx context.Context) error {
	store, cfg, err := p.store()
	if err != nil {
		return err
	}
	installed, err := store.List(ctx)
	var unreachable error
	if err != nil { // the list of models.txt is useful without a server too
		unreachable = advised(err)
		known, err := knownModels()
		if err != nil {
			return err
		}
		installed = nil
		for _, m := range known {
			installed = append(installed, models.Installed{Model: m})
		}
	}
	if unreachable != nil {
		fmt.Fprintln(p.stderr, "note: "+oneLine(unreachable.Error(), 300)+"; what it holds is not known")
	}
	if p.jsonOut {
		return p.printJSON(installed)
	}
	o := p.painter(p.stdout)
	var rows [][]string
	for _, m := range installed {
		there := "no"
		switch {
		case m.Backend == "onnx":
			there = fmt.Sprintf("in the binary, %.19s…", m.Digest)
		case unreachable != nil:
			there = "?"
		case m.Problem() != "":
			there = m.Problem()
		case m.Present:
			there = "yes"
		}
		use := ""
		if m.Backend == "ollama" && m.Name == ollamaModel(cfg) && (cfg.Auditor == "ollama" || cfg.Auditor == "cascade") || m.Backend == "onnx" && (cfg.Auditor == "onnx" || cfg.Auditor == "cascade") {
			use = "auditor"
		}
		rows = append(rows, []string{m.Name, m.Backend, there, use, fmt.Sprintf("%.2f GB", float64(m.Size)/1e9), m.Licence, m.Purpose})
	}
	o.table([]string{"name", "backend", "there", "in use", "size", "licence", "purpose"}, rows)
	return nil
}

func (p *program) useCommand() *cobra.Command {
	force := false
	c := &cobra.Command{
		Use: "use NAME", Short: "Switch the auditor, once a probe has shown that it keeps the deadline", GroupID: "setup", Args: cobra.ExactArgs(1),
		ValidArgs: []string{"onnx", "ollama", "openai", "cascade", "none"},
		Long: `use starts the auditor NAME (onnx, ollama, openai, cascade or none) and times it.
When 95 of 100 calls would be answered within the deadline it writes auditor: NAME
into the configuration file. The daemon takes it at its next start.`,
		RunE: func(c *cobra.Command, args []string) error { return p.use(c.Context(), args[0], force) },
	}
	c.Flags().BoolVar(&force, "force", false, "switch without a probe")
	return c
}

func (p *program) use(ctx context.Context, name string, force bool) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	cfg.Auditor = name
	if err := cfg.complete(p.getenv); err != nil {
		return err
	}
	if name != "none" && !force {
		p95, err := p.probe(ctx, cfg)
		if err != nil {
			return fmt.Errorf("%s does not answer, so nothing was changed: %w", name, err)
		}
		// Half the deadline: what else a call needs must fit too, and a busy
		// machine is slower than an idle one.
		if limit := time.Duration(cfg.Deadline) / 2; p95 > limit {
			return hint(fmt.Errorf("%s needs %s for 95 of 100 calls, more than half of the deadline of %s, so nothing was changed", name, p95.Round(time.Millisecond), time.Duration(cfg.Deadline)),
				"take a smaller model, a longer deadline, or --force")
		}
		fmt.Fprintf(p.stdout, "%s answers 95 of 100 calls within %s\n", name, p95.Round(time.Millisecond))
	}
	path := p.configFile
	if path == "" {
		path = filepath.Join(configDir(p.getenv), "config.yaml")
	}
	if err := setAuditor(path, name); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "auditor: %s is in %s; a running daemon takes it when it is restarted\n", name, path)
	return nil
}

// probe times the auditor on flows like those of a benchmark.
func (p *program) probe(ctx context.Context, cfg *Config) (time.Duration, error) {
	loading, loaded := context.WithTimeout(ctx, time.Duration(cfg.Ollama.LoadTimeout))
	defer loaded()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(cfg.Ollama.LoadTimeout)+2*time.Minute)
	defer cancel()
	j := newJudges(ctx, cfg, p.getenv, newLogger(p.stderr, &Config{LogLevel: "error"}), func(string, string) {})
	defer j.Close()
	for j.auditor.Ready() != nil {
		if err := j.auditor.Ready(); j.gone || errors.Is(err, inference.ErrAbsent) || loading.Err() != nil {
			return 0, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	var took []time.Duration
	for n := range 20 {
		rec, err := probeRecord(n)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		if _, _, err := j.auditor.Audit(ctx, rec); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
		if total := sum(took); n >= 4 && total > time.Minute {
			break // slow enough to be sure
		}
	}
	slices.Sort(took)
	return took[len(took)*95/100], nil
}

func sum(list []time.Duration) (total time.Duration) {
	for _, d := range list {
		total += d
	}
	return total
}

func probeRecord(n int) (*schema.Record, error) {
	f := bench.Mixed(n)
	if err := f.Complete(0); err != nil {
		return nil, err
	}
	return &schema.Record{Flow: f, Precheck: &schema.Precheck{Coverage: schema.Coverage{Bytes: len(f.Payload), Total: len(f.Payload)}}}, nil
}

var auditorLine = regexp.MustCompile(`(?m)^auditor:.*$`)

// setAuditor changes one line of the configuration file and leaves the owner's
// comments alone. A file that does not exist begins with the version.
func setAuditor(path, name string) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the configuration: %w", err)
	}
	line := []byte("auditor: " + name)
	switch {
	case len(data) == 0:
		data = []byte("version: 1\nauditor: " + name + "\n")
	case auditorLine.Match(data):
		data = auditorLine.ReplaceAll(data, line)
	default:
		if data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		data = append(append(data, line...), '\n')
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the configuration directory: %w", err)
	}
	if err := durable.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}
