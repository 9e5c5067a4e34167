package decisions_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// toy is a leader that keeps the rules and draws lots for everything else.
type toy struct {
	*decisions.Tracker
	t          *rapid.T
	log        []decisions.Record
	generation uint64
	counter    uint64
	waiting    []queue.Key
	tried      map[string]uint64 // generation of the last try in vain, by path
	inFlight   []placed
	running    []placed
	lose       bool // the sink may lose records
	lost       uint64
	again      bool
}

type placed struct {
	tx  resource.TxID
	key queue.Key
}

func newToy(t *rapid.T, epoch resource.Epoch, lose bool) *toy {
	w := &toy{t: t, generation: 1, tried: map[string]uint64{}, lose: lose}
	w.Tracker = decisions.NewTracker(epoch, 1, nil, w.take)
	return w
}

// take is the sink: records are lost from time to time, until a State comes.
func (w *toy) take(r decisions.Record) bool {
	if r.State == nil && (w.again || w.lose && rapid.IntRange(0, 30).Draw(w.t, "lost") == 0) {
		w.lost++
		w.again = rapid.IntRange(0, 3).Draw(w.t, "still") > 0
		return !w.again
	}
	if w.lost > 0 {
		w.log = append(w.log, decisions.Record{Seq: r.Seq - 1, Gap: &decisions.Gap{Lost: w.lost}})
		w.lost = 0
	}
	w.again = false
	w.log = append(w.log, r)
	return rapid.IntRange(0, 50).Draw(w.t, "new file") == 0
}

func (w *toy) wait(k queue.Key) {
	i, _ := slices.BinarySearchFunc(w.waiting, k, queue.Compare)
	w.waiting = slices.Insert(w.waiting, i, k)
	delete(w.tried, k.Path)
	w.Arrived(k)
}

func (w *toy) free() {
	w.generation++
	w.Freed(w.generation)
}

// step does one thing.
func (w *toy) step() {
	switch t := w.t; rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1, 2:
		w.counter++
		w.wait(queue.Key{Priority: int32(rapid.IntRange(-1, 2).Draw(t, "priority")), Epoch: 7, Counter: w.counter, Path: fmt.Sprintf("ns/alloc/u%d/0", w.counter)})
	case 3:
		if len(w.waiting) > 0 {
			i := rapid.IntRange(0, len(w.waiting)-1).Draw(t, "leaves")
			w.Left(w.waiting[i])
			w.waiting = slices.Delete(w.waiting, i, i+1)
		}
	case 4:
		if p, ok := pick(t, &w.inFlight); ok {
			w.Aborted(p.tx)
			w.free()
			w.wait(p.key)
			w.Skipped(p.key, decisions.Evidence{Why: decisions.InBackoff, Until: int64(w.counter) + 1}, nil)
		}
	case 5, 6:
		if p, ok := pick(t, &w.inFlight); ok {
			w.Committed(p.tx, resource.Revision(100+w.counter))
			w.running = append(w.running, p)
		}
	case 7:
		if p, ok := pick(t, &w.running); ok {
			w.Ended(p.tx, p.key.Path, "done")
			w.free()
		}
	case 8:
		w.free()
	default:
		w.pass()
	}
}

func pick(t *rapid.T, from *[]placed) (placed, bool) {
	if len(*from) == 0 {
		return placed{}, false
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	p := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return p, true
}

// pass tries everybody in order, as the leader does.
func (w *toy) pass() {
	for _, k := range slices.Clone(w.waiting) {
		if w.tried[k.Path] == w.generation {
			continue
		}
		why := rapid.SampledFrom([]decisions.Why{
			decisions.Infeasible, decisions.Infeasible, decisions.OverQuota, decisions.BeingWritten, decisions.AwaitsGang, decisions.AwaitsVictims, "",
		}).Draw(w.t, "outcome")
		if why == "" {
			w.place(k)
			continue
		}
		delete(w.tried, k.Path)
		if why == decisions.Infeasible || why == decisions.OverQuota {
			w.tried[k.Path] = w.generation
		}
		w.Skipped(k, decisions.Evidence{Why: why, Like: string(k.Path[len(k.Path)-3])}, func() string { return "want 2, have 1" })
	}
	w.Flush()
}

func (w *toy) place(k queue.Key) {
	w.counter++
	p := decisions.Placement{Key: k, Tx: resource.TxID(fmt.Sprintf("tx%d", w.counter)), Kind: decisions.Plain}
	p.Devices = []decisions.Devices{{Node: "a", GPUs: []int{int(w.counter)}}}
	for _, r := range w.running {
		if r.key.Priority < k.Priority {
			p.Kind = decisions.Preemption
			p.Victims = append(p.Victims, decisions.Victim{Unit: r.key.Path, Priority: r.key.Priority})
		}
	}
	w.Placed(p)
	w.waiting = slices.DeleteFunc(w.waiting, func(o queue.Key) bool { return o == k })
	w.inFlight = append(w.inFlight, placed{p.Tx, k})
}

// drawLog is what a leader that keeps the rules has logged.
func drawLog(t *rapid.T, lose bool) []decisions.Record {
	w := newToy(t, 7, lose)
	for range rapid.IntRange(1, 120).Draw(t, "steps") {
		w.step()
	}
	w.Flush()
	return w.log
}

func check(log []decisions.Record) *decisions.Report {
	c := decisions.NewChecker()
	for _, r := range log {
		c.Record(r)
	}
	return c.Report()
}
