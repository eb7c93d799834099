package main

import (
	"path"
	"slices"
	"strings"

	"example.org/auditd/schema"
)

// lookers are programs that only look at, or make, the files that they are
// given, so that one file of the workspace is as good as another.
var lookers = strings.Fields("ls cat head tail wc stat file du touch mkdir")

// anyFile stands for a path in the workspace, as the owner sees it.
const anyFile = "/ANY-FILE-OF-THE-WORKSPACE"

// commandShape is what a grant for more than one call goes by: the command with
// its spaces made even and, for programs that only look, with every plain path
// inside the workspace standing for all of them. Whether such a command can be
// granted at all is decided after this: anything that a shell treats specially
// is granted for one call only. What goes elsewhere than to a command line is
// itself.
func commandShape(f *schema.Flow) (string, bool) {
	if f.Sink.Kind != schema.SinkExec {
		return f.Payload, f.Payload != ""
	}
	if strings.ContainsAny(f.Payload, "\n\r;|&$`<>(){}[]*?~!#\\'\"\x00") {
		return f.Payload, true // never one that a grant covers
	}
	words := strings.Fields(f.Payload)
	if len(words) == 0 {
		return "", false
	}
	if !slices.Contains(lookers, words[0]) {
		return strings.Join(words, " "), true
	}
	for i, w := range words {
		if i > 0 && plainFile(w, f.Session.Workspace) {
			words[i] = anyFile
		}
	}
	return strings.Join(words, " "), true
}

// plainFile: an absolute path that stays inside the workspace and names nothing
// hidden, where keys and settings lie. A relative one depends on a folder that
// the command does not say.
func plainFile(word, workspace string) bool {
	if workspace == "" || !path.IsAbs(workspace) || strings.HasPrefix(word, "-") || strings.ContainsAny(word, "=:,@%") {
		return false
	}
	rel, ok := strings.CutPrefix(word, strings.TrimSuffix(path.Clean(workspace), "/")+"/")
	if !ok {
		return false
	}
	for part := range strings.SplitSeq(rel, "/") {
		if part == "" || strings.HasPrefix(part, ".") {
			return false
		}
	}
	return true
}
