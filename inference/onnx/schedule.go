package onnx

import (
	"errors"
	"sync"
	"sync/atomic"

	"example.org/auditd/inference"
	"example.org/auditd/inference/onnx/wordpiece"
)

// job is one text on its way through the model. Its buffers are reused.
type job struct {
	text   wordpiece.Text
	toks   wordpiece.Tokens
	head   wordpiece.Tokens
	offset int // of the text in the payload
	line   []byte
	header []int32
	window int     // payload tokens that a window holds
	starts []int32 // first token of each window
	todo   []int32 // windows that the encoder must see, by number
	twins  []twin  // windows that repeat one of todo
	seen   map[uint64]int32

	// What the windows said; each lane writes only its own window's part.
	decision []float64 // attack logit
	classes  [][4]float32
	scores   [][3]float32
	residual [][8]float32
	unsafe   []float32 // window by window, so many entries each
	category []uint8   // the same

	// Merged over the windows that hold a token.
	tokUnsafe   []float32
	tokCategory []uint8
	runs        []run

	next   int // of todo; the scheduler's mutex guards it
	left   atomic.Int32
	stop   atomic.Bool // nobody waits for it any more
	failed atomic.Pointer[error]
	done   chan struct{} // one token when left reaches 0
}

// scheduler gives windows to lanes, one window of each waiting job in turn, so
// that a long text does not hold up short ones.
//
// There are two kinds of lanes. A wide one runs a window on several threads,
// which answers a lone flow soonest; narrow ones run a window on one thread
// each, which gets the most windows done. So the wide lane takes a window only
// while there is one in all, and the narrow lanes the rest.
type scheduler struct {
	mu      sync.Mutex
	wake    sync.Cond // of mu: a job came, a window was done, or the end
	jobs    []*job    // jobs with windows left to start; guarded by mu
	pending int       // windows of jobs left to start; guarded by mu
	running int       // windows that lanes run; guarded by mu
	active  int       // jobs admitted and not finished; guarded by mu
	closed  bool      // guarded by mu
	limit   int
	both    bool // there are lanes of both kinds
	pool    sync.Pool
	lanes   sync.WaitGroup
}

func (s *scheduler) init(limit int) {
	s.limit = limit
	s.wake.L = &s.mu
	s.jobs = make([]*job, 0, limit)
	s.pool.New = func() any { return &job{done: make(chan struct{}, 1)} }
}

var errClosed = errors.New("the auditor was closed")

// admit reserves a place for a job, or says that there is none.
func (s *scheduler) admit() (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fail(inference.CauseUnavailable, errClosed)
	}
	if s.active >= s.limit {
		return nil, fail(inference.CauseBusy, nil)
	}
	s.active++
	return s.pool.Get().(*job), nil
}

// release gives the place back. A job that lanes may still write to is left
// to the garbage collector.
func (s *scheduler) release(j *job, reuse bool) {
	s.mu.Lock()
	s.active--
	s.mu.Unlock()
	if reuse {
		j.stop.Store(false)
		j.failed.Store(nil)
		s.pool.Put(j)
	}
}

// submit lets the lanes work on j.todo.
func (s *scheduler) submit(j *job) {
	j.next = 0
	j.left.Store(int32(len(j.todo)))
	s.mu.Lock()
	s.jobs = append(s.jobs, j)
	s.pending += len(j.todo)
	s.mu.Unlock()
	s.wake.Broadcast()
}

// start runs a lane until the scheduler is closed.
func (s *scheduler) start(wide bool, run func(*job, int) error, end func()) {
	s.lanes.Add(1)
	go func() {
		defer s.lanes.Done()
		defer end()
		for {
			j, w := s.take(wide)
			if j == nil {
				return
			}
			if !j.stop.Load() {
				if err := run(j, w); err != nil {
					j.failed.Store(&err)
					j.stop.Store(true)
				}
			}
			s.mu.Lock()
			s.running--
			s.mu.Unlock()
			s.wake.Broadcast() // whose turn it is may have changed
			if j.left.Add(-1) == 0 {
				j.done <- struct{}{}
			}
		}
	}()
}

// take returns the next window to run; a nil job means the end.
func (s *scheduler) take(wide bool) (*job, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && (s.pending == 0 || s.both && wide != (s.pending == 1 && s.running == 0)) {
		s.wake.Wait()
	}
	if len(s.jobs) == 0 {
		return nil, 0
	}
	j := s.jobs[0]
	w := int(j.todo[j.next])
	j.next++
	s.pending--
	s.running++
	copy(s.jobs, s.jobs[1:])
	s.jobs[len(s.jobs)-1] = nil
	s.jobs = s.jobs[:len(s.jobs)-1]
	if j.next < len(j.todo) {
		s.jobs = append(s.jobs, j) // behind the others
	}
	return j, w
}

// close lets jobs that wait fail and ends the lanes.
func (s *scheduler) close() {
	s.mu.Lock()
	s.closed = true
	for _, j := range s.jobs {
		err := errClosed
		j.failed.Store(&err)
		j.stop.Store(true)
	}
	s.mu.Unlock()
	s.wake.Broadcast()
	s.lanes.Wait()
}
