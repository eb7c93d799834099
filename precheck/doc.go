// Package precheck is the deterministic first stage (token-flow paper, section
// 3, Table 4): it grounds the auditor with matched spans and coarse hints, and
// it stops a flow by itself in two cases only. A destructive or irreversible
// effect whose sink would really act, without an authorization signal, and a
// private endpoint bridged to an execution or disclosure surface. Everything
// else is evidence: a page that quotes an attack must still be readable.
//
// Check is a pure function of the flow and the configuration. Its time is
// linear in the payload, and every bound that it reaches is reported and
// raises ENCODED_PAYLOAD: what was not looked at is never silently fine.
//
// Rules are data (Rule), each with examples that must match and examples that
// must not.
package precheck
