package policy

import (
	"errors"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"example.org/auditd/schema"
)

// OriginRule says how far one source is trusted. Exactly one of URL, File,
// Agent, Sender, Webhook and Instructions is set.
type OriginRule struct {
	// URL is "https://host/path", where host may be "*.example.com" for every
	// host below it and the path may end in "*". A redirect away from what a
	// trusted rule names ends the trust.
	URL string `yaml:"url,omitempty" json:"url,omitempty"`
	// File is a glob; "**" stands for any number of directories. Without a
	// leading slash it is relative to the workspace.
	File    string `yaml:"file,omitempty" json:"file,omitempty"`
	Agent   string `yaml:"agent,omitempty" json:"agent,omitempty"`
	Sender  string `yaml:"sender,omitempty" json:"sender,omitempty"`
	Webhook string `yaml:"webhook,omitempty" json:"webhook,omitempty"`
	// Instructions names system prompts and descriptions of tools that the model
	// proxy sees, as InstructionsOrigin does: "HOST/system-prompt/DIGEST" and
	// "HOST/tool/NAME/DIGEST". A * at the end stands for any rest.
	Instructions string `yaml:"instructions,omitempty" json:"instructions,omitempty"`
	// Trust is "trusted" or "untrusted".
	Trust string `yaml:"trust" json:"trust"`
}

func (o *OriginRule) validate() error {
	n := 0
	for _, s := range []string{o.URL, o.File, o.Agent, o.Sender, o.Webhook, o.Instructions} {
		if s != "" {
			n++
		}
		if len(s) > schema.MaxName {
			return errors.New("is too long")
		}
	}
	if n != 1 {
		return errors.New("must name exactly one of url, file, agent, sender, webhook and instructions")
	}
	if o.Trust != "trusted" && o.Trust != "untrusted" {
		return errors.New("trust must be trusted or untrusted")
	}
	if o.URL != "" {
		p, err := parseURLPattern(o.URL)
		if err != nil {
			return err
		}
		if o.Trust == "trusted" && (p.scheme != "https" || p.host == "*") {
			return errors.New("only an https address of a named host can be trusted")
		}
	}
	if o.Instructions != "" {
		host, rest, _ := strings.Cut(o.Instructions, "/")
		if host == "" || strings.Contains(host, "*") || !strings.HasPrefix(rest, "system-prompt/") && !strings.HasPrefix(rest, "tool/") || strings.Contains(strings.TrimSuffix(rest, "*"), "*") {
			return errors.New("is not HOST/system-prompt/DIGEST or HOST/tool/NAME/DIGEST, with a * at its end at most")
		}
	}
	if o.File != "" {
		for seg := range strings.SplitSeq(o.File, "/") {
			if _, err := path.Match(seg, ""); err != nil || seg == ".." {
				return errors.New("is not a glob")
			}
		}
		if o.Trust == "trusted" && strings.Trim(o.File, "/*.") == "" {
			return errors.New("would trust every file")
		}
	}
	return nil
}

// origin is where one result came from, as the call's own arguments and the
// host say.
type origin struct {
	kind      string // url, file, agent, sender, webhook, instructions
	value     string
	workspace string
}

func (o *OriginRule) matches(from origin) bool {
	switch from.kind {
	case "url":
		p, err := parseURLPattern(o.URL)
		return o.URL != "" && err == nil && p.matches(from.value)
	case "file":
		return o.File != "" && (matchFile(o.File, from.value, from.workspace) ||
			// Who distrusts every inbox means those outside the workspace too.
			o.Trust == "untrusted" && strings.HasPrefix(o.File, "**/") && matchFile("/"+o.File, from.value, from.workspace))
	case "agent":
		return o.Agent != "" && o.Agent == from.value
	case "sender":
		return o.Sender != "" && matchSender(o.Sender, from.value)
	case "webhook":
		return o.Webhook != "" && o.Webhook == from.value
	case "instructions":
		prefix, open := strings.CutSuffix(o.Instructions, "*")
		return o.Instructions != "" && (o.Instructions == from.value || open && strings.HasPrefix(from.value, prefix))
	}
	return false
}

type urlPattern struct{ scheme, host, path string }

func parseURLPattern(s string) (urlPattern, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "https", s
	}
	host, p, _ := strings.Cut(rest, "/")
	if scheme != "https" && scheme != "http" || host == "" || strings.ContainsAny(host, "@?# ") || strings.Contains(strings.TrimPrefix(host, "*."), "*") && host != "*" {
		return urlPattern{}, errors.New("is not an address such as https://api.example.com/v1/*")
	}
	if i := strings.IndexByte(p, '*'); i >= 0 && i != len(p)-1 {
		return urlPattern{}, errors.New("may have a * at the end of its path only")
	}
	return urlPattern{scheme, strings.ToLower(host), "/" + p}, nil
}

// matches compares with what a client would really ask for: the parsed host,
// and the path with its dots resolved.
func (p urlPattern) matches(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Opaque != "" || !strings.EqualFold(u.Scheme, p.scheme) {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Host, "."))
	if p.scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	if below, ok := strings.CutPrefix(p.host, "*."); ok {
		if !strings.HasSuffix(host, "."+below) {
			return false
		}
	} else if p.host != "*" && host != p.host {
		return false
	}
	got := path.Clean("/" + u.Path)
	if strings.HasSuffix(u.Path, "/") && got != "/" {
		got += "/"
	}
	if prefix, ok := strings.CutSuffix(p.path, "*"); ok {
		return strings.HasPrefix(got, prefix) || got+"/" == prefix
	}
	return got == p.path
}

// matchFile matches a glob against a path, which may be relative to the
// workspace.
func matchFile(glob, file, workspace string) bool {
	if file == "" {
		return false
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join("/", workspace, file)
	}
	file = filepath.Clean(file)
	if !strings.HasPrefix(glob, "/") {
		if workspace == "" {
			return false
		}
		rel, err := filepath.Rel(filepath.Clean(workspace), file)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return false
		}
		return matchSegments(strings.Split(path.Clean(glob), "/"), strings.Split(rel, "/"))
	}
	return matchSegments(strings.Split(path.Clean(glob), "/"), strings.Split(file, "/"))
}

func matchSegments(glob, file []string) bool {
	// possible[i] says that the globs so far match the first i segments.
	possible := make([]bool, len(file)+1)
	possible[0] = true
	for _, g := range glob {
		next := make([]bool, len(file)+1)
		for i, ok := range possible {
			if !ok {
				continue
			}
			if g == "**" {
				for j := i; j <= len(file); j++ {
					next[j] = true
				}
			} else if i < len(file) {
				if m, err := path.Match(g, file[i]); err == nil && m {
					next[i+1] = true
				}
			}
		}
		possible = next
	}
	return possible[len(file)]
}

// matchSender matches an address, or "*@example.com" for a whole domain.
func matchSender(rule, sender string) bool {
	rule, sender = strings.ToLower(rule), strings.ToLower(sender)
	if domain, ok := strings.CutPrefix(rule, "*@"); ok {
		i := strings.LastIndexByte(sender, '@')
		return i > 0 && sender[i+1:] == domain && !strings.ContainsAny(sender, " <>,\"")
	}
	return rule == sender
}
