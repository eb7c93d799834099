package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.org/auditd/bench/isolation"
	"example.org/auditd/schema"
)

// do does what the agent wants with a tool. shown is all that the model reads of
// it, held what it keeps: the content, or the symbol in its place.
func (t *turn) do(ctx context.Context, s isolation.Step) (shown, held string, err error) {
	switch s.Act {
	case isolation.Fetch:
		return t.call(ctx, "web_fetch", object{"url": s.URL}, t.fetch)
	case isolation.ReadMail, isolation.Run:
		return t.call(ctx, "exec", object{"command": s.Command}, t.exec)
	case isolation.Restricted:
		if t.cfg.Arrangement == Isolated || t.cfg.Arrangement == Both {
			s.Command = "RESTRICTED=1 " + s.Command
		}
		return t.call(ctx, "exec", object{"command": s.Command}, t.exec)
	case isolation.Read:
		return t.call(ctx, "read", object{"path": s.Path}, t.read)
	case isolation.Write:
		return t.call(ctx, "write", object{"path": s.Path, "content": s.Text}, t.write)
	case isolation.Edit:
		return t.call(ctx, "edit", object{"path": s.Path, "oldText": s.Old, "newText": s.Text}, t.edit)
	case isolation.Remember: // the host keeps its memory in files of the workspace
		return t.call(ctx, "write", object{"path": filepath.Join(t.w.Dir, "memory", s.Path+".md"), "content": s.Text}, t.write)
	case isolation.Recall:
		return t.call(ctx, "memory_get", object{"path": "memory/" + s.Path + ".md"}, t.recall)
	case isolation.Send:
		return t.call(ctx, "message", object{"action": "send", "target": s.To, "message": s.Text}, t.send)
	case isolation.Inspect:
		return t.inspect(ctx, s)
	}
	return "", "", fmt.Errorf("the agent wants to %s", s.Act)
}

// viewless reports whether a tool works on files past the daemon.
func (t *turn) viewless(tool string) bool {
	if t.cfg.Arrangement != Dual {
		return false
	}
	switch tool {
	case "read", "write", "edit", "memory_get":
		return true
	}
	return false
}

// call runs a tool as a host does: it asks before, runs with the arguments that
// come back, and shows the result that comes back.
func (t *turn) call(ctx context.Context, tool string, params object, run func(context.Context, object) object) (shown, held string, err error) {
	if t.viewless(tool) {
		return t.past(ctx, params, run)
	}
	t.calls++
	id := fmt.Sprintf("call-%d", t.calls)
	doc := encode(params)
	if t.watched(schema.PhaseBeforeTool) {
		out, err := t.event(ctx, schema.Event{Phase: schema.PhaseBeforeTool, Tool: tool, CallID: id, Params: doc})
		if err != nil {
			return "", "", err
		}
		if out.Action.Stops() {
			return out.Message, "", nil
		}
		if len(out.Params) > 0 {
			doc = out.Params
		}
	}
	var with object
	if err := json.Unmarshal(doc, &with); err != nil {
		return "", "", errors.New("the daemon's arguments are no object")
	}
	result := encode(run(ctx, with))
	if t.watched(schema.PhaseAfterTool) {
		out, err := t.event(ctx, schema.Event{Phase: schema.PhaseAfterTool, Tool: tool, CallID: id, Params: doc, Result: result})
		switch {
		case err != nil:
			return "", "", err
		case len(out.Result) > 0: // also where it is withheld: in its place
			result = out.Result
		case out.Action.Stops():
			return out.Message, "", nil
		}
	}
	return string(result), kept(result), nil
}

// past is a file tool without a view: the text that lands is the original, which
// is what delivering a message does too, and what is read is what lies there.
func (t *turn) past(ctx context.Context, params object, run func(context.Context, object) object) (shown, held string, err error) {
	for _, name := range []string{"content", "newText", "oldText"} {
		text, ok := params[name].(string)
		if !ok {
			continue
		}
		out, err := t.event(ctx, schema.Event{Phase: schema.PhaseMessageOut, Text: text})
		switch {
		case err != nil:
			return "", "", err
		case out.Action.Stops():
			return out.Message, "", nil
		case out.Text != nil:
			params[name] = *out.Text
		}
	}
	result := encode(run(ctx, params))
	return string(result), kept(result), nil
}

// kept is the content of a result.
func kept(result json.RawMessage) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		Details map[string]any `json:"details"`
	}
	if json.Unmarshal(result, &r) != nil {
		return ""
	}
	for _, name := range []string{"text", "aggregated", "content"} {
		if s, ok := r.Details[name].(string); ok {
			return strings.TrimSuffix(s, "\n")
		}
	}
	if len(r.Content) > 0 {
		return r.Content[0].Text
	}
	return ""
}

func result(text string, details object) object {
	return object{"content": []any{object{"type": "text", "text": text}}, "details": details}
}

func failed(err error) object {
	return object{"content": []any{object{"type": "text", "text": err.Error()}}, "isError": true}
}

func text(p object, name string) string {
	s, _ := p[name].(string)
	return s
}

// maxText bounds what a tool gives back.
const maxText = 256 << 10

func (t *turn) fetch(ctx context.Context, p object) object {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, text(p, "url"), nil)
	if err != nil {
		return failed(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return failed(errors.New("the page cannot be had"))
	}
	defer got.Body.Close()
	body, err := io.ReadAll(io.LimitReader(got.Body, maxText))
	if err != nil {
		return failed(errors.New("the page cannot be read"))
	}
	return result(string(body), object{"url": text(p, "url"), "finalUrl": text(p, "url"), "status": got.StatusCode, "contentType": "text/html", "title": "Garden club", "text": string(body)})
}

func (t *turn) exec(ctx context.Context, p object) object {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", text(p, "command"))
	cmd.Dir = t.w.Dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return failed(err)
	}
	if len(out) > maxText {
		out = out[:maxText]
	}
	return result(string(out), object{"status": "completed", "exitCode": max(cmd.ProcessState.ExitCode(), 0), "aggregated": string(out)})
}

func (t *turn) read(_ context.Context, p object) object {
	data, err := os.ReadFile(text(p, "path"))
	if err != nil {
		return failed(errors.New("the file cannot be read"))
	}
	return result(string(data), object{"kind": "text", "content": string(data)})
}

func (t *turn) write(_ context.Context, p object) object {
	path := text(p, "path")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return failed(errors.New("the folder cannot be made"))
	}
	if err := os.WriteFile(path, []byte(text(p, "content")), 0o644); err != nil {
		return failed(errors.New("the file cannot be written"))
	}
	return result("Written.", object{"changed": true, "created": true})
}

func (t *turn) edit(_ context.Context, p object) object {
	path := text(p, "path")
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), text(p, "oldText")) {
		return failed(errors.New("the text is not in the file"))
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), text(p, "oldText"), text(p, "newText"), 1)), 0o644); err != nil {
		return failed(errors.New("the file cannot be written"))
	}
	return result("Edited.", object{"changed": true, "created": false})
}

// recall is the host's own tool: it reads its store, which lies in the person's
// files.
func (t *turn) recall(_ context.Context, p object) object {
	data, err := os.ReadFile(filepath.Join(t.w.Dir, text(p, "path")))
	if err != nil {
		return failed(errors.New("there is no such memory"))
	}
	return result(string(data), object{"path": text(p, "path"), "text": string(data)})
}

func (t *turn) send(_ context.Context, p object) object {
	t.o.Sent[text(p, "target")] = append(t.o.Sent[text(p, "target")], text(p, "message"))
	return result("Sent.", object{"ok": true, "messageId": "1f"})
}

// inspect asks the quarantined model. The answer's texts are symbols again.
func (t *turn) inspect(ctx context.Context, s isolation.Step) (shown, held string, err error) {
	if t.cfg.Inspect == nil {
		return "There is no such tool.", "", nil
	}
	t.calls++
	out, err := t.cfg.Inspect(ctx, t.id, fmt.Sprintf("call-%d", t.calls), s.Text, s.Question)
	if err != nil {
		return "", "", fmt.Errorf("inspect a symbol: %w", err)
	}
	if out.Action.Stops() {
		t.r.Stops++
		return out.Message, "", nil
	}
	shown = string(out.Result)
	if held = isolation.Symbol.FindString(shown); held == "" {
		held = sentence.FindString(shown)
	}
	return shown, held, nil
}

var sentence = regexp.MustCompile(`The meeting is on [^."]*`)
