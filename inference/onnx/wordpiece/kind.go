package wordpiece

import "encoding/json"

// kindConfig is the part of a tokenizer.json that says which text path it
// needs. The file is checked by digest before it gets here, so unknown fields,
// of which other versions have some, are no threat.
type kindConfig struct {
	Model struct {
		Type    string `json:"type"`
		Prefix  string `json:"continuing_subword_prefix"`
		MaxWord int    `json:"max_input_chars_per_word"`
	} `json:"model"`
	Normalizer struct {
		Type         string `json:"type"`
		CleanText    bool   `json:"clean_text"`
		Chinese      bool   `json:"handle_chinese_chars"`
		StripAccents *bool  `json:"strip_accents"`
		Lowercase    bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
}

func (c *kindConfig) decode(data []byte) error { return json.Unmarshal(data, c) }
