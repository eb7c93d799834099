// Package approval keeps the questions that wait for a person, and the rights
// that answers give. Everything is in the database before a call returns, so a
// restart loses no question and no answer.
//
// A question is bound to the digest of one exact payload and sink. Approving it
// makes its ticket good for that, once, for a short time, also after the call
// that asked has given up. Silence is a no. A wider right is a separate Grant,
// which a person gives with an answer and can revoke; never for a hard
// question, a command that runs other commands, or a flow that holds symbols.
//
// Tickets are secrets of the asking agent: only their digests are stored. The
// body of a question is payload, because a person has to see it; it is deleted
// some time after the answer.
package approval
