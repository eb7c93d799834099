package keyword

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

type found struct{ id, start, end int }

func scan(t *testing.T, words []string, text string) []found {
	t.Helper()
	s, err := New(words)
	if err != nil {
		t.Fatal(err)
	}
	var got []found
	s.Scan(text, func(id, start, end int) { got = append(got, found{id, start, end}) })
	return got
}

func TestScanFindsOverlappingWordsInAnyCase(t *testing.T) {
	got := scan(t, []string{"he", "she", "hers", "his"}, "uSHErs")
	want := []found{{1, 1, 4}, {0, 2, 4}, {2, 2, 6}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestScanFindsWhatANaiveSearchFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcé"[r.IntN(5)]
		}
		return string(b)
	}
	for range 200 {
		var words []string
		for range 1 + r.IntN(8) {
			words = append(words, random(1+r.IntN(4)))
		}
		text := random(r.IntN(60))
		want := 0
		for _, w := range words {
			for i := range len(text) {
				if strings.HasPrefix(text[i:], w) {
					want++
				}
			}
		}
		got := scan(t, words, text)
		if len(got) != want {
			t.Fatalf("%q in %q: %d hits, want %d", words, text, len(got), want)
		}
		for _, f := range got {
			if text[f.start:f.end] != words[f.id] {
				t.Fatalf("hit %v is %q", f, text[f.start:f.end])
			}
		}
	}
}

func TestNewRefusesAnEmptyWord(t *testing.T) {
	if _, err := New([]string{"a", ""}); err == nil {
		t.Error("no error")
	}
}
