package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.org/auditd/credential"
	"example.org/auditd/install"
	"example.org/auditd/modelproxy"
	"example.org/auditd/schema"
)

const (
	defaultListen      = "127.0.0.1:7841"
	defaultProxyListen = "127.0.0.1:7842"
	off                = "off"
	maxKeyFile         = 8 << 10
	maxProxyHeader     = 64 << 10
	proxyStop          = 2 * time.Second
)

// builtinProviders are the providers when the configuration lists none.
func builtinProviders() []ProviderConfig {
	return []ProviderConfig{
		{Name: "claude-code", API: "anthropic", URL: "https://api.anthropic.com", Host: "claude-code", Hooks: true, TrustInstructions: true},
		{Name: "anthropic", API: "anthropic", URL: "https://api.anthropic.com"},
		{Name: "openai", API: "openai", URL: "https://api.openai.com/v1"},
		{Name: "ollama", API: "ollama", URL: "http://127.0.0.1:11434"},
	}
}

func (c *Config) completeProxy() error {
	x := &c.Proxy
	if x.Listen == "" {
		x.Listen = off
		if c.Listen == defaultListen {
			x.Listen = defaultProxyListen
		}
	}
	if x.Listen != off {
		host, _, err := net.SplitHostPort(x.Listen)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("proxy.listen: must be off, or HOST:PORT with a loopback address, such as %s", defaultProxyListen)
		}
	}
	if len(x.Providers) == 0 {
		x.Providers = builtinProviders()
	}
	if len(x.Providers) > 64 {
		return errors.New("proxy.providers: has more than 64 entries")
	}
	for _, p := range x.Providers {
		if p.KeyFile != "" && p.KeyEnv != "" {
			return fmt.Errorf("proxy.providers: %s has both key_file and key_env", oneLine(p.Name, 40))
		}
		if p.KeyFile != "" && !filepath.IsAbs(p.KeyFile) {
			return fmt.Errorf("proxy.providers: key_file of %s must be an absolute path", oneLine(p.Name, 40))
		}
	}
	return nil
}

// providers are those of the configuration, and those that agents asked before
// auditd was installed in them.
func (c *Config) providers() []ProviderConfig {
	out := slices.Clone(c.Proxy.Providers)
	for _, r := range install.Routes(installState(c)) {
		out = append(out, ProviderConfig{Name: r.Name, API: r.API, URL: r.URL, Host: r.Host, Hooks: true, TrustInstructions: true, OwnerTexts: r.OwnerTexts})
	}
	return out
}

func proxyTokenPath(cfg *Config) string { return filepath.Join(cfg.State, "proxy.token") }

// newProxy makes the proxy of a configuration.
func newProxy(cfg *Config, getenv func(string) string, c modelproxy.Config) (*modelproxy.Proxy, error) {
	var err error
	if c.Token, err = credential.HookToken(proxyTokenPath(cfg)); err != nil {
		return nil, fmt.Errorf("the proxy's token: %w", err)
	}
	for _, x := range cfg.providers() {
		c.Providers = append(c.Providers, modelproxy.Provider{Name: x.Name, API: x.API, URL: x.URL, Host: x.Host, Key: keyOf(x, getenv), Hooks: x.Hooks,
			OwnerTexts: x.OwnerTexts, TrustInstructions: x.TrustInstructions, ResolveSymbols: x.ResolveSymbols})
	}
	p, err := modelproxy.New(c)
	if err != nil {
		return nil, fmt.Errorf("proxy.providers: %w", err)
	}
	return p, nil
}

// keyOf returns where a provider's key comes from; nil when the agent has it.
func keyOf(x ProviderConfig, getenv func(string) string) func() (string, error) {
	switch {
	case x.KeyEnv != "":
		return func() (string, error) { return getenv(x.KeyEnv), nil }
	case x.KeyFile != "":
		return func() (string, error) {
			f, err := os.Open(x.KeyFile)
			if err != nil {
				return "", errors.New("it cannot be opened")
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
				return "", errors.New("it must be a file of mode 0600")
			}
			data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
			return strings.TrimSpace(string(data)), err
		}
	}
	return nil
}

// proxyServer is the proxy on its address.
type proxyServer struct {
	handler  http.Handler
	listener net.Listener // nil where the proxy is off
	server   *http.Server
	done     chan struct{} // closed when it has ended; nil before it began
}

func openProxy(ctx context.Context, cfg *Config, h http.Handler) (*proxyServer, error) {
	s := &proxyServer{handler: h}
	if cfg.Proxy.Listen == off {
		return s, nil
	}
	var err error
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Proxy.Listen); err != nil {
		return nil, hint(fmt.Errorf("listen for the model proxy: %w", err), "set proxy.listen to another port, or to off")
	}
	return s, nil
}

// Serve begins to answer, and returns.
func (s *proxyServer) Serve(logger *slog.Logger) {
	if s.listener == nil {
		return
	}
	// No time-out for a whole answer: a model may speak for long. What waits
	// for a provider is bounded in modelproxy.
	s.server = &http.Server{Handler: s.handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxProxyHeader,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug)}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the model proxy stopped", "error", err)
		}
	}()
}

// Close ends it.
func (s *proxyServer) Close() {
	switch {
	case s.server != nil:
		ctx, cancel := context.WithTimeout(context.Background(), proxyStop)
		defer cancel()
		if s.server.Shutdown(ctx) != nil {
			s.server.Close() // answers that are still coming are cut, which runtimes notice
		}
		<-s.done
	case s.listener != nil:
		s.listener.Close()
	}
}

// openProxy opens the daemon's own proxy, which shares the memory of what hooks
// reported.
func (d *daemon) openProxy(ctx context.Context) (*proxyServer, error) {
	h, err := newProxy(d.cfg, d.getenv, modelproxy.Config{
		Report: func(ctx context.Context, e *schema.Event) schema.Outcome {
			return d.decide(ctx, e, schema.CredentialHook)
		},
		Check: func(ctx context.Context, e *schema.Event) schema.Outcome {
			return d.firewall.Event(ctx, e, schema.CredentialHook)
		},
		Answered: func(ctx context.Context, id string) string {
			q, err := d.queue.Get(ctx, id)
			if err != nil {
				return "" // nobody has said anything
			}
			return q.Answer
		},
		Memory: d.memory, Logger: d.logger,
	})
	if err != nil {
		return nil, err
	}
	return openProxy(ctx, d.cfg, h)
}

func (p *program) proxyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "proxy", Short: "Show the base URLs of the model proxy", GroupID: "run", Args: cobra.NoArgs,
		Long: `proxy shows the base URL of each model provider that an agent may be given in
the provider's place. The proxy is a part of auditd serve. It audits what the
model is about to read and the calls that it makes, and passes on nothing that
it cannot look at.

A base URL holds the proxy's token, without which nobody is answered; it can be
sent as ` + modelproxy.TokenHeader + ` instead, or, where the daemon holds the
provider's key, in the place of the agent's own key.`,
		RunE: func(*cobra.Command, []string) error { return p.proxyURLs() },
	}
	c.AddCommand(&cobra.Command{
		Use: "serve", Short: "Run the model proxy alone, in front of a daemon that runs already", Args: cobra.NoArgs,
		Long: `serve runs the model proxy in a process of its own, which asks the daemon. It
does not hear what hooks report: providers with hooks: true refuse everything.`,
		RunE: func(c *cobra.Command, _ []string) error { return p.proxyAlone(c.Context()) },
	})
	return c
}

// proxyURL is a provider's base URL as an agent is given it.
func proxyURL(address, token string, x ProviderConfig) string {
	u := "http://" + address + "/" + token + "/" + x.Name
	if x.API == "openai" {
		u += "/v1"
	}
	return u
}

func (p *program) proxyURLs() error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	if cfg.Proxy.Listen == off {
		return hint(errors.New("the model proxy is off"), "set proxy.listen in the configuration")
	}
	token, err := credential.HookToken(proxyTokenPath(cfg))
	if err != nil {
		return err
	}
	urls := map[string]string{}
	for _, x := range cfg.Proxy.Providers {
		urls[x.Name] = proxyURL(cfg.Proxy.Listen, token, x)
	}
	if p.jsonOut {
		return p.printJSON(urls)
	}
	w := p.painter(p.stdout)
	for _, x := range cfg.Proxy.Providers {
		key := "the agent's own key is passed on"
		if x.KeyFile != "" || x.KeyEnv != "" {
			key = "the daemon holds the key"
		}
		w.printf("%-12s %s\n%-12s %s at %s; %s\n", x.Name, urls[x.Name], "", x.API, x.URL, key)
	}
	return nil
}

// proxyAlone runs the proxy in front of a daemon.
func (p *program) proxyAlone(ctx context.Context) error {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	daemon, err := p.client()
	if err != nil {
		return err
	}
	logger := newLogger(p.stderr, cfg)
	h, err := newProxy(cfg, p.getenv, modelproxy.Config{
		Report: func(ctx context.Context, e *schema.Event) schema.Outcome {
			o, _ := daemon.Event(ctx, e) // an error is an outcome that blocks
			return o
		},
		Answered: func(ctx context.Context, id string) string {
			q, err := daemon.Question(ctx, id)
			if err != nil {
				return ""
			}
			return q.Answer
		},
		Memory: modelproxy.NewMemory(time.Now), Logger: logger,
	})
	if err != nil {
		return err
	}
	s, err := openProxy(ctx, cfg, h)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.listener == nil {
		return hint(errors.New("the model proxy is off"), "set proxy.listen in the configuration")
	}
	p.painter(p.stdout).field("model proxy", "http://"+s.listener.Addr().String())
	s.Serve(logger)
	<-ctx.Done()
	return nil
}
