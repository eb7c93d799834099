package precheck

import (
	"strings"

	"example.org/auditd/schema"
)

// weights are the coarse hints that each code gives by itself. They order
// flows for a reader; the auditor decides.
var weights = [...]struct{ risk, exploitability, impact float64 }{
	schema.CredSecret:                 {0.45, 0.40, 0.70},
	schema.PIIContact:                 {0.15, 0.15, 0.35},
	schema.FinancialData:              {0.20, 0.20, 0.55},
	schema.ExternalSink:               {0.25, 0.45, 0.40},
	schema.PrivateEndpoint:            {0.20, 0.35, 0.45},
	schema.AuthorityCrossing:          {0.40, 0.45, 0.65},
	schema.PersistentContextUntrusted: {0.25, 0.35, 0.50},
	schema.DangerousSideEffect:        {0.40, 0.45, 0.75},
	schema.RecipientAmbiguity:         {0.20, 0.30, 0.35},
	schema.PromptControl:              {0.45, 0.50, 0.50},
	schema.EncodedPayload:             {0.25, 0.35, 0.30},
	schema.ToolOutputPoisoning:        {0.45, 0.55, 0.55},
	schema.SensitiveFilePath:          {0.25, 0.35, 0.50},
}

// reach is how much of a hint a sink lets through: words in the model's
// context can mislead, words in a command act.
var reach = map[schema.SinkKind]float64{
	schema.SinkReasoning: 0.7, schema.SinkFile: 0.7, schema.SinkMemory: 0.9, schema.SinkPlan: 0.9, schema.SinkMessage: 0.9, schema.SinkWeb: 1,
}

// trustFactor is how much of the risk is left when the source is trusted more.
var trustFactor = [...]float64{schema.Hostile: 1.2, schema.Untrusted: 1, schema.Derived: 0.9, schema.Trusted: 0.6, schema.Owner: 0.4}

// hints combines the codes as independent chances: one weak sign says little,
// several say more, none pushes the hint past 1.
func hints(f *schema.Flow, p *schema.Precheck) (risk, exploitability, impact float64) {
	if p.HardBlock {
		return 1, 1, 1
	}
	trust := 1.0
	if int(f.Source.Trust) < len(trustFactor) {
		trust = trustFactor[f.Source.Trust]
	}
	r, ok := reach[f.Sink.Kind]
	if !ok {
		r = 1
	}
	safe, unexploited, harmless := 1.0, 1.0, 1.0
	var seen [len(weights)]bool
	for _, s := range p.Signals {
		if int(s.Code) >= len(weights) || seen[s.Code] {
			continue
		}
		seen[s.Code] = true
		w := weights[s.Code]
		safe *= 1 - min(w.risk*trust*r, 1)
		unexploited *= 1 - min(w.exploitability*trust*r, 1)
		harmless *= 1 - w.impact*r
	}
	// A secret, a person's data or money beside a way out is worse than either.
	if (seen[schema.CredSecret] || seen[schema.PIIContact] || seen[schema.FinancialData] || seen[schema.SensitiveFilePath]) && seen[schema.ExternalSink] {
		safe *= 0.7
	}
	return round(1 - safe), round(1 - unexploited), round(1 - harmless)
}

func round(x float64) float64 { return float64(int(x*100+0.5)) / 100 }

// notCompound drops a match whose noun only says which thing is meant: a
// password field, a secrets manager.
func notCompound(text string, start, end int) (int, int, bool) {
	for _, w := range []string{" field", " manager", " reset", " policy", " policies", " strength", " hash", " prompt", " rules", " box", " page", " option", " requirement", " settings", " management", " rotation", " hint", " length", " input"} {
		if strings.HasPrefix(text[end:], w) {
			return 0, 0, false
		}
	}
	return start, end, true
}

// pathLike keeps a match that is not the inside of a longer word.
func pathLike(text string, start, end int) (int, int, bool) {
	if start > 0 && wordByte(text[start]) && wordByte(text[start-1]) {
		return 0, 0, false
	}
	for start > 0 && end-start < 200 && pathByte(text[start-1]) {
		start--
	}
	for end < len(text) && end-start < 400 && pathByte(text[end]) {
		end++
	}
	return start, end, true
}

func pathByte(c byte) bool {
	return wordByte(c) || c == '/' || c == '.' || c == '-' || c == '~' || c == '\\' || c == '@' || c == '$'
}

// envFile tells an environment file from process.env, a word and a domain.
func envFile(text string, start, end int) (int, int, bool) {
	if text[start] == '/' {
		return start, end, end == len(text) || !wordByte(text[end])
	}
	if start > 0 && (wordByte(text[start-1]) || text[start-1] == ')' || text[start-1] == ']') {
		return 0, 0, false
	}
	if end < len(text) && text[end] == '.' {
		for _, suffix := range []string{".local", ".prod", ".dev", ".stag", ".test"} {
			if len(text)-end >= len(suffix) && text[end:end+len(suffix)] == suffix {
				return pathLike(text, start, end)
			}
		}
		if end+1 < len(text) && wordByte(text[end+1]) {
			return 0, 0, false
		}
	}
	return pathLike(text, start, end)
}
