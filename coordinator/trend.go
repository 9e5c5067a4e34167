package coordinator

import (
	"fmt"
	"slices"
	"time"

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

// utilization is what is used of a quota's hard limits, in whole percent; a
// limit of zero has none.
func (q *quotas) utilization(r *resourceQuota) map[resource.Name]int64 {
	used := q.limits.Used(r.object.Metadata.Namespace, r.object.Metadata.Name)
	percent := map[resource.Name]int64{}
	for name, hard := range r.hard {
		if hard > 0 {
			percent[name] = percentOf(used[name], hard)
		}
	}
	return percent
}

// percentOf is 100·used/hard, rounded down, for any amounts; hard > 0.
func percentOf(used, hard int64) int64 {
	if used > (1<<63-1)/100 {
		return used / max(1, hard/100)
	}
	return 100 * used / hard
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
