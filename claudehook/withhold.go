package claudehook

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/auditd/schema"
)

// withheld returns a result in the shape of the tool's own that holds message
// and none of the original's text; nil when no shape is known. Whether Claude
// Code took it is checked when the batch comes.
func withheld(tool string, response jsontext.Value, message string) jsontext.Value {
	m := string(text(message))
	switch tool {
	case "Bash", "BashOutput":
		return jsontext.Value(`{"stdout":` + m + `,"stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}`)
	case "Read":
		return jsontext.Value(`{"type":"text","file":{"filePath":"","content":` + m + `,"numLines":1,"startLine":1,"totalLines":1}}`)
	case "Grep":
		return jsontext.Value(`{"mode":"content","numFiles":0,"filenames":[],"content":` + m + `,"numLines":1}`)
	case "WebFetch":
		return jsontext.Value(`{"bytes":0,"code":0,"codeText":"","result":` + m + `,"durationMs":0,"url":""}`)
	case "WebSearch":
		return jsontext.Value(`{"query":"","results":[` + m + `],"durationSeconds":0}`)
	case "Agent", "Task":
		return jsontext.Value(`{"status":"completed","prompt":"","agentId":"","content":[{"type":"text","text":` + m + `}],"totalToolUseCount":0,"totalDurationMs":0,"totalTokens":0,` +
			`"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"server_tool_use":null,"service_tier":null,"cache_creation":null}}`)
	case "ReadMcpResourceTool":
		return jsontext.Value(`{"contents":[{"uri":"","mimeType":"text/plain","text":` + m + `}]}`)
	}
	if strings.HasPrefix(tool, "mcp__") {
		return jsontext.Value(`[{"type":"text","text":` + m + `}]`)
	}
	return emptied(response, m)
}

// protocol are names whose values are words of the host's protocol: without
// them a result does not have its tool's shape any more.
var protocol = map[string]bool{"type": true, "mode": true, "status": true, "kind": true, "mimeType": true, "media_type": true}

// emptied returns v with every text taken out and m (JSON) in the first one's
// place. It walks without recursion.
func emptied(v jsontext.Value, m string) jsontext.Value {
	if len(bytes.TrimSpace(v)) == 0 {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	var out bytes.Buffer
	e := jsontext.NewEncoder(&out)
	said := false
	var names []string // of the object at each depth
	for first := true; first || d.StackDepth() > 0; first = false {
		depth := d.StackDepth()
		isName := false
		if depth > 0 {
			kind, length := d.StackIndex(depth)
			isName = kind == '{' && length%2 == 0
		}
		tok, err := d.ReadToken()
		if err != nil || d.StackDepth() > schema.MaxDepth {
			return nil
		}
		for len(names) <= depth+1 {
			names = append(names, "")
		}
		switch tok.Kind() {
		case '{', '[':
			names[depth+1] = ""
		case '"':
			name := names[depth]
			switch {
			case isName:
				names[depth] = tok.String()
			case protocol[name] && shortWord(tok.String()):
			case !said:
				said = true
				if err := e.WriteValue(jsontext.Value(m)); err != nil {
					return nil
				}
				continue
			default:
				tok = jsontext.String("")
			}
		}
		if err := e.WriteToken(tok); err != nil {
			return nil
		}
	}
	if !said { // no text in it, so none that would tell the model
		return nil
	}
	return jsontext.Value(bytes.TrimSpace(out.Bytes()))
}

// shortWord: too short to instruct anybody.
func shortWord(s string) bool {
	return len(s) <= 24 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-") == ""
}
