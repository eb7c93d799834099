package modelproxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// tool is a call of the model's.
type toolCall struct{ id, tool, args string }

// turn is one step of a conversation: what the user says, or what the model
// said and called and what came back.
type turn struct {
	user, said string
	calls      []toolCall
	results    []string
}

// speaker is a dialect as a runtime and a provider speak it: the suite is
// written once and runs over every one.
type speaker struct {
	name, api, path string
	media           string // of a stream
	request         func(turns []turn, stream bool) map[string]any
	answer          func(text string, calls []toolCall) string
	stream          func(text string, calls []toolCall) string
	// read is what a runtime makes of an answer; finish is how it ended, problem
	// the error in it.
	read func(body string, stream bool) (text string, calls []toolCall, finish, problem string)
	// finish is the word for "I am done" and for "carry out my calls".
	done, callsDone string
}

func speakers() []speaker {
	return []speaker{anthropicSpeaker(), chatSpeaker(), responsesSpeaker(), ollamaSpeaker()}
}

func js(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func unjs[T any](s string) (v T) {
	_ = json.Unmarshal([]byte(s), &v) // what is wrong shows as what is missing
	return v
}

func sse(name string, v any) string {
	s := ""
	if name != "" {
		s = "event: " + name + "\n"
	}
	return s + "data: " + js(v) + "\n\n"
}

// events splits a stream of server-sent events.
func sseData(body string) []string {
	var out []string
	sc := bufio.NewScanner(strings.NewReader(body))
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		if d, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			out = append(out, d)
		}
	}
	return out
}

// halves cuts a text in two, as a stream may.
func halves(s string) (string, string) { return s[:len(s)/2], s[len(s)/2:] }

type m = map[string]any

func anthropicSpeaker() speaker {
	s := speaker{name: "anthropic messages", api: "anthropic", path: "/v1/messages", media: "text/event-stream", done: "end_turn", callsDone: "tool_use"}
	s.request = func(turns []turn, stream bool) map[string]any {
		var messages []any
		for _, t := range turns {
			if t.user != "" {
				messages = append(messages, m{"role": "user", "content": t.user})
			}
			if t.said != "" || len(t.calls) > 0 {
				var content []any
				if t.said != "" {
					content = append(content, m{"type": "text", "text": t.said})
				}
				for _, c := range t.calls {
					content = append(content, m{"type": "tool_use", "id": c.id, "name": c.tool, "input": json.RawMessage(c.args)})
				}
				messages = append(messages, m{"role": "assistant", "content": content})
			}
			var results []any
			for i, r := range t.results {
				results = append(results, m{"type": "tool_result", "tool_use_id": t.calls[i].id, "content": []any{m{"type": "text", "text": r}}, "cache_control": m{"type": "ephemeral"}})
			}
			if results != nil {
				messages = append(messages, m{"role": "user", "content": results})
			}
		}
		return m{"model": "m-1", "max_tokens": 100, "stream": stream, "messages": messages, "system": []any{m{"type": "text", "text": "You are helpful."}},
			"tools": []any{m{"name": "web_fetch", "description": "Reads a page.", "input_schema": m{"type": "object"}}}}
	}
	reason := func(calls []toolCall) string {
		if len(calls) > 0 {
			return s.callsDone
		}
		return s.done
	}
	s.answer = func(text string, calls []toolCall) string {
		content := []any{}
		if text != "" {
			content = append(content, m{"type": "text", "text": text})
		}
		for _, c := range calls {
			content = append(content, m{"type": "tool_use", "id": c.id, "name": c.tool, "input": json.RawMessage(c.args)})
		}
		return js(m{"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": content, "stop_reason": reason(calls), "stop_sequence": nil, "usage": m{"input_tokens": 1, "output_tokens": 2}})
	}
	s.stream = func(text string, calls []toolCall) string {
		var b strings.Builder
		ev := func(kind string, v m) { v["type"] = kind; b.WriteString(sse(kind, v)) }
		ev("message_start", m{"message": m{"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": m{"input_tokens": 1}}})
		ev("ping", m{})
		i := 0
		if text != "" {
			one, two := halves(text)
			ev("content_block_start", m{"index": i, "content_block": m{"type": "text", "text": ""}})
			ev("content_block_delta", m{"index": i, "delta": m{"type": "text_delta", "text": one}})
			ev("content_block_delta", m{"index": i, "delta": m{"type": "text_delta", "text": two}})
			ev("content_block_stop", m{"index": i})
			i++
		}
		for _, c := range calls {
			one, two := halves(c.args)
			ev("content_block_start", m{"index": i, "content_block": m{"type": "tool_use", "id": c.id, "name": c.tool, "input": m{}}})
			ev("content_block_delta", m{"index": i, "delta": m{"type": "input_json_delta", "partial_json": one}})
			ev("content_block_delta", m{"index": i, "delta": m{"type": "input_json_delta", "partial_json": two}})
			ev("content_block_stop", m{"index": i})
			i++
		}
		ev("message_delta", m{"delta": m{"stop_reason": reason(calls), "stop_sequence": nil}, "usage": m{"output_tokens": 2}})
		ev("message_stop", m{})
		return b.String()
	}
	type block struct {
		Type, Text, ID, Name string
		Input                json.RawMessage
	}
	type doc struct {
		Type    string
		Content []block
		Stop    string `json:"stop_reason"`
		Error   struct{ Type, Message string }
		Index   int
		Block   block `json:"content_block"`
		Delta   struct {
			Type, Text string
			Partial    string `json:"partial_json"`
			Stop       string `json:"stop_reason"`
		}
	}
	s.read = func(body string, stream bool) (text string, calls []toolCall, finish, problem string) {
		docs := []string{body}
		if stream {
			docs = sseData(body)
		}
		args := map[int]*toolCall{}
		var order []int
		for _, d := range docs {
			x := unjs[doc](d)
			switch x.Type {
			case "error":
				problem = x.Error.Type + ": " + x.Error.Message
			case "message":
				for _, b := range x.Content {
					text += b.Text
					if b.Type == "tool_use" {
						calls = append(calls, toolCall{b.ID, b.Name, string(b.Input)})
					}
				}
				finish = x.Stop
			case "content_block_start":
				if x.Block.Type == "tool_use" {
					args[x.Index] = &toolCall{x.Block.ID, x.Block.Name, ""}
					order = append(order, x.Index)
				}
			case "content_block_delta":
				text += x.Delta.Text
				if c := args[x.Index]; c != nil {
					c.args += x.Delta.Partial
				}
			case "message_delta":
				finish = x.Delta.Stop
			}
		}
		for _, i := range order {
			calls = append(calls, *args[i])
		}
		return text, calls, finish, problem
	}
	return s
}

// each runs a test over every dialect, streamed and not.
func each(t *testing.T, run func(t *testing.T, s speaker, stream bool)) {
	for _, s := range speakers() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", s.name, stream), func(t *testing.T) { run(t, s, stream) })
		}
	}
}

func (s speaker) play(r *rig, stream bool, text string, calls ...toolCall) {
	if stream {
		r.say(s.media, s.stream(text, calls))
	} else {
		r.say("application/json", s.answer(text, calls))
	}
}
