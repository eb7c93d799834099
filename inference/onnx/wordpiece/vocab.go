package wordpiece

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/pretrained"
)

// Special holds the ids of the special tokens.
type Special struct{ Pad, Unk, Cls, Sep, Mask int32 }

// Tokenizer cuts prepared text into the pieces of an uncased BERT vocabulary.
// It is safe for concurrent use.
type Tokenizer struct {
	Special Special
	size    int // of the vocabulary
	maxWord int // a word of more characters is unknown
	trie    trie
	table   table // of characters; filled as text needs it
}

// New reads a tokenizer.json. It accepts only the kind that this package
// implements: WordPiece with BERT's uncased normaliser and splitter.
func New(tokenizerJSON []byte) (t *Tokenizer, err error) {
	// The library asserts types while it walks the document.
	defer func() {
		if recover() != nil {
			t, err = nil, errors.New("read tokenizer.json: not a WordPiece tokenizer")
		}
	}()
	if err := checkKind(tokenizerJSON); err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", err)
	}
	lib, err := pretrained.FromReader(bytes.NewReader(tokenizerJSON))
	if err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", err)
	}
	return fromLibrary(lib)
}

func fromLibrary(lib *tokenizer.Tokenizer) (*Tokenizer, error) {
	vocab := lib.GetVocab(true)
	t := &Tokenizer{size: len(vocab), maxWord: 100}
	for _, s := range []struct {
		name string
		id   *int32
	}{
		{"[PAD]", &t.Special.Pad}, {"[UNK]", &t.Special.Unk}, {"[CLS]", &t.Special.Cls},
		{"[SEP]", &t.Special.Sep}, {"[MASK]", &t.Special.Mask},
	} {
		id, ok := vocab[s.name]
		if !ok {
			return nil, fmt.Errorf("read tokenizer.json: the vocabulary lacks %s", s.name)
		}
		*s.id = int32(id)
	}
	t.trie.init(len(vocab))
	for word, id := range vocab {
		if id < 0 || id >= len(vocab) {
			return nil, fmt.Errorf("read tokenizer.json: id %d in a vocabulary of %d", id, len(vocab))
		}
		switch {
		case word == "" || int32(id) == t.Special.Pad || int32(id) == t.Special.Unk || int32(id) == t.Special.Cls ||
			int32(id) == t.Special.Sep || int32(id) == t.Special.Mask:
			// No text may ever yield these.
		case strings.HasPrefix(word, "##") && len(word) > 2:
			t.trie.add(inner, word[2:], int32(id))
		default:
			t.trie.add(first, word, int32(id))
		}
	}
	return t, nil
}

// Size returns the number of ids.
func (t *Tokenizer) Size() int { return t.size }

// checkKind makes sure that the text path here is the one that the file asks
// for.
func checkKind(tokenizerJSON []byte) error {
	var c kindConfig
	if err := c.decode(tokenizerJSON); err != nil {
		return err
	}
	switch {
	case c.Model.Type != "WordPiece":
		return errors.New("the model is not WordPiece")
	case c.Model.Prefix != "##" || c.Model.MaxWord != 100:
		return errors.New("the model is not BERT's WordPiece (prefix ##, words of 100)")
	case c.Normalizer.Type != "BertNormalizer" || !c.Normalizer.Lowercase || !c.Normalizer.CleanText || !c.Normalizer.Chinese:
		return errors.New("the normalizer is not BERT's uncased one")
	case c.Normalizer.StripAccents != nil && !*c.Normalizer.StripAccents:
		return errors.New("the normalizer keeps accents")
	case c.PreTokenizer.Type != "BertPreTokenizer":
		return errors.New("the pre-tokenizer is not BERT's")
	}
	return nil
}
