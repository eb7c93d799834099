package cases

// Form is a case as programs write it: in JSON, with the keys that Parse reads.
type Form struct {
	ID      string   `json:"id"`
	Kind    Kind     `json:"kind"`
	Family  string   `json:"family"`
	Pairs   string   `json:"pairs,omitempty"`
	Goal    string   `json:"goal"`
	Surface string   `json:"surface,omitempty"`
	From    From     `json:"from"`
	To      To       `json:"to"`
	Intent  string   `json:"intent,omitempty"`
	Payload string   `json:"payload,omitempty"` // without it the form is no case yet
	Span    string   `json:"span,omitempty"`
	Effect  []string `json:"effect,omitempty"`
	Secret  string   `json:"secret,omitempty"`
	Keep    []string `json:"keep,omitempty"`
}

// From is where a case's payload comes from.
type From struct {
	Kind  string `json:"kind"`
	ID    string `json:"id,omitempty"`
	Trust string `json:"trust"`
}

// To is where a case's payload goes.
type To struct {
	Kind        string `json:"kind"`
	ID          string `json:"id,omitempty"`
	Tool        string `json:"tool,omitempty"`
	Action      string `json:"action,omitempty"`
	Destination string `json:"destination,omitempty"`
}
