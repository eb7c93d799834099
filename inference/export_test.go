package inference

// Waiters returns how many callers wait for calls in flight.
func (d *Dedup) Waiters() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, f := range d.flights {
		n += f.waiters
	}
	return n
}
