package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// claudeHookPath is the endpoint of Claude Code's HTTP hooks.
const claudeHookPath = "/v1/hooks/claude-code"

// route is one line of the API. The OpenAPI document is made from the same
// table, so a route that is served is also described.
type route struct {
	method  string
	path    string
	needs   need
	decides bool // takes one of the in-flight slots
	small   bool // its body is a few fields, not a payload
	summary string
	request string // component that the body must fit, or empty
	answer  string // component that a 200 answer fits; a media type when it has a slash
	query   []string
	handler gin.HandlerFunc
}

func (s *Server) routes() []route {
	const (
		get  = http.MethodGet
		post = http.MethodPost
	)
	return []route{
		{method: post, path: "/audit", needs: needHook, decides: true, request: "flow", answer: "decision", handler: s.audit,
			summary: "Decide one flow. The smallest request has a payload, a source kind and a sink kind; what is missing gets the least trusting default."},
		{method: post, path: "/v1/audit", needs: needHook, decides: true, request: "flow", answer: "decision", handler: s.audit,
			summary: "The same as /audit."},
		{method: post, path: "/v1/audit/batch", needs: needHook, decides: true, request: "batch", answer: "batch_answer", handler: s.batch,
			summary: "Decide several flows, each on its own. An entry that can't be read gets an error in its place; the others are decided."},
		{method: post, path: "/v1/events", needs: needHook, decides: true, request: "event", answer: "outcome", handler: s.event,
			summary: "Report what a host's hook, plugin or proxy saw; the answer says whether it may go on and with what."},

		{method: post, path: claudeHookPath, needs: needHook, decides: true, request: "foreign", answer: "foreign", query: []string{"event", "wait"}, handler: s.claudeHook,
			summary: "Claude Code's HTTP hooks: its input, and an answer in its shape. The status is 200 whatever happens, because that host goes on after others."},

		{method: post, path: "/v1/heartbeats", needs: needHook, small: true, request: "heartbeat", answer: "heartbeat_answer", handler: s.beat,
			summary: "A plugin in an agent's host says that it is there, and what is wrong with it."},
		{method: get, path: "/v1/heartbeats", needs: needHook, answer: "heartbeats", handler: s.beats,
			summary: "What the plugins said last, the newest first."},

		{method: get, path: "/v1/approvals", needs: needHook, answer: "questions", handler: s.pending,
			summary: "Questions that wait for a person. Without the owner's credential the payloads are left out."},
		{method: get, path: "/v1/approvals/:id", needs: needHook, answer: "question", handler: s.question,
			summary: "One question and, once there is one, its answer."},
		{method: post, path: "/v1/approvals/:id/review", needs: needOwner, decides: true, request: "review", answer: "reviewed", handler: s.review,
			summary: "Audit a text that the owner would send in place of the one that was asked about."},
		{method: post, path: "/v1/approvals/:id", needs: needOwner, request: "approval", answer: "question", handler: s.approve,
			summary: "Answer a question: approve or deny, with a wider grant if wanted."},

		{method: post, path: "/v1/dualview/inspect", needs: needHook, decides: true, request: "inspection", answer: "outcome", handler: s.inspect,
			summary: "Ask a model that decides nothing about what symbols stand for; the answer is symbols again, or words that the owner's rules allow."},
		{method: post, path: "/v1/dualview/policy", needs: needHook, decides: true, request: "rule_change", answer: "outcome", handler: s.changeRules,
			summary: "List the owner's rules of isolation, or propose a change, which is a question to a person."},
		{method: get, path: "/v1/dualview/rules", needs: needHook, answer: "isolation_rules", handler: s.isolationRules,
			summary: "Which rules of isolation hold, and whether the file was edited since."},
		{method: post, path: "/v1/dualview/rules", needs: needOwner, small: true, request: "empty", answer: "isolation_rules", handler: s.reloadRules,
			summary: "Put the rules of isolation.yaml into force. If the file cannot be read, those that held go on to hold."},
		{method: get, path: "/v1/dualview/symbols/:token", needs: needHook, answer: "symbol", handler: s.symbol,
			summary: "What is known about a symbol. Its value is in the answer for the owner alone."},
		{method: get, path: "/v1/dualview/views", needs: needHook, answer: "views", handler: s.views,
			summary: "The workspaces of which agents have a view of their own."},
		{method: get, path: "/v1/dualview/views/:id/log", needs: needHook, answer: "view_log", query: []string{"limit"}, handler: s.viewLog,
			summary: "The states that a view can go back to, the youngest first."},
		{method: get, path: "/v1/dualview/views/:id/show", needs: needOwner, answer: "view_text", query: []string{"state", "path"}, handler: s.viewShow,
			summary: "A file of a state as the agent saw it."},
		{method: get, path: "/v1/dualview/views/:id/diff", needs: needOwner, answer: "view_text", query: []string{"state"}, handler: s.viewDiff,
			summary: "What a state changed, as a patch of what the agent saw."},
		{method: get, path: "/v1/dualview/views/:id/conflicts", needs: needOwner, answer: "view_conflicts", handler: s.viewConflicts,
			summary: "Changes of agents that did not land."},
		{method: post, path: "/v1/dualview/views/:id/revert", needs: needOwner, small: true, request: "view_revert", answer: "view_reverted", handler: s.viewRevert,
			summary: "Bring a view, and the person's files, back to a state."},

		{method: get, path: "/v1/dualview/symbols", needs: needOwner, answer: "symbols", query: []string{"before"}, handler: s.symbols,
			summary: "Symbols, the youngest first, without their values."},
		{method: get, path: "/v1/dualview/symbols/:token/graph", needs: needOwner, answer: "symbol_graph", handler: s.symbolGraph,
			summary: "A symbol and all that it was made from, without values."},
		{method: get, path: "/v1/dualview/views/:id/files", needs: needOwner, answer: "view_files", query: []string{"path", "symbols"}, handler: s.viewFiles,
			summary: "Files of a view in whose path a text occurs; with symbols=1 only those that hold symbols."},
		{method: get, path: "/v1/dualview/views/:id/file", needs: needOwner, answer: "view_sides", query: []string{"path"}, handler: s.viewFile,
			summary: "A file as both sides have it: trusted text, and symbols with the length of what they stand for."},
		{method: get, path: "/v1/dualview/views/:id/original", needs: needOwner, answer: "view_text", query: []string{"path", "human", "piece"}, handler: s.viewOriginal,
			summary: "What one piece of a file stands for."},
		{method: get, path: "/v1/dualview/views/:id/conflicts/:conflict", needs: needOwner, answer: "view_both", handler: s.viewConflict,
			summary: "A conflict with both versions."},
		{method: post, path: "/v1/dualview/views/:id/conflicts/:conflict", needs: needOwner, request: "view_settle", answer: "view_reverted", handler: s.viewSettle,
			summary: "End a conflict: keep the person's version, take the agent's, or a text of both."},

		{method: get, path: "/v1/decisions/:id", needs: needHook, answer: "record", handler: s.record,
			summary: "One decision as it was recorded, with its proof."},
		{method: get, path: "/v1/decisions/:id/suppression", needs: needOwner, answer: "suggestion", handler: s.suggestion,
			summary: "The narrowest suppression that would have let a decision's flow pass, or why there is none."},
		{method: get, path: "/v1/standing", needs: needOwner, answer: "orders", query: []string{"ended"}, handler: s.orders,
			summary: "The owner's standing orders: suppressions and refusals. With ended=1 also those that hold no longer."},
		{method: post, path: "/v1/standing", needs: needOwner, small: true, request: "new_order", answer: "order", handler: s.addOrder,
			summary: "Give a standing order. It holds when this answers."},
		{method: post, path: "/v1/standing/:id/revoke", needs: needOwner, small: true, request: "empty", answer: "order", handler: s.revokeOrder,
			summary: "End a standing order at once."},
		{method: get, path: "/v1/marks", needs: needOwner, answer: "marks", handler: s.marks,
			summary: "The decisions that the owner has called wrong."},
		{method: post, path: "/v1/marks", needs: needOwner, small: true, request: "mark", answer: "marked", handler: s.mark,
			summary: "Say that a decision was wrong. It is filed as a labelled case; the text only where payload is true."},
		{method: get, path: "/v1/log", needs: needHook, answer: "records", query: []string{"limit"}, handler: s.tail,
			summary: "The newest records, the newest last."},
		{method: get, path: "/v1/policy", needs: needHook, answer: "policy", handler: s.policy,
			summary: "The policy in force. Its text is for the owner alone."},
		{method: post, path: "/v1/policy", needs: needOwner, request: "new_policy", answer: "policy", handler: s.applyPolicy,
			summary: "Put another policy into force, without a restart. base must be the digest of the one in force."},
		{method: post, path: "/v1/policy/check", needs: needOwner, request: "new_policy", answer: "policy_check", handler: s.checkPolicy,
			summary: "List everything that is wrong with a policy."},
		{method: get, path: "/v1/policy/history", needs: needOwner, answer: "policy_history", handler: s.policyHistory,
			summary: "Earlier policies, the newest first."},
		{method: get, path: "/v1/policy/history/:digest", needs: needOwner, answer: "policy", handler: s.earlierPolicy,
			summary: "One earlier policy."},
		{method: get, path: "/v1/models", needs: needHook, answer: "models", handler: s.models,
			summary: "The models in use and known."},

		{method: post, path: "/v1/owner/session", needs: needNobody, small: true, request: "login", answer: "session", handler: s.login,
			summary: "Exchange the owner's passphrase, or a one-time code, for a short-lived session."},
		{method: post, path: "/v1/owner/link", needs: needOwner, small: true, request: "empty", answer: "session", handler: s.link,
			summary: "Make a one-time code for a browser."},
		{method: post, path: "/v1/owner/logout", needs: needOwner, small: true, request: "empty", answer: "empty", handler: s.logout,
			summary: "End the session that the request came with."},

		{method: post, path: "/beta/litellm_basic_guardrail_api", needs: needHook, decides: true, request: "litellm_request", answer: "litellm_answer", handler: s.litellm,
			summary: "The shape of LiteLLM's generic guardrail API."},
		{method: post, path: "/v1/moderations", needs: needHook, decides: true, request: "moderation_request", answer: "moderation_answer", handler: s.moderations,
			summary: "The shape of OpenAI's moderation API."},

		{method: get, path: "/v1/schema", needs: needNobody, answer: "schemas", handler: s.schemas,
			summary: "The names of the JSON Schemas."},
		{method: get, path: "/v1/schema/:name", needs: needNobody, answer: "application/schema+json", handler: s.schema,
			summary: "One JSON Schema."},
		{method: get, path: "/openapi.json", needs: needNobody, answer: "application/openapi+json", handler: s.openapiDoc,
			summary: "This document."},
		{method: get, path: "/healthz", needs: needNobody, answer: "health", handler: s.healthz,
			summary: "Answers while the process lives."},
		{method: get, path: "/readyz", needs: needNobody, answer: "readiness", handler: s.readyz,
			summary: "200 once every flow can be decided, 503 before that, with what is missing."},
		{method: get, path: "/metrics", needs: needNobody, answer: "text/plain", handler: s.metricsPage,
			summary: "Prometheus metrics; no label holds anything that a caller wrote."},
	}
}
