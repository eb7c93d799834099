package inferencetest

import (
	"testing"

	"example.org/auditd/inference"
)

func TestFake(t *testing.T) {
	Run(t, func(t *testing.T) inference.Auditor { return &Fake{Name: "test"} })
}

func TestFakeDecorated(t *testing.T) {
	Run(t, func(t *testing.T) inference.Auditor {
		var a inference.Auditor = &Fake{Name: "test"}
		a = inference.NewQueue(a, inference.QueueConfig{Concurrent: 2})
		a = inference.NewCascade(&Fake{Name: "first"}, a, nil)
		a = inference.NewDedup(a)
		return inference.NewChecked(a, inference.CheckedConfig{})
	})
}
