package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"example.org/auditd/api"
	"example.org/auditd/approval"
	"example.org/auditd/auditlog"
	"example.org/auditd/credential"
	"example.org/auditd/marks"
	"example.org/auditd/policy"
	"example.org/auditd/schema"
	"example.org/auditd/standing"
)

// This file is the only one that knows HTTP status codes.

var errNotFound = errors.New("there is nothing under this id")

// problem is an error that is meant for the caller.
type problem struct {
	status     int
	code       string
	field      string
	message    string
	retryAfter int // seconds, 0 for none
}

func (p *problem) Error() string { return p.message }

var (
	errNoRoute     = &problem{http.StatusNotFound, "no_such_route", "", "there is no such route; GET /openapi.json lists them", 0}
	errNoMethod    = &problem{http.StatusMethodNotAllowed, "wrong_method", "", "this route does not take that method; GET /openapi.json lists them", 0}
	errCredential  = &problem{http.StatusUnauthorized, "credential", "Authorization", "send `Authorization: Bearer TOKEN` with the hook token (state directory, file hook.token) or an owner session", 0}
	errOwnerOnly   = &problem{http.StatusForbidden, "owner_only", "Authorization", "only the owner may do this: `auditd login` or the command line asks for the passphrase", 0}
	errNoOwner     = &problem{http.StatusForbidden, "no_passphrase", "", "only the owner may do this and no owner passphrase is set: run `auditd passphrase set` in a terminal", 0}
	errHost        = &problem{http.StatusForbidden, "host", "Host", "this Host is not one of the daemon's names", 0}
	errOrigin      = &problem{http.StatusForbidden, "origin", "Origin", "requests from other web pages are refused", 0}
	errContentType = &problem{http.StatusUnsupportedMediaType, "content_type", "Content-Type", "the content type must be application/json", 0}
	errEncoding    = &problem{http.StatusUnsupportedMediaType, "content_encoding", "Content-Encoding", "compressed bodies are refused", 0}
	errBusy        = &problem{http.StatusServiceUnavailable, "busy", "", "as many flows as allowed are being decided; try again", 1}
	errDraining    = &problem{http.StatusServiceUnavailable, "stopping", "", "the daemon is stopping", 5}
	errPageRate    = &problem{http.StatusTooManyRequests, "too_many", "", "too many requests from the page, wait a moment", 1}
	errReplaying   = &problem{http.StatusConflict, "busy", "", "a replay runs already: wait for it, or stop it", 0}
	errPageSession = &problem{http.StatusUnauthorized, "session", "", "the session has ended or was opened in another window: run `auditd login` and open the link it prints", 0}
	errAbsent      = &problem{http.StatusNotFound, "not_configured", "", "this daemon runs without that part", 0}
	errPanic       = &problem{http.StatusInternalServerError, "internal", "", "internal error; the daemon's log has the details", 0}
	errCancelled   = &problem{http.StatusRequestTimeout, "cancelled", "", "the request ended before its answer", 0}
)

// asProblem makes a problem out of any error. What it does not know is
// internal: the caller sees a fixed sentence, the log sees the cause.
func asProblem(err error) *problem {
	var p *problem
	var fe *schema.FieldError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &fe) && fe.TooLarge:
		return &problem{http.StatusRequestEntityTooLarge, "too_large", fe.Field, fe.Error(), 0}
	case errors.As(err, &fe):
		return &problem{http.StatusBadRequest, "invalid", fe.Field, fe.Error(), 0}
	case errors.As(err, &tooLarge):
		return &problem{http.StatusRequestEntityTooLarge, "too_large", "body", "body: is over the limit of " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes", 0}
	case errors.Is(err, errNotFound), errors.Is(err, api.ErrNoSuch), errors.Is(err, approval.ErrNotFound), errors.Is(err, auditlog.ErrNotFound):
		return &problem{http.StatusNotFound, "not_found", "id", errNotFound.Error(), 0}
	case errors.Is(err, api.ErrMoved):
		return &problem{http.StatusConflict, "changed", "", api.ErrMoved.Error(), 0}
	case errors.Is(err, api.ErrSecret):
		return &problem{http.StatusForbidden, "secret", "", api.ErrSecret.Error(), 0}
	case errors.Is(err, api.ErrBadTake):
		return &problem{http.StatusBadRequest, "invalid", "take", api.ErrBadTake.Error(), 0}
	case errors.Is(err, standing.ErrNotFound):
		return &problem{http.StatusNotFound, "not_found", "id", standing.ErrNotFound.Error(), 0}
	case errors.Is(err, standing.ErrForm), errors.Is(err, marks.ErrForm):
		return formProblem(err)
	case errors.Is(err, policy.ErrChanged):
		return &problem{http.StatusConflict, "changed", "base", policy.ErrChanged.Error(), 0}
	case errors.Is(err, policy.ErrVersion):
		return &problem{http.StatusNotFound, "not_found", "digest", policy.ErrVersion.Error(), 0}
	case errors.As(err, new(policy.Problem)):
		return &problem{http.StatusBadRequest, "invalid", "text", err.Error(), 0}
	case errors.Is(err, standing.ErrFull):
		return &problem{http.StatusConflict, "full", "", standing.ErrFull.Error(), 0}
	case errors.Is(err, approval.ErrAnswered):
		return &problem{http.StatusConflict, "answered", "id", approval.ErrAnswered.Error(), 0}
	case errors.Is(err, approval.ErrExpired):
		return &problem{http.StatusConflict, "expired", "id", approval.ErrExpired.Error(), 0}
	case errors.Is(err, approval.ErrNoGrant):
		return &problem{http.StatusBadRequest, "grant", "grant", approval.ErrNoGrant.Error(), 0}
	case errors.Is(err, approval.ErrGrantForm):
		return &problem{http.StatusBadRequest, "grant", "grant", approval.ErrGrantForm.Error(), 0}
	case errors.Is(err, credential.ErrNoPassphrase):
		return errNoOwner
	case errors.Is(err, credential.ErrWrong):
		return &problem{http.StatusUnauthorized, "passphrase", "passphrase", credential.ErrWrong.Error(), 0}
	case errors.Is(err, credential.ErrTooMany):
		return &problem{http.StatusTooManyRequests, "too_many", "", credential.ErrTooMany.Error(), 2}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errCancelled
	default:
		return errPanic
	}
}

// formProblem names the field in "… is not valid: FIELD: what is wrong".
func formProblem(err error) *problem {
	_, rest, _ := strings.Cut(err.Error(), ": ")
	field, _, _ := strings.Cut(rest, ":")
	return &problem{http.StatusBadRequest, "invalid", field, rest, 0}
}

func invalid(field, message string) error {
	return &problem{http.StatusBadRequest, "invalid", field, field + ": " + message, 0}
}

// fail answers with err and ends the request.
func (s *Server) fail(c *gin.Context, err error) {
	p := asProblem(err)
	if p == errPanic {
		s.cfg.Logger.ErrorContext(c.Request.Context(), "request failed", "route", c.FullPath(), "error", err.Error())
	}
	if c.FullPath() == claudeHookPath {
		s.failHook(c, p)
		return
	}
	if p.retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.status == http.StatusUnauthorized {
		c.Header("WWW-Authenticate", `Bearer realm="auditd"`)
	}
	body, _ := schema.Encode(api.ErrorBody{Error: api.ErrorDetail{Code: p.code, Field: p.field, Message: p.message}})
	c.Abort()
	c.Data(p.status, contentJSON, body)
}

const contentJSON = "application/json; charset=utf-8"

// answer writes v with status 200.
func (s *Server) answer(c *gin.Context, v any) {
	body, err := schema.Encode(v)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Data(http.StatusOK, contentJSON, body)
}

// answerRaw writes a document that is not ours to encode.
func (s *Server) answerRaw(c *gin.Context, mediaType string, doc []byte) {
	c.Data(http.StatusOK, mediaType, doc)
}

// answerReady writes v with status 200, or 503 while the daemon isn't ready.
func (s *Server) answerReady(c *gin.Context, v api.Readiness) {
	status := http.StatusOK
	if !v.Ready {
		status = http.StatusServiceUnavailable
		c.Header("Retry-After", "1")
	}
	body, _ := schema.Encode(v)
	c.Data(status, contentJSON, body)
}
