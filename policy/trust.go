package policy

import "example.org/auditd/schema"

// DefaultTrust is the level of a source that no rule of the owner names: what
// the owner typed is the owner's, what comes from this machine's own files and
// agents is derived from who knows what, and everything that strangers can
// write is untrusted: that is also what a tool returns, which may have fetched
// it from anywhere.
func DefaultTrust(kind schema.SourceKind) schema.Trust {
	switch kind {
	case schema.SourceUser:
		return schema.Owner
	case schema.SourceFile, schema.SourceMemory, schema.SourceAgent, schema.SourceSkill:
		return schema.Derived
	default:
		return schema.Untrusted
	}
}

// Ceiling returns the highest level that a source can have, from its kind and
// id alone.
func (p *Policy) Ceiling(src schema.Source) schema.Trust {
	for _, r := range p.trust {
		if r.kind != src.Kind {
			continue
		}
		if r.id != nil && !matchID(r.id, src.ID) {
			continue
		}
		if r.host != "" && !hostMatches(r.host, hostOf(src.ID)) {
			continue
		}
		return r.trust
	}
	return DefaultTrust(src.Kind)
}

// Trust returns the level that a source has when a caller with a credential
// claims one. An agent can read the hook token, so what the hook credential
// claims can only lower the ceiling; the owner's credential is believed.
func (p *Policy) Trust(src schema.Source, cred schema.Credential) schema.Trust {
	switch cred {
	case schema.CredentialOwner:
		return src.Trust
	case schema.CredentialHook:
		return min(src.Trust, p.Ceiling(src))
	default:
		return min(src.Trust, schema.Untrusted)
	}
}
