package decisions

import (
	"slices"

	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// naive is the tracker on slices, each position of which is looked at: an oracle
// for the one on a tree.
type naive struct {
	take       func(Record) (again bool)
	epoch      resource.Epoch
	seq        uint64
	generation uint64
	waiting    []naiveUnit
	inFlight   map[resource.TxID]InFlight
	evidence   *Evidence // of a pending Skip
	first      int
	last       int
}

type naiveUnit struct {
	key      queue.Key
	evidence *Evidence
	tried    uint64
}

func newNaive(epoch resource.Epoch, generation uint64, waiting []queue.Key, take func(Record) bool) *naive {
	n := &naive{take: take, epoch: epoch, generation: generation, inFlight: map[resource.TxID]InFlight{}}
	for _, k := range waiting {
		n.waiting = append(n.waiting, naiveUnit{key: k})
	}
	n.state(true)
	return n
}

func (n *naive) emit(r Record) {
	n.seq++
	r.Seq = n.seq
	if n.take(r) {
		n.state(false)
	}
}

func (n *naive) state(begins bool) {
	s := &State{Epoch: n.epoch, Begins: begins, Generation: n.generation, InFlight: inOrder(n.inFlight)}
	var given []*Evidence
	for _, u := range n.waiting {
		w := Waiting{Unit: u.key.Path, Order: orderOf(u.key), Tried: u.tried}
		if u.evidence != nil {
			if w.Why = slices.Index(given, u.evidence) + 1; w.Why == 0 {
				given, s.Evidence = append(given, u.evidence), append(s.Evidence, *u.evidence)
				w.Why = len(given)
			}
		}
		s.Waiting = append(s.Waiting, w)
	}
	n.seq++
	n.take(Record{Seq: n.seq, State: s})
}

func (n *naive) find(k queue.Key) int {
	return slices.IndexFunc(n.waiting, func(u naiveUnit) bool { return u.key == k })
}

func (n *naive) arrived(k queue.Key) {
	if n.find(k) >= 0 {
		return
	}
	n.flush()
	n.waiting = append(n.waiting, naiveUnit{key: k})
	slices.SortFunc(n.waiting, func(a, b naiveUnit) int { return queue.Compare(a.key, b.key) })
	n.emit(Record{Wait: &Wait{k.Path, orderOf(k)}})
}

func (n *naive) skipped(k queue.Key, e Evidence, detail func() string) {
	n.arrived(k)
	i := n.find(k)
	if e.Why.ofGeneration() {
		e.Generation = n.generation
	}
	u := &n.waiting[i]
	if u.evidence != nil && u.evidence.same(&e) {
		u.tried = e.Generation
		return
	}
	if n.evidence != nil && i == n.last+1 && n.evidence.same(&e) && n.evidence.Generation == e.Generation {
		n.last = i
		u.evidence, u.tried = n.evidence, e.Generation
		return
	}
	n.flush()
	if detail != nil {
		e.Detail = detail()
	}
	u.evidence, u.tried = &e, e.Generation
	n.evidence, n.first, n.last = &e, i, i
}

func (n *naive) flush() {
	if n.evidence == nil {
		return
	}
	skip := &Skip{First: n.waiting[n.first].key.Path, Evidence: *n.evidence}
	if n.last > n.first {
		skip.Last, skip.Count = n.waiting[n.last].key.Path, n.last-n.first+1
	}
	n.evidence = nil
	n.emit(Record{Skip: skip})
}

func (n *naive) left(k queue.Key) {
	if i := n.find(k); i >= 0 {
		n.flush()
		n.waiting = slices.Delete(n.waiting, i, i+1)
		n.emit(Record{Leave: &Leave{k.Path}})
	}
}

func (n *naive) placed(p Placement) {
	n.arrived(p.Key)
	n.flush()
	i := n.find(p.Key)
	place := &Place{
		Unit: p.Key.Path, Tx: p.Tx, Kind: p.Kind, Position: i + 1, Generation: n.generation, Victims: p.Victims, Devices: p.Devices, Adopted: p.Adopted,
	}
	var numbers [len(whys)]int
	for _, u := range n.waiting[:i] {
		if u.evidence == nil {
			numbers[0]++
			continue
		}
		numbers[u.evidence.Why.number()]++
		switch {
		case u.tried == 0:
		case u.tried == n.generation:
			place.Fresh++
		case len(place.Stale) < namedStale:
			place.Stale = append(place.Stale, u.key.Path)
		}
	}
	place.Ahead = countsOf(numbers)
	n.waiting = slices.Delete(n.waiting, i, i+1)
	n.inFlight[p.Tx] = InFlight{p.Tx, p.Key.Path, orderOf(p.Key), p.Kind, p.Devices}
	n.emit(Record{Place: place})
}

func (n *naive) committed(tx resource.TxID, revision resource.Revision) {
	if f, known := n.inFlight[tx]; known {
		n.flush()
		delete(n.inFlight, tx)
		n.emit(Record{Commit: &Commit{tx, f.Unit, revision}})
	}
}
