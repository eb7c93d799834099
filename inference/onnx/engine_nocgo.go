//go:build !cgo

package onnx

import "errors"

// The twin of engine_cgo.go for builds without cgo: nothing can be run, and
// New says why.

type engine struct{}

type lane struct{}

var errNoCgo = errors.New("this build has no cgo and cannot run ONNX models: build with CGO_ENABLED=1 and a C compiler")

func openLibrary(string) (string, error) { return "", errNoCgo }

func newEngine(*Set, int) (*engine, error) { return nil, errNoCgo }

func (*engine) lane() *lane { return nil }

func (*engine) close() {}

func (*lane) run(_ *Special, _, _ []int32) (*row, error) { return nil, errNoCgo }

func (*lane) close() {}
