// Package openai is the auditor, the arbiter and the quarantined model behind any
// server that speaks OpenAI's chat completions with a JSON schema as response
// format: llama.cpp's server, vLLM, LM Studio, or a hosted API. What such a
// server says is checked as strictly as everywhere: it may ignore the schema,
// and some do.
package openai

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

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"example.org/auditd/inference"
	"example.org/auditd/inference/textmodel"
	"example.org/auditd/prompts"
	"example.org/auditd/schema"
)

// Config says which server and model to use.
type Config struct {
	URL     string // up to and including /v1
	Model   string
	KeyFile string // holds the API key; empty for a server that asks for none
	// Context is the context length in tokens that the server was started with;
	// 0 means 8192. The client cannot set it.
	Context    int
	MaxOutput  int // tokens of an answer; 0 means 384
	MaxWindows int // calls that one long payload may take; 0 means 4
	// Retries is how often a refused connection, a 429 or a 5xx is tried again
	// while the caller's deadline lasts; 0 means 2, -1 never.
	Retries int
	// Hosted says that the server is an API for reasoning models, which refuse
	// temperature and seed and count their thoughts as output.
	Hosted bool
	Rand   io.Reader        // of the prompts' codes; nil means crypto/rand
	Now    func() time.Time // nil means time.Now
}

// Backend is an inference.Auditor, an inference.Arbiter and an
// inference.Completer.
type Backend struct {
	cfg    Config
	host   string
	chat   openai.ChatCompletionService
	models openai.ModelService
	model  *textmodel.Model

	mu   sync.Mutex
	last error // of the latest contact; nil when it went well
}

// New checks the configuration. It does not connect; Check does.
func New(cfg Config) (*Backend, error) {
	if cfg.Model == "" {
		return nil, errors.New("openai: no model is named")
	}
	key, err := inference.ReadKey(cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	u, err := inference.CheckURL(cfg.URL, key != "")
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	for _, d := range []struct {
		value *int
		def   int
	}{{&cfg.Context, 8192}, {&cfg.MaxOutput, 384}, {&cfg.MaxWindows, 4}, {&cfg.Retries, 2}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	render, err := prompts.New(prompts.Config{MaxTokens: cfg.Context - cfg.MaxOutput - templateTokens, MaxWindows: cfg.MaxWindows, Rand: cfg.Rand})
	if err != nil {
		return nil, err
	}
	// The services are made directly, because a client would also read keys and
	// addresses from the environment.
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(u.String(), "/") + "/"),
		option.WithHTTPClient(inference.NewHTTPClient(1 << 20)),
		option.WithMaxRetries(max(cfg.Retries, 0)),
		option.WithMaxRetryDelay(4 * time.Second),
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	b := &Backend{
		cfg: cfg, host: u.Host, last: unavailable("it has not been asked yet"),
		chat: openai.NewChatCompletionService(opts...), models: openai.NewModelService(opts...),
	}
	b.model = &textmodel.Model{Backend: "openai", Render: render, Send: b.send}
	return b, nil
}

// templateTokens is what a chat template adds to a prompt at most.
const templateTokens = 64

func unavailable(why string) *inference.Error {
	return &inference.Error{Cause: inference.CauseUnavailable, Backend: "openai", Err: errors.New(why)}
}

// Identity names server and model. Such a server tells no digest: whoever
// changes the model behind a name should change the name.
func (b *Backend) Identity() string {
	return fmt.Sprintf("openai:%s@%s ctx=%d prompt=%s", b.cfg.Model, b.host, b.cfg.Context, b.model.Render.Version())
}

// Ready returns the outcome of the latest contact with the server.
func (b *Backend) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Check asks the server for its models, without a prompt.
func (b *Backend) Check(ctx context.Context) error {
	list, err := b.models.List(ctx)
	if err != nil {
		var got *http.Response
		var status *openai.Error
		if errors.As(err, &status) {
			got = status.Response
		}
		return b.note(b.sort(ctx, got, err))
	}
	if list == nil {
		return b.note(unavailable("the server lists no model"))
	}
	var names []string
	for _, m := range list.Data {
		if m.ID == b.cfg.Model {
			return b.note(nil)
		}
		names = append(names, m.ID)
	}
	if len(names) == 0 {
		return b.note(unavailable("the server lists no model"))
	}
	return b.note(unavailable("the server has no model " + b.cfg.Model))
}

func (b *Backend) note(err *inference.Error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last = nil; err != nil {
		b.last = err
		return err
	}
	return nil
}

// Audit asks the model about the record.
func (b *Backend) Audit(ctx context.Context, rec *schema.Record) (schema.Report, schema.Usage, error) {
	usage, start := b.usage()
	rep, err := b.model.Audit(ctx, rec, &usage)
	usage.DurationMS = float64(b.cfg.Now().Sub(start)) / float64(time.Millisecond)
	return rep, usage, err
}

// Arbitrate asks the model to decide an escalated flow.
func (b *Backend) Arbitrate(ctx context.Context, rec *schema.ArbiterRecord) (schema.ArbiterReport, schema.Usage, error) {
	usage, start := b.usage()
	rep, err := b.model.Arbitrate(ctx, rec, &usage)
	usage.DurationMS = float64(b.cfg.Now().Sub(start)) / float64(time.Millisecond)
	return rep, usage, err
}

func (b *Backend) usage() (schema.Usage, time.Time) {
	return schema.Usage{Backend: "openai", Model: b.cfg.Model}, b.cfg.Now()
}

// Complete asks the model a plain question.
func (b *Backend) Complete(ctx context.Context, c *inference.Completion) (string, schema.Usage, error) {
	usage, start := b.usage()
	text, err := b.complete(ctx, c, &usage)
	usage.DurationMS = float64(b.cfg.Now().Sub(start)) / float64(time.Millisecond)
	return text, usage, err
}

// Window is the context length of the configuration, less what a chat template
// adds.
func (b *Backend) Window() int { return b.cfg.Context - templateTokens }

func (b *Backend) send(ctx context.Context, p *prompts.Prompt, usage *schema.Usage) (string, error) {
	return b.complete(ctx, &inference.Completion{System: p.System, User: p.User, Schema: p.Schema, Output: b.cfg.MaxOutput}, usage)
}

func (b *Backend) complete(ctx context.Context, p *inference.Completion, usage *schema.Usage) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model:    b.cfg.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(p.System), openai.UserMessage(p.User)},
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: "answer", Strict: param.NewOpt(true), Schema: json.RawMessage(p.Schema),
			},
		}},
	}
	var extra []option.RequestOption
	if b.cfg.Hosted {
		params.MaxCompletionTokens = param.NewOpt(int64(p.Output))
	} else {
		params.MaxTokens = param.NewOpt(int64(p.Output))
		params.Temperature = param.NewOpt(0.0)
		params.Seed = param.NewOpt(int64(1))
		// The think switch of llama.cpp's server and vLLM; others ignore it.
		extra = append(extra, option.WithJSONSet("chat_template_kwargs.enable_thinking", false))
	}
	var got *http.Response
	resp, err := b.chat.New(ctx, params, append(extra, option.WithResponseInto(&got))...)
	if err != nil {
		return "", b.note(b.sort(ctx, got, err))
	}
	if resp == nil { // the body was "null"
		return "", &inference.Error{Cause: inference.CauseEmpty, Backend: "openai", Err: errors.New("the server sent nothing")}
	}
	b.note(nil)
	usage.PromptTokens += int(resp.Usage.PromptTokens)
	usage.OutputTokens += int(resp.Usage.CompletionTokens)
	return b.content(p, resp)
}

// content takes the text out of a reply after everything around it has been
// checked.
func (b *Backend) content(p *inference.Completion, resp *openai.ChatCompletion) (string, error) {
	fail := func(cause inference.Cause, why string) (string, error) {
		return "", &inference.Error{Cause: cause, Backend: "openai", Err: errors.New(why)}
	}
	switch {
	case len(resp.Choices) == 0:
		return fail(inference.CauseEmpty, "the answer has no choices")
	case len(resp.Choices) > 1:
		return fail(inference.CauseMalformed, "the answer has more than one choice")
	}
	c := resp.Choices[0]
	switch {
	case c.FinishReason == "length":
		return fail(inference.CauseTruncated, "the model ran out of tokens")
	case c.Message.Refusal != "":
		return fail(inference.CauseMalformed, "the model refused to judge")
	case c.FinishReason != "stop":
		return fail(inference.CauseMalformed, "the model did not stop by itself")
	case len(c.Message.ToolCalls) > 0:
		return fail(inference.CauseMalformed, "the model called a tool")
	}
	// No tokenizer makes fewer tokens of our own English text than an eighth of
	// its bytes, so fewer for the whole prompt means that its front was cut.
	tokens := int(resp.Usage.PromptTokens)
	if tokens < len(p.System)/8 || tokens > b.cfg.Context-p.Output && !b.cfg.Hosted {
		return fail(inference.CauseTruncated, fmt.Sprintf("the server counts %d tokens of prompt, which does not fit what was sent", tokens))
	}
	return c.Message.Content, nil
}

// sort gives an error of the client its cause. What a server says is not
// quoted: it may repeat the prompt.
func (b *Backend) sort(ctx context.Context, got *http.Response, err error) *inference.Error {
	switch {
	case ctx.Err() != nil || got == nil:
		return inference.HTTPError(ctx, "openai", err)
	case got.StatusCode == 401 || got.StatusCode == 403:
		return inference.StatusError("openai", got.StatusCode, "the key is missing or refused")
	case got.StatusCode == 404:
		return unavailable("the server answered with status 404; it has no model " + b.cfg.Model + " or no such path")
	case got.StatusCode == 429:
		return &inference.Error{Cause: inference.CauseBusy, Backend: "openai", Err: errors.New("the server's limit is reached (status 429)")}
	case got.StatusCode == 503:
		return unavailable("the server is loading or overloaded (status 503)")
	case got.StatusCode >= 300:
		return inference.StatusError("openai", got.StatusCode, "")
	case errors.Is(err, io.EOF): // not ErrUnexpectedEOF: nothing came at all
		return &inference.Error{Cause: inference.CauseEmpty, Backend: "openai", Err: errors.New("the server sent nothing")}
	}
	return inference.HTTPError(ctx, "openai", err)
}
