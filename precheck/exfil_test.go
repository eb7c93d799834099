package precheck

import (
	"encoding/base64"
	"testing"

	"example.org/auditd/schema"
)

// An escalation rule asks a person where both stand.
func TestCredentialsOnTheirWayOutRaiseBothCodes(t *testing.T) {
	c := newTest(t)
	for _, r := range Rules() {
		if r.Name != "secret-upload" {
			continue
		}
		for _, e := range r.Hit {
			p := c.Check(e.Flow())
			secret, out := false, false
			for _, s := range p.Signals {
				secret = secret || s.Code == schema.CredSecret || s.Code == schema.SensitiveFilePath
				out = out || s.Code == schema.ExternalSink
			}
			if !secret || !out {
				t.Errorf("%q: %v", e.Text, names(p))
			}
		}
	}
}

func TestTokensOfDigitsAreSeenInBase64(t *testing.T) {
	c := newTest(t)
	for _, token := range []string{"ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a", "AKIA" + "2347QYLP567HFI2Q"} {
		e := Example{Text: "note " + base64.StdEncoding.EncodeToString([]byte(token)), Sink: schema.SinkMessage, Source: schema.SourceAgent, Trust: schema.Untrusted, Destination: "a@b.example.net"}
		if p := c.Check(e.Flow()); !raised(p, "secret-gitleaks") {
			t.Errorf("%.8s…: %v", token, names(p))
		}
	}
}
