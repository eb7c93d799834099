package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"gopkg.in/yaml.v3"

	"example.org/auditd/internal/durable"
	"example.org/auditd/schema"
)

// Change is what policy_add and policy_del ask for. Exactly one of Add and
// Remove is set.
type Change struct {
	Add    *OriginRule `json:"add,omitempty"`
	Remove string      `json:"remove,omitempty"` // the id of a rule
}

// Listed is a rule of the owner's document as policy_list shows it.
type Listed struct {
	ID   string     `json:"id"`
	Rule OriginRule `json:"rule"`
}

// List returns the origin rules of a document. A rule's id is made of what it
// says, so that an id never comes to mean another rule.
func (d *Document) List() []Listed {
	var out []Listed
	for _, o := range d.Origins {
		out = append(out, Listed{o.id(), *o})
	}
	return out
}

func (o *OriginRule) id() string {
	return string(schema.DigestOf("origin", o.URL, o.File, o.Agent, o.Sender, o.Webhook, o.Instructions, o.Trust))[7:23]
}

// Read reads the owner's document; one that is not there is empty.
func Read(path string) (*Document, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &Document{Version: 1}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return Parse(data)
}

// Proposal is a change that waits for a person. The model's word is never
// enough for one, also not for a rule that makes things stricter: a symbol more
// can stop work as well.
type Proposal struct {
	Change  Change
	Summary string // for the person
	// Flow is what the person is asked about; its binding is what the answer
	// must be bound to.
	Flow    *schema.Flow
	Binding schema.Digest
	after   []byte
	before  schema.Digest
}

// Propose checks a change of the document in the file at path, and says what it
// would do.
func Propose(path string, c Change) (*Proposal, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = []byte("version: 1\n"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	d, err := Parse(data)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Change: c, before: schema.DigestOf(string(data))}
	switch {
	case c.Add != nil && c.Remove == "":
		if err := c.Add.validate(); err != nil {
			return nil, fmt.Errorf("the new rule: %w", err)
		}
		p.Summary = fmt.Sprintf("Add a rule to the policy: %s %q is %s", c.Add.kind(), c.Add.value(), c.Add.Trust)
		d.Origins = append(d.Origins, c.Add)
	case c.Add == nil && c.Remove != "":
		kept := d.Origins[:0:0]
		for _, o := range d.Origins {
			if o.id() == c.Remove {
				p.Summary = fmt.Sprintf("Remove a rule from the policy: %s %q is %s", o.kind(), o.value(), o.Trust)
				continue
			}
			kept = append(kept, o)
		}
		if p.Summary == "" {
			return nil, errors.New("no rule of the policy has this id")
		}
		d.Origins = kept
	default:
		return nil, errors.New("a change adds one rule or removes one")
	}
	if p.after, err = edit(data, d.Origins); err != nil {
		return nil, fmt.Errorf("change the policy: %w", err)
	}
	digest := schema.DigestOf("policy change", p.Summary, string(p.before), string(p.after))
	p.Flow = &schema.Flow{Payload: p.Summary + "\n" + string(digest), Surface: schema.Authority, Boundary: schema.BoundaryPersistence,
		Source: schema.Source{Kind: schema.SourceAgent, Trust: schema.Untrusted}, Sink: schema.Sink{Kind: schema.SinkPolicy, ID: "policy", Tool: "policy", Action: "change"}}
	p.Binding = p.Flow.Binding()
	return p, nil
}

func (o *OriginRule) kind() string {
	switch {
	case o.URL != "":
		return "address"
	case o.File != "":
		return "file"
	case o.Agent != "":
		return "agent"
	case o.Sender != "":
		return "sender"
	}
	if o.Instructions != "" {
		return "instructions"
	}
	return "webhook"
}

func (o *OriginRule) value() string {
	return o.URL + o.File + o.Agent + o.Sender + o.Webhook + o.Instructions
}

// edit replaces the list of origins and leaves the rest of the file, comments
// included, as the owner wrote it.
func edit(data []byte, origins []*OriginRule) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the policy is not a mapping")
	}
	var list yaml.Node
	if err := list.Encode(origins); err != nil {
		return nil, err
	}
	top := doc.Content[0]
	replaced := false
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value == "origins" {
			top.Content[i+1], replaced = &list, true
		}
	}
	if !replaced {
		top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "origins"}, &list)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	if _, err := Parse(out.Bytes()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Apply writes a change that a person has approved. The answer must be to this
// very change, and the file must be as it was when the person was asked.
func (p *Proposal) Apply(path string, answer *schema.Question, now time.Time) error {
	switch {
	case answer == nil || answer.Answer != "approved" || answer.By == "" || answer.Answered == nil:
		return errors.New("no person has approved this change")
	case answer.Binding != p.Binding:
		return errors.New("the approval is for something else")
	case !now.Before(answer.Expires):
		return errors.New("the approval has expired")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = []byte("version: 1\n"), nil
	}
	if err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	if schema.DigestOf(string(data)) != p.before {
		return errors.New("the policy has changed since the person was asked")
	}
	if err := durable.WriteFile(path, p.after, 0o600); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	return nil
}
