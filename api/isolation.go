package api

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// Errors of what is looked up.
var (
	ErrNoSuch  = errors.New("there is no such symbol, view or state")
	ErrMoved   = errors.New("the file has changed meanwhile: look at it again")
	ErrSecret  = errors.New("this is a secret, which is shown to nobody; look at your own file")
	ErrBadTake = errors.New("take must be mine, agent or text")
)

// Inspection is a question about symbols to a model that decides nothing.
type Inspection struct {
	Host     string   `json:"host"`
	Agent    string   `json:"agent"`
	Session  string   `json:"session"`
	CallID   string   `json:"call_id,omitempty"`
	Symbols  []string `json:"symbols"`
	Question string   `json:"question"`
	// Schema is the answer's form; none means one text.
	Schema jsontext.Value `json:"schema,omitempty"`
}

// RuleChange lists the owner's rules of isolation, or proposes to change one.
// A change is a question to a person.
type RuleChange struct {
	Host    string         `json:"host"`
	Agent   string         `json:"agent"`
	Session string         `json:"session"`
	CallID  string         `json:"call_id,omitempty"`
	Ticket  string         `json:"ticket,omitempty"`
	Op      string         `json:"op"`             // add, list or del
	Kind    string         `json:"kind"`           // trust or usage
	Rule    jsontext.Value `json:"rule,omitempty"` // of add
	ID      string         `json:"id,omitempty"`   // of del
	Why     string         `json:"why,omitempty"`
}

// IsolationRules says which rules of isolation hold.
type IsolationRules struct {
	Digest schema.Digest `json:"digest"` // of those in force
	// Edited says that isolation.yaml holds others by now.
	Edited bool `json:"edited"`
	// Problem is why the file cannot be read; the rules in force stay then.
	Problem string `json:"problem,omitempty"`
}

// Symbol is what is known about a symbol.
type Symbol struct {
	Symbol  string            `json:"symbol"`
	Created time.Time         `json:"created"`
	Size    int64             `json:"size"`
	Secret  bool              `json:"secret"`
	Kind    schema.SourceKind `json:"kind"`
	Trust   schema.Trust      `json:"trust"`
	Tool    string            `json:"tool,omitempty"`
	Field   string            `json:"field,omitempty"`
	Origin  string            `json:"origin,omitempty"`
	Agent   string            `json:"agent,omitempty"`
	Parents []string          `json:"parents,omitempty"`
	// Value is the original, for the owner alone. A value that is no text has
	// its odd bytes replaced; one over a mebibyte is left out.
	Value *string `json:"value,omitempty"`
}

// View is a workspace that agents see their own tree of.
type View struct {
	ID   string `json:"id"`
	Root string `json:"root"`
}

// ViewList are the views.
type ViewList struct {
	Views []View `json:"views"`
}

// ViewState is a state that a view can go back to.
type ViewState struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Message string    `json:"message"`
}

// ViewLog are a view's states, the youngest first.
type ViewLog struct {
	States []ViewState `json:"states"`
}

// ViewText is a file of a state, or a patch, as the agent saw it.
type ViewText struct {
	Text string `json:"text"`
}

// ViewConflict is a change of the agent that did not land.
type ViewConflict struct {
	ID     string    `json:"id"`
	Path   string    `json:"path"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
	Human  string    `json:"human,omitempty"` // names of both versions in the history
	Agent  string    `json:"agent,omitempty"`
}

// ViewConflicts are a view's conflicts, the youngest first.
type ViewConflicts struct {
	Conflicts []ViewConflict `json:"conflicts"`
}

// ViewRevert asks to go back to a state.
type ViewRevert struct {
	State string `json:"state"`
}

// ViewReverted says what going back did.
type ViewReverted struct {
	ToHuman   int            `json:"to_human"` // files of the person that changed
	Conflicts []ViewConflict `json:"conflicts"`
}

// SymbolList are symbols, the youngest first, without their values.
type SymbolList struct {
	Symbols []Symbol `json:"symbols"`
	More    bool     `json:"more,omitempty"` // there are older ones
}

// SymbolGraph is a symbol, the first, and all that it was made from.
type SymbolGraph struct {
	Symbols []Symbol `json:"symbols"`
	Cut     bool     `json:"cut,omitempty"` // there is more than is listed
}

// ViewListed is a file of a view.
type ViewListed struct {
	Path    string `json:"path"`
	Symbols int    `json:"symbols"` // stretches of it that are symbols
	Unseen  bool   `json:"unseen,omitempty"`
}

// ViewFiles are files of a view.
type ViewFiles struct {
	Files []ViewListed `json:"files"`
	More  bool         `json:"more,omitempty"`
}

// ViewPiece is a stretch of a file: trusted text, or what a symbol stands for,
// of which only the length is said.
type ViewPiece struct {
	Text   string `json:"text,omitempty"`
	Symbol string `json:"symbol,omitempty"`
	Bytes  int    `json:"bytes"`
}

// ViewSides is a file as both sides had it when they were last in step: the
// agent sees symbols, the person what they stand for.
type ViewSides struct {
	Path      string      `json:"path"`
	AgentPath string      `json:"agent_path"`
	Human     string      `json:"human"`           // names of both versions in the history
	Agent     string      `json:"agent,omitempty"` // absent: the agent does not see it
	Pieces    []ViewPiece `json:"pieces"`
	Symbols   []Symbol    `json:"symbols"`           // those of the pieces, as far as they are known
	Unshown   string      `json:"unshown,omitempty"` // why there are no pieces
	Exact     bool        `json:"exact"`             // no byte of the text had to be replaced to show it
}

// ViewBoth is a conflict with both versions.
type ViewBoth struct {
	ViewConflict
	Now   *ViewSides `json:"now,omitempty"`  // the file as it is; absent where there is none
	Lost  *string    `json:"lost,omitempty"` // what the agent wrote; absent where that is not known
	Exact bool       `json:"exact"`          // no byte of Lost had to be replaced to show it
}

// ViewSettle ends a conflict.
type ViewSettle struct {
	// Take is mine (the file stays as it is), agent (what the agent wrote) or
	// text (the text that is given, with symbols).
	Take string `json:"take"`
	Text string `json:"text,omitempty"`
	// Agent is the agent's version of the file that this was decided on.
	Agent string `json:"agent,omitempty"`
}
