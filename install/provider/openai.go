package provider

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// completions speaks OpenAI's chat completions, as OpenClaw uses them.
func (s *Server) completions(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest))
	var r request
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	if err != nil {
		http.Error(w, `{"error":{"message":"not a request"}}`, http.StatusBadRequest)
		return
	}
	step, n := s.answer(&r, body)
	delta := map[string]any{"role": "assistant", "content": step.Text}
	finish := "stop"
	if len(step.Calls) > 0 {
		finish = "tool_calls"
		var calls []map[string]any
		for i, c := range step.Calls {
			args, err := json.Marshal(c.Input)
			if err != nil {
				args = []byte("{}")
			}
			calls = append(calls, map[string]any{"index": i, "id": fmt.Sprintf("call_%d_%d", n, i), "type": "function",
				"function": map[string]any{"name": c.Tool, "arguments": string(args)}})
		}
		delta["tool_calls"] = calls
	}
	usage := map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	answer := func(object string, choices []any, usage any) map[string]any {
		return map[string]any{"id": fmt.Sprintf("chatcmpl-%d", n), "object": object, "created": 1, "model": r.Model, "choices": choices, "usage": usage}
	}
	if !r.Stream {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer("chat.completion", []any{map[string]any{"index": 0, "message": delta, "finish_reason": finish}}, usage))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, chunk := range []map[string]any{
		answer("chat.completion.chunk", []any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}, nil),
		answer("chat.completion.chunk", []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil),
		answer("chat.completion.chunk", []any{}, usage),
	} {
		data, err := json.Marshal(chunk)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}
