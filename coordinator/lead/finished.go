package lead

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file removes objects that have ended, some time after their end (ADR 86):
// ttlSecondsAfterFinished of a job, and life.KeptAfterEnd of an allocation. The instant of the
// end is in the store, so every leader removes an object at the same time. The name of the
// object is free then; the history keeps its rows.

// removalRate bounds the removals, each of which is a Txn. Nothing waits for them.
var removalRate = pace.Rate{Every: 20 * time.Millisecond, Burst: 50}

// removalAgain is the time after which an object is looked at again that could not be
// removed: somebody waits for it, or the store has refused.
const removalAgain = 30 * time.Second

// finished are the objects that have ended, by the instant of their removal. The zero
// value is empty. An object that is there no more, or that is kept longer, is met when
// its time comes.
type finished struct {
	heap   finishedHeap
	bucket pace.Bucket
}

// finishedObject is an allocation or a job that has ended.
type finishedObject struct {
	due  int64 // in milliseconds, as Tx.EndingMillis
	key  string
	job  *work.Job
	unit *work.Unit // of an allocation
}

// removalOf is the instant of the removal of an object that has ended at an instant, and which the
// record of an older version has as a time alone. An unknown end is that of this input.
func (l *Leader) removalOf(millis int64, stamp string, keep time.Duration) int64 {
	if millis == 0 {
		millis = l.post.Millis()
		if at, err := time.Parse(time.RFC3339, stamp); err == nil {
			millis = at.UnixMilli()
		}
	}
	if keep > 0 {
		keep += work.ClockError
	}
	return millis + keep.Milliseconds()
}

// noteFinishedJob has a job that has ended removed at its time.
func (l *Leader) noteFinishedJob(j *work.Job) {
	if j.Gone || j.Stored == 0 || j.Record.Cancelled != nil && j.Record.Cancelled.Remove || !api.Phase(j.Record.Phase).Ended() {
		return
	}
	heap.Push(&l.finished.heap, finishedObject{due: l.removalOf(j.Record.EndedMillis, j.Record.Ended, j.KeepFor()), key: j.Key(), job: j})
}

// noteFinishedUnit is noteFinishedJob of an allocation.
func (l *Leader) noteFinishedUnit(u *work.Unit) {
	if u.Job != nil || u.Life.Gone() || u.Stored == 0 || u.Life.EndAsked() || !u.Phase().Ended() {
		return
	}
	heap.Push(&l.finished.heap, finishedObject{due: l.removalOf(u.Record.EndedMillis, u.Record.Ended, life.KeptAfterEnd), key: u.Path, unit: u})
}

// noteAllFinished notes the objects that have ended under earlier leaders.
func (l *Leader) noteAllFinished() {
	for _, name := range slices.Sorted(maps.Keys(l.work.Jobs)) {
		l.noteFinishedJob(l.work.Jobs[name])
	}
	for _, path := range slices.Sorted(maps.Keys(l.work.Units)) {
		l.noteFinishedUnit(l.work.Units[path])
	}
}

// removeFinished removes the objects whose time has come, as many as the rate lets.
func (l *Leader) removeFinished() {
	f := &l.finished
	for len(f.heap) > 0 && f.heap[0].due <= l.post.Millis() && f.bucket.Take(l.post.Now(), removalRate) {
		o := heap.Pop(&f.heap).(finishedObject)
		switch {
		case o.job != nil:
			l.removeFinishedJob(o)
		case o.unit.Life.Gone() || !o.unit.Phase().Ended():
		case o.unit.Life.EndAsked() || o.unit.Life.IsBeingWritten(): // the store may refuse the deletion
			l.removeLater(o)
		default:
			l.removeFinishedUnit(o)
		}
	}
}

// removeLater looks at an object again.
func (l *Leader) removeLater(o finishedObject) {
	o.due = l.post.Millis() + removalAgain.Milliseconds()
	heap.Push(&l.finished.heap, o)
}

// removeFinishedUnit removes an allocation.
func (l *Leader) removeFinishedUnit(o finishedObject) {
	u, key := o.unit, o.unit.Record.Path().Key()
	u.Life.Begin(work.WriteChange)
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(key, u.Stored)},
		Ops:      []record.Op{record.Delete(key)},
		Done: func(outcome txn.Outcome, _ resource.Revision, err error) {
			u.Life.Finish(work.WriteChange)
			switch {
			case outcome == txn.Landed:
				l.removeUnit(u)
			default:
				l.post.Warn("removal_failed", "object", u.Path, "outcome", outcome, "error", err)
				l.notify(u)
				l.removeLater(o)
			}
			if !u.Life.Gone() && u.Life.EndAsked() { // its owner has asked meanwhile
				l.endQueued(u)
			}
		},
	}, key, post.Removed)
}

// removeFinishedJob removes a job with its units. A job stays while another waits for the
// answer how it has ended.
func (l *Leader) removeFinishedJob(o finishedObject) {
	j := o.job
	switch {
	case j.Gone || j.Record.Cancelled != nil && j.Record.Cancelled.Remove || !api.Phase(j.Record.Phase).Ended():
		return
	case j.Writing || l.work.IsAwaited(j) || slices.ContainsFunc(j.Units, func(u *work.Unit) bool { return !u.Phase().Ended() || u.Life.IsBeingWritten() }):
		l.removeLater(o)
		return
	}
	key := record.JobKey(j.Record.Namespace, j.Record.Name)
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(key, j.Stored)}, Ops: []record.Op{record.Delete(key)}}
	for _, u := range j.Units {
		d.Ops = append(d.Ops, record.Delete(u.Record.Path().Key()))
	}
	j.BeginWrite()
	d.Done = func(outcome txn.Outcome, _ resource.Revision, err error) {
		j.FinishWrite()
		if outcome == txn.Landed {
			l.forgetJob(j)
			return
		}
		l.post.Warn("removal_failed", "object", key, "outcome", outcome, "error", err)
		l.removeLater(o)
		l.notifyJob(j)
		l.finishJob(j)
	}
	l.post.Settle(d, key, post.Removed)
}

// finishedHeap implements heap.Interface.
type finishedHeap []finishedObject

func (h finishedHeap) Len() int { return len(h) }

func (h finishedHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].due, h[j].due), strings.Compare(h[i].key, h[j].key)) < 0
}

func (h finishedHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *finishedHeap) Push(x any) { *h = append(*h, x.(finishedObject)) }

func (h *finishedHeap) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last] = finishedObject{}
	*h = (*h)[:last]
	return o
}
