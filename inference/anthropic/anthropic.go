// Package anthropic is the arbiter, and the quarantined model, behind
// Anthropic's Messages API. It sees only escalated flows, with the secrets taken
// out by the caller, and values that an agent inspects; and it is off until the
// owner names a model and a key.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"example.org/auditd/inference"
	"example.org/auditd/inference/textmodel"
	"example.org/auditd/prompts"
	"example.org/auditd/schema"
)

// DefaultURL is the API's address.
const DefaultURL = "https://api.anthropic.com"

// Config says which model to use.
type Config struct {
	URL       string // empty means DefaultURL
	Model     string
	KeyFile   string // holds the API key
	MaxPrompt int    // estimated tokens of a prompt; 0 means 100000
	MaxOutput int    // tokens of an answer; 0 means 1024
	// Retries is how often a refused connection, a 429 or a 5xx is tried again
	// while the caller's deadline lasts; 0 means 2, -1 never.
	Retries int
	// NoSchema says that the model has no structured output, so that only the
	// prompt asks for the answer's form.
	NoSchema bool
	Rand     io.Reader        // of the prompts' codes; nil means crypto/rand
	Now      func() time.Time // nil means time.Now
}

// Backend is an inference.Arbiter and an inference.Completer.
type Backend struct {
	cfg      Config
	host     string
	messages anthropic.MessageService
	model    *textmodel.Model

	mu   sync.Mutex
	last error // of the latest call; nil before the first
}

// New checks the configuration. It does not connect.
func New(cfg Config) (*Backend, error) {
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	if cfg.Model == "" {
		return nil, errors.New("anthropic: no model is named")
	}
	key, err := inference.ReadKey(cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	u, err := inference.CheckURL(cfg.URL, key != "")
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	for _, d := range []struct {
		value *int
		def   int
	}{{&cfg.MaxPrompt, 100_000}, {&cfg.MaxOutput, 1024}, {&cfg.Retries, 2}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	render, err := prompts.New(prompts.Config{MaxTokens: cfg.MaxPrompt, Rand: cfg.Rand})
	if err != nil {
		return nil, err
	}
	// The service is made directly, because a client would also read keys,
	// profiles and addresses from the environment.
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(u.String(), "/") + "/"),
		option.WithHTTPClient(inference.NewHTTPClient(1 << 20)),
		option.WithMaxRetries(max(cfg.Retries, 0)),
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	b := &Backend{cfg: cfg, host: u.Host, messages: anthropic.NewMessageService(opts...)}
	b.model = &textmodel.Model{Backend: "anthropic", Render: render, Send: b.send}
	return b, nil
}

// Identity names server and model.
func (b *Backend) Identity() string {
	return fmt.Sprintf("anthropic:%s@%s prompt=%s", b.cfg.Model, b.host, b.model.Render.Version())
}

// Ready returns the outcome of the latest call, and nil before the first: no
// model has to be loaded, and a call only to find out would cost money.
func (b *Backend) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Arbitrate asks the model to decide an escalated flow.
func (b *Backend) Arbitrate(ctx context.Context, rec *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error) {
	usage, start := schema.Usage{Backend: "anthropic", Model: b.cfg.Model}, b.cfg.Now()
	rep, err := b.model.Arbitrate(ctx, rec, &usage)
	usage.DurationMS = float64(b.cfg.Now().Sub(start)) / float64(time.Millisecond)
	return rep, usage, err
}

// Complete asks the model a plain question.
func (b *Backend) Complete(ctx context.Context, c *inference.Completion) (string, schema.Usage, error) {
	usage, start := schema.Usage{Backend: "anthropic", Model: b.cfg.Model}, b.cfg.Now()
	text, err := b.complete(ctx, c, &usage)
	usage.DurationMS = float64(b.cfg.Now().Sub(start)) / float64(time.Millisecond)
	return text, usage, err
}

// Window is what a prompt may cost, and the answer on top of it.
func (b *Backend) Window() int { return b.cfg.MaxPrompt + b.cfg.MaxOutput }

func (b *Backend) send(ctx context.Context, p *prompts.Prompt, usage *schema.Usage) (string, error) {
	return b.complete(ctx, &inference.Completion{System: p.System, User: p.User, Schema: p.Schema, Output: b.cfg.MaxOutput}, usage)
}

func (b *Backend) complete(ctx context.Context, p *inference.Completion, usage *schema.Usage) (string, error) {
	params := anthropic.MessageNewParams{
		Model:     anthropic.Model(b.cfg.Model),
		MaxTokens: int64(p.Output),
		System:    []anthropic.TextBlockParam{{Text: p.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(p.User))},
	}
	if !b.cfg.NoSchema {
		form, err := plainSchema(p.Schema)
		if err != nil {
			return "", &inference.Error{Cause: inference.CauseMalformed, Backend: "anthropic", Err: err}
		}
		params.OutputConfig = anthropic.OutputConfigParam{Format: anthropic.JSONOutputFormatParam{Schema: form}}
	}
	var got *http.Response
	resp, err := b.messages.New(ctx, params, option.WithResponseInto(&got))
	var failed *inference.Error
	switch {
	case err != nil:
		failed = b.sort(ctx, got, err)
	case resp == nil: // the body was "null"
		failed = fail(inference.CauseEmpty, "the server sent nothing")
	}
	b.mu.Lock()
	if b.last = nil; failed != nil {
		b.last = failed
	}
	b.mu.Unlock()
	if failed != nil {
		return "", failed
	}
	in := resp.Usage.InputTokens + resp.Usage.CacheReadInputTokens + resp.Usage.CacheCreationInputTokens
	usage.PromptTokens += int(in)
	usage.OutputTokens += int(resp.Usage.OutputTokens)
	// No tokenizer makes fewer tokens of our own English text than an eighth of
	// its bytes.
	if int(in) < len(p.System)/8 {
		return "", fail(inference.CauseTruncated, fmt.Sprintf("the server counts %d tokens of prompt, which does not fit what was sent", in))
	}
	return content(resp)
}

// content takes the text out of a message after everything around it has been
// checked.
func content(resp *anthropic.Message) (string, error) {
	switch resp.StopReason {
	case anthropic.StopReasonEndTurn:
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return "", fail(inference.CauseTruncated, "the model ran out of tokens")
	case anthropic.StopReasonRefusal:
		return "", fail(inference.CauseMalformed, "the model refused to judge")
	default:
		return "", fail(inference.CauseMalformed, "the model did not stop by itself")
	}
	if len(resp.Content) == 0 {
		return "", fail(inference.CauseEmpty, "the answer has no content")
	}
	if len(resp.Content) != 1 || resp.Content[0].Type != "text" {
		return "", fail(inference.CauseMalformed, "the answer is not one text")
	}
	return resp.Content[0].Text, nil
}

func fail(cause inference.Cause, why string) *inference.Error {
	return &inference.Error{Cause: cause, Backend: "anthropic", Err: errors.New(why)}
}

// plainSchema leaves out the limits that the API's schemas do not know; the
// answer is checked against them here.
func plainSchema(text []byte) (map[string]any, error) {
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the answer's schema: %w", err)
	}
	strip(m)
	return m, nil
}

// strip recurses only as deep as our own schemas, which is a few levels. The
// members of properties are names, not words of the schema.
func strip(m map[string]any) {
	for _, key := range []string{"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern"} {
		delete(m, key)
	}
	for key, v := range m {
		sub, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if key != "properties" {
			strip(sub)
			continue
		}
		for _, p := range sub {
			if schema, ok := p.(map[string]any); ok {
				strip(schema)
			}
		}
	}
}

// sort gives an error of the client its cause. What a server says is not
// quoted: it may repeat the prompt.
func (b *Backend) sort(ctx context.Context, got *http.Response, err error) *inference.Error {
	switch {
	case ctx.Err() != nil || got == nil:
		return inference.HTTPError(ctx, "anthropic", err)
	case got.StatusCode == 401 || got.StatusCode == 403:
		return inference.StatusError("anthropic", got.StatusCode, "the key is missing or refused")
	case got.StatusCode == 404:
		return fail(inference.CauseUnavailable, "the server answered with status 404; it has no model "+b.cfg.Model)
	case got.StatusCode == 429:
		return fail(inference.CauseBusy, "the account's limit is reached (status 429)")
	case got.StatusCode == 529:
		return fail(inference.CauseBusy, "the API is overloaded (status 529)")
	case got.StatusCode >= 300:
		return inference.StatusError("anthropic", got.StatusCode, "")
	case errors.Is(err, io.EOF): // not ErrUnexpectedEOF: nothing came at all
		return fail(inference.CauseEmpty, "the server sent nothing")
	}
	return inference.HTTPError(ctx, "anthropic", err)
}
