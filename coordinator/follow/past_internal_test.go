package follow

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestTheCompactionWaitsWithinBounds for the position of the history.
func TestTheCompactionWaitsWithinBounds(t *testing.T) {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		position resource.Revision
		minutes  int   // of one revision each, from 1 on
		bytes    int64 // of each
		upto     resource.Revision
		want     resource.Revision
	}{
		"nobody keeps a history":          {position: 0, minutes: 90, upto: 80, want: 80},
		"the history is there":            {position: 85, minutes: 90, upto: 80, want: 80},
		"it is late":                      {position: 40, minutes: 90, upto: 80, want: 40},
		"it is an hour late":              {position: 5, minutes: 90, upto: 80, want: 29},
		"it is late by too many bytes":    {position: 40, minutes: 90, bytes: 16 << 20, upto: 80, want: 73},
		"the leader forgets less by then": {position: 5, minutes: 90, bytes: 16 << 20, upto: 50, want: 50},
	} {
		var p past
		p.position = c.position
		now := began
		for i := range c.minutes {
			now = began.Add(time.Duration(i) * time.Minute)
			p.count(record.Batch{Events: []record.Event{{KV: record.KV{Value: make([]byte, c.bytes)}}}})
			p.sample(now, resource.Revision(i+1))
		}
		if got := p.floor(c.upto, now); got != c.want {
			t.Errorf("%s: compacted up to %d, want %d", name, got, c.want)
		}
		if len(p.samples) > 62 {
			t.Errorf("%s: %d samples", name, len(p.samples))
		}
	}
}

// TestTheCompactionWaitsInARestoredStore: the samples of the lost past say nothing about
// the revisions that come again.
func TestTheCompactionWaitsInARestoredStore(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var p past
	for i := range 90 {
		p.sample(now.Add(time.Duration(i)*time.Minute), resource.Revision(1000+i))
	}
	now = now.Add(90 * time.Minute)
	p.sample(now, 50) // restored
	p.position = 40
	if got := p.floor(48, now); got != 40 {
		t.Errorf("compacted up to %d, want 40", got)
	}
}
