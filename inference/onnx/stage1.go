package onnx

// Stage1 is a linear model over hashed token ids that clears windows which are
// plainly benign, so that a long text does not need the encoder everywhere.
type Stage1 struct {
	File   string  `json:"file"`
	Hash   string  `json:"hash"`
	Cutoff float64 `json:"cutoff"`
}

func (s *Set) loadStage1(vocabulary int) error { return nil }

// cleared reports whether the first stage has cleared window w of j.
func (s *Set) cleared(j *job, w int) bool { return false }

// clearedLogit is the score of a text whose windows were all cleared.
func (s *Set) clearedLogit() float64 { return -8 }
