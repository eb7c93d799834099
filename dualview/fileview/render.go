package fileview

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"

	"example.org/auditd/dualview"
)

// contextOf is how originals are escaped in a file of this name.
func contextOf(path string) dualview.Context {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".jsonl", ".ndjson", ".geojson", ".ipynb":
		return dualview.JSON
	case ".yaml", ".yml":
		return dualview.YAML
	case ".csv":
		return dualview.CSV
	case ".html", ".htm", ".xhtml", ".svg", ".xml":
		return dualview.HTML
	}
	return dualview.Raw
}

// render returns what the agent's version of a file is for people, and its
// provenance. A symbol that stood in the file before keeps the bytes that it
// had there.
func (b *batch) render(base *entry, h, a look) ([]byte, []segment, error) {
	text := string(a.content)
	spans := b.store.table.Spans(text)
	switch {
	case len(spans) > 0 && bytes.IndexByte(a.content, 0) >= 0:
		return nil, nil, errors.New("a binary file holds symbols, whose values cannot be put into it: make it with the shell that has the originals")
	case len(spans) == 0 && b.packed(a.content):
		return nil, nil, errors.New("a compressed file holds symbols, whose values cannot be put into it: make it with the shell that has the originals")
	}
	if len(spans) == 0 {
		if len(a.content) == 0 {
			return nil, nil, nil
		}
		return a.content, []segment{{N: len(a.content)}}, nil
	}
	before := map[dualview.Symbol][]byte{}
	if base.kind == file && len(symbolsOf(base.segs)) > 0 {
		old, err := b.git.read(base.humanID)
		if err == nil && len(old) == sumN(base.segs) {
			at := 0
			for _, s := range base.segs {
				if s.Symbol != "" && before[s.Symbol] == nil {
					before[s.Symbol] = old[at : at+s.N]
				}
				at += s.N
			}
		}
	}
	o, ranges, err := b.store.table.ResolveRanges(b.ctx, text, contextOf(base.path), b.store.grant())
	if err != nil {
		switch {
		case errors.Is(err, dualview.ErrUnknown):
			return nil, nil, errors.New("it holds a symbol that is not known")
		case errors.Is(err, dualview.ErrContext):
			return nil, nil, errors.New("a symbol stands where its value cannot be written: put it into quotation marks")
		case errors.Is(err, dualview.ErrNoGrant):
			return nil, nil, errors.New("it holds a secret that may not be written into a file")
		}
		return nil, nil, errors.New("its symbols cannot be resolved")
	}
	resolved := o.Reveal()
	var out bytes.Buffer
	var segs []segment
	at := 0
	for _, r := range ranges {
		if r.Start > at {
			out.WriteString(resolved[at:r.Start])
			segs = append(segs, segment{N: r.Start - at})
		}
		value := []byte(resolved[r.Start:r.End])
		if kept, ok := before[r.Symbol]; ok {
			info, err := b.store.table.Info(b.ctx, b.store.owner, r.Symbol)
			if err != nil {
				return nil, nil, errors.New("it holds a symbol that is not known")
			}
			// Symbols made of parts of a file hold what stood there, escapes
			// included.
			if info.Provenance.Tool == "fileview" {
				value = kept
			}
		}
		out.Write(value)
		segs = append(segs, segment{r.Symbol, len(value)})
		at = r.End
	}
	out.WriteString(resolved[at:])
	segs = append(segs, segment{N: len(resolved) - at})
	return out.Bytes(), join(segs), nil
}
