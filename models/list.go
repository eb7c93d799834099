// Package models reads models.txt, the only place where models are named, and
// brings models to a local Ollama server: pulled through its API or imported
// from a file, each held to the digest that models.txt or the first pull gave.
package models

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Model is one line of models.txt.
type Model struct {
	Name    string
	Backend string // ollama or onnx
	Digest  string // sha256 in hex; empty when the first pull's is recorded
	Licence string
	Size    int64 // bytes to download, about
	Purpose string
}

var (
	nameRE   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$`)
	digestRE = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	sizeRE   = regexp.MustCompile(`^([0-9]{1,4}(?:\.[0-9])?)(kB|MB|GB)$`)
	wordRE   = regexp.MustCompile(`^[A-Za-z0-9.+-]{1,40}$`)
)

// Parse reads models.txt strictly; an error names the line.
func Parse(text string) ([]Model, error) {
	var list []Model
	seen := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		n := i + 1
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("models.txt:%d: %w", n, err)
		}
		if first, ok := seen[m.Name]; ok {
			return nil, fmt.Errorf("models.txt:%d: %s stands on line %d already", n, m.Name, first)
		}
		seen[m.Name] = n
		list = append(list, m)
	}
	return list, nil
}

func parseLine(line string) (Model, error) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return Model{}, fmt.Errorf("has %d fields, want name, backend, digest, licence, size and purpose", len(f))
	}
	m := Model{Name: f[0], Backend: f[1], Licence: f[3], Purpose: strings.Join(f[5:], " ")}
	if !nameRE.MatchString(m.Name) {
		return Model{}, fmt.Errorf("the name is not one of letters, digits and ._:/-")
	}
	if m.Backend != "ollama" && m.Backend != "onnx" {
		return Model{}, fmt.Errorf("the backend is neither ollama nor onnx")
	}
	if f[2] != "-" {
		if !digestRE.MatchString(f[2]) {
			return Model{}, fmt.Errorf("the digest is neither - nor sha256: and 64 hex digits")
		}
		m.Digest = strings.TrimPrefix(f[2], "sha256:")
	}
	if !wordRE.MatchString(m.Licence) {
		return Model{}, fmt.Errorf("the licence is not one word")
	}
	size := sizeRE.FindStringSubmatch(f[4])
	if size == nil {
		return Model{}, fmt.Errorf("the size is not a number with kB, MB or GB")
	}
	x, err := strconv.ParseFloat(size[1], 64)
	if err != nil {
		return Model{}, fmt.Errorf("the size is not a number")
	}
	m.Size = int64(x * map[string]float64{"kB": 1e3, "MB": 1e6, "GB": 1e9}[size[2]])
	return m, nil
}

// Find returns the model of this name.
func Find(list []Model, name string) (Model, bool) {
	for _, m := range list {
		if m.Name == name {
			return m, true
		}
	}
	return Model{}, false
}
