package secret

import (
	"regexp"
	"strings"
	"testing"

	"example.org/auditd/precheck/keyword"
)

func find(t testing.TB, s *Scanner, set *keyword.Set, text string) []Finding {
	t.Helper()
	c := s.Begin(text)
	set.Scan(text, c.Hit)
	f, _ := c.Findings()
	return f
}

func scanner(t testing.TB) (*Scanner, *keyword.Set) {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	set, err := keyword.New(s.Keywords())
	if err != nil {
		t.Fatal(err)
	}
	return s, set
}

// The values are split so that no scanner takes this file for a leak.
func TestFindingsAreTheSecretItself(t *testing.T) {
	s, set := scanner(t)
	for _, c := range []struct{ text, want, rule string }{
		{"export AWS_KEY=" + "AKIA" + "QYLPMN5HFIQR7XYA", "AKIA" + "QYLPMN5HFIQR7XYA", "aws-access-token"},
		{"token: ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xYz", "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xYz", "github-pat"},
		{"slack xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", "xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", "slack-bot-token"},
		{"API_KEY=" + "9f8s7d6f5g4h3j2k1l0q9w8e7r6t5y4u", "9f8s7d6f5g4h3j2k1l0q9w8e7r6t5y4u", "generic-api-key"},
		{`password = "` + `Tr0ub4dor&3"`, "Tr0ub4dor&3", "generic-password"},
		{"postgres://app:" + "s3cr3tPw9@db.example.com/x", "s3cr3tPw9", "url-password"},
		{"Authorization: Bearer " + "q9Xz7Lk2Wv8Rt4Yu1Pn6", "q9Xz7Lk2Wv8Rt4Yu1Pn6", "authorization-header"},
	} {
		f := find(t, s, set, c.text)
		if len(f) != 1 || c.text[f[0].Start:f[0].End] != c.want || f[0].Rule != c.rule {
			t.Errorf("%s: %+v, want the secret of %s", c.rule, f, c.rule)
		}
	}
}

func TestDocumentationIsNoLeak(t *testing.T) {
	s, set := scanner(t)
	for _, text := range []string{
		"aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"password: your_password_here", "password = ${DB_PASSWORD}", "PASSWORD=<password>", "Reset your password: click the link",
		"api_key: YOUR_API_KEY", "token = os.environ['TOKEN']", "The secret: be kind to people", "key: value", "primary_key=user_account_identifier",
		"postgres://user:password@localhost/db", "Authorization: Bearer $TOKEN", "Authorization: Bearer <token>",
		"the access log shows /var/log/nginx/access.log", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"passwords must have 8 characters", "curl -H 'Authorization: Bearer YOUR_TOKEN' https://example.com",
	} {
		if f := find(t, s, set, text); len(f) != 0 {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestEveryExpressionCompiles(t *testing.T) {
	s, _ := scanner(t)
	for _, r := range s.rules {
		if _, err := regexp.Compile(r.source); err != nil {
			t.Errorf("%s: %v", r.id, err)
		}
		for _, a := range append(r.allows, s.global...) {
			for _, src := range a.sources {
				if _, err := regexp.Compile(src); err != nil {
					t.Errorf("%s: allow-list: %v", r.id, err)
				}
			}
		}
	}
}

func TestTextOfNothingButKeywordsReachesTheWorkLimit(t *testing.T) {
	s, set := scanner(t)
	text := strings.Repeat(strings.Join(s.Keywords(), " "), 1200)[:1<<20]
	c := s.Begin(text)
	set.Scan(text, c.Hit)
	if _, limited := c.Findings(); !limited {
		t.Error("no limit was reached")
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		if _, err := New(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	s, set := scanner(b)
	prose := strings.Repeat("The access key is kept in the vault; tokens are rotated by the auth service. See the API docs. ", 108)
	for name, text := range map[string]string{"prose 10KiB": prose, "keywords 1MiB": strings.Repeat(strings.Join(s.Keywords(), " "), 1200)[:1<<20]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for range b.N {
				find(b, s, set, text)
			}
		})
	}
}
