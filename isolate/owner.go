package isolate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"example.org/auditd/api"
	"example.org/auditd/dualview"
	"example.org/auditd/dualview/fileview"
	"example.org/auditd/schema"
)

// Owner is what the owner may look at and go back to. Its zero value has
// nothing; what is not there is api.ErrNoSuch.
type Owner struct {
	Table *dualview.Table
	Store *fileview.Store
	Name  string // whose symbols
	Now   func() time.Time
}

const maxOriginal = 1 << 20 // bytes of a value that is shown

// Symbol returns what is known about a symbol, with its value for the owner.
func (o *Owner) Symbol(ctx context.Context, token string, original bool) (*api.Symbol, error) {
	if o.Table == nil {
		return nil, api.ErrNoSuch
	}
	info, err := o.Table.Info(ctx, o.Name, dualview.Symbol(token))
	if errors.Is(err, dualview.ErrUnknown) {
		return nil, api.ErrNoSuch
	}
	if err != nil {
		return nil, err
	}
	s := known(&info)
	if !original || info.Size > maxOriginal {
		return s, nil
	}
	value, err := o.Table.Resolve(ctx, token, dualview.Raw, dualview.Grant{By: dualview.ByPerson, Owner: o.Name, AgentTrusted: true,
		Sink: schema.Sink{Kind: schema.SinkMessage, Tool: "owner"}, Binding: schema.DigestOf("look at", token), Expires: o.Now().Add(time.Minute)})
	if errors.Is(err, dualview.ErrNoGrant) {
		return s, nil // a secret shows itself to nobody
	}
	if err != nil {
		return nil, err
	}
	text := strings.ToValidUTF8(value.Reveal(), "\uFFFD")
	s.Value = &text
	return s, nil
}

// Views returns the views.
func (o *Owner) Views(ctx context.Context) (*api.ViewList, error) {
	if o.Store == nil {
		return &api.ViewList{Views: []api.View{}}, nil
	}
	views, err := o.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &api.ViewList{Views: []api.View{}}
	for _, v := range views {
		out.Views = append(out.Views, api.View{ID: strconv.FormatInt(v.ID, 10), Root: v.Root})
	}
	return out, nil
}

func (o *Owner) view(ctx context.Context, id string) (*fileview.Workspace, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || o.Store == nil {
		return nil, api.ErrNoSuch
	}
	w, err := o.Store.ByID(ctx, n)
	if errors.Is(err, fileview.ErrNoView) {
		return nil, api.ErrNoSuch
	}
	return w, err
}

// ViewLog returns the states of a view.
func (o *Owner) ViewLog(ctx context.Context, id string, limit int) (*api.ViewLog, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, err
	}
	states, err := w.Log(ctx, limit)
	if err != nil {
		return nil, err
	}
	out := &api.ViewLog{States: []api.ViewState{}}
	for _, s := range states {
		out.States = append(out.States, api.ViewState{ID: s.ID, Time: s.Time.UTC(), Message: s.Message})
	}
	return out, nil
}

// ViewShow returns a file of a state as the agent saw it.
func (o *Owner) ViewShow(ctx context.Context, id, state, path string) (*api.ViewText, error) {
	return o.text(ctx, id, func(w *fileview.Workspace) (string, error) { return w.Show(ctx, state, path) })
}

// ViewDiff returns what a state changed.
func (o *Owner) ViewDiff(ctx context.Context, id, state string) (*api.ViewText, error) {
	return o.text(ctx, id, func(w *fileview.Workspace) (string, error) { return w.Diff(ctx, state) })
}

func (o *Owner) text(ctx context.Context, id string, read func(*fileview.Workspace) (string, error)) (*api.ViewText, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, err
	}
	text, err := read(w)
	if err != nil {
		return nil, api.ErrNoSuch // the history's own errors say no more
	}
	return &api.ViewText{Text: strings.ToValidUTF8(text, "\uFFFD")}, nil
}

// ViewConflicts returns what did not land.
func (o *Owner) ViewConflicts(ctx context.Context, id string) (*api.ViewConflicts, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := w.Conflicts(ctx)
	return &api.ViewConflicts{Conflicts: conflicts(list)}, err
}

// ViewRevert brings a view back to a state.
func (o *Owner) ViewRevert(ctx context.Context, id, state string) (*api.ViewReverted, error) {
	w, err := o.view(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, err := w.Diff(ctx, state); err != nil {
		return nil, api.ErrNoSuch
	}
	r, err := w.Revert(ctx, state)
	if err != nil {
		return nil, err
	}
	return &api.ViewReverted{ToHuman: r.ToHuman, Conflicts: conflicts(r.Conflicts)}, nil
}

func conflicts(list []fileview.Conflict) []api.ViewConflict {
	out := []api.ViewConflict{}
	for _, c := range list {
		out = append(out, api.ViewConflict{ID: strconv.FormatInt(c.ID, 10), Path: strings.ToValidUTF8(c.Path, "\uFFFD"), Time: c.Time.UTC(), Reason: c.Reason, Human: c.Human, Agent: c.Agent})
	}
	return out
}
