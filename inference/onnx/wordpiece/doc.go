// Package wordpiece turns hostile bytes into the token ids that a BERT encoder
// was trained on, and keeps the way back from every token to the bytes that it
// came from.
//
// Attackers write the input. So it is made valid and plain first (Text), the
// special tokens cannot be written in it, and every step is linear in its
// length. The vocabulary is read by github.com/sugarme/tokenizer; the text path
// is our own, because that library panics on invalid UTF-8, turns a literal
// "[SEP]" into the special token, repeats tokens where its normaliser removes
// characters, and needs about 2 ms for each KiB (seen in v0.3.0). Ids and
// offsets are held equal to the reference implementation by golden vectors.
package wordpiece
