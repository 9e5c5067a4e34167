package follow

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Bounds of the store's past that waits for the history (ADR 78).
const (
	mostPastAge   = time.Hour
	mostPastBytes = 256 << 20
	pastStep      = time.Minute // between two samples
)

// past is the size of the store's changes, and the position of the history. The
// follower's lock guards it.
type past struct {
	position resource.Revision // of the history; 0: nobody keeps one
	bytes    int64             // of all changes since the follower began
	samples  []pastSample      // ascending
}

type pastSample struct {
	at       time.Time
	revision resource.Revision
	bytes    int64
}

// count takes the changes of one revision.
func (p *past) count(b record.Batch) {
	for i := range b.Events {
		p.bytes += int64(len(b.Events[i].KV.Key) + len(b.Events[i].KV.Value))
	}
}

// notePosition takes the position in a key that has changed; kv is nil for a key that was
// deleted.
func (p *past) notePosition(key string, kv *record.KV) error {
	if key != record.HistoryPositionKey {
		return nil
	}
	p.position = 0
	if kv == nil {
		return nil
	}
	rec, err := record.Decode[record.HistoryPosition](kv.Key, kv.Value)
	p.position = rec.Revision
	return err
}

// notePosition is past.notePosition. f.mu is held.
func (f *Follower) notePosition(key string, kv *record.KV) {
	if err := f.past.notePosition(key, kv); err != nil {
		f.log.Error("history_position_unreadable", "key", key, "error", err)
	}
}

// sample notes how much there was at a revision. A store that was restored begins anew:
// its revisions are lower than those of the samples.
func (p *past) sample(now time.Time, at resource.Revision) {
	if n := len(p.samples); n > 0 && at < p.samples[n-1].revision {
		p.samples = nil
	}
	if n := len(p.samples); n > 0 && now.Sub(p.samples[n-1].at) < pastStep {
		return
	}
	p.samples = append(p.samples, pastSample{now, at, p.bytes})
	for len(p.samples) > 1 && now.Sub(p.samples[1].at) > mostPastAge {
		p.samples = p.samples[1:]
	}
}

// floor is the revision that a compaction up to another may reach: it leaves the changes
// behind the position of the history, within bounds.
func (p *past) floor(upto resource.Revision, now time.Time) resource.Revision {
	if p.position == 0 || p.position >= upto {
		return upto
	}
	at := p.position
	for _, s := range p.samples {
		if now.Sub(s.at) > mostPastAge || p.bytes-s.bytes > mostPastBytes {
			at = max(at, s.revision)
		}
	}
	return min(at, upto)
}

// CompactUpto is the revision up to which the store may forget its past, where the
// leader is ready to forget everything before another one. It does not block.
func (f *Follower) CompactUpto(upto resource.Revision) resource.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.past.floor(upto, time.Now())
}
