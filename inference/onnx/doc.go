// Package onnx is the auditor that ships inside the binary: a small encoder,
// run by ONNX Runtime, that writes the whole risk report of a record.
//
// docs/auditor.md tells how a report comes about. The model, its tokenizer and
// its manifest are embedded or come from a folder, and are refused when their
// digests differ from the manifest's. ONNX Runtime's shared library is not
// part of the binary: without it New says what to run.
//
// This is the only package with cgo of its own; a build without cgo has a twin
// that is never available.
package onnx
