package client

import (
	"context"
	"net/http"
	"net/url"

	"example.org/auditd/api"
	"example.org/auditd/marks"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// The calls in this file need an owner session as Token.

// Orders lists the standing orders; with ended also those that hold no longer.
func (c *Client) Orders(ctx context.Context, ended bool) ([]standing.Order, error) {
	path := "/v1/standing"
	if ended {
		path += "?ended=1"
	}
	var o api.Orders
	err := c.call(ctx, http.MethodGet, path, nil, &o)
	return o.Orders, err
}

// AddOrder gives a standing order.
func (c *Client) AddOrder(ctx context.Context, n *api.NewOrder) (o standing.Order, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/standing", n, &o)
	return o, err
}

// RevokeOrder ends a standing order.
func (c *Client) RevokeOrder(ctx context.Context, id string) (o standing.Order, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/standing/"+url.PathEscape(id)+"/revoke", struct{}{}, &o)
	return o, err
}

// Suggestion returns the narrowest suppression that would let a decision's flow
// pass.
func (c *Client) Suggestion(ctx context.Context, decision string) (s api.Suggestion, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/decisions/"+url.PathEscape(decision)+"/suppression", nil, &s)
	return s, err
}

// Mark says that a decision was wrong.
func (c *Client) Mark(ctx context.Context, m api.Mark) (kept marks.Mark, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/marks", m, &kept)
	return kept, err
}

// ApplyPolicy puts another policy into force; base is the digest of the one that
// it was made from.
func (c *Client) ApplyPolicy(ctx context.Context, text string, base schema.Digest) (p api.PolicyInfo, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/policy", api.NewPolicy{Text: text, Base: base}, &p)
	return p, err
}

// PolicyHistory lists earlier policies, the newest first.
func (c *Client) PolicyHistory(ctx context.Context) ([]policy.Past, error) {
	var h api.PolicyHistory
	err := c.call(ctx, http.MethodGet, "/v1/policy/history", nil, &h)
	return h.Policies, err
}

// EarlierPolicy returns the text of an earlier policy.
func (c *Client) EarlierPolicy(ctx context.Context, digest schema.Digest) (p api.PolicyInfo, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/policy/history/"+url.PathEscape(string(digest)), nil, &p)
	return p, err
}
