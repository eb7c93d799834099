package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func ollamaModel(cfg *Config) string {
	if cfg.Ollama.Model != "" {
		return cfg.Ollama.Model
	}
	return "qwen3:4b"
}

func (p *program) pullCommand() *cobra.Command {
	return &cobra.Command{Use: "pull [NAME]", GroupID: "setup", RunE: func(*cobra.Command, []string) error { return errors.New("not yet") }}
}

func (p *program) modelsCommand() *cobra.Command {
	return &cobra.Command{Use: "models", GroupID: "setup", RunE: func(*cobra.Command, []string) error { return errors.New("not yet") }}
}

func (p *program) useCommand() *cobra.Command {
	return &cobra.Command{Use: "use NAME", GroupID: "setup", RunE: func(*cobra.Command, []string) error { return errors.New("not yet") }}
}
