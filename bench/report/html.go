package report

import "io"

// HTML writes the page.
func HTML(io.Writer, *Run) error { return nil }
