package auditlog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// headSize is the size of the head file. It is one disk sector, overwritten in
// place: a sector is written whole or not at all, also when the power fails.
const headSize = 512

// head is the signed statement of what was acknowledged.
type head struct {
	size    int64     // records
	root    tlog.Hash // of the Merkle tree over them
	chain   tlog.Hash // hash of the last record's line; zero for an empty log
	segment int64     // name of the segment that the last record is in
	bytes   int64     // length of that segment up to and with that record
	values  int64     // length of its values file likewise
	time    time.Time
}

// text is a checkpoint of c2sp.org/tlog-checkpoint: origin, size and root,
// followed by extension lines of our own.
func (h *head) text() string {
	return fmt.Sprintf("%s\n%d\n%s\nchain %s\nsegment %d %d %d\ntime %s\n", origin, h.size, h.root, h.chain,
		h.segment, h.bytes, h.values, h.time.UTC().Format(time.RFC3339Nano))
}

func (h *head) sign(s note.Signer) ([]byte, error) {
	msg, err := note.Sign(&note.Note{Text: h.text()}, s)
	if err != nil {
		return nil, fmt.Errorf("sign the checkpoint: %w", err)
	}
	if len(msg) > headSize {
		return nil, fmt.Errorf("the signed checkpoint has %d bytes, the limit is %d", len(msg), headSize)
	}
	return msg, nil
}

// parseHead verifies and reads a signed checkpoint.
func parseHead(msg []byte, v note.Verifier) (*head, error) {
	if len(msg) > headSize {
		return nil, errors.New("is longer than a checkpoint")
	}
	n, err := note.Open(msg, note.VerifierList(v))
	if err != nil {
		return nil, errors.New("is not signed by this log's key")
	}
	h := new(head)
	// Sscanf would accept more than one spelling: parse, then compare.
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 7 {
		return nil, errors.New("does not have the lines of a checkpoint")
	}
	if h.size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return nil, errors.New("has a malformed size")
	}
	if h.root, err = tlog.ParseHash(lines[2]); err != nil {
		return nil, errors.New("has a malformed root hash")
	}
	if h.chain, err = tlog.ParseHash(strings.TrimPrefix(lines[3], "chain ")); err != nil {
		return nil, errors.New("has a malformed chain hash")
	}
	if _, err := fmt.Sscanf(lines[4], "segment %d %d %d", &h.segment, &h.bytes, &h.values); err != nil {
		return nil, errors.New("has a malformed segment line")
	}
	if h.time, err = time.Parse(time.RFC3339Nano, strings.TrimPrefix(lines[5], "time ")); err != nil {
		return nil, errors.New("has a malformed time")
	}
	if h.text() != n.Text || h.size < 0 || h.segment < 0 || h.segment > h.size || h.bytes < 0 || h.values < 0 {
		return nil, errors.New("is not in canonical form")
	}
	return h, nil
}

// padHead fills msg up to the size of the file, so that the file never changes
// its length.
func padHead(msg []byte) []byte {
	return append(msg, bytes.Repeat([]byte{0}, headSize-len(msg))...)
}

// readHeadOf reads the head of a log that a daemon may be writing: a read can
// fall into the middle of a write.
func readHeadOf(dir string, v note.Verifier) (h *head, msg []byte, err error) {
	for range 5 {
		if h, msg, err = readHead(headPath(dir), v); err == nil {
			break
		}
	}
	return h, msg, err
}

// readHead reads the head file. The bytes after the note must be zero: else
// there would be a place in the file where a change goes unseen.
func readHead(path string, v note.Verifier) (*head, []byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the head: %w", err)
	}
	if len(data) != headSize {
		return nil, nil, fmt.Errorf("the head has %d bytes, not %d", len(data), headSize)
	}
	msg := bytes.TrimRight(data, "\x00")
	h, err := parseHead(msg, v)
	if err != nil {
		return nil, nil, fmt.Errorf("the head %w", err)
	}
	// sumdb/note accepts several spellings of one signature (base64 padding bits,
	// repeated lines): insist on the one that we write.
	text, sig, _ := bytes.Cut(msg, []byte("\n\n"))
	b64 := strings.TrimSuffix(strings.TrimPrefix(string(sig), "— "+v.Name()+" "), "\n")
	if _, err := base64.StdEncoding.Strict().DecodeString(b64); err != nil ||
		string(msg) != string(text)+"\n\n— "+v.Name()+" "+b64+"\n" || strings.Contains(b64, "\n") {
		return nil, nil, errors.New("the head is not in canonical form")
	}
	return h, msg, nil
}
