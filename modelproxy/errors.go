package modelproxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// refusal is an answer of the proxy's own. Its message is made here and quotes
// nothing of what was sent.
type refusal struct {
	status  int
	kind    string // in Anthropic's words, which the other dialects are made from
	message string
	retry   string // seconds, of a Retry-After
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, kind, format string, args ...any) *refusal {
	return &refusal{status: status, kind: kind, message: "auditd: " + fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, "invalid_request_error", format, args...)
}

func badAnswer(format string, args ...any) *refusal {
	return refuse(http.StatusBadGateway, "api_error", "the provider's answer "+format+", so nothing of it is passed on", args...)
}

// errorBody is an error in a dialect's own shape.
func errorBody(api string, r *refusal) *node {
	switch api {
	case "anthropic":
		return obj("type", str("error"), "error", obj("type", str(r.kind), "message", str(r.message)))
	case "ollama":
		return obj("error", str(r.message))
	default:
		kind, code := r.kind, null()
		switch r.kind {
		case "rate_limit_error":
			code = str("rate_limit_exceeded")
		case "authentication_error":
			kind, code = "invalid_request_error", str("invalid_api_key")
		case "api_error", "overloaded_error", "timeout_error":
			kind = "server_error"
		}
		if strings.HasPrefix(r.message, promptTooLong) {
			code = str("context_length_exceeded")
		}
		return obj("error", obj("message", str(r.message), "type", str(kind), "param", null(), "code", code))
	}
}

// promptTooLong is the one sentence of a provider that runtimes act on: they
// compact the conversation.
const promptTooLong = "prompt is too long"

// upstreamError makes an error out of a provider's: its status, what kind it is,
// and none of its words, which are anybody's.
func upstreamError(status int, body []byte, retry string) *refusal {
	kinds := map[int]string{400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		408: "timeout_error", 409: "invalid_request_error", 413: "request_too_large", 422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error"}
	kind, known := kinds[status]
	switch {
	case status < 400:
		return badAnswer("has status %d", status)
	case !known && status >= 500:
		status, kind = http.StatusBadGateway, "api_error"
	case !known:
		kind = "invalid_request_error"
	}
	r := refuse(status, kind, "the provider answered with status %d", status)
	if n, err := strconv.Atoi(retry); err == nil && n >= 0 && n < 1<<20 {
		r.retry = strconv.Itoa(n)
	}
	if root, err := parse(body); err == nil && (status == 400 || status == 413) {
		e := root.get("error")
		if strings.Contains(strings.ToLower(e.str("message")), promptTooLong) || e.str("code") == "context_length_exceeded" {
			r.message = promptTooLong
		}
	}
	return r
}
