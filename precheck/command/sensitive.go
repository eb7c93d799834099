package command

import (
	"path"
	"strings"
)

// Sensitive reports whether a path is one of those that hold credentials.
func Sensitive(p string) bool {
	if len(p) > maxPath || len(p) < 4 {
		return false
	}
	p = strings.ToLower(p)
	if i := strings.LastIndexByte(p, '@'); i >= 0 && !strings.Contains(p, "://") {
		p = p[i+1:] // curl's @file and name=@file
	}
	p = strings.TrimPrefix(strings.TrimSuffix(p, "/"), "file://")
	base := path.Base(p)
	switch base {
	case ".env", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".vault-token", ".my.cnf", ".htpasswd", ".ssh", ".gnupg", ".aws", ".azure",
		"id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "credentials", "credentials.json", "wallet.dat", "logins.json", "key4.db", "cookies.sqlite", "login data",
		"environ", "shadow", "kubeconfig", "secrets.yaml", "secrets.yml", "service-account.json", "application_default_credentials.json":
		return base != "credentials" && base != "shadow" && base != "environ" || strings.Contains(p, "/")
	case "config.pub", "known_hosts", ".env.example", ".env.sample", ".env.template", ".env.dist":
		return false
	}
	for _, part := range []string{".aws/", ".gnupg/", ".kube/config", ".docker/config.json", ".config/gcloud", ".config/gh/hosts", "/run/secrets/", "/etc/passwd", "serviceaccount/token"} {
		if strings.Contains(p, part) {
			return true
		}
	}
	return strings.HasPrefix(base, ".env.") || strings.Contains(p, ".ssh/") && !strings.HasSuffix(base, ".pub") && base != "config"
}

// uploads notes that a command sends something away, and whether that holds
// credentials.
func (w *walker) uploads(c *call) {
	w.effect(NetworkUpload, false, c.start, c.end)
	secret := c.stdin.secret
	for _, a := range c.args {
		s := a.s
		if _, v, ok := strings.Cut(s, "="); ok && s[0] == '-' {
			s = v
		}
		secret = secret || a.secret || !strings.Contains(s, "://") && Sensitive(strings.TrimPrefix(s, "-T"))
	}
	if secret {
		w.effect(SecretUpload, false, c.start, c.end)
	}
}

// reveals reports whether a command prints credentials or the environment.
func (w *walker) reveals(c *call) bool {
	switch c.name {
	case "printenv", "set":
		return len(c.args) == 0
	case "tar", "zip", "cpio":
		for _, a := range operands(c.args) {
			if p := w.abs(a.s); p == "~" || p == "/" || p == "/home" || p == "~/.config" {
				return true
			}
		}
	}
	switch c.name {
	case "cat", "tac", "head", "tail", "less", "more", "sed", "awk", "grep", "base64", "base32", "xxd", "od", "gzip", "zcat", "strings", "tar", "zip", "dd", "jq", "openssl", "gpg", "nl", "cut", "sort", "tr":
		for _, a := range c.args {
			if Sensitive(strings.TrimPrefix(a.s, "if=")) {
				return true
			}
		}
	}
	return false
}

// sends judges a program that speaks to the network with what it read.
func (w *walker) sends(c *call, low string) {
	out := false
	for _, p := range []string{"requests.post(", "requests.put(", "httpx.post(", "urlopen(", "urllib.request", "http.client", "axios.post(", "smtplib", "net::http.post", "https.request(", "http.request(", "http::tiny", "lwp::"} {
		out = out || strings.Contains(low, p)
	}
	out = out || strings.Contains(low, "fetch(") && strings.Contains(low, "post") || strings.Contains(low, "requests.get(") && strings.Contains(low, "environ")
	if !out {
		return
	}
	secret := wholeEnvironment(low)
	for rest, n := low, 0; n < 32 && !secret; n++ {
		i := strings.IndexAny(rest, "'\"`")
		if i < 0 {
			break
		}
		j := strings.IndexByte(rest[i+1:], rest[i])
		if j < 0 {
			break
		}
		s := rest[i+1 : i+1+j]
		secret = Sensitive(s)
		rest = rest[i+j+2:]
	}
	if secret || !strings.Contains(low, "urlopen(") && !strings.Contains(low, "urllib.request") {
		w.effect(NetworkUpload, false, c.start, c.end)
	}
	if secret {
		w.effect(SecretUpload, false, c.start, c.end)
	}
}

// wholeEnvironment reports whether a program uses all of the environment and
// not one variable of it.
func wholeEnvironment(low string) bool {
	for _, p := range []string{"os.environ", "process.env", "env.to_h", "%env"} {
		if i := strings.Index(low, p); i >= 0 {
			if rest := low[i+len(p):]; rest == "" || strings.IndexByte("[.", rest[0]) < 0 || strings.HasPrefix(rest, ".copy") || strings.HasPrefix(rest, ".items") {
				return true
			}
		}
	}
	return false
}
