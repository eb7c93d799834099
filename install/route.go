package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Route is a model provider that an agent asked itself, and asks through the
// daemon's model proxy since auditd was installed.
type Route struct {
	Name string `json:"name"` // of the provider, at the proxy
	API  string `json:"api"`  // anthropic, openai or ollama
	URL  string `json:"url"`  // where the agent asked it
	Host string `json:"host"` // the agent, as in events
	// OwnerTexts: the agent's own hooks decide about what users say, in a form
	// that cannot be recognised in its requests.
	OwnerTexts bool `json:"owner_texts,omitempty"`
}

// Routes are the routes of all installations, by the records in state.
func Routes(state string) []Route {
	var out []Route
	for _, name := range []string{claudeCodeName, openClawName} {
		if r, err := (&editor{name: name, state: state}).readRecord(); err == nil && r != nil {
			out = append(out, r.Routes...)
		}
	}
	return out
}

// base is the route's base URL at a proxy, in the form of its API.
func (r *Route) base(proxy string) string {
	u := proxy + "/" + r.Name
	if r.API == "openai" {
		u += "/v1"
	}
	return u
}

// check refuses what the proxy would not ask.
func (r *Route) check() error {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("its base URL is not one that the model proxy can ask")
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && !(u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())) {
		return errors.New("its base URL must be https, or http on this machine")
	}
	if len(r.Name) > 40 {
		return errors.New("its name is too long")
	}
	return nil
}

// noProxy is what is open where the model proxy is not in between.
const noProxy = "the model proxy is not in between (--no-model-proxy, or no provider in the settings): what a hook misses reaches the model, and a session without hooks is not refused"

// probe asks the proxy as a session would whose hooks are silent: it must
// refuse, and say so. Nothing reaches the provider.
func (r *Route) probe(ctx context.Context, proxy string) error {
	path, body := "/v1/messages", `{"model":"canary","max_tokens":1,"messages":[{"role":"user","content":"canary"}]}`
	switch r.API {
	case "openai":
		path = "/chat/completions"
	case "ollama":
		path = "/api/chat"
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base(proxy)+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return fmt.Errorf("ask the model proxy: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.New("the model proxy does not answer: start it with `auditd serve`") // the address holds its token
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	switch {
	case err != nil:
		return fmt.Errorf("read the model proxy's answer: %w", err)
	case res.StatusCode == http.StatusBadRequest && strings.Contains(string(answer), "hooks of this session have reported nothing"):
		return nil
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("the model proxy does not know %s: restart the daemon", r.Name)
	}
	return fmt.Errorf("the model proxy answered %d to a session without hooks", res.StatusCode)
}

// checkRoutes are the canary's checks of the model proxy.
func checkRoutes(ctx context.Context, routes []Route, proxy string) []Check {
	var out []Check
	for i := range routes {
		c := Check{Name: "the model proxy refuses a session without hooks", Passed: true, Seen: "nothing: " + routes[i].Name + " refuses it"}
		if err := routes[i].probe(ctx, proxy); err != nil {
			c.Passed, c.Seen = false, err.Error()
		}
		out = append(out, c)
	}
	return out
}

// routeProblems says what is wrong with an installation's routes. open are
// providers that have none.
func routeProblems(ctx context.Context, routes []Route, proxy string, open []string) []string {
	var out []string
	switch {
	case len(routes) == 0:
		return []string{noProxy}
	case proxy == "":
		return []string{"the model proxy is off in the configuration: set proxy.listen"}
	}
	for i := range routes {
		if err := routes[i].probe(ctx, proxy); err != nil {
			out = append(out, err.Error())
		}
	}
	for _, name := range open {
		out = append(out, "the models of "+name+" are asked directly, past the model proxy")
	}
	return out
}
