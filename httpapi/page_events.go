package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/auditd/schema"
)

// Pace of the event stream.
const (
	streamPause = 250 * time.Millisecond // least time between two events
	streamBeat  = 15 * time.Second       // a sign of life, and the check of the session
)

// pageEvents streams hints: that questions have changed, and how long the log
// is. The page then asks for what it shows, so that a slow browser misses
// nothing and a busy daemon sends little.
func (s *Server) pageEvents(c *gin.Context) {
	select {
	case s.page.streams <- struct{}{}:
		defer func() { <-s.page.streams }()
	default:
		s.fail(c, errPageRate)
		return
	}
	ctx := c.Request.Context()
	control := http.NewResponseController(c.Writer)
	// The server's time-outs are for requests that end.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		s.fail(c, err)
		return
	}
	c.Header("Content-Type", "text/event-stream; charset=utf-8")
	send := func(event string, data any) bool {
		body, err := schema.Encode(data)
		if err == nil {
			err = control.SetWriteDeadline(time.Now().Add(writeMargin))
		}
		if err == nil {
			_, err = fmt.Fprintf(c.Writer, "event: %s\ndata: %s\n\n", event, body)
		}
		if err == nil {
			err = control.Flush()
		}
		return err == nil
	}
	var questions, records <-chan struct{} // nil never receives
	size := int64(-1)
	look := func() {
		if s.cfg.Log != nil {
			records = s.cfg.Log.Changed()
			size = s.cfg.Log.Size()
		}
	}
	look()
	if s.cfg.Approvals != nil {
		questions = s.cfg.Approvals.Changes(ctx)
	}
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	hello := func() bool {
		return send("hello", struct {
			Now     time.Time `json:"now"`
			Records int64     `json:"records"`
			Version string    `json:"version"`
		}{time.Now().UTC(), size, s.cfg.Version})
	}
	if !hello() {
		return
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		ok := true
		select {
		case <-ctx.Done():
			return
		case <-s.page.end.Done():
			return
		case <-beat.C:
			// A stream ends with the session that it was opened in.
			if s.cfg.Keeper.Check(c.GetString(pageTokenKey)) != schema.CredentialOwner {
				send("ended", struct{}{})
				return
			}
			ok = hello()
		case <-questions:
			ok = send("questions", struct{}{})
		case <-records:
			look()
			ok = send("records", struct {
				Records int64 `json:"records"`
			}{size})
		}
		if !ok {
			return
		}
		pause.Reset(streamPause)
		select {
		case <-ctx.Done():
			return
		case <-s.page.end.Done():
			return
		case <-pause.C:
		}
	}
}
