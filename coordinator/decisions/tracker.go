package decisions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Tracker turns what one leader does in one term into records. It follows the
// leader's room of the waiting (sched.Observer); the leader itself reports
// transactions to it. One goroutine owns it; what it gives away is not changed any more.
// A nil Tracker records no transaction.
type Tracker struct {
	epoch    resource.Epoch
	append   func(Record) bool
	seq      uint64
	words    Words
	order    order
	classes  classes
	labels   map[resource.NodeID]*constraint.Labels // that the log has, since the last State
	inFlight map[resource.TxID]InFlight
}

// Words is how the leader says why units wait.
type Words interface {
	// Held says why a unit of the order cannot be tried now.
	Held(path string) Evidence
	// Asleep says on which quota a class waits, if on any, and in detail why it
	// failed; the detail is asked for only where it is logged.
	Asleep(c *sched.Class, e *sched.Evidence) (subject string, detail func() string)
}

// NewTracker begins the account of a term with those who wait in a room, and
// follows the room from then on. The function given takes each record, must not
// block, and returns whether it wants the State next, because it has lost records
// or begins a file.
func NewTracker(epoch resource.Epoch, waiting *sched.Room, words Words, take func(Record) (again bool)) *Tracker {
	t := &Tracker{
		epoch: epoch, words: words, append: take, classes: newClasses(), labels: map[resource.NodeID]*constraint.Labels{}, inFlight: map[resource.TxID]InFlight{},
	}
	keys := waiting.Order().Head(waiting.Order().Len())
	t.order = newOrder(keys)
	held := map[string]*Evidence{} // in words, so that those that wait for the same share it
	for u := t.order.units.At(0); u != nil; u = u.Next() {
		path := u.Key().Path
		if c := waiting.ClassOf(path); c != nil {
			known, _ := t.classes.join(c)
			t.order.assign(u, known.id)
			if e := c.Evidence(); e != nil && known.last == nil {
				known.last = t.sleepOf(known, e)
			}
			continue
		}
		e := words.Held(path)
		if held[e.String()] == nil {
			held[e.String()] = &e
		}
		t.order.explain(u, held[e.String()])
	}
	t.state(true)
	waiting.Observe(t)
	return t
}

// emit gives records away that belong together, with the numbers that come next.
func (t *Tracker) emit(records ...Record) {
	again := false
	for _, r := range records {
		t.seq++
		r.Seq = t.seq
		again = t.append(r) || again
	}
	if again {
		t.state(false)
	}
}

// state gives the whole state away. It does not follow an invitation to do so
// once more.
func (t *Tracker) state(begins bool) {
	s := &State{Epoch: t.epoch, Begins: begins, Classes: t.classes.state()}
	clear(t.labels)
	s.Waiting, s.Evidence = t.order.state()
	s.InFlight = inOrder(t.inFlight)
	t.seq++
	t.append(Record{Seq: t.seq, State: s})
}

// inOrder lists placements by transaction.
func inOrder(inFlight map[resource.TxID]InFlight) []InFlight {
	return slices.SortedFunc(maps.Values(inFlight), func(a, b InFlight) int { return cmp.Compare(a.Tx, b.Tx) })
}

// Arrived puts a unit into the order; one that is there already stays as it is.
func (t *Tracker) Arrived(k queue.Key) {
	if t == nil {
		return
	}
	if t.order.find(k) == nil {
		t.order.insert(k)
		t.emit(Record{Wait: &Wait{k.Path, orderOf(k)}})
	}
}

// Held notes that a unit cannot be tried now.
func (t *Tracker) Held(k queue.Key) {
	u := t.order.find(k)
	e := t.words.Held(k.Path)
	if known := u.Value().evidence; known != nil && known.equals(&e) {
		return
	}
	t.leaveClass(u)
	t.order.explain(u, &e)
	t.emit(Record{Hold: &Hold{k.Path, e}})
}

// Joined notes that a unit may be tried, with its class.
func (t *Tracker) Joined(k queue.Key, c *sched.Class) {
	u := t.order.find(k)
	t.leaveClass(u)
	known, added := t.classes.join(c)
	t.order.assign(u, known.id)
	offer := Record{Offer: &Offer{k.Path, known.id}}
	if added {
		definition := known.definition
		t.emit(Record{Class: &definition}, offer)
		return
	}
	t.emit(offer)
}

// leaveClass takes a unit out of its class, if it is in one.
func (t *Tracker) leaveClass(u *unit) {
	if class := u.Value().class; class > 0 {
		t.classes.leave(class)
	}
}

// Slept notes that a class has failed.
func (t *Tracker) Slept(c *sched.Class, e *sched.Evidence) {
	known := t.classes.byTraits[c.Traits]
	if known == nil || known.units == 0 {
		panic(fmt.Sprintf("decisions: a class of %d units has failed, of which none is in the account", c.Len()))
	}
	before := known.last
	s := t.sleepOf(known, e)
	known.last = s
	if before != nil && before.Code == s.Code && before.Quota == s.Quota && before.Subject == s.Subject && slices.Equal(before.Trees, s.Trees) {
		s.Detail = before.Detail
		s = &Sleep{Class: s.Class, Code: s.Code, Quota: s.Quota, Trees: s.Trees}
	}
	t.emit(Record{Sleep: s})
}

// Happened notes an event that may help classes that sleep.
func (t *Tracker) Happened(e *sched.Event) {
	event := &Event{Kind: eventKinds[e.Kind], Priority: e.Priority, Namespace: e.Namespace, Trees: e.Trees, Queue: e.Queue}
	if e.Subject != nil {
		event.Neighbour = describe(e.Subject)
	}
	var records []Record
	for i := range e.Nodes {
		n := e.Nodes[i].Node
		if known, found := t.labels[n.ID]; !found || known != n.Labels {
			t.labels[n.ID] = n.Labels
			records = append(records, Record{Node: nodeOf(n)})
		}
		event.Nodes = append(event.Nodes, t.classes.free(&e.Nodes[i]))
	}
	t.emit(append(records, Record{Event: event})...)
}

// Restored notes that the store was restored from a backup.
func (t *Tracker) Restored(r Restored) {
	if t == nil {
		return
	}
	r.Epoch = t.epoch
	t.emit(Record{Restored: &r})
}

// Left takes a unit out of the order that was not placed; one that is not there
// changes nothing.
func (t *Tracker) Left(k queue.Key) {
	if t == nil {
		return
	}
	if u := t.order.find(k); u != nil {
		t.leaveClass(u)
		t.order.remove(u)
		t.emit(Record{Leave: &Leave{k.Path}})
	}
}

// Placement is what Placed is told.
type Placement struct {
	Key     queue.Key
	Tx      resource.TxID
	Kind    Kind
	Victims []Victim
	Devices []Devices
	Adopted bool // goes on with what an earlier leader began
}

// Placed takes a unit out of the order: its transaction begins.
func (t *Tracker) Placed(p Placement) {
	if t == nil {
		return
	}
	t.Arrived(p.Key)
	u := t.order.find(p.Key)
	place := &Place{
		Unit: p.Key.Path, Tx: p.Tx, Kind: p.Kind, Position: u.Position() + 1, Ahead: t.order.counts(u), Victims: p.Victims, Devices: p.Devices, Adopted: p.Adopted,
	}
	t.leaveClass(u)
	t.order.remove(u)
	t.inFlight[p.Tx] = InFlight{p.Tx, p.Key.Path, orderOf(p.Key), p.Kind, p.Devices}
	t.emit(Record{Place: place})
}

// Committed notes that a placement is durable. One that is not in flight was
// taken over from an earlier term, whose account has it.
func (t *Tracker) Committed(tx resource.TxID, revision resource.Revision) {
	if t == nil {
		return
	}
	if f, known := t.inFlight[tx]; known {
		delete(t.inFlight, tx)
		t.emit(Record{Commit: &Commit{tx, f.Unit, revision}})
	}
}

// Aborted notes that a placement came to nothing. It is called before the room
// learns that something is free, and before the unit waits again.
func (t *Tracker) Aborted(tx resource.TxID) {
	if t == nil {
		return
	}
	if _, known := t.inFlight[tx]; known {
		delete(t.inFlight, tx)
		t.emit(Record{Abort: &Abort{Tx: tx}})
	}
}

// Ended notes that a unit's transaction has ended after its commit. It is
// called before the room learns that something is free, and before the unit waits
// again.
func (t *Tracker) Ended(tx resource.TxID, unit, reason string) {
	if t == nil {
		return
	}
	t.emit(Record{End: &End{Tx: tx, Unit: unit, Reason: reason}})
}
