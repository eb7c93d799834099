// Package schema holds the words that every other package, and every client
// in another language, speaks: the flow, the precheck's signals, the auditor's
// and the arbiter's reports, the decision, the host's event and the question to
// a person. It imports nothing of this module.
//
// Three rules hold for everything here. The zero value of whatever decides
// denies. Text that is not a known word is an error, never a default. Decoding
// is strict: an unknown field, a duplicate key, trailing data, a wrong type or
// a score outside [0,1] is an error that names the field and the limit, and
// never quotes the payload, because attackers write it.
package schema
