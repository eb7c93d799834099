package modelproxy

import (
	"encoding/json"
	"strings"
)

func chatSpeaker() speaker {
	s := speaker{name: "openai chat", api: "openai", path: "/v1/chat/completions", media: "text/event-stream", done: "stop", callsDone: "tool_calls"}
	calls := func(list []toolCall) []any {
		var out []any
		for i, c := range list {
			out = append(out, m{"index": i, "id": c.id, "type": "function", "function": m{"name": c.tool, "arguments": c.args}})
		}
		return out
	}
	s.request = func(turns []turn, stream bool) map[string]any {
		messages := []any{m{"role": "system", "content": "You are helpful."}}
		for _, t := range turns {
			if t.user != "" {
				messages = append(messages, m{"role": "user", "content": []any{m{"type": "text", "text": t.user}}})
			}
			if t.said != "" || t.calls != nil {
				a := m{"role": "assistant", "content": t.said}
				if t.calls != nil {
					a["tool_calls"] = calls(t.calls)
				}
				messages = append(messages, a)
			}
			for i, r := range t.results {
				messages = append(messages, m{"role": "tool", "tool_call_id": t.calls[i].id, "content": r})
			}
		}
		return m{"model": "m-1", "stream": stream, "messages": messages,
			"tools": []any{m{"type": "function", "function": m{"name": "web_fetch", "description": "Reads a page.", "parameters": m{"type": "object"}}}}}
	}
	reason := func(c []toolCall) string {
		if len(c) > 0 {
			return s.callsDone
		}
		return s.done
	}
	s.answer = func(text string, list []toolCall) string {
		msg := m{"role": "assistant", "content": text}
		if list != nil {
			msg["tool_calls"] = calls(list)
		}
		return js(m{"id": "c-1", "object": "chat.completion", "created": 1, "model": "m-1", "choices": []any{m{"index": 0, "message": msg, "logprobs": nil, "finish_reason": reason(list)}}, "usage": m{"total_tokens": 3}})
	}
	s.stream = func(text string, list []toolCall) string {
		var b strings.Builder
		chunk := func(delta m, finish any) {
			b.WriteString(sse("", m{"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": []any{m{"index": 0, "delta": delta, "finish_reason": finish}}}))
		}
		chunk(m{"role": "assistant", "content": ""}, nil)
		one, two := halves(text)
		chunk(m{"content": one}, nil)
		chunk(m{"content": two}, nil)
		for i, c := range list {
			one, two := halves(c.args)
			chunk(m{"tool_calls": []any{m{"index": i, "id": c.id, "type": "function", "function": m{"name": c.tool, "arguments": one}}}}, nil)
			chunk(m{"tool_calls": []any{m{"index": i, "function": m{"arguments": two}}}}, nil)
		}
		chunk(m{}, reason(list))
		b.WriteString(sse("", m{"id": "c-1", "object": "chat.completion.chunk", "choices": []any{}, "usage": m{"total_tokens": 3}}))
		return b.String() + "data: [DONE]\n\n"
	}
	type message struct {
		Content string
		Calls   []struct {
			Index    int
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	type doc struct {
		Choices []struct {
			Message, Delta message
			Finish         string `json:"finish_reason"`
		}
		Error struct{ Message, Type string }
	}
	s.read = func(body string, stream bool) (text string, list []toolCall, finish, problem string) {
		docs := []string{body}
		if stream {
			docs = append(sseData(body), body)
		}
		for _, d := range docs {
			x := unjs[doc](d)
			if x.Error.Message != "" {
				problem = x.Error.Type + ": " + x.Error.Message
			}
			for _, c := range x.Choices {
				text += c.Message.Content + c.Delta.Content
				for _, call := range append(c.Message.Calls, c.Delta.Calls...) {
					for len(list) <= call.Index {
						list = append(list, toolCall{})
					}
					l := &list[call.Index]
					l.id, l.tool, l.args = l.id+call.ID, l.tool+call.Function.Name, l.args+call.Function.Arguments
				}
				if c.Finish != "" {
					finish = c.Finish
				}
			}
		}
		return text, list, finish, problem
	}
	return s
}

func responsesSpeaker() speaker {
	s := speaker{name: "openai responses", api: "openai", path: "/v1/responses", media: "text/event-stream", done: "completed", callsDone: "completed"}
	s.request = func(turns []turn, stream bool) map[string]any {
		var in []any
		for _, t := range turns {
			if t.user != "" {
				in = append(in, m{"role": "user", "content": t.user})
			}
			if t.said != "" {
				in = append(in, m{"type": "message", "role": "assistant", "content": []any{m{"type": "output_text", "text": t.said}}})
			}
			for _, c := range t.calls {
				in = append(in, m{"type": "function_call", "call_id": c.id, "name": c.tool, "arguments": c.args})
			}
			for i, r := range t.results {
				in = append(in, m{"type": "function_call_output", "call_id": t.calls[i].id, "output": r})
			}
		}
		return m{"model": "m-1", "stream": stream, "input": in, "instructions": "You are helpful.",
			"tools": []any{m{"type": "function", "name": "web_fetch", "description": "Reads a page.", "parameters": m{"type": "object"}}}}
	}
	message := func(text string) m {
		return m{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": []any{m{"type": "output_text", "text": text, "annotations": []any{}}}}
	}
	item := func(c toolCall) m {
		return m{"id": "fc_" + c.id, "type": "function_call", "status": "completed", "call_id": c.id, "name": c.tool, "arguments": c.args}
	}
	response := func(status string, output []any) m {
		return m{"id": "resp_1", "object": "response", "status": status, "model": "m-1", "error": nil, "output": output, "instructions": "You are helpful, are you not?"}
	}
	whole := func(text string, list []toolCall) []any {
		out := []any{}
		if text != "" {
			out = append(out, message(text))
		}
		for _, c := range list {
			out = append(out, item(c))
		}
		return out
	}
	s.answer = func(text string, list []toolCall) string { return js(response("completed", whole(text, list))) }
	s.stream = func(text string, list []toolCall) string {
		var b strings.Builder
		n := 0
		ev := func(kind string, v m) {
			v["type"], v["sequence_number"] = kind, n
			n++
			b.WriteString(sse(kind, v))
		}
		ev("response.created", m{"response": response("in_progress", []any{})})
		i := 0
		if text != "" {
			one, two := halves(text)
			ev("response.output_item.added", m{"output_index": i, "item": m{"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []any{}}})
			ev("response.content_part.added", m{"item_id": "msg_1", "output_index": i, "content_index": 0, "part": m{"type": "output_text", "text": "", "annotations": []any{}}})
			ev("response.output_text.delta", m{"item_id": "msg_1", "output_index": i, "content_index": 0, "delta": one})
			ev("response.output_text.delta", m{"item_id": "msg_1", "output_index": i, "content_index": 0, "delta": two})
			ev("response.output_text.done", m{"item_id": "msg_1", "output_index": i, "content_index": 0, "text": text})
			ev("response.content_part.done", m{"item_id": "msg_1", "output_index": i, "content_index": 0, "part": m{"type": "output_text", "text": text, "annotations": []any{}}})
			ev("response.output_item.done", m{"output_index": i, "item": message(text)})
			i++
		}
		for _, c := range list {
			begin := item(c)
			begin["arguments"] = ""
			ev("response.output_item.added", m{"output_index": i, "item": begin})
			ev("response.function_call_arguments.delta", m{"item_id": "fc_" + c.id, "output_index": i, "delta": c.args})
			ev("response.function_call_arguments.done", m{"item_id": "fc_" + c.id, "output_index": i, "arguments": c.args})
			ev("response.output_item.done", m{"output_index": i, "item": item(c)})
			i++
		}
		ev("response.completed", m{"response": response("completed", whole(text, list))})
		return b.String()
	}
	type doc struct {
		Type, Status, Message, Delta, Code string
		Output                             []struct {
			Type, Name, Arguments string
			CallID                string `json:"call_id"`
			Content               []struct{ Text string }
		}
		Response json.RawMessage
		Error    struct{ Message, Type string }
	}
	s.read = func(body string, stream bool) (text string, list []toolCall, finish, problem string) {
		last := body
		if stream {
			last = ""
			shown := ""
			for _, d := range sseData(body) {
				x := unjs[doc](d)
				switch x.Type {
				case "response.output_text.delta":
					shown += x.Delta
				case "response.completed":
					last = string(x.Response)
				case "error":
					problem = x.Code + ": " + x.Message
				}
			}
			defer func() {
				if text != shown && problem == "" {
					problem = "the end says " + text + ", and before it was " + shown
				}
			}()
		}
		x := unjs[doc](last)
		for _, o := range x.Output {
			if o.Type == "function_call" {
				list = append(list, toolCall{o.CallID, o.Name, o.Arguments})
			}
			for _, c := range o.Content {
				text += c.Text
			}
		}
		if e := unjs[doc](body).Error; e.Message != "" {
			problem = e.Type + ": " + e.Message
		}
		return text, list, x.Status, problem
	}
	return s
}

func ollamaSpeaker() speaker {
	s := speaker{name: "ollama chat", api: "ollama", path: "/api/chat", media: "application/x-ndjson", done: "stop", callsDone: "stop"}
	calls := func(list []toolCall) []any {
		var out []any
		for _, c := range list {
			out = append(out, m{"id": c.id, "function": m{"name": c.tool, "arguments": json.RawMessage(c.args)}})
		}
		return out
	}
	s.request = func(turns []turn, stream bool) map[string]any {
		messages := []any{m{"role": "system", "content": "You are helpful."}}
		for _, t := range turns {
			if t.user != "" {
				messages = append(messages, m{"role": "user", "content": t.user})
			}
			if t.said != "" || t.calls != nil {
				a := m{"role": "assistant", "content": t.said}
				if t.calls != nil {
					a["tool_calls"] = calls(t.calls)
				}
				messages = append(messages, a)
			}
			for i, r := range t.results {
				messages = append(messages, m{"role": "tool", "tool_name": t.calls[i].tool, "content": r})
			}
		}
		return m{"model": "m-1", "stream": stream, "messages": messages, "options": m{"num_ctx": 2048},
			"tools": []any{m{"type": "function", "function": m{"name": "web_fetch", "description": "Reads a page.", "parameters": m{"type": "object"}}}}}
	}
	part := func(text string, list []toolCall, done bool) m {
		msg := m{"role": "assistant", "content": text}
		if list != nil {
			msg["tool_calls"] = calls(list)
		}
		v := m{"model": "m-1", "created_at": "2026-11-30T00:00:00.123Z", "message": msg, "done": done}
		if done {
			v["done_reason"], v["total_duration"] = "stop", 12
		}
		return v
	}
	s.answer = func(text string, list []toolCall) string { return js(part(text, list, true)) }
	s.stream = func(text string, list []toolCall) string {
		one, two := halves(text)
		return js(part(one, nil, false)) + "\n" + js(part(two, nil, false)) + "\n" + js(part("", list, false)) + "\n" + js(part("", nil, true)) + "\n"
	}
	type doc struct {
		Message struct {
			Content string
			Calls   []struct {
				ID       string
				Function struct {
					Name      string
					Arguments json.RawMessage
				}
			} `json:"tool_calls"`
		}
		Done   bool
		Reason string `json:"done_reason"`
		Error  string
	}
	s.read = func(body string, stream bool) (text string, list []toolCall, finish, problem string) {
		for _, line := range strings.Split(body, "\n") {
			x := unjs[doc](line)
			text += x.Message.Content
			for _, c := range x.Message.Calls {
				list = append(list, toolCall{c.ID, c.Function.Name, string(c.Function.Arguments)})
			}
			if x.Done {
				finish = x.Reason
			}
			if x.Error != "" {
				problem = x.Error
			}
		}
		return text, list, finish, problem
	}
	return s
}
