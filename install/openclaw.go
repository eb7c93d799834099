package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/heartbeat"
	"example.org/auditd/internal/durable"
	plugin "example.org/auditd/plugins/openclaw"
)

const openClawName = "openclaw"

// hookMargin is how much longer OpenClaw waits for the plugin than the plugin
// for the daemon: several of its hooks let pass what they wait for too long.
const hookMargin = 15 * time.Second

// maxHookWait is the longest that OpenClaw waits for a plugin, in milliseconds.
const maxHookWait = 600_000

// OpenClaw is OpenClaw's configuration, and what is to be put there.
type OpenClaw struct {
	Settings string // the owner's openclaw.json
	State    string // directory for the plugin, the backup and the record

	URL       string        // of the daemon
	Socket    string        // of the daemon, used instead when it is set
	TokenFile string        // where the hook token lies
	Timeout   time.Duration // of one question; above the daemon's own budget
	Wait      time.Duration // how long what is deferred waits for the owner; 0: it is denied at once

	// Proxy is the model proxy's address with its token; empty: it is not put in
	// between.
	Proxy string

	// Beats are what the daemon heard of running gateways.
	Beats func(context.Context) ([]heartbeat.Seen, error)
	Now   func() time.Time
}

func (c *OpenClaw) editor() *editor {
	return &editor{name: openClawName, settings: c.Settings, state: c.State, now: c.Now, options: record{Wait: int(c.Wait.Seconds()), Routes: c.routes()}, in: c.in, out: c.out}
}

// pluginDir is where OpenClaw loads the plugin from.
func (c *OpenClaw) pluginDir() string { return filepath.Join(c.State, "openclaw-plugin") }

// PlanInstall says what Install would do to the settings.
func (c *OpenClaw) PlanInstall() (*Change, error) { return c.editor().planInstall() }

// Install writes the plugin and puts it into the settings. Doing it twice is
// the same as once.
func (c *OpenClaw) Install() (*Change, error) {
	// Settings that cannot be edited leave nothing behind.
	if _, err := c.PlanInstall(); err != nil {
		return nil, err
	}
	if err := c.writePlugin(); err != nil {
		return nil, err
	}
	return c.editor().install()
}

// PlanUninstall says what Uninstall would do to the settings.
func (c *OpenClaw) PlanUninstall() (*Change, error) {
	change, _, err := c.editor().planUninstall()
	return change, err
}

// Uninstall takes the plugin out of the settings, and then away.
func (c *OpenClaw) Uninstall() (*Change, error) {
	change, err := c.editor().uninstall()
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(c.pluginDir()); err != nil {
		return nil, fmt.Errorf("remove the plugin: %w", err)
	}
	return change, nil
}

// writePlugin writes the plugin's files, and nothing where they are the same:
// OpenClaw loads a plugin anew when its files change.
func (c *OpenClaw) writePlugin() error {
	return c.eachPluginFile(func(path string, want []byte) error {
		if have, err := os.ReadFile(path); err == nil && string(have) == string(want) {
			return nil
		}
		if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
			return fmt.Errorf("make the plugin's directory: %w", err)
		}
		return durable.WriteFile(path, want, 0o600)
	})
}

func (c *OpenClaw) eachPluginFile(f func(path string, data []byte) error) error {
	return fs.WalkDir(plugin.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(plugin.Files(), name)
		if err != nil {
			return fmt.Errorf("read the plugin: %w", err)
		}
		return f(filepath.Join(c.pluginDir(), filepath.FromSlash(name)), data)
	})
}

// in returns the settings with the plugin in them.
//
// Tool Search and Code Mode call tools where no result hook looks. They are
// turned off here, and the plugin blocks them where another setting turns them
// on again.
func (c *OpenClaw) in(list []member) ([]member, error) {
	if string(at(list, "plugins", "enabled")) == "false" {
		return nil, errors.New("plugins.enabled is false, so no plugin would be loaded: turn it on first")
	}
	var denied []string
	if v := at(list, "plugins", "deny"); v != nil && json.Unmarshal(v, &denied) == nil && slices.Contains(denied, plugin.ID) {
		return nil, errors.New("plugins.deny holds auditd: take it out first")
	}
	waits := min(int((c.Timeout + c.Wait + hookMargin).Milliseconds()), maxHookWait)
	config := map[string]any{"tokenFile": c.TokenFile, "timeoutMs": c.Timeout.Milliseconds(), "waitMs": c.Wait.Milliseconds()}
	if c.Socket != "" {
		config["socket"] = c.Socket
	} else {
		config["url"] = c.URL
	}
	entry := map[string]any{"enabled": true, "config": config, "hooks": map[string]any{"allowConversationAccess": true, "allowPromptInjection": true, "timeoutMs": waits}}
	var err error
	put := func(value any, path ...string) {
		if err != nil {
			return
		}
		var data []byte
		if data, err = json.Marshal(value); err == nil {
			list, err = setAt(list, data, path...)
		}
	}
	add := func(value string, path ...string) {
		var have []string
		if v := at(list, path...); v != nil && json.Unmarshal(v, &have) != nil && err == nil {
			err = errSettings
		}
		if !slices.Contains(have, value) {
			put(append(have, value), path...)
		}
	}
	add(c.pluginDir(), "plugins", "load", "paths")
	if at(list, "plugins", "allow") != nil { // without a list every plugin is allowed
		add(plugin.ID, "plugins", "allow")
	}
	put(entry, "plugins", "entries", plugin.ID)
	put(false, "tools", "toolSearch")
	put(false, "tools", "codeMode")
	if c.Proxy == "" && err == nil { // an earlier installation may have put it in between
		list, err = direct(list, c.editor().original())
	}
	for _, r := range c.routes() {
		if bad := r.check(); bad != nil && err == nil {
			err = fmt.Errorf("models.providers.%s: %w; use --no-model-proxy", r.provider(), bad)
		}
		put(r.base(c.Proxy), "models", "providers", r.provider(), "baseUrl")
	}
	return list, err
}

// out returns the settings without the plugin. What the owner had set for what
// auditd needs to be off comes back.
func (c *OpenClaw) out(list, original []member) ([]member, bool, error) {
	if at(list, "plugins", "entries", plugin.ID) == nil && !slices.Contains(stringsAt(list, "plugins", "load", "paths"), c.pluginDir()) {
		return list, false, nil
	}
	var err error
	restore := func(path ...string) {
		if err != nil {
			return
		}
		if was := at(original, path...); was != nil {
			list, err = setAt(list, was, path...)
			return
		}
		list, err = deleteAt(list, original, path...)
	}
	without := func(value string, path ...string) {
		if err != nil || slices.Contains(stringsAt(original, path...), value) || at(list, path...) == nil {
			return
		}
		rest := slices.DeleteFunc(stringsAt(list, path...), func(s string) bool { return s == value })
		if len(rest) == 0 && at(original, path...) == nil {
			list, err = deleteAt(list, original, path...)
			return
		}
		var data []byte
		if data, err = json.Marshal(append([]string{}, rest...)); err == nil {
			list, err = setAt(list, data, path...)
		}
	}
	if err == nil {
		list, err = deleteAt(list, original, "plugins", "entries", plugin.ID)
	}
	if err == nil {
		list, err = direct(list, original)
	}
	without(c.pluginDir(), "plugins", "load", "paths")
	without(plugin.ID, "plugins", "allow")
	for _, name := range []string{"toolSearch", "codeMode"} {
		if string(at(list, "tools", name)) == "false" { // else the owner has set it since
			restore("tools", name)
		}
	}
	return list, true, err
}

// direct returns the settings with the base URLs that were there before.
func direct(list, original []member) ([]member, error) {
	providers, err := members(at(list, "models", "providers"))
	if err != nil {
		return list, nil // there are none
	}
	for _, p := range providers {
		path := []string{"models", "providers", p.name, "baseUrl"}
		if !isRoute(textAt(list, path...), routePrefix+p.name) {
			continue
		}
		var err error
		if was := at(original, path...); was != nil {
			list, err = setAt(list, was, path...)
		} else {
			list, err = deleteAt(list, original, path...)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// routePrefix begins the names of OpenClaw's providers at the proxy.
const routePrefix = "agent-openclaw-"

// provider is the route's name in OpenClaw's own configuration.
func (r *Route) provider() string { return strings.TrimPrefix(r.Name, routePrefix) }

// builtIn are providers that OpenClaw knows without an entry, as far as their
// base URL is known here.
var builtIn = map[string]Route{
	"anthropic": {API: "anthropic", URL: anthropicURL},
	"openai":    {API: "openai", URL: "https://api.openai.com/v1"},
}

// dialects are the proxy's names for OpenClaw's.
var dialects = map[string]string{"": "openai", "openai-completions": "openai", "openai-responses": "openai", "anthropic-messages": "anthropic", "ollama": "ollama"}

// routes are those that the settings ask for as they are now: of every provider
// that is configured, and of those built in that a model is taken from.
func (c *OpenClaw) routes() []Route {
	if c.Proxy == "" {
		return nil
	}
	data, _, err := read(c.Settings)
	if err != nil {
		return nil
	}
	list, err := readSettings(data)
	if err != nil {
		return nil
	}
	old := map[string]Route{}
	for _, r := range Routes(c.State) {
		old[r.Name] = r
	}
	var out []Route
	for _, name := range c.providers(list) {
		r := Route{Name: routePrefix + name, Host: openClawName, OwnerTexts: true}
		base, api := textAt(list, "models", "providers", name, "baseUrl"), textAt(list, "models", "providers", name, "api")
		known, isBuiltIn := builtIn[name]
		switch dialect, ok := dialects[api]; {
		case isRoute(base, r.Name):
			if was, ok := old[r.Name]; ok {
				out = append(out, was)
			}
			continue
		case api == "" && isBuiltIn:
			r.API = known.API
		case ok:
			r.API = dialect
		default:
			continue
		}
		if r.URL = strings.TrimSuffix(base, "/"); base == "" {
			r.URL = known.URL
		}
		if r.API == "anthropic" {
			r.URL = strings.TrimSuffix(r.URL, "/v1")
		}
		if r.URL != "" && providerName.MatchString(name) {
			out = append(out, r)
		}
	}
	return out
}

var providerName = regexp.MustCompile(`^[a-z0-9-]{1,25}$`)

// providers are the names of those that models are taken from.
func (c *OpenClaw) providers(list []member) []string {
	var out []string
	if entries, err := members(at(list, "models", "providers")); err == nil {
		for _, p := range entries {
			out = append(out, p.name)
		}
	}
	if textAt(list, "models", "mode") == "replace" {
		return out
	}
	models := string(at(list, "agents", "defaults", "model")) + string(at(list, "agents", "defaults", "models"))
	var each []struct {
		Model json.RawMessage `json:"model"`
	}
	if v := at(list, "agents", "list"); v != nil && json.Unmarshal(v, &each) == nil {
		for _, a := range each {
			models += string(a.Model)
		}
	}
	for _, m := range modelName.FindAllStringSubmatch(models, -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// modelName finds models in an agent's settings: "PROVIDER/MODEL".
var modelName = regexp.MustCompile(`"([a-z0-9-]{1,25})/[A-Za-z0-9._:-]{1,100}"`)

// past names the providers that are asked past the proxy.
func (c *OpenClaw) past(list []member, routes []Route) []string {
	var out []string
	for _, name := range c.providers(list) {
		routed := slices.ContainsFunc(routes, func(r Route) bool {
			return r.provider() == name && textAt(list, "models", "providers", name, "baseUrl") == r.base(c.Proxy)
		})
		if !routed {
			out = append(out, name)
		}
	}
	return out
}

func stringsAt(list []member, path ...string) []string {
	var out []string
	_ = json.Unmarshal(at(list, path...), &out) // nothing else is ours
	return out
}

// at returns the value under path; nil when there is none.
func at(list []member, path ...string) jsontext.Value {
	v := get(list, path[0])
	if len(path) == 1 || v == nil {
		return v
	}
	inner, err := members(v)
	if err != nil {
		return nil
	}
	return at(inner, path[1:]...)
}

// setAt returns list with value under path; objects on the way are made.
func setAt(list []member, value jsontext.Value, path ...string) ([]member, error) {
	list = slices.Clone(list)
	if len(path) == 1 {
		return set(list, path[0], value), nil
	}
	var inner []member
	if v := get(list, path[0]); v != nil {
		var err error
		if inner, err = members(v); err != nil {
			return nil, fmt.Errorf("%s is no object; mend it first, nothing was changed", path[0])
		}
	}
	inner, err := setAt(inner, value, path[1:]...)
	if err != nil {
		return nil, err
	}
	return set(list, path[0], object(inner)), nil
}

// deleteAt returns list without what is under path, and without the objects on
// the way that are empty then and were not there in original.
func deleteAt(list, original []member, path ...string) ([]member, error) {
	list = slices.Clone(list)
	drop := func() []member {
		return slices.DeleteFunc(list, func(m member) bool { return m.name == path[0] })
	}
	if len(path) == 1 {
		return drop(), nil
	}
	v := get(list, path[0])
	if v == nil {
		return list, nil
	}
	inner, err := members(v)
	if err != nil {
		return nil, errSettings
	}
	var before []member
	if was := get(original, path[0]); was != nil {
		before, _ = members(was) // what was no object then is none of ours
	}
	if inner, err = deleteAt(inner, before, path[1:]...); err != nil {
		return nil, err
	}
	if len(inner) == 0 && get(original, path[0]) == nil {
		return drop(), nil
	}
	return set(list, path[0], object(inner)), nil
}
