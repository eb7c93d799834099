package precheck

import (
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
