package auditlog

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"example.org/auditd/schema"
)

// Format is a form in which records leave the log.
type Format uint8

// Formats. The zero Format is none, so that a forgotten one is an error.
const (
	FormatUnset  Format = iota
	FormatJSONL         // the records as they stand
	FormatSyslog        // RFC 5424, one message per line
	FormatCEF           // ArcSight Common Event Format, one event per line
)

var formatNames = []string{FormatJSONL: "jsonl", FormatSyslog: "syslog", FormatCEF: "cef"}

func (f Format) String() string {
	if int(f) < len(formatNames) && formatNames[f] != "" {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// MarshalText implements encoding.TextMarshaler.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText accepts the three names.
func (f *Format) UnmarshalText(text []byte) error {
	*f = FormatUnset
	for i, name := range formatNames {
		if name != "" && name == string(text) {
			*f = Format(i)
			return nil
		}
	}
	return fmt.Errorf("unknown format; there are %s", strings.Join(formatNames[1:], ", "))
}

// ExportOptions say what Export writes.
type ExportOptions struct {
	Format  Format
	From    int64
	To      int64 // exclusive; 0 means all
	Values  bool  // JSONL only: {"record":…,"value":…} with the redacted texts
	Host    string
	Version string // of the program, for CEF
}

// Export writes the acknowledged records of the log under dir. Records hold no
// payload; with Values the redacted texts come too.
func Export(w io.Writer, dir string, opt ExportOptions) (n int64, err error) {
	bw := bufio.NewWriter(w)
	for l, err := range Lines(dir, opt.From) {
		if err != nil {
			return n, err
		}
		if opt.To > 0 && l.Index >= opt.To {
			break
		}
		line, err := exportLine(l, dir, opt)
		if err != nil {
			return n, err
		}
		bw.Write(line) // bufio keeps the error for Flush
		bw.WriteByte('\n')
		n++
	}
	if err := bw.Flush(); err != nil {
		return n, fmt.Errorf("write the export: %w", err)
	}
	return n, nil
}

func exportLine(l *Line, dir string, opt ExportOptions) ([]byte, error) {
	r, err := l.Record()
	if err != nil {
		return nil, err
	}
	switch opt.Format {
	case FormatJSONL:
		if !opt.Values {
			return l.Text, nil
		}
		v, err := l.Value(dir)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", l.Index, err)
		}
		return schema.Encode(struct {
			Record *Record `json:"record"`
			Value  *Value  `json:"value"`
		}{r, v})
	case FormatSyslog:
		return []byte(syslog(r, opt)), nil
	case FormatCEF:
		return []byte(cef(r, opt)), nil
	}
	return nil, fmt.Errorf("export: %v is no format", opt.Format)
}

// field is one name and value of a record's flat form.
type field struct{ name, value string }

// summary is what the line formats carry; the rest stays in the log.
func summary(r *Record) (severity int, title string, fields []field) {
	fields = append(fields, field{"index", strconv.FormatInt(r.Index, 10)}, field{"kind", string(r.Kind)})
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, field{name, value})
		}
	}
	d, f := r.Decision, r.Flow
	if d == nil || f == nil {
		return 5, "decision log " + string(r.Kind), fields
	}
	add("decision_id", r.ID)
	add("action", d.Action.String())
	add("stage", d.Stage.String())
	add("reason", d.Reason)
	if d.Observed != nil {
		add("observed", d.Observed.String())
	}
	add("surface", f.Surface.String())
	add("source", f.SourceKind.String())
	add("trust", f.SourceTrust.String())
	add("sink", f.SinkKind.String())
	add("agent", string(f.Agent))
	add("session", string(f.Session))
	add("payload", string(f.Payload.Digest))
	add("bytes", strconv.Itoa(f.Payload.Bytes))
	if d.Precheck != nil {
		var codes []string
		for _, s := range d.Precheck.Signals {
			codes = append(codes, s.Code.String())
		}
		add("codes", strings.Join(codes, " "))
	}
	severity = map[schema.Action]int{schema.Block: 4, schema.DeferToHuman: 5, schema.RewriteAndContinue: 5, schema.Allow: 6}[d.Action]
	return severity, "flow " + d.Action.String(), fields
}

// syslog makes an RFC 5424 message of facility 13 (log audit). Nothing in it can
// end it early: control characters are gone, and what structured data reserves
// is escaped.
func syslog(r *Record, opt ExportOptions) string {
	severity, title, fields := summary(r)
	var b strings.Builder
	fmt.Fprintf(&b, "<%d>1 %s %s auditd - %s [auditd@32473", 13*8+severity, r.Time.UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		printable(opt.Host, 255), printable(string(r.Kind), 32))
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `]`, `\]`)
	for _, f := range fields {
		fmt.Fprintf(&b, ` %s="%s"`, f.name, escape.Replace(oneLine(f.value)))
	}
	b.WriteString("] " + oneLine(title))
	return b.String()
}

// cef makes an event of the Common Event Format.
func cef(r *Record, opt ExportOptions) string {
	severity, title, fields := summary(r)
	header := strings.NewReplacer(`\`, `\\`, `|`, `\|`)
	value := strings.NewReplacer(`\`, `\\`, `=`, `\=`)
	reason := string(r.Kind)
	if r.Decision != nil && r.Decision.Reason != "" {
		reason = r.Decision.Reason
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CEF:0|auditd|auditd|%s|%s|%s|%d|rt=%d", header.Replace(oneLine(opt.Version)), header.Replace(oneLine(reason)),
		header.Replace(oneLine(title)), map[int]int{4: 7, 5: 5, 6: 1}[severity], r.Time.UTC().UnixNano()/int64(time.Millisecond))
	// CEF has names of its own for some; the rest go by custom strings.
	known := map[string]string{"decision_id": "externalId", "action": "act", "bytes": "in", "reason": "reason", "kind": "cat"}
	custom := 0
	for _, f := range fields {
		v := value.Replace(oneLine(f.value))
		if name, ok := known[f.name]; ok {
			fmt.Fprintf(&b, " %s=%s", name, v)
		} else if f.name == "index" {
			fmt.Fprintf(&b, " cn1=%s cn1Label=index", v)
		} else if custom < 6 {
			custom++
			fmt.Fprintf(&b, " cs%d=%s cs%dLabel=%s", custom, v, custom, f.name)
		} else {
			fmt.Fprintf(&b, " auditd%s=%s", strings.ToUpper(f.name[:1])+f.name[1:], v)
		}
	}
	return b.String()
}

// oneLine replaces control characters, also those that some viewers take for
// the end of a line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// printable makes a header field of RFC 5424, of visible ASCII.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r <= 0x20 || r >= 0x7f {
			return -1
		}
		return r
	}, s)
	if len(s) > limit {
		s = s[:limit]
	}
	if s == "" {
		return "-"
	}
	return s
}
