package projector

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// term is a term of office. Its narrator is nil until it has found where to begin.
type term struct {
	office   *store.Leadership
	narrator *narrate.Narrator
	slicer   *usage.Slicer
	blind    bool // the slicer does not know the counters of the slices
	changes  <-chan record.Batch
	cancel   context.CancelFunc
	retryAt  time.Time
	why      string // it has not begun

	first   *history.Batch // to be written before the rows of the narrator
	taken   time.Time      // when rows were taken last
	moved   bool           // there was a change of another than the projector since then
	witness witness
}

// witness is a key as it was written at a revision: by it a projector finds whether the
// store still has that past.
type witness struct {
	Key      string            `json:"k,omitempty"`
	Revision resource.Revision `json:"r,omitempty"`
	Sum      uint32            `json:"c,omitempty"`
	// Cluster is the name of the cluster whose history it is.
	Cluster string `json:"n,omitempty"`
	// SlicedMillis is the instant up to which grants have slices.
	SlicedMillis int64 `json:"s,omitempty"`
}

// see takes the newest of the keys as the witness.
func (w *witness) see(kv record.KV) {
	if kv.ModRev >= w.Revision {
		w.Key, w.Revision, w.Sum = kv.Key, kv.ModRev, sumOf(kv.Value)
	}
}

func sumOf(value []byte) uint32 { return crc32.ChecksumIEEE(value) }

func (w witness) mark() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic("projector: encode a witness: " + err.Error())
	}
	return string(text)
}

// witnessIn reads a mark; the zero value for a text that is none.
func witnessIn(mark string) (w witness) {
	if json.Unmarshal([]byte(mark), &w) != nil {
		return witness{}
	}
	return w
}

// stop ends the watch. The term looks for its place again.
func (t *term) stop() {
	if t.cancel != nil {
		t.cancel()
	}
	t.narrator, t.slicer, t.blind, t.changes, t.cancel, t.first = nil, nil, false, nil, nil, nil
}

// intake is the channel of further changes: nil, a channel without values, while so many
// rows wait for the database.
func (t *term) intake(most int) <-chan record.Batch {
	if t == nil || t.narrator == nil || t.narrator.Rows() >= most {
		return nil
	}
	return t.changes
}

// due reports whether rows are to be written.
func (t *term) due(now time.Time) bool {
	if t == nil || t.narrator == nil {
		return false
	}
	rows := t.narrator.Rows()
	return t.first != nil || rows >= enoughRows || rows > 0 && now.Sub(t.taken) >= flushEvery || t.moved && now.Sub(t.taken) >= idleEvery
}

// take returns the next batch.
func (t *term) take(now time.Time) history.Batch {
	if b := t.first; b != nil {
		t.first = nil
		return *b
	}
	b := t.narrator.Take()
	t.seal(&b)
	t.taken, t.moved = now, false
	return b
}

// seal adds slices and mark.
func (t *term) seal(b *history.Batch) {
	b.Cuts, b.Slices = t.slicer.Follow(*b)
	if upto := t.slicer.Upto(); !upto.IsZero() {
		t.witness.SlicedMillis = upto.UnixMilli()
	}
	b.Mark = t.witness.mark()
}

// follow takes the changes of one revision.
func (p *Projector) follow(b record.Batch, open bool) {
	t := p.term
	if !open || b.Err != nil {
		p.log.Warn("history_watch_ended", "error", b.Err)
		p.restart()
		return
	}
	if len(b.Events) == 0 {
		return
	}
	for i := range b.Events {
		e := &b.Events[i]
		if !strings.HasPrefix(e.KV.Key, record.HistoryPrefix) {
			t.moved = true
		}
		if e.Type == record.EventPut {
			t.witness.see(e.KV)
		}
	}
	if b.Revision > p.rebuilt && slices.ContainsFunc(b.Events, func(e record.Event) bool { return e.KV.Key == record.HistoryRebuiltKey }) {
		p.log.Info("history_rebuilt")
		p.rebuilt = b.Revision
		p.restart() // a rebuild may have changed slices that the slicer goes on from
		return
	}
	t.narrator.Follow(b)
	t.slicer.Hear(t.narrator.Uses())
	for _, err := range t.narrator.Faults() {
		p.metrics.unreadable.Inc()
		p.log.Error("history_key_unreadable", "error", err)
	}
}

// drainChanges takes the changes that are there already.
func (p *Projector) drainChanges() {
	for range enoughRows {
		if p.term == nil || p.term.narrator == nil || p.term.narrator.Rows() >= enoughRows {
			return
		}
		select {
		case b, open := <-p.term.changes:
			p.follow(b, open)
		default:
			return
		}
	}
}
