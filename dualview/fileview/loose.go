package fileview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"example.org/auditd/dualview"
	"example.org/auditd/schema"
)

// Loose returns a copy of one file outside every workspace, such as one in /tmp,
// as the agent may see it: untrusted whole when a rule says so or when a
// HumanShell may have written it, else without the parts that are known. The
// copy is for reading; nothing is carried back.
func (s *Store) Loose(ctx context.Context, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", errors.New("the path is not absolute")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("read a file: %w", bare(err))
	}
	if real == s.dir || strings.HasPrefix(real, s.dir+"/") {
		return "", errors.New("it is auditd's own file")
	}
	dir, err := os.OpenRoot(filepath.Dir(real))
	if err != nil {
		return "", fmt.Errorf("read a file: %w", bare(err))
	}
	defer dir.Close()
	l, err := lookAt(dir, filepath.Base(real), true)
	switch {
	case err != nil:
		return "", err
	case l.kind == directory:
		return "", fmt.Errorf("read a file: %w", syscall.EISDIR)
	case l.kind != file:
		return "", fmt.Errorf("read a file: %w", fs.ErrNotExist)
	case l.large:
		return "", fmt.Errorf("a file of %d bytes outside every workspace is over the limit of %d: %w", l.size, maxHistory, dualview.ErrTooLarge)
	}
	// The name of the copy says which version of the file, under which rules, it
	// shows, so that the same version keeps its symbols.
	trust := ""
	if s.trust != nil {
		trust = s.trust(real, "")
	}
	_, tainted, err := s.window(ctx, l.ctime)
	if err != nil {
		return "", fmt.Errorf("look for shells: %w", err)
	}
	if tainted {
		var one int
		tainted = s.db.QueryRowContext(ctx, `SELECT 1 FROM fileview_trusted WHERE blob = ?`, l.id).Scan(&one) != nil
	}
	key := string(schema.DigestOf("loose", real, l.stat, trust, fmt.Sprint(tainted)))[7:39]
	copyDir := filepath.Join(s.dir, "loose", key)
	to := filepath.Join(copyDir, filepath.Base(real))
	if _, err := os.Lstat(to); err == nil {
		return to, nil
	}
	text, symbols, err := s.looseText(ctx, real, l, trust == "untrusted" || tainted)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(copyDir, 0o700); err != nil {
		return "", fmt.Errorf("show a file: %w", bare(err))
	}
	tree, err := os.OpenRoot(copyDir)
	if err != nil {
		return "", fmt.Errorf("show a file: %w", bare(err))
	}
	defer tree.Close()
	if err := s.table.Hold(ctx, s.owner, "loose:"+key, symbols); err != nil {
		return "", err
	}
	err = write(tree, filepath.Base(real), look{kind: file, perm: 0o600}, bytes.NewReader(text), look{}, false)
	if err != nil && !errors.Is(err, errChanged) { // another call was faster
		return "", err
	}
	return to, nil
}

func (s *Store) looseText(ctx context.Context, path string, l look, untrusted bool) ([]byte, []dualview.Symbol, error) {
	p := dualview.Provenance{Kind: schema.SourceFile, Tool: "fileview", Field: "content", Trust: schema.Untrusted}
	if len(path) <= schema.MaxName/2 {
		p.Origin = strings.ToValidUTF8(path, "?")
	}
	if untrusted && l.size > 0 {
		sym, err := s.table.Symbolise(ctx, s.owner, l.content, p)
		return []byte(sym), []dualview.Symbol{sym}, err
	}
	pieces, err := s.table.Recognise(ctx, s.owner, l.content, p)
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	var symbols []dualview.Symbol
	at := 0
	for _, piece := range pieces {
		out.Write(l.content[at:piece.Start])
		out.WriteString(string(piece.Symbol))
		symbols = append(symbols, piece.Symbol)
		at = piece.End
	}
	out.Write(l.content[at:])
	return out.Bytes(), symbols, nil
}

// ReadAgent returns a file as the agent sees it, wherever it lies: for a check of
// what a command would run. A file that is not there is fs.ErrNotExist, a
// directory syscall.EISDIR. The workspace must have been synced.
func (s *Store) ReadAgent(ctx context.Context, path string) ([]byte, error) {
	root, err := s.Root(ctx, path)
	if err == nil {
		s.mu.Lock()
		w := s.views[root]
		s.mu.Unlock()
		if w != nil {
			if agent, err := w.AgentPath(path); err == nil {
				return readSmall(agent)
			}
			// Part of the project's repository, or a link that the agent does
			// not see: looked at on its own.
		}
	}
	loose, err := s.Loose(ctx, path)
	if err != nil {
		return nil, err
	}
	return readSmall(loose)
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a file: %w", bare(err))
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a file: %w", bare(err))
	case st.IsDir():
		return nil, fmt.Errorf("read a file: %w", syscall.EISDIR)
	case !st.Mode().IsRegular() || st.Size() > maxHistory:
		return nil, errors.New("read a file: it is too large or no file")
	}
	return os.ReadFile(path)
}
