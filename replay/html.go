package replay

import (
	"fmt"
	"html/template"
	"io"
)

var page = template.Must(template.New("replay").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>auditd replay</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8884;vertical-align:top;overflow-wrap:anywhere}.lost_stop td:first-child{border-left:4px solid #c33;padding-left:.6rem}
.added_stop td:first-child{border-left:4px solid #c80;padding-left:.6rem}bdi,code{font-family:ui-monospace,monospace;font-size:.88em}.box{overflow-x:auto}</style></head><body>
<h1>Replay</h1>
<p>{{.Flows}} recorded flows since {{.Since.Format "2006-01-02 15:04"}} were audited again: {{.To}}.</p>
<ul><li><b>{{.Added}}</b> would be stopped now and were not</li><li><b>{{.Lost}}</b> were stopped and would not be now</li><li>{{.Other}} would come out otherwise in another way</li><li>{{.Same}} come out the same</li>
<li>half within {{printf "%.1f" .Before.P50}} ms then and {{printf "%.1f" .After.P50}} ms now; 95 % within {{printf "%.1f" .Before.P95}} ms and {{printf "%.1f" .After.P95}} ms</li></ul>
<h2>What this can't say</h2><ul>
{{if .Redacted}}<li>{{.Redacted}} flows were audited again with placeholders in place of their secrets: what a secret raised then, it does not raise here.</li>{{end}}
{{range $why, $n := .Skipped}}<li>{{$n}} flows were left out: {{$why}}.</li>{{end}}
<li>Suppressions, refusals and approvals are left aside.</li></ul>
{{if .Changes}}<h2>Changes</h2><div class="box" tabindex="0"><table><thead><tr><th>Time</th><th>Agent</th><th>From</th><th>To</th><th>Then</th><th>Now</th><th>Decision</th></tr></thead><tbody>
{{range .Changes}}<tr class="{{.Kind}}"><td>{{.Time.Format "2006-01-02 15:04:05"}}</td><td><bdi>{{.Agent}}</bdi></td><td><bdi>{{.Source}}</bdi></td><td><bdi>{{.Sink}}</bdi></td><td>{{.Before}}<br>{{.Why}}</td><td>{{.After}}<br>{{.WhyNow}}{{if .Redacted}}<br><i>on a text with secrets replaced</i>{{end}}</td><td><code>{{.Decision}}</code></td></tr>
{{end}}</tbody></table></div>{{end}}
</body></html>
`))

// HTML writes the report as one page that loads nothing.
func (r *Report) HTML(w io.Writer) error {
	if err := page.Execute(w, r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
