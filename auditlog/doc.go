// Package auditlog is the record of every decision: append-only, durable when
// Append returns, and verifiable offline from its files alone.
//
// # Files, under the state directory
//
//	log/00000000000000000000.jsonl   a segment: one JSON record per line; named after its first record
//	log/00000000000000000000.idx     cache of a finished segment's offsets and ids; rebuilt when missing
//	log/tree                         cache of the Merkle tree's hashes; rebuilt when missing
//	log/head                         signed checkpoint of everything acknowledged; overwritten in place
//	log/lock                         held by the one process that writes
//	values/00000000000000000000.jsonl redacted text of a segment's records, which may be erased
//	log.key, log.pub, log.mac        signing key, verifier key, key of the keyed digests
//
// # What is promised
//
// Every record names the hash of the line before it, and is a leaf of a Merkle
// tree whose root is in the signed head. Append writes the record, syncs it,
// then writes the head that counts it, syncs that, and only then returns. So a
// flipped byte, a cut tail, a missing, reordered or forged record, a missing
// segment and a changed value are found by Verify, and named. Concurrent
// Appends share one sync.
//
// A record holds digests, numbers, offsets and our own words, never text out of
// a payload. Such text goes, redacted, to values/, and the record keeps its
// digest: what must be forgotten can be, and the log still verifies. Digests of
// payloads and identifiers are keyed, because a plain digest of a short text
// can be guessed.
//
// After a failed write or sync the log refuses everything until it is opened
// again: what the disk holds is then unknown, and a second sync may succeed
// without having written anything.
//
// # What is not promised
//
// Whoever has the owner's uid can read the signing key, and so rewrite the log
// and sign it anew. Only a checkpoint that was kept somewhere else
// (Log.Checkpoint) shows that: VerifyAgainst compares the log with it. The same
// holds for deleting the whole state directory.
package auditlog
