package rule

import "github.com/musterd/muster/coordinator/queue"

// Head is the first unit that holds back the others of a strict queue; false where the
// queue is not strict, or has none.
func (b *Book) Head(name string) (queue.Key, bool) {
	q := b.queues[name]
	if q == nil {
		return queue.Key{}, false
	}
	first := q.line.At(0)
	if first == nil {
		return queue.Key{}, false
	}
	return first.Key(), true
}

// Abreast yields the paths of the units that have the place of a key in a strict queue:
// the members of a group have one place.
func (b *Book) Abreast(name string, k queue.Key) []string {
	q := b.queues[name]
	if q == nil {
		return nil
	}
	var paths []string
	for e := q.line.At(0); e != nil && e.Key().Compare(k) <= 0 || e != nil && e.Key().ArrivedWith(k); e = e.Next() {
		if e.Key().ArrivedWith(k) {
			paths = append(paths, e.Key().Path)
		}
	}
	return paths
}

// Holds is the rule by which a unit of a queue is not to be tried now; nil where the
// unit may be tried.
func (b *Book) Holds(name string, k queue.Key) *Block {
	q := b.queues[name]
	switch {
	case q == nil || q.rules == (Rules{}):
		return nil
	case q.rules.Hold:
		return &Block{Code: Held, Queue: name}
	case !q.rules.Strict:
		return nil
	}
	if head, found := b.Head(name); found && !head.ArrivedWith(k) && head.Compare(k) < 0 {
		return &Block{Code: Behind, Queue: name, Head: head.Path}
	}
	return nil
}

// Bounds is the rule by which members of a queue that start together have to wait for
// others of the queue to end; nil where they may start.
func (b *Book) Bounds(name string, needs int) *Block {
	q := b.queues[name]
	if q == nil || q.rules.MaxRunning == 0 {
		return nil
	}
	block := Block{Code: Full, Queue: name, Running: q.count.Running, Max: q.rules.MaxRunning, Needs: needs}
	switch {
	case needs > block.Max:
		block.Code = TooWide
	case needs <= block.Max-block.Running:
		return nil
	}
	return &block
}

// Refusal is the reason why members may not enter a queue.
type Refusal uint8

// The refusals.
const (
	Admitted    Refusal = iota
	QueueClosed         // the queue takes no new work
	TooMany             // the members that wait are at the bound
	NeverRuns           // the members that start together are more than may run
)

// Enters judges new members of a queue, of which so many start together.
func (b *Book) Enters(name string, members, together int) Refusal {
	q := b.queues[name]
	switch {
	case q == nil:
	case q.rules.Closed:
		return QueueClosed
	case q.rules.MaxRunning > 0 && together > q.rules.MaxRunning:
		return NeverRuns
	case q.rules.MaxWaiting > 0 && members > q.rules.MaxWaiting-q.count.Waiting:
		return TooMany
	}
	return Admitted
}
