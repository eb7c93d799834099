package secret

import "strings"

// assignWords are the words whose assigned value may be a secret. They stand
// everywhere, so what follows one is looked at by hand before any expression.
var assignWords = []string{"access", "auth", "api", "credential", "creds", "key", "passw", "secret", "token", "pwd", "passphrase", "passwort", "contraseña", "mot de passe", "パスワード", "密码"}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// operatorFollows reports whether an assignment's operator comes within the
// distance that gitleaks' expressions allow.
func (c *Scan) operatorFollows(end int) bool {
	t := c.text
	for i := end; i < len(t) && i < end+24; i++ {
		switch b := t[i]; {
		case b == '=' || b == ':' || b == '|' || b == '>' || b == ',' || b == '?':
			return true
		case !wordByte(b) && strings.IndexByte(" \t\n\r.-'\"", b) < 0:
			return false
		}
	}
	return false
}

// tokenFollows reports whether at least n characters of a token follow.
func (c *Scan) tokenFollows(end, n int) bool {
	t := c.text
	if end+n > len(t) {
		return false
	}
	for i := end; i < end+n; i++ {
		if !wordByte(t[i]) && strings.IndexByte("-.~+/=", t[i]) < 0 || n > shortToken && t[i] == '.' {
			return false
		}
	}
	return true
}

// assigned looks for "WORD = value" behind a keyword.
func (c *Scan) assigned(start, end int) {
	t := c.text
	i := end
	for n := 0; n < 20 && i < len(t) && (wordByte(t[i]) || t[i] == '.' || t[i] == '-' || t[i] == ' ' || t[i] == '\t'); n++ {
		i++
	}
	for n := 0; n < 3 && i < len(t) && strings.IndexByte(" \t\n'\"", t[i]) >= 0; n++ {
		i++
	}
	if i >= len(t) {
		return
	}
	switch t[i] {
	case '=', ':', '|', '>', ',':
	case '?':
		if i+1 < len(t) && t[i+1] != '=' {
			return
		}
	default:
		return
	}
	op := t[i]
	for i < len(t) && strings.IndexByte("=:>|?,", t[i]) >= 0 {
		i++
	}
	quoted := byte(0)
	for n := 0; n < 5 && i < len(t) && strings.IndexByte(" \t'\"`=", t[i]) >= 0; n++ {
		if strings.IndexByte("'\"`", t[i]) >= 0 {
			quoted = t[i]
		}
		i++
	}
	v := i
	stop := "'\"`;,<>|&)}]\\"
	if quoted != 0 {
		stop = string(quoted)
	}
	for i < len(t) && i-v < 150 && t[i] > ' ' && strings.IndexByte(stop, t[i]) < 0 && t[i] < 0x80 {
		i++
	}
	value := strings.TrimRight(t[v:i], ".,:!?")
	if len(value) < 6 || Documented(value) {
		return
	}
	from := start
	for from > 0 && start-from < 50 && (wordByte(t[from-1]) || t[from-1] == '.' || t[from-1] == '-') {
		from--
	}
	switch {
	case c.genericKey(value, t[from:min(len(t), i+1)]):
		c.add("generic-api-key", v, v+len(value))
	case op != ',' && isPassword(t[start:end]) && c.password(value, quoted != 0):
		c.add("generic-password", v, v+len(value))
	}
}

// genericKey applies gitleaks' generic rule to a value that was found by hand:
// its characters, its entropy, its allow-lists.
func (c *Scan) genericKey(value, match string) bool {
	if len(value) < 10 || entropy(value) <= c.s.generic.entropy {
		return false
	}
	for i := 0; i < len(value); i++ {
		if !wordByte(value[i]) && strings.IndexByte(".=-+/", value[i]) < 0 {
			return false
		}
	}
	return strings.ContainsAny(value, "0123456789") && !c.allowed(c.s.generic, value, match)
}

func isPassword(word string) bool {
	switch strings.ToLower(word) {
	case "passw", "pwd", "passphrase", "passwort", "contraseña", "mot de passe", "パスワード", "密码":
		return true
	}
	return false
}

// password judges a value by what passwords have and words have not.
func (c *Scan) password(value string, quoted bool) bool {
	var lower, upper, digit, other bool
	for i := 0; i < len(value); i++ {
		switch b := value[i]; {
		case '0' <= b && b <= '9':
			digit = true
		case 'a' <= b && b <= 'z':
			lower = true
		case 'A' <= b && b <= 'Z':
			upper = true
		default:
			other = true
		}
	}
	if strings.ContainsAny(value, "(){}[]/") && !quoted || strings.Contains(value, "://") || strings.HasPrefix(value, "os.") || strings.HasPrefix(value, "process.") {
		return false // code, a path or a link
	}
	classes := 0
	for _, has := range []bool{lower, upper, digit, other} {
		if has {
			classes++
		}
	}
	return digit && classes >= 2 && (classes >= 3 || quoted || len(value) >= 8) && entropy(value) > 2.5
}

// userinfo looks for scheme://user:password@host.
func (c *Scan) userinfo(start, end int) {
	t := c.text
	i, colon := end, -1
	for i < len(t) && i-end < 200 && t[i] > ' ' && strings.IndexByte("/?#\"'<>`", t[i]) < 0 && t[i] != '@' {
		if t[i] == ':' && colon < 0 {
			colon = i
		}
		i++
	}
	if i >= len(t) || t[i] != '@' || colon < 0 || i-colon < 5 {
		return
	}
	value := t[colon+1 : i]
	switch strings.ToLower(value) {
	case "password", "passwd", "pass", "secret", "postgres", "user", "token", "mysql", "root", "admin", "test":
		return // documentation's words
	}
	if !Documented(value) && !strings.Contains(value, "$") {
		c.add("url-password", colon+1, i)
	}
}

// bearer looks for the token of an authorization header.
func (c *Scan) bearer(start, end int) {
	t := c.text
	i := end
	if t[end-1] != ' ' { // authorization
		for i < len(t) && i-end < 4 && strings.IndexByte("\"': =", t[i]) >= 0 {
			i++
		}
		j := strings.IndexByte(t[i:min(len(t), i+12)], ' ')
		if j < 0 || !strings.EqualFold(t[i:i+j], "basic") && !strings.EqualFold(t[i:i+j], "token") {
			return
		}
		i += j + 1
	}
	v := i
	for i < len(t) && i-v < 4096 && (wordByte(t[i]) || strings.IndexByte("-._~+/=", t[i]) >= 0) {
		i++
	}
	value := t[v:i]
	if len(value) >= 16 && entropy(value) > 3.2 && strings.ContainsAny(value, "0123456789") && !Documented(value) {
		c.add("authorization-header", v, i)
	}
}
