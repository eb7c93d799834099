package modelproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.org/auditd/schema"
)

// Report decides an event. It has no error: every failure is an outcome that
// stops.
type Report func(context.Context, *schema.Event) schema.Outcome

// Provider is one place that requests may go to. The list of them is fixed when
// the proxy starts, and nothing in a request adds to it.
type Provider struct {
	Name string // in the path
	API  string // anthropic, openai or ollama
	URL  string // of the real provider; for openai up to and including /v1
	Host string // the agent's host name in events, such as claude-code

	// Key returns the provider's key where the daemon holds it. It is asked for
	// each request; nil passes on what the agent sent.
	Key func() (string, error)

	// Hooks: the agent has hooks or a plugin of auditd, which decide about its
	// calls. A request of a session that they have not reported lately is
	// refused.
	Hooks bool
	// OwnerTexts: what stands in the conversation as the user's is the owner's
	// own, and not looked at.
	OwnerTexts bool
	// TrustInstructions: system prompts and tool definitions are the owner's own,
	// and not looked at.
	TrustInstructions bool
	// ResolveSymbols: no hook shows the final message to the person, so symbols
	// in it are resolved here.
	ResolveSymbols bool
}

// Config is what a Proxy is made of. Token, Report, Memory and Logger must be
// set.
type Config struct {
	Token     string // who may ask
	Providers []Provider
	// Report decides an event and does what isolation has to do for it.
	Report Report
	// Check decides about a call of an agent with hooks, without doing
	// anything: its hook reports it once more. nil: as Report.
	Check Report
	// Answered returns a person's answer to a question; nil: none ever comes.
	Answered func(ctx context.Context, id string) string

	Memory *Memory
	Logger *slog.Logger

	// Limits; 0 for the default.
	MaxRequest  int           // bytes of a request, 32 MiB
	MaxResponse int           // bytes of a response, 64 MiB
	MaxInFlight int           // requests at the same time, 64
	HeaderWait  time.Duration // until the provider begins to answer, 10 min
	IdleWait    time.Duration // between two parts of an answer, 5 min
}

// Proxy is a handler for agents' requests to their model. It is safe for
// concurrent use.
type Proxy struct {
	cfg       Config
	providers map[string]*target
	client    *http.Client
	slots     chan struct{}
}

// target is a provider that was checked.
type target struct {
	Provider
	url *url.URL
}

// New checks the configuration.
func New(cfg Config) (*Proxy, error) {
	if len(cfg.Token) < 16 || cfg.Report == nil || cfg.Memory == nil || cfg.Logger == nil {
		return nil, errors.New("modelproxy: Token, Report, Memory and Logger must be set")
	}
	set := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	set(&cfg.MaxRequest, 32<<20)
	set(&cfg.MaxResponse, 64<<20)
	set(&cfg.MaxInFlight, 64)
	if cfg.HeaderWait <= 0 {
		cfg.HeaderWait = 10 * time.Minute
	}
	if cfg.IdleWait <= 0 {
		cfg.IdleWait = 5 * time.Minute
	}
	if cfg.Check == nil {
		cfg.Check = cfg.Report
	}
	p := &Proxy{cfg: cfg, providers: map[string]*target{}, slots: make(chan struct{}, cfg.MaxInFlight)}
	for _, x := range cfg.Providers {
		t, err := check(x)
		if err != nil {
			return nil, err
		}
		if p.providers[x.Name] != nil {
			return nil, fmt.Errorf("provider %s: stands there twice", x.Name)
		}
		p.providers[x.Name] = t
	}
	p.client = &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: cfg.HeaderWait, MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			// What comes compressed could not be bounded before it is unpacked.
			DisableCompression: true,
		},
		// A redirect would carry the conversation and the key to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

func check(x Provider) (*target, error) {
	bad := func(format string, args ...any) (*target, error) {
		return nil, fmt.Errorf("provider %.40q: %s", x.Name, fmt.Sprintf(format, args...))
	}
	if x.Name == "" || len(x.Name) > 40 || strings.Trim(x.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return bad("name: must be of a to z, 0 to 9 and -, at most 40 of them")
	}
	if x.API != "anthropic" && x.API != "openai" && x.API != "ollama" {
		return bad("api: %.40q is not one of anthropic, openai, ollama", x.API)
	}
	u, err := url.Parse(x.URL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return bad("url: must be https://HOST[:PORT][/PATH] with nothing else in it")
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && local) {
		return bad("url: must be https; http is for this machine only")
	}
	if x.Host == "" {
		x.Host = "proxy"
	}
	if len(x.Host) > 60 || !word(x.Host) {
		return bad("host: must be one word")
	}
	return &target{Provider: x, url: u}, nil
}
