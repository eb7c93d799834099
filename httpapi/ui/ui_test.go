package ui

import (
	"regexp"
	"strings"
	"testing"
)

// TestSources keeps the page to its rules: no HTML out of strings, no code out
// of strings, no inline script or style, nothing from another host.
func TestSources(t *testing.T) {
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	banned := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|createContextualFragment|DOMParser|srcdoc|\beval\b|new Function|setTimeout\(['"]|javascript:|localStorage|//[a-z0-9.-]+\.[a-z]{2,}/`)
	inline := regexp.MustCompile(`<script(?:\s+type="module")?>|\sstyle=|\son[a-z]+=`)
	for _, e := range entries {
		data, mediaType, ok := File(e.Name())
		if !ok {
			t.Errorf("%s is not served", e.Name())
			continue
		}
		text := strings.ReplaceAll(string(data), "http://www.w3.org/2000/svg", "")
		if m := banned.FindString(text); m != "" {
			t.Errorf("%s holds %q", e.Name(), m)
		}
		if strings.HasPrefix(mediaType, "text/html") {
			if m := inline.FindString(text); m != "" {
				t.Errorf("%s holds %q", e.Name(), m)
			}
		}
		if n := strings.Count(text, "\n"); n > 400 {
			t.Errorf("%s has %d lines", e.Name(), n)
		}
	}
	for _, name := range []string{"", "..", "../ui.go", "none.js", "static", `..\ui.go`, "index.html/"} {
		if _, _, ok := File(name); ok {
			t.Errorf("%q is served", name)
		}
	}
}
