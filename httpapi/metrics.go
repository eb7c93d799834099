package httpapi

import (
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"example.org/auditd/schema"
)

// metrics counts. Labels are words of ours (route patterns, actions, stages),
// never anything that a caller wrote.
type metrics struct {
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	decisions *prometheus.CounterVec
	stages    *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	panics    prometheus.Counter
	refused   *prometheus.CounterVec
}

// buckets reach from the precheck's tens of microseconds to a slow model.
var buckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func newMetrics(r *prometheus.Registry, version string) *metrics {
	m := &metrics{
		requests:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "auditd_requests_total", Help: "Requests by route and status."}, []string{"route", "status"}),
		seconds:   prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "auditd_request_duration_seconds", Help: "Time of whole requests by route.", Buckets: buckets}, []string{"route"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "auditd_decisions_total", Help: "Decisions by action, deciding stage and surface."}, []string{"action", "stage", "surface"}),
		stages:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "auditd_stage_duration_seconds", Help: "Time of single stages.", Buckets: buckets}, []string{"stage"}),
		inFlight:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "auditd_decisions_in_flight", Help: "Requests for decisions being answered."}),
		panics:    prometheus.NewCounter(prometheus.CounterOpts{Name: "auditd_panics_total", Help: "Panics that were caught; each answered block."}),
		refused:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "auditd_refused_total", Help: "Requests refused before a decision, by reason."}, []string{"reason"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "auditd_build_info", Help: "The running version.", ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	r.MustRegister(m.requests, m.seconds, m.decisions, m.stages, m.inFlight, m.panics, m.refused, info)
	return m
}

// observe counts every request under its route's pattern.
func (s *Server) observe(c *gin.Context) {
	start := time.Now()
	c.Next()
	route := c.FullPath()
	if route == "" {
		route = "none"
	}
	s.metrics.requests.WithLabelValues(route, strconv.Itoa(c.Writer.Status())).Inc()
	s.metrics.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
}

func (m *metrics) decided(d *schema.Decision, surface schema.Surface) {
	name := "unset"
	if surface != schema.SurfaceUnset {
		name = surface.String()
	}
	m.decisions.WithLabelValues(d.Action.String(), d.Stage.String(), name).Inc()
	for _, t := range d.Trace {
		m.stages.WithLabelValues(t.Stage.String()).Observe(t.DurationMS / 1000)
	}
}
