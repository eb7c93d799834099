// Package api holds the documents of the HTTP API that are not already in
// schema, for the server and its Go client.
package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/auditlog"
	"example.org/auditd/schema"
)

// ErrorBody is the one shape of every error. Action is always block, so that a
// client which looks only for an action stops.
type ErrorBody struct {
	Error  ErrorDetail   `json:"error"`
	Action schema.Action `json:"action"`
}

// ErrorDetail says what was wrong.
type ErrorDetail struct {
	Code    string `json:"code"`            // a stable word
	Field   string `json:"field,omitempty"` // of the request, when one is to blame
	Message string `json:"message"`         // a sentence
}

// Batch is several flows.
type Batch struct {
	Flows []jsontext.Value `json:"flows"`
}

// BatchAnswer has one entry for each flow, in order.
type BatchAnswer struct {
	Results []BatchResult `json:"results"`
}

// BatchResult holds a decision, or an error in place of one: then Decision is
// the zero value, which blocks.
type BatchResult struct {
	Decision *schema.Decision `json:"decision,omitempty"`
	Error    *ErrorDetail     `json:"error,omitempty"`
	Action   schema.Action    `json:"action"` // the decision's, or block
}

// Questions are those that wait.
type Questions struct {
	Questions []schema.Question `json:"questions"`
}

// Approval is an owner's answer.
type Approval struct {
	Answer   string    `json:"answer"`             // approve or deny
	Grant    *Grant    `json:"grant,omitempty"`    // with approve
	Remember *Remember `json:"remember,omitempty"` // with deny
	// Instead is the owner's own text, which goes on in place of the payload;
	// with approve. It is audited again first.
	Instead *string `json:"instead,omitempty"`
}

// Review is a text that the owner would send in place of a question's.
type Review struct {
	Text string `json:"text"`
}

// Reviewed says what the rules and the auditor find in it.
type Reviewed struct {
	Decision schema.Decision `json:"decision"`
	Problem  string          `json:"problem,omitempty"` // why it can't be sent; empty when it can
}

// Grant widens an approval from one call to several. At least one of its fields
// must be set.
type Grant struct {
	Uses    int       `json:"uses,omitzero"`    // how many further calls
	Session bool      `json:"session,omitzero"` // only in the session that asked
	Until   time.Time `json:"until,omitzero"`   // at most seven days away
}

// Login is one of the two ways to an owner session.
type Login struct {
	Passphrase string `json:"passphrase,omitempty"`
	Code       string `json:"code,omitempty"`
}

// Session is a token, or a one-time code, and when it ends.
type Session struct {
	Token   string    `json:"token,omitempty"`
	Code    string    `json:"code,omitempty"`
	Expires time.Time `json:"expires"`
}

// Record is one record of the decision log.
type Record struct {
	Record auditlog.Record `json:"record"`
	// Value is the redacted text, while it is kept; for the owner alone.
	Value *auditlog.Value `json:"value,omitempty"`
	// Proof shows that the record is in the log that a checkpoint signs.
	Proof *auditlog.Proof `json:"proof,omitempty"`
}

// RecordList is a part of the log.
type RecordList struct {
	Records []Record `json:"records"`
}

// ModelInfo describes one model.
type ModelInfo struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`
	Role    string `json:"role"` // auditor, arbiter, or known
	Digest  string `json:"digest,omitempty"`
	Ready   bool   `json:"ready"`
	Detail  string `json:"detail,omitempty"` // what is missing
	Purpose string `json:"purpose,omitempty"`
}

// ModelList are the models in use and known.
type ModelList struct {
	Models []ModelInfo `json:"models"`
}

// PolicyInfo is the policy in force.
type PolicyInfo struct {
	Digest schema.Digest `json:"digest"`
	Source string        `json:"source"` // the file, or "built in"
	Text   string        `json:"text"`   // as YAML
}

// Health is the answer of a living process.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Owner   bool   `json:"owner"` // whether a passphrase is set
}

// Readiness says whether every flow can be decided, and what is missing.
type Readiness struct {
	Ready   bool     `json:"ready"`
	Missing []string `json:"missing"`
}

// SchemaList are the names of the JSON Schemas.
type SchemaList struct {
	Schemas []string `json:"schemas"`
}
