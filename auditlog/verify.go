package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Summary is what Verify found.
type Summary struct {
	Records  int64     `json:"records"`
	Segments int       `json:"segments"`
	Bytes    int64     `json:"bytes"`
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	Values   int64     `json:"values"` // records with a redacted text
	Erased   int64     `json:"erased"` // of them, erased since
	// ErasedUnlogged is how many of Erased no record of the log accounts for:
	// somebody removed a file.
	ErasedUnlogged int64 `json:"erased_unlogged"`
	// Pending and TornBytes lie beyond the last acknowledged record: what a crash
	// left, or what a running daemon is writing. Opening the log repairs it.
	Pending    int64  `json:"pending"`
	TornBytes  int64  `json:"torn_bytes"`
	Checkpoint string `json:"checkpoint"` // as signed
	Verifier   string `json:"verifier"`
}

// Verify checks the log under the state directory dir from its files alone:
// every record, the chain, the Merkle root, the head's signature and every
// redacted text that is still there. The error names the first problem. The
// daemon may be running.
func Verify(dir string) (Summary, error) { return VerifyAgainst(dir, "", nil) }

// VerifyAgainst is Verify for whoever kept the verifier key or an earlier
// checkpoint elsewhere: the log must be signed by that key, and must contain
// what that checkpoint was signed over. Either may be empty.
func VerifyAgainst(dir, verifierKey string, checkpoint []byte) (Summary, error) {
	var v verification
	err := v.run(dir, verifierKey, checkpoint)
	if err != nil {
		err = fmt.Errorf("the log does not verify: %w", err)
	}
	return v.sum, err
}

type verification struct {
	sum   Summary
	head  *head
	kept  *head // the earlier checkpoint, or nil
	state chainState
	edge  edge
	// erased values are settled when all records of erasure have been read.
	erasedAt []int64
	erasures []Erased
}

func (v *verification) run(dir, verifierKey string, checkpoint []byte) error {
	pub, err := readVerifierKey(dir)
	if err != nil {
		return err
	}
	if verifierKey != "" && verifierKey != pub {
		return errors.New("log.pub is not the key that was given")
	}
	verifier, err := note.NewVerifier(pub)
	if err != nil {
		return errors.New("log.pub is malformed")
	}
	v.sum.Verifier = pub
	if len(checkpoint) > 0 {
		if v.kept, err = parseHead(checkpoint, verifier); err != nil {
			return fmt.Errorf("the checkpoint given %w", err)
		}
	}
	var msg []byte
	if v.head, msg, err = readHeadOf(dir, verifier); err != nil {
		return err
	}
	v.sum.Checkpoint = string(msg)
	if v.kept != nil && v.kept.size > v.head.size {
		return fmt.Errorf("the checkpoint given counts %d records, the log only %d: it was cut", v.kept.size, v.head.size)
	}
	segments, err := listSegments(dir)
	if err != nil {
		return err
	}
	v.sum.Segments = len(segments)
	for i, first := range segments {
		if first != v.state.next {
			return fmt.Errorf("segment %020d is missing: the next one begins with record %d", v.state.next, first)
		}
		if err := v.segment(dir, first, i == len(segments)-1); err != nil {
			return fmt.Errorf("segment %020d: %w", first, err)
		}
	}
	if v.state.next < v.head.size {
		return fmt.Errorf("%d acknowledged records are missing at the end: the head counts %d, the segments hold %d",
			v.head.size-v.state.next, v.head.size, v.state.next)
	}
	if v.head.size == 0 && v.head.root != new(edge).root() {
		return errors.New("the head of an empty log has another root")
	}
	v.sum.Records = v.head.size
	v.sum.Pending = v.state.next - v.head.size
	for _, i := range v.erasedAt {
		logged := false
		for _, e := range v.erasures {
			logged = logged || e.From <= i && i < e.To
		}
		if !logged {
			v.sum.ErasedUnlogged++
		}
	}
	return nil
}

// segment checks one segment and its values.
func (v *verification) segment(dir string, first int64, last bool) error {
	f, err := os.Open(segmentPath(dir, first))
	if err != nil {
		return fmt.Errorf("open it: %w", err)
	}
	defer f.Close()
	values, err := os.Open(valuesPath(dir, first))
	if err != nil && !missing(err) {
		return fmt.Errorf("open its values: %w", err)
	}
	if values != nil {
		defer values.Close()
	}
	// A whole record beyond the head may be damaged: nobody was told of it.
	beyond := error(nil)
	good := int64(0)
	torn, err := lines(f, -1, func(line []byte, at int64) error {
		acknowledged := v.state.next < v.head.size
		if err := v.record(line, at, first, values); err != nil {
			if acknowledged || !last {
				return err
			}
			beyond = err
			return errStop
		}
		good = at + int64(len(line)) + 1
		return nil
	})
	st, serr := f.Stat()
	switch {
	case serr != nil:
		return serr
	case err != nil && beyond == nil && (!last || v.state.next < v.head.size):
		return err
	case torn > 0 && !last:
		return fmt.Errorf("its last record is not finished, after record %d", v.state.next-1)
	}
	v.sum.Bytes += good
	if last {
		v.sum.TornBytes = max(0, st.Size()-good)
	}
	return nil
}

// record checks one line. Nothing of v changes when it fails.
func (v *verification) record(line []byte, at, first int64, values *os.File) error {
	h, err := parseLineHead(line)
	if err != nil {
		return fmt.Errorf("record %d: %w", v.state.next, err)
	}
	next := v.state
	if err := next.follow(line, h); err != nil {
		return err
	}
	r, err := ParseRecord(line)
	if err != nil {
		return fmt.Errorf("record %d: %w", h.index, err)
	}
	e := v.edge
	e.add(next.hash)
	for _, known := range []*head{v.head, v.kept} {
		if known == nil || known.size != next.next {
			continue
		}
		if next.hash != known.chain || e.root() != known.root {
			return fmt.Errorf("record %d or one before it is not what the checkpoint over %d records was signed over", h.index, known.size)
		}
		if known.segment != first || known.bytes != at+int64(len(line))+1 {
			return fmt.Errorf("record %d does not lie where the checkpoint has it", h.index)
		}
	}
	if err := v.value(r, values); err != nil {
		return fmt.Errorf("record %d: %w", h.index, err)
	}
	v.state, v.edge = next, e
	if v.sum.First.IsZero() {
		v.sum.First = r.Time
	}
	v.sum.Last = r.Time
	if r.Erased != nil {
		v.erasures = append(v.erasures, *r.Erased)
	}
	return nil
}

func (v *verification) value(r *Record, values *os.File) error {
	if r.Value == nil {
		return nil
	}
	state := valueErased
	if values != nil {
		var err error
		if _, state, err = valueAt(values, r.Value); err != nil {
			return err
		}
		var end [1]byte
		n, err := values.ReadAt(end[:], r.Value.At+r.Value.Bytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read a value: %w", err)
		}
		if n == 1 && end[0] != '\n' && !(state == valueErased && blank(end[:])) || n == 0 && state == valueThere {
			state = valueChanged
		}
	}
	v.sum.Values++
	switch state {
	case valueChanged:
		return errors.New("its redacted text in values/ was changed")
	case valueErased:
		v.sum.Erased++
		v.erasedAt = append(v.erasedAt, r.Index)
	}
	return nil
}

// Check verifies a proof against a verifier key that the caller trusts.
func (p *Proof) Check(verifierKey string) error {
	verifier, err := note.NewVerifier(verifierKey)
	if err != nil {
		return errors.New("the verifier key is malformed")
	}
	h, err := parseHead([]byte(p.Checkpoint), verifier)
	if err != nil {
		return fmt.Errorf("the checkpoint %w", err)
	}
	line := []byte(p.Record)
	if bytes.IndexByte(line, '\n') >= 0 || p.Index < 0 || p.Index >= h.size {
		return errors.New("the proof is malformed")
	}
	if err := tlog.CheckRecord(p.Proof, h.size, h.root, p.Index, tlog.RecordHash(line)); err != nil {
		return errors.New("the record is not in the log that the checkpoint was signed over")
	}
	return nil
}
