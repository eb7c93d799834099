package modelproxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxEvent bounds one event of a stream.
const maxEvent = 8 << 20

var (
	errEventSize = errors.New("holds an event that is too large")
	errEventText = errors.New("is not valid UTF-8")
	errField     = errors.New("holds a line that is none of an event stream")
)

// event is one event of a stream.
type event struct {
	name string // of server-sent events; may be empty
	data string
}

// reader reads the events of a stream. It ends with io.EOF, and with
// io.ErrUnexpectedEOF where an event was begun.
type reader interface {
	next() (event, error)
}

// sseReader reads server-sent events.
type sseReader struct {
	r       *bufio.Reader
	started bool
}

func newSSE(r io.Reader) *sseReader { return &sseReader{r: bufio.NewReaderSize(r, 64<<10)} }

func (s *sseReader) next() (event, error) {
	var e event
	var data []string
	size, begun := 0, false
	for {
		line, err := readLine(s.r)
		if err != nil {
			if errors.Is(err, io.EOF) && begun {
				err = io.ErrUnexpectedEOF
			}
			return event{}, err
		}
		if !s.started {
			line, s.started = strings.TrimPrefix(line, "\uFEFF"), true
		}
		if size += len(line); size > maxEvent {
			return event{}, errEventSize
		}
		if line == "" {
			if len(data) == 0 { // nothing, or a name alone: no event
				e, begun = event{}, false
				continue
			}
			e.data = strings.Join(data, "\n")
			return e, nil
		}
		if strings.HasPrefix(line, ":") { // a comment keeps the connection open
			size -= len(line)
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		begun = true
		switch name {
		case "data":
			data = append(data, value)
		case "event":
			if len(value) > 128 || !word(value) {
				return event{}, errField
			}
			e.name = value
		case "id", "retry": // for browsers that reconnect
		default:
			return event{}, errField
		}
	}
}

// lineReader reads one JSON document a line.
type lineReader struct{ r *bufio.Reader }

func newLines(r io.Reader) *lineReader { return &lineReader{bufio.NewReaderSize(r, 64<<10)} }

func (l *lineReader) next() (event, error) {
	for {
		line, err := readLine(l.r)
		if err != nil {
			return event{}, err
		}
		if strings.TrimSpace(line) != "" {
			return event{data: line}, nil
		}
	}
}

// readLine returns a line without its end. A last line without one was cut.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxEvent {
			return "", errEventSize
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if bytes.IndexByte(line, '\r') >= 0 { // some take it for a line's end
			return "", errField
		}
		if !utf8.Valid(line) {
			return "", errEventText
		}
		return string(line), nil
	}
}

// write puts an event on the wire.
func (e event) write(b []byte) []byte {
	if e.name != "" {
		b = append(append(append(b, "event: "...), e.name...), '\n')
	}
	for _, line := range strings.Split(e.data, "\n") {
		b = append(append(append(b, "data: "...), line...), '\n')
	}
	return append(b, '\n')
}
