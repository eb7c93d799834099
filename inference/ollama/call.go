package ollama

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	"example.org/auditd/inference"
	"example.org/auditd/prompts"
	"example.org/auditd/schema"
)

// request builds a chat request. Everything that must not vary between calls
// is here: other options would make the server load the model anew.
func (b *Backend) request(system, user string, format []byte, output int) *api.ChatRequest {
	no := false
	req := &api.ChatRequest{
		Model:    b.cfg.Model,
		Messages: []api.Message{{Role: "system", Content: system}, {Role: "user", Content: user}},
		Stream:   &no,
		Format:   format,
		// A server that knows these refuses a prompt that does not fit instead
		// of cutting it, and ends an answer instead of dropping its beginning.
		Truncate:  &no,
		Shift:     &no,
		KeepAlive: &api.Duration{Duration: b.cfg.KeepAlive},
		Options: map[string]any{
			"num_ctx":     b.cfg.Context,
			"num_predict": output,
			"temperature": 0,
			"seed":        1,
			// A penalty for repetition would be one for giving the codes back.
			"repeat_penalty": 1.0,
		},
	}
	if b.cfg.Threads > 0 {
		req.Options["num_thread"] = b.cfg.Threads
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.thinks {
		req.Think = &api.ThinkValue{Value: false}
	}
	return req
}

// chat makes one call and returns the server's last word.
func (b *Backend) chat(ctx context.Context, req *api.ChatRequest) (*api.ChatResponse, error) {
	var last *api.ChatResponse
	err := b.client.Chat(ctx, req, func(r api.ChatResponse) error {
		last = &r
		return nil
	})
	switch {
	case ctx.Err() != nil: // the client's reader swallows it
		return nil, inference.HTTPError(ctx, "ollama", ctx.Err())
	case err != nil:
		return nil, b.serverError(ctx, err)
	case last == nil:
		return nil, &inference.Error{Cause: inference.CauseEmpty, Backend: "ollama", Err: errors.New("the server sent nothing")}
	case !last.Done:
		return nil, &inference.Error{Cause: inference.CauseTruncated, Backend: "ollama", Err: errors.New("the answer has no end")}
	}
	return last, nil
}

// serverError sorts what the client returned. What a server says is not
// quoted: it may repeat the prompt.
func (b *Backend) serverError(ctx context.Context, err error) *inference.Error {
	var status api.StatusError
	var auth api.AuthorizationError
	switch {
	case errors.As(err, &auth):
		return inference.StatusError("ollama", auth.StatusCode, "the server asks for a sign-in")
	case !errors.As(err, &status):
		return inference.HTTPError(ctx, "ollama", err)
	case status.StatusCode == http.StatusNotFound:
		return b.unavailable(fmt.Sprintf("the server has no model %s; get it with: auditd pull %s", b.cfg.Model, b.cfg.Model))
	case status.StatusCode == http.StatusServiceUnavailable:
		return &inference.Error{Cause: inference.CauseBusy, Backend: "ollama", Err: errors.New("the server's own queue is full")}
	case strings.Contains(status.ErrorMessage, "exceeds the context length"):
		return &inference.Error{Cause: inference.CauseTruncated, Backend: "ollama", Err: errors.New("the prompt does not fit the context length")}
	case strings.Contains(status.ErrorMessage, "more system memory"):
		return inference.StatusError("ollama", status.StatusCode, "the model needs more memory than the machine has")
	}
	return inference.StatusError("ollama", status.StatusCode, "")
}

// send makes one call for the auditor or the arbiter.
func (b *Backend) send(ctx context.Context, p *prompts.Prompt, usage *schema.Usage) (string, error) {
	return b.complete(ctx, &inference.Completion{System: p.System, User: p.User, Schema: p.Schema, Output: b.cfg.MaxOutput}, usage)
}

// complete makes one call once the model is loaded.
func (b *Backend) complete(ctx context.Context, c *inference.Completion, usage *schema.Usage) (string, error) {
	if err := b.await(ctx); err != nil {
		return "", err
	}
	b.mu.Lock()
	usage.Digest = b.digest // it may have changed while we waited
	b.mu.Unlock()
	resp, err := b.chat(ctx, b.request(c.System, c.User, c.Schema, c.Output))
	if err != nil {
		b.doubt(err)
		return "", err
	}
	usage.PromptTokens += resp.PromptEvalCount
	usage.OutputTokens += resp.EvalCount
	usage.LoadMS += float64(resp.LoadDuration) / float64(time.Millisecond)
	b.used()
	if err := b.checkCounts(c, resp); err != nil {
		return "", err
	}
	return resp.Message.Content, nil
}

// checkCounts finds out a prompt or an answer that the server cut. A prompt
// whose front was dropped fills the context; one that lost its middle or end
// fails the codes; and none has fewer tokens than its stable part alone.
func (b *Backend) checkCounts(c *inference.Completion, resp *api.ChatResponse) error {
	b.mu.Lock()
	base := b.base
	if c.System != b.system {
		// Not the auditor's text, which loading has counted. No tokenizer makes
		// fewer tokens of English than an eighth of its bytes.
		base = len(c.System) / 8
	}
	b.mu.Unlock()
	cut := func(why string) error {
		return &inference.Error{Cause: inference.CauseTruncated, Backend: "ollama", Err: errors.New(why)}
	}
	switch {
	case resp.DoneReason == "length":
		return cut("the model ran out of tokens")
	case resp.PromptEvalCount > b.cfg.Context-c.Output:
		return cut(fmt.Sprintf("the server counts %d tokens of prompt, at most %d leave room for the answer", resp.PromptEvalCount, b.cfg.Context-c.Output))
	case resp.PromptEvalCount < base:
		return cut(fmt.Sprintf("the server counts %d tokens of prompt, its stable part has %d", resp.PromptEvalCount, base))
	}
	return nil
}
