package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"example.org/auditd/client"
	"example.org/auditd/firewall"
	"example.org/auditd/schema"
)

// Config is the configuration file, version 1. The daemon needs no file: every
// field but version may be left out. docs/configuration.md is made from this
// struct's comments; secrets are paths of files, never values. What an agent
// may do is not here but in the policy file.
type Config struct {
	// Version must be 1.
	Version int `yaml:"version"`

	// Listen is the TCP address of the API. Only loopback addresses are taken.
	Listen string `yaml:"listen"`
	// Socket is the Unix socket of the API, which clients prefer: only the
	// owner can listen there. "off" for none. Default run/auditd.sock below
	// the state directory.
	Socket string `yaml:"socket"`
	// State is the state directory: database, log, redacted texts, models.
	// Default $XDG_STATE_HOME/auditd.
	State string `yaml:"state"`
	// Policy is the policy file. Default policy.yaml beside the configuration
	// file, and the built-in policy when there is none.
	Policy string `yaml:"policy"`

	// Auditor names who judges what the precheck leaves open: onnx (the
	// encoder that ships in the binary), ollama, openai (any server that
	// speaks that API), cascade (onnx first, then the language model for what
	// it leaves undecided) or none (whatever needs a model waits for a person
	// or is blocked).
	Auditor string `yaml:"auditor"`
	// Onnx, Ollama and OpenAI configure the auditors.
	Onnx   OnnxConfig   `yaml:"onnx"`
	Ollama OllamaConfig `yaml:"ollama"`
	OpenAI OpenAIConfig `yaml:"openai"`
	// Cascade names the language model of the cascade: ollama or openai.
	Cascade string `yaml:"cascade"`
	// Arbiter is the stronger judge of escalated flows; without one they wait
	// for a person. Secrets are taken out of what is sent to it.
	Arbiter ArbiterConfig `yaml:"arbiter"`

	// Inspector is the model that isolated agents ask about symbols. It reads
	// what attackers wrote, has no tools, and its answers become symbols.
	Inspector InspectorConfig `yaml:"inspector"`

	// Proxy stands in front of the providers of agents' models.
	Proxy ProxyConfig `yaml:"proxy"`

	// Notify tells you of new questions when you look elsewhere; off by default.
	Notify NotifyConfig `yaml:"notify"`

	// Deadline is the budget of one call, such as 30s. The host's own time-out
	// must be longer.
	Deadline Duration `yaml:"deadline"`
	// MaxPayload is the most bytes of one payload; more is refused, never cut.
	MaxPayload int `yaml:"max_payload"`
	// MaxInFlight is how many calls are decided at the same time; one more is
	// answered with "busy" and block.
	MaxInFlight int `yaml:"max_in_flight"`
	// QuestionTTL is how long a question waits for a person before silence is
	// a no.
	QuestionTTL Duration `yaml:"question_ttl"`
	// SessionTTL is how long an owner session lasts after the passphrase.
	SessionTTL Duration `yaml:"session_ttl"`
	// KeepTexts is how long redacted texts are kept beside the log. The log
	// itself is kept for ever and verifies without them.
	KeepTexts Duration `yaml:"keep_texts"`
	// KeepSymbols is how long a symbol is kept that no view and no other symbol
	// needs any more.
	KeepSymbols Duration `yaml:"keep_symbols"`

	// LogLevel of the daemon's own messages on standard error: debug, info,
	// warn or error.
	LogLevel string `yaml:"log_level"`
	// LogFormat of those messages: text or json.
	LogFormat string `yaml:"log_format"`

	ownerFile     string // where the hash of the passphrase lies
	isolationFile string // the owner's rules of isolation
	policyFile    string // where a policy goes when there is none yet

	ablation firewall.Ablation // benchmarks leave parts out; no file can
}

// OnnxConfig configures the encoder.
type OnnxConfig struct {
	// Library is the path of ONNX Runtime's shared library. Default: the one
	// that `make deps` put into the cache, then the system's.
	Library string `yaml:"library"`
	// Model is a folder with another model than the one in the binary.
	Model string `yaml:"model"`
	// Threads that one window runs on, 0 for what the machine has, at most 4.
	Threads int `yaml:"threads"`
}

// OllamaConfig configures a local Ollama server.
type OllamaConfig struct {
	// URL of the server. Default http://127.0.0.1:11434.
	URL string `yaml:"url"`
	// Model as the server names it. Default the first auditor in models.txt.
	Model string `yaml:"model"`
	// Context length in tokens that the model is loaded with. 0: 8192.
	Context int `yaml:"context"`
	// Threads that the server runs the model with; 0 leaves it to the server.
	Threads int `yaml:"threads"`
	// LoadTimeout is for loading the model, apart from any call.
	LoadTimeout Duration `yaml:"load_timeout"`
}

// OpenAIConfig configures a server that speaks OpenAI's API (llama.cpp, vLLM,
// LM Studio).
type OpenAIConfig struct {
	// URL up to and including /v1.
	URL string `yaml:"url"`
	// Model as the server names it.
	Model string `yaml:"model"`
	// KeyFile is a file with the API key, when the server wants one.
	KeyFile string `yaml:"key_file"`
	// Context length in tokens that the server was started with. 0: 8192.
	Context int `yaml:"context"`
}

// ArbiterConfig configures the arbiter.
type ArbiterConfig struct {
	// Backend: off, ollama, openai or anthropic.
	Backend string `yaml:"backend"`
	// URL of the server; each backend has its default.
	URL string `yaml:"url"`
	// Model as the server names it.
	Model string `yaml:"model"`
	// KeyFile is a file with the API key.
	KeyFile string `yaml:"key_file"`
}

// InspectorConfig configures the model for inspections.
type InspectorConfig struct {
	// Backend: auditor (the auditor's own language model, where it is one),
	// off, ollama, openai or anthropic. What symbols stand for is sent there;
	// secrets are not.
	Backend string `yaml:"backend"`
	// URL of the server; each backend but openai has its default.
	URL string `yaml:"url"`
	// Model as the server names it.
	Model string `yaml:"model"`
	// KeyFile is a file with the API key.
	KeyFile string `yaml:"key_file"`
	// Context length in tokens of the model. 0: the backend's default.
	Context int `yaml:"context"`
	// Timeout of one inspection, all its calls together. An agent is answered
	// within deadline; what is found later is kept for when it asks again.
	Timeout Duration `yaml:"timeout"`
}

// ProxyConfig configures the proxy in front of model providers.
type ProxyConfig struct {
	// Listen is the TCP address of the proxy, a loopback one, or "off".
	// Default 127.0.0.1:7842 where the API listens on 127.0.0.1:7841, and
	// otherwise off.
	Listen string `yaml:"listen"`
	// Providers are the only places that requests may go to. Default: those
	// that `auditd proxy` lists.
	Providers []ProviderConfig `yaml:"providers"`
}

// ProviderConfig is one provider of models.
type ProviderConfig struct {
	// Name stands in the base URL that the agent is given.
	Name string `yaml:"name"`
	// API that the provider speaks: anthropic, openai or ollama.
	API string `yaml:"api"`
	// URL of the provider, https unless it is on this machine; for openai up
	// to and including /v1.
	URL string `yaml:"url"`
	// Host is the agent's host name in the policy, such as claude-code.
	// Default proxy.
	Host string `yaml:"host"`
	// KeyFile is a file with the provider's key, mode 0600, and KeyEnv a
	// variable in the daemon's environment that holds it: then the agent need
	// not have it. With neither, the agent's own key is passed on.
	KeyFile string `yaml:"key_file"`
	// KeyEnv: see key_file.
	KeyEnv string `yaml:"key_env"`
	// Hooks: the agent has auditd's hooks or plugin. Those decide about its
	// calls, and a request of a session that they have not reported lately is
	// refused.
	Hooks bool `yaml:"hooks"`
	// OwnerTexts: what stands in the conversation as the user's is yours, and
	// not audited.
	OwnerTexts bool `yaml:"owner_texts"`
	// TrustInstructions: system prompts and tool descriptions are yours, and
	// not audited.
	TrustInstructions bool `yaml:"trust_instructions"`
	// ResolveSymbols shows symbols in the model's answers resolved: for an
	// agent without a hook for its messages.
	ResolveSymbols bool `yaml:"resolve_symbols"`
}

// NotifyConfig configures notifications. They say how many questions wait, and
// neither what they are about nor who asks.
type NotifyConfig struct {
	// Desktop shows them with notify-send.
	Desktop bool `yaml:"desktop"`
	// Webhook is a URL that they are posted to, https unless it is on this
	// machine. Many services put a secret into it: use webhook_file for those.
	Webhook string `yaml:"webhook"`
	// WebhookFile is a file with that URL.
	WebhookFile string `yaml:"webhook_file"`
	// TokenFile is a file with a token that is sent along as a bearer token.
	TokenFile string `yaml:"token_file"`
	// Form of what is posted: json (title, text, waiting, page) or ntfy.
	Form string `yaml:"form"`
}

// Duration is a time span in YAML, such as 30s or 24h.
type Duration time.Duration

// UnmarshalYAML reads a span.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return fmt.Errorf("line %d: must be a time span such as 30s, 10m or 24h", n.Line)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes a span.
func (d Duration) MarshalYAML() (any, error) { return time.Duration(d).String(), nil }

const socketOff = "off"

// maxConfig bounds the file.
const maxConfig = 1 << 16

// configDir is $XDG_CONFIG_HOME/auditd.
func configDir(getenv func(string) string) string { return xdg(getenv, "XDG_CONFIG_HOME", ".config") }

func xdg(getenv func(string) string, name, fallback string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return filepath.Join(dir, "auditd")
	}
	return filepath.Join(getenv("HOME"), fallback, "auditd")
}

// defaultConfig is what holds without a file.
func defaultConfig(getenv func(string) string) Config {
	return Config{
		Version: 1, Listen: "127.0.0.1:7841", State: xdg(getenv, "XDG_STATE_HOME", filepath.Join(".local", "state")),
		Auditor: "onnx", Cascade: "ollama", Arbiter: ArbiterConfig{Backend: "off"},
		Inspector: InspectorConfig{Backend: "auditor", Timeout: Duration(2 * time.Minute)},
		Ollama:    OllamaConfig{URL: "http://127.0.0.1:11434", LoadTimeout: Duration(5 * time.Minute)},
		Deadline:  Duration(30 * time.Second), MaxPayload: schema.DefaultMaxPayload, MaxInFlight: 128,
		QuestionTTL: Duration(time.Hour), SessionTTL: Duration(10 * time.Minute), KeepTexts: Duration(30 * 24 * time.Hour), KeepSymbols: Duration(90 * 24 * time.Hour),
		LogLevel: "info", LogFormat: "text", Notify: NotifyConfig{Form: "json"},
	}
}

// config reads the configuration that --config names, or the default place's
// if there is one.
func (p *program) config() (*Config, error) {
	path := p.configFile
	if path == "" {
		path = filepath.Join(configDir(p.getenv), "config.yaml")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			cfg := defaultConfig(p.getenv)
			return &cfg, cfg.complete(p.getenv)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	cfg, err := parseConfig(data, p.getenv)
	if err != nil {
		return nil, hint(fmt.Errorf("configuration %s: %w", path, err), "docs/configuration.md describes every field")
	}
	return cfg, nil
}

// parseConfig reads a configuration strictly: an unknown or doubled key, a
// missing version, or a second document is an error.
func parseConfig(data []byte, getenv func(string) string) (*Config, error) {
	if len(data) > maxConfig {
		return nil, fmt.Errorf("the file is over %d bytes", maxConfig)
	}
	cfg := defaultConfig(getenv)
	cfg.Version = 0 // the file must say it
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&cfg); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty: it needs at least `version: 1`")
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file holds more than one document")
	}
	return &cfg, cfg.complete(getenv)
}

// complete checks the configuration and fills what depends on other fields.
func (c *Config) complete(getenv func(string) string) error {
	oneOf := func(field, value string, words ...string) error {
		for _, w := range words {
			if value == w {
				return nil
			}
		}
		return fmt.Errorf("%s: %q is not one of %s", field, oneLine(value, 40), strings.Join(words, ", "))
	}
	if c.Version != 1 {
		return fmt.Errorf("version: is %d, this auditd reads version 1", c.Version)
	}
	if err := errors.Join(
		oneOf("auditor", c.Auditor, "onnx", "ollama", "openai", "cascade", "none"),
		oneOf("cascade", c.Cascade, "ollama", "openai"),
		oneOf("arbiter.backend", c.Arbiter.Backend, "off", "ollama", "openai", "anthropic"),
		oneOf("inspector.backend", c.Inspector.Backend, "auditor", "off", "ollama", "openai", "anthropic"),
		oneOf("log_level", c.LogLevel, "debug", "info", "warn", "error"),
		oneOf("log_format", c.LogFormat, "text", "json"),
		oneOf("notify.form", c.Notify.Form, "json", "ntfy"),
	); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen: must be HOST:PORT, such as 127.0.0.1:7841")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen: %s is not a loopback address; the API gives rights over this machine's agents and is not for a network", oneLine(host, 60))
	}
	for _, d := range []struct {
		field string
		v     Duration
		least time.Duration
	}{{"deadline", c.Deadline, time.Second}, {"question_ttl", c.QuestionTTL, time.Second}, {"session_ttl", c.SessionTTL, time.Second},
		{"keep_texts", c.KeepTexts, time.Hour}, {"keep_symbols", c.KeepSymbols, time.Hour}, {"ollama.load_timeout", c.Ollama.LoadTimeout, time.Second}, {"inspector.timeout", c.Inspector.Timeout, time.Second}} {
		if time.Duration(d.v) < d.least {
			return fmt.Errorf("%s: is %s, the least is %s", d.field, time.Duration(d.v), d.least)
		}
	}
	for _, n := range []struct {
		field           string
		v, least, limit int
	}{{"max_payload", c.MaxPayload, 1 << 10, 16 << 20}, {"max_in_flight", c.MaxInFlight, 1, 4096}, {"onnx.threads", c.Onnx.Threads, 0, 64},
		{"ollama.context", c.Ollama.Context, 0, 1 << 20}, {"openai.context", c.OpenAI.Context, 0, 1 << 20}, {"ollama.threads", c.Ollama.Threads, 0, 256}, {"inspector.context", c.Inspector.Context, 0, 1 << 20}} {
		if n.v < n.least || n.v > n.limit {
			return fmt.Errorf("%s: is %d, it must be %d to %d", n.field, n.v, n.least, n.limit)
		}
	}
	usesOpenAI := c.Auditor == "openai" || c.Auditor == "cascade" && c.Cascade == "openai"
	if usesOpenAI && (c.OpenAI.URL == "" || c.OpenAI.Model == "") {
		return errors.New("openai: url and model must be set for that auditor")
	}
	if c.Arbiter.Backend != "off" && c.Arbiter.Model == "" {
		return errors.New("arbiter.model: must be set")
	}
	if c.Notify.Webhook != "" && c.Notify.WebhookFile != "" {
		return errors.New("notify: webhook and webhook_file are both set; one of them is to be")
	}
	if b := c.Inspector.Backend; b != "off" && b != "auditor" && c.Inspector.Model == "" {
		return errors.New("inspector.model: must be set")
	}
	if err := c.completeProxy(); err != nil {
		return err
	}
	if c.State == "" || !filepath.IsAbs(c.State) {
		return errors.New("state: must be an absolute path")
	}
	if c.Socket == "" {
		c.Socket = client.SocketPath(c.State)
	}
	if len(c.Socket) > 100 { // the kernel's limit is 107
		return fmt.Errorf("socket: the path has %d bytes, the limit is 100; set socket to a shorter one, or to off", len(c.Socket))
	}
	c.ownerFile = filepath.Join(configDir(getenv), "owner.json")
	c.isolationFile = filepath.Join(configDir(getenv), "isolation.yaml")
	c.policyFile = c.Policy
	if c.Policy == "" {
		path := filepath.Join(configDir(getenv), "policy.yaml")
		c.policyFile = path
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			c.Policy = path
		}
	}
	return nil
}

// inspectorBackend is the backend that inspections ask.
func (c *Config) inspectorBackend() string {
	if c.Inspector.Backend != "auditor" {
		return c.Inspector.Backend
	}
	if c.Auditor == "cascade" {
		return c.Cascade
	}
	return c.Auditor
}

// cacheDir is where `make deps` puts ONNX Runtime.
func cacheDir(getenv func(string) string) string { return xdg(getenv, "XDG_CACHE_HOME", ".cache") }
