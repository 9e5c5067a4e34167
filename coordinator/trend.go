package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// trendSpan is how far a trend looks back; samples are taken every hour.
const trendSpan = 24 * time.Hour

// trend is how the utilization of a resource quota was in the last hours of
// this term, oldest first.
type trend struct {
	samples []sample
}

type sample struct {
	at      time.Time
	percent map[resource.Name]int64
}

// note adds a sample and forgets those that are too old.
func (t *trend) note(at time.Time, percent map[resource.Name]int64) {
	t.samples = append(t.samples, sample{at, percent})
	t.samples = slices.DeleteFunc(t.samples, func(s sample) bool { return at.Sub(s.at) > trendSpan+time.Hour })
}

// since words the change up to now against the oldest sample, e.g. "+5% over
// 24h"; resources of which less than an hour is known are left out.
func (t *trend) since(now time.Time, percent map[resource.Name]int64) map[resource.Name]string {
	words := map[resource.Name]string{}
	for name, p := range percent {
		for _, s := range t.samples {
			hours := min(now.Sub(s.at), trendSpan) / time.Hour
			if before, known := s.percent[name]; known && hours > 0 {
				words[name] = fmt.Sprintf("%+d%% over %dh", p-before, hours)
				break
			}
		}
	}
	return words
}

// utilization is what is used of a quota's hard limits, in whole percent.
func (q *quotas) utilization(r *resourceQuota) map[resource.Name]int64 {
	return shown.Utilization(q.limits.Used(r.object.Metadata.Namespace, r.object.Metadata.Name), r.hard)
}

// sampleQuotas notes every hour how far the resource quotas are used.
func (l *leader) sampleQuotas() {
	if l.now.Sub(l.quotas.sampled) < time.Hour {
		return
	}
	l.quotas.sampled = l.now
	for _, r := range l.quotas.resources {
		r.trend.note(l.quotas.sampled, l.quotas.utilization(r))
	}
}
