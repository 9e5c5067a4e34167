package follow

import (
	"time"

	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/resource"
)

// Bounds of the history of changes, of each kind.
const (
	mostEvents     = 20_000
	mostEventBytes = 48 << 20
	// keepHistory is how long a history is kept that nobody watches: who has lost
	// a watch is back by then.
	keepHistory = 5 * time.Minute
)

// feeds are the watches of a follower, by what they watch. The follower's lock
// guards them.
type feeds struct {
	records bool // the cache keeps a history
	watches map[feed]map[*Watch]struct{}
	open    int
	needed  time.Time // when the history was needed last, while no watch is open
	// generation counts the loads: a place in the history of an earlier one means
	// nothing.
	generation uint64
}

// feed is the changes of one kind in one namespace, "" being all.
type feed struct {
	kind      objects.Kind
	namespace string
}

func newFeeds() feeds { return feeds{watches: map[feed]map[*Watch]struct{}{}} }

// idle reports whether a history is kept that nobody has needed for a while.
func (f *feeds) idle(now time.Time) bool {
	return f.records && f.open == 0 && now.Sub(f.needed) > keepHistory
}

// add opens a watch.
func (f *feeds) add(w *Watch) {
	on := feed{w.kind, w.namespace}
	if f.watches[on] == nil {
		f.watches[on] = map[*Watch]struct{}{}
	}
	f.watches[on][w] = struct{}{}
	f.open++
}

// remove closes a watch; one that is closed already stays so.
func (f *feeds) remove(w *Watch, now time.Time) {
	on := feed{w.kind, w.namespace}
	if _, open := f.watches[on][w]; !open {
		return
	}
	delete(f.watches[on], w)
	if len(f.watches[on]) == 0 {
		delete(f.watches, on)
	}
	f.open--
	f.needed = now
}

// publish wakes the watches of the objects that have changed at a revision.
func (f *feeds) publish(c *objects.Cache, at resource.Revision) {
	h := c.History()
	if h == nil {
		return
	}
	var last feed
	for i, e := range h.Newest(at) {
		on := feed{e.Kind, e.Namespace}
		if i > 0 && on == last {
			continue
		}
		last = on
		f.wake(on)
		if on.namespace != "" {
			f.wake(feed{e.Kind, ""})
		}
	}
}

func (f *feeds) wake(on feed) {
	for w := range f.watches[on] {
		w.signal()
	}
}

// reloaded begins a new history: each watch goes on from its place by the store.
func (f *feeds) reloaded() {
	f.generation++
	f.records = false
	for on := range f.watches {
		f.wake(on)
	}
}

// end ends all watches.
func (f *feeds) end(why error) {
	for on, watches := range f.watches {
		for w := range watches {
			w.ended = why
		}
		f.wake(on)
	}
}
