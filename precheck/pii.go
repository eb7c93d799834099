package precheck

import (
	"math/big"
	"strings"
	"unicode/utf8"

	"example.org/auditd/precheck/normalise"
)

// email looks at the address around the at sign at i.
func (k *check) email(p *piece, t *normalise.Text, i int) {
	s := t.Lower
	start, end := i, i+1
	for start > 0 && i-start < 64 && (wordByte(s[start-1]) || strings.IndexByte(".+-%", s[start-1]) >= 0) {
		start--
	}
	for end < len(s) && end-i < 255 && (wordByte(s[end]) && s[end] != '_' || s[end] == '.' || s[end] == '-') {
		end++
	}
	for end > i+1 && (s[end-1] == '.' || s[end-1] == '-') {
		end--
	}
	local, domain := s[start:i], s[i+1:end]
	dot := strings.LastIndexByte(domain, '.')
	if local == "" || dot <= 0 || len(domain)-dot < 3 || !letters(domain[dot+1:]) || start > 0 && (s[start-1] == '/' || s[start-1] == ':' && local == "git") {
		return
	}
	if end < len(s) && s[end] == ':' && local == "git" || local == "git" || strings.HasPrefix(local, "noreply") || strings.HasPrefix(local, "no-reply") {
		return // a repository or a machine
	}
	for _, doc := range []string{"example.com", "example.org", "example.net", "domain.com", "email.com", "users.noreply.github.com", "test.com", "yourdomain.com", "company.com"} {
		if domain == doc || strings.HasSuffix(domain, "."+doc) {
			return
		}
	}
	from, to := p.at(t.Span(start, end))
	k.raise("pii-email", false, from, to, via(p, t, start, end))
}

func letters(s string) bool {
	for i := 0; i < len(s); i++ {
		if !letter(s[i]) {
			return false
		}
	}
	return true
}

// numbers walks the digit runs of the text: phones, cards and bank accounts
// are told from other numbers by their checks.
func (k *check) numbers(p *piece, t *normalise.Text) {
	s := t.Lower
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			continue
		}
		start := i
		digits, end := 0, i
		var number [32]byte
		for i < len(s) && digits < len(number) {
			c := s[i]
			if '0' <= c && c <= '9' {
				number[digits] = c
				digits++
				i++
				end = i
				continue
			}
			// One separator between groups, "(", ")" or ") " too.
			if (c == ' ' || c == '-' || c == '.' || c == '/' || c == '(' || c == ')') && i-end < 2 {
				i++
				continue
			}
			break
		}
		for i < len(s) && digits == len(number) && '0' <= s[i] && s[i] <= '9' {
			i++ // longer than any number of interest
			end = i
			digits = 99
		}
		if start >= 2 && letter(s[start-1]) && letter(s[start-2]) && (start == 2 || !wordByte(s[start-3])) {
			k.iban(p, t, start-2)
			i = end - 1
			continue
		}
		if digits >= 7 && digits <= len(number) {
			k.number(p, t, start, end, string(number[:digits]))
		}
		i = end - 1
	}
}

func (k *check) number(p *piece, t *normalise.Text, start, end int, digits string) {
	s := t.Lower
	if start > 0 && (wordByte(s[start-1]) || s[start-1] == '.' || s[start-1] == '#' || s[start-1] == '=') || end < len(s) && (wordByte(s[end]) || s[end] == '=') {
		return
	}
	switch n := len(digits); {
	case n >= 13 && n <= 19 && card(digits):
		from, to := p.at(t.Span(start, end))
		k.raise("finance-card", false, from, to, via(p, t, start, end))
	case n >= 8 && n <= 15 && phone(s, start, end, n):
		if start > 0 && (s[start-1] == '+' || s[start-1] == '(') {
			start--
		}
		from, to := p.at(t.Span(start, end))
		k.raise("pii-phone", false, from, to, via(p, t, start, end))
	}
}

// card applies the issuers' prefixes and Luhn's check.
func card(d string) bool {
	switch {
	case d[0] == '4' && (len(d) == 13 || len(d) == 16 || len(d) == 19), d[0] == '5' && d[1] >= '1' && d[1] <= '5' && len(d) == 16, d[0] == '2' && len(d) == 16,
		d[0] == '3' && (d[1] == '4' || d[1] == '7') && len(d) == 15, d[0] == '3' && (d[1] == '0' || d[1] == '6' || d[1] == '8') && len(d) == 14, d[0] == '6' && len(d) >= 16:
	default:
		return false
	}
	sum := 0
	for i := range len(d) {
		v := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0 && strings.Count(d, d[:1]) < len(d)-2
}

// phone tells a phone number from a date, an amount or an identifier by its
// plus sign, its brackets or the word in front.
func phone(s string, start, end, digits int) bool {
	raw := s[start:end]
	if strings.IndexByte(raw, '/') >= 0 || strings.Count(raw, ".") == 3 {
		return false
	}
	if start > 0 && s[start-1] == '+' {
		return raw[0] != '0'
	}
	grouped := strings.Count(raw, "-")+strings.Count(raw, ".")+strings.Count(raw, " ") >= 2
	if start > 0 && s[start-1] == '(' && digits >= 10 && digits <= 11 {
		return true
	}
	if digits == 10 && grouped && len(raw) == 12 && (raw[3] == '-' || raw[3] == '.') && raw[7] == raw[3] {
		return true
	}
	before := s[max(0, start-24):start]
	for _, w := range []string{"phone", "tel", "mobile", "cell", "call", "fax", "whatsapp", "handy", "telefon", "telefono", "电话", "電話", "전화"} {
		if strings.Contains(before, w) {
			return digits >= 9
		}
	}
	return false
}

// iban checks an international bank account number that starts at i.
func (k *check) iban(p *piece, t *normalise.Text, i int) {
	s := t.Lower
	if i < 0 || i+4 > len(s) || !letter(s[i]) || !letter(s[i+1]) || i > 0 && wordByte(s[i-1]) {
		return
	}
	var compact [34]byte
	n, end := 0, i
	for j := i; j < len(s) && n < len(compact); j++ {
		c := s[j]
		if c == ' ' && j+1 < len(s) && wordByte(s[j+1]) && n >= 4 {
			continue
		}
		if !letter(c) && (c < '0' || c > '9') {
			break
		}
		compact[n] = c
		n++
		end = j + 1
		if want := ibanLength[string(compact[:min(n, 2)])]; n >= 4 && want == 0 {
			return
		} else if n == want {
			break
		}
	}
	if n < 15 || ibanLength[string(compact[:2])] != n || end < len(s) && wordByte(s[end]) || !mod97(compact[:n]) {
		return
	}
	from, to := p.at(t.Span(i, end))
	k.raise("finance-iban", false, from, to, via(p, t, i, end))
}

var ibanLength = map[string]int{"de": 22, "at": 20, "ch": 21, "gb": 22, "fr": 27, "it": 27, "es": 24, "pt": 25, "nl": 18, "be": 16, "lu": 20, "ie": 22, "pl": 28, "cz": 24,
	"sk": 24, "hu": 28, "ro": 24, "bg": 22, "hr": 21, "si": 19, "dk": 18, "se": 24, "no": 15, "fi": 18, "ee": 20, "lv": 21, "lt": 20, "gr": 27, "cy": 28, "mt": 31, "tr": 26,
	"li": 21, "mc": 27, "is": 26, "ae": 23, "sa": 24, "il": 23, "qa": 29, "br": 29, "ua": 29, "kz": 20, "pk": 24, "jo": 30, "kw": 30, "bh": 22, "eg": 29, "ge": 22, "rs": 22}

func mod97(s []byte) bool {
	var b strings.Builder
	for _, c := range append(append([]byte(nil), s[4:]...), s[:4]...) {
		if letter(c) {
			b.WriteByte('0' + (c-'a'+10)/10)
			b.WriteByte('0' + (c-'a'+10)%10)
		} else {
			b.WriteByte(c)
		}
	}
	n, ok := new(big.Int).SetString(b.String(), 10)
	return ok && n.Mod(n, big.NewInt(97)).Int64() == 1
}

// postalAddress judges a street's word: a house number must stand beside it
// and a postal code near.
func postalAddress(text string, start, end int) (int, int, bool) {
	const reach = 48
	from, to := max(0, start-reach), min(len(text), end+reach)
	for from < start && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	line := text[from:to]
	if i := strings.LastIndexByte(line[:start-from], '\n'); i >= 0 {
		from += i + 1
	}
	if i := strings.IndexByte(text[end:to], '\n'); i >= 0 {
		to = end + i
	}
	house, code := false, false
	for i := from; i < to; {
		if text[i] < '0' || text[i] > '9' {
			i++
			continue
		}
		j := i
		for j < to && '0' <= text[j] && text[j] <= '9' {
			j++
		}
		n := j - i
		alone := (i == 0 || !wordByte(text[i-1]) && text[i-1] != '.' && text[i-1] != ':') && (j == len(text) || !wordByte(text[j]) || j-i <= 4 && letter(text[j]) && (j+1 == len(text) || !wordByte(text[j+1])))
		switch {
		case !alone:
		case (n == 5 || n == 4) && i > end:
			code = true
		case n <= 5 && (i-end <= 2 && i >= end || start-i <= 30 && i < start):
			house = true
		}
		i = j
	}
	return from, to, house && code
}
