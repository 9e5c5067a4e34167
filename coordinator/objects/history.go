package objects

import (
	"sort"

	"github.com/musterd/muster/resource"
)

// Limits bound the history of one kind.
type Limits struct {
	Events int
	Bytes  int
}

// History is the newest events of each kind, oldest first. It begins at a
// revision, and loses its oldest events where it is full.
//
// Invariant: the events of a kind are in the order of their ids and of their
// numbers (seq); the events of a namespace are those of the kind in that
// namespace that are still kept.
type History struct {
	limits Limits
	last   uint64 // number of the newest event
	rings  [kinds]ring
}

// ring is the kept events of one kind.
type ring struct {
	floor      ID // every event after it is kept
	all        stream
	namespaces map[string]*stream
	bytes      int
}

// stream is the kept events of one kind in one namespace, or in all.
type stream struct {
	events  []*Event
	dropped uint64 // number of the newest event that is kept no more
}

// Record begins a history at a revision of the cache, unless there is one.
func (c *Cache) Record(at resource.Revision, l Limits) {
	if c.history != nil {
		return
	}
	c.history = &History{limits: l}
	for k := range c.history.rings {
		c.history.rings[k] = ring{floor: AllOf(at), namespaces: map[string]*stream{}}
	}
}

// Forget ends the history.
func (c *Cache) Forget() { c.history = nil }

// History is the cache's history, nil where none is kept.
func (c *Cache) History() *History { return c.history }

// add keeps an event, and drops the oldest ones of its kind beyond the limits.
func (h *History) add(e *Event) {
	h.last++
	e.seq = h.last
	r := &h.rings[e.Kind]
	r.all.events = append(r.all.events, e)
	r.bytes += e.bytes()
	in := r.namespaces[e.Namespace]
	if in == nil {
		in = new(stream)
		r.namespaces[e.Namespace] = in
	}
	in.events = append(in.events, e)
	for len(r.all.events) > max(1, h.limits.Events) || r.bytes > h.limits.Bytes && len(r.all.events) > 1 {
		oldest := r.all.events[0]
		r.all.drop()
		r.namespaces[oldest.Namespace].drop()
		r.bytes -= oldest.bytes()
		r.floor = oldest.ID
	}
}

// drop forgets the oldest event.
func (s *stream) drop() {
	s.dropped = s.events[0].seq
	s.events[0] = nil
	s.events = s.events[1:]
}

// of is the events of a kind in a namespace, "" being all; nil where there was
// none yet.
func (h *History) of(k Kind, namespace string) *stream {
	if namespace == "" {
		return &h.rings[k].all
	}
	return h.rings[k].namespaces[namespace]
}

// Cursor is a reader's place in the events of a kind in a namespace. The zero
// value is of no use: Since makes one.
type Cursor struct {
	kind      Kind
	namespace string
	seen      uint64 // number of the newest event that the reader has, or passes over
}

// Since is the place behind an id; false where events after it are kept no more.
func (h *History) Since(k Kind, namespace string, after ID) (Cursor, bool) {
	r := &h.rings[k]
	if after.Compare(r.floor) < 0 {
		return Cursor{}, false
	}
	c := Cursor{kind: k, namespace: namespace, seen: h.last}
	at := sort.Search(len(r.all.events), func(i int) bool { return r.all.events[i].ID.Compare(after) > 0 })
	if at < len(r.all.events) {
		c.seen = r.all.events[at].seq - 1
	}
	return c, true
}

// Next returns the events among the next most changes behind the reader's place,
// and the place behind these: the id of the last one, or seen, where the reader
// has everything. It is false where the reader is too late: changes are kept no
// more. The figures of objects that nobody has read yet are those of a view.
func (h *History) Next(c Cursor, most int, v *View) (events []*Event, next Cursor, behind ID, kept bool) {
	s := h.of(c.kind, c.namespace)
	if s == nil {
		c.seen = h.last
		return nil, c, AllOf(v.revision), true
	}
	if c.seen < s.dropped {
		return nil, c, ID{}, false
	}
	from := sort.Search(len(s.events), func(i int) bool { return s.events[i].seq > c.seen })
	to := min(len(s.events), from+most)
	if c.seen, behind = h.last, AllOf(v.revision); to < len(s.events) {
		c.seen, behind = s.events[to-1].seq, s.events[to-1].ID
	}
	for _, e := range s.events[from:to] {
		if e.render(v); e.Type != "" {
			events = append(events, e)
		}
	}
	return events, c, behind, true
}

// Newest returns the changes of one revision, where the history keeps none after
// it. They are not rendered.
func (h *History) Newest(at resource.Revision) []*Event {
	var events []*Event
	for k := range h.rings {
		all := h.rings[k].all.events
		from := len(all)
		for from > 0 && all[from-1].ID.Revision == at {
			from--
		}
		events = append(events, all[from:]...)
	}
	return events
}
