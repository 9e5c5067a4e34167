package rule

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/queue"
)

// queue returns a queue, made on first sight.
func (b *Book) queue(name string) *named {
	q := b.queues[name]
	if q == nil {
		q = &named{}
		if b.queues == nil {
			b.queues = map[string]*named{}
		}
		b.queues[name] = q
	}
	return q
}

// prune forgets a queue of which nothing is known.
func (b *Book) prune(name string) {
	if q := b.queues[name]; q != nil && q.units == 0 && q.rules == (Rules{}) {
		delete(b.queues, name)
	}
}

// note returns the news of a queue, begun on first sight.
func (b *Book) note(name string, q *named) *News {
	n := b.news[name]
	if n == nil {
		n = &News{Queue: name}
		if first := q.line.At(0); first != nil {
			n.Before = first.Key()
		}
		if b.news == nil {
			b.news = map[string]*News{}
		}
		b.news[name] = n
	}
	return n
}

// Rules are the rules of a queue.
func (b *Book) Rules(name string) Rules {
	if q := b.queues[name]; q != nil {
		return q.rules
	}
	return Rules{}
}

// SetRules replaces the rules of a queue. Its time is in proportion to the units where
// Strict changes.
func (b *Book) SetRules(name string, r Rules) {
	q := b.queue(name)
	if q.rules == r {
		b.prune(name)
		return
	}
	n := b.note(name, q)
	n.Changed = true
	n.Freed = n.Freed || q.rules.MaxRunning > 0 && (r.MaxRunning == 0 || r.MaxRunning > q.rules.MaxRunning)
	if q.rules.Strict != r.Strict {
		q.line = queue.Keys{}
		if r.Strict {
			for _, u := range b.units {
				if u.Queue == name && u.Standing.blocks() {
					q.line.Insert(u.Key, queue.Unit{})
				}
			}
		}
	}
	q.rules = r
	b.prune(name)
}

// Put takes over a unit as it is now; one that is Gone leaves.
func (b *Book) Put(u Unit) {
	before, known := b.units[u.Key.Path]
	if known && before == u {
		return
	}
	if known {
		b.drop(before)
		if q := b.queues[before.Queue]; q != nil && q.rules != (Rules{}) {
			n := b.note(before.Queue, q)
			n.Freed = n.Freed || before.holding() > u.holdingIn(before.Queue)
		}
	}
	if u.Standing == Gone {
		return
	}
	if b.units == nil {
		b.units = map[string]Unit{}
	}
	b.units[u.Key.Path] = u
	q := b.queue(u.Queue)
	if q.rules != (Rules{}) {
		b.note(u.Queue, q)
	}
	q.units++
	if u.Standing.holds() {
		q.count.Running += u.Members
	} else {
		q.count.Waiting += u.Members
	}
	if u.Standing.waits() {
		q.waiting.Insert(u.Key, queue.Unit{})
	}
	if q.rules.Strict && u.Standing.blocks() {
		q.line.Insert(u.Key, queue.Unit{})
	}
}

func (b *Book) drop(u Unit) {
	delete(b.units, u.Key.Path)
	q := b.queues[u.Queue]
	if q.rules != (Rules{}) {
		b.note(u.Queue, q) // the head is the one before
	}
	q.units--
	if u.Standing.holds() {
		q.count.Running -= u.Members
	} else {
		q.count.Waiting -= u.Members
	}
	if e := q.waiting.Find(u.Key); e != nil {
		q.waiting.Delete(e)
	}
	if e := q.line.Find(u.Key); e != nil {
		q.line.Delete(e)
	}
	b.prune(u.Queue)
}

// Count counts the members of a queue.
func (b *Book) Count(name string) Count {
	if q := b.queues[name]; q != nil {
		return q.count
	}
	return Count{}
}

// Has reports whether a unit names the queue.
func (b *Book) Has(name string) bool {
	q := b.queues[name]
	return q != nil && q.units > 0
}

// Named are the queues that units name, ascending.
func (b *Book) Named() []string {
	var names []string
	for name, q := range b.queues {
		if q.units > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Waiting are the paths of the units of a queue that have no place, in order.
func (b *Book) Waiting(name string) []string {
	q := b.queues[name]
	if q == nil {
		return nil
	}
	paths := make([]string, 0, q.waiting.Len())
	for e := range q.waiting.All() {
		paths = append(paths, e.Key().Path)
	}
	return paths
}

// Position is a unit's place among the units of its queue that have no place, 1 for the
// first; 0 where it is none of them. The members of a group have one place.
func (b *Book) Position(name string, k queue.Key) int {
	q := b.queues[name]
	if q == nil {
		return 0
	}
	e := q.waiting.Find(k)
	if e == nil {
		return 0
	}
	at := e.Position()
	for at > 0 && q.waiting.At(at-1).Key().ArrivedWith(k) {
		at--
	}
	return at + 1
}

// TakeNews returns the queues that have changed, by name, and forgets their news.
func (b *Book) TakeNews() []News {
	if len(b.news) == 0 {
		return nil
	}
	all := make([]News, 0, len(b.news))
	for _, name := range slices.Sorted(maps.Keys(b.news)) {
		all = append(all, *b.news[name])
	}
	clear(b.news)
	return all
}

// HasNews reports whether TakeNews has something.
func (b *Book) HasNews() bool { return len(b.news) > 0 }
