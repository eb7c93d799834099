//go:build cgo

package onnx

import (
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	ort "github.com/yalue/onnxruntime_go"
)

// rawSession is a session without the auditor around it, to see what the
// runtime gives.
func rawSession(b *testing.B, model []byte, threads int, in, out []string) *ort.DynamicAdvancedSession {
	b.Helper()
	library, err := FindLibrary("", cacheDir(b))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := openLibrary(library); err != nil {
		b.Fatal(err)
	}
	o, err := ort.NewSessionOptions()
	if err != nil {
		b.Fatal(err)
	}
	defer o.Destroy()
	if err := o.SetIntraOpNumThreads(threads); err != nil {
		b.Fatal(err)
	}
	s, err := ort.NewDynamicAdvancedSessionWithONNXData(model, in, out, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Destroy() })
	return s
}

func tensor[T ort.TensorData](b *testing.B, shape ...int64) *ort.Tensor[T] {
	b.Helper()
	t, err := ort.NewEmptyTensor[T](ort.NewShape(shape...))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.Destroy() })
	return t
}

func each(b *testing.B, counts []int, run func(b *testing.B, n int)) {
	for _, n := range counts {
		b.Run(strconv.Itoa(n), func(b *testing.B) { run(b, n) })
	}
}

// BenchmarkPeak is the int8 limit of this machine: one large product, by
// threads.
func BenchmarkPeak(b *testing.B) {
	model, err := os.ReadFile("testdata/peak.onnx")
	if err != nil {
		b.Fatal(err)
	}
	each(b, []int{1, 2}, func(b *testing.B, threads int) {
		s := rawSession(b, model, threads, []string{"a"}, []string{"c"})
		const rows, n = 1024, 2048
		in, out := []ort.Value{tensor[uint8](b, rows, n)}, []ort.Value{tensor[int32](b, rows, n)}
		for b.Loop() {
			if err := s.Run(in, out); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(2*rows*n*n/(float64(b.Elapsed().Nanoseconds())/float64(b.N)), "Gop/s")
	})
}

// BenchmarkShare is the share of that limit which a row reaches. The two take
// turns, so that whatever else the machine does slows down both.
func BenchmarkShare(b *testing.B) {
	peak, err := os.ReadFile("testdata/peak.onnx")
	if err != nil {
		b.Fatal(err)
	}
	a := benchAuditor(b)
	for i, e := range a.engines {
		threads := 1 // of the narrow lanes
		if i > 0 {
			threads = min(runtime.NumCPU(), 4)
			if n, err := strconv.Atoi(os.Getenv("AUDITD_ONNX_THREADS")); err == nil {
				threads = n
			}
		}
		limit := rawSession(b, peak, threads, []string{"a"}, []string{"c"})
		const rows, n = 1024, 2048
		in, out := []ort.Value{tensor[uint8](b, rows, n)}, []ort.Value{tensor[int32](b, rows, n)}
		b.Run("threads"+strconv.Itoa(threads), func(b *testing.B) {
			each(b, []int{64, 128, 243}, func(b *testing.B, tokens int) {
				l := e.lane()
				defer l.close()
				ids := benchIDs(tokens)
				var took, tookPeak time.Duration
				for b.Loop() {
					start := time.Now()
					if err := limit.Run(in, out); err != nil {
						b.Fatal(err)
					}
					tookPeak += time.Since(start)
					start = time.Now()
					if _, err := l.run(&a.tok.Special, nil, ids); err != nil {
						b.Fatal(err)
					}
					took += time.Since(start)
				}
				row := rowOps(tokens) * float64(b.N) / float64(took.Nanoseconds())
				top := 2 * rows * n * n * float64(b.N) / float64(tookPeak.Nanoseconds())
				b.ReportMetric(row, "Gop/s")
				b.ReportMetric(top, "peak-Gop/s")
				b.ReportMetric(100*row/top, "%peak")
				b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, "ms/row")
			})
		})
	}
}

// BenchmarkBatch asks what a batch of equal rows would save over one row after
// another: the reason why the auditor makes none.
func BenchmarkBatch(b *testing.B) {
	model, err := fs.ReadFile(benchModel(b), "model.onnx")
	if err != nil {
		b.Fatal(err)
	}
	for _, threads := range []int{1, 2} {
		s := rawSession(b, model, threads, inputNames, outputNames)
		for _, seq := range []int64{32, 128} {
			b.Run("threads"+strconv.Itoa(threads)+"/seq"+strconv.Itoa(int(seq))+"/batch", func(b *testing.B) {
				each(b, []int{1, 4, 16}, func(b *testing.B, n int) {
					rows := int64(n)
					in := []ort.Value{tensor[int64](b, rows, seq), tensor[int64](b, rows, seq), tensor[int64](b, rows, seq)}
					for k, v := range in {
						for i := range v.(*ort.Tensor[int64]).GetData() {
							v.(*ort.Tensor[int64]).GetData()[i] = [3]int64{int64(1000 + 37*i%20000), 1, 1}[k]
						}
					}
					out := []ort.Value{tensor[float32](b, rows, 4), tensor[float32](b, rows, 3), tensor[float32](b, rows, 8), tensor[float32](b, rows, seq, 6)}
					for b.Loop() {
						if err := s.Run(in, out); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N*n), "ms/row")
				})
			})
		}
	}
}
