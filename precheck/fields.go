package precheck

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// field is one string of a JSON payload.
type field struct {
	key        string // lower case; of an array's element, the array's
	value      string
	start, end int  // of the raw text between the quotes
	exact      bool // nothing in it is escaped
	element    bool // of an array
}

// maxFields bounds the strings of a JSON payload that are looked at by key.
const maxFields = 1024

// jsonFields returns the strings of a JSON object or array with their keys.
// ok is false when text is no JSON.
func jsonFields(text string) (fields []field, ok bool) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil, false
	}
	if !jsontext.Value(trimmed).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, false
	}
	key := ""
	var arrays []bool
	for i := 0; i < len(text) && len(fields) < maxFields; i++ {
		switch text[i] {
		case '{':
			arrays = append(arrays, false)
		case '[':
			arrays = append(arrays, true)
		case '}', ']':
			if len(arrays) > 0 {
				arrays = arrays[:len(arrays)-1]
			}
		case '"':
			end, escaped := i+1, false
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					escaped = true
					end++
				}
				end++
			}
			end = min(end, len(text))
			raw := text[i+1 : end]
			next := end + 1
			for next < len(text) && strings.IndexByte(" \t\r\n", text[next]) >= 0 {
				next++
			}
			if next < len(text) && text[next] == ':' {
				key = strings.ToLower(raw)
			} else {
				f := field{key: key, value: raw, start: i + 1, end: end, exact: !escaped, element: len(arrays) > 0 && arrays[len(arrays)-1]}
				if escaped {
					if err := json.Unmarshal([]byte(text[i:end+1]), &f.value); err != nil {
						f.value = raw
					}
				}
				fields = append(fields, f)
			}
			i = end
		}
	}
	return fields, true
}

// Keys of a tool's parameters that say what a string is.
var (
	commandKeys = set("command", "cmd", "script", "code", "shell", "bash", "exec", "argv", "args", "commandline", "command_line", "run", "commands", "program", "shell_command", "bash_command", "input_command")
	sqlKeys     = set("sql", "query", "statement", "queries", "statements")
	hostKeys    = set("url", "uri", "host", "hostname", "endpoint", "address", "server", "base_url", "baseurl", "target", "href", "link", "ip", "domain", "webhook", "webhook_url", "callback", "callback_url", "proxy", "origin", "urls", "hosts", "api_base", "remote", "upstream", "redirect_uri")
	actionKeys  = set("action", "operation", "op", "method", "tool", "function", "type", "intent", "verb", "event", "task", "name", "kind")
	pathKeys    = set("path", "file", "filename", "file_path", "filepath", "dir", "directory", "cwd", "destination", "dest", "source", "src", "target", "paths", "files", "output", "workdir", "to", "from", "old_path", "new_path", "socket", "location")
)

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// at returns the JSON field that holds the payload's byte pos, if any.
func (k *check) fieldAt(pos int) *field {
	for i := range k.fields {
		if f := &k.fields[i]; f.start <= pos && pos < f.end {
			return f
		}
	}
	return nil
}
