package shown

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/resource"
)

// trendSpan is how far a trend looks back; samples are taken every hour.
const trendSpan = 24 * time.Hour

// Trend is how the utilization of a resource quota was in the last hours of
// this term, oldest first. The zero value is empty.
type Trend struct {
	samples []sample
}

type sample struct {
	at      time.Time
	percent map[resource.Name]int64
}

// Note adds a sample and forgets those that are too old.
func (t *Trend) Note(at time.Time, percent map[resource.Name]int64) {
	t.samples = append(t.samples, sample{at, percent})
	t.samples = slices.DeleteFunc(t.samples, func(s sample) bool { return at.Sub(s.at) > trendSpan+time.Hour })
}

// Copy is the same trend, for its own notes.
func (t Trend) Copy() Trend { return Trend{slices.Clone(t.samples)} }

// Since words the change up to now against the oldest sample, e.g. "+5% over
// 24h"; resources of which less than an hour is known are left out.
func (t *Trend) Since(now time.Time, percent map[resource.Name]int64) map[resource.Name]string {
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
