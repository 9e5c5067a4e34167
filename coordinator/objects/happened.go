package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// eventEntry is an event of the cache's log.
type eventEntry struct {
	*events.Event
	source string
}

func (e *eventEntry) base() any          { return e.Show(e.source) }
func (e *eventEntry) figures(any, *View) {}
func (e *eventEntry) size() int          { return e.Bytes() }

// KeepEvents has the cache keep a log of the events of its objects, in the name of a
// coordinator. It is called once, when the cache has all objects of a revision: the
// log then has the events of which they have the instants.
func (c *Cache) KeepEvents(log *events.Log, source string, at resource.Revision, now time.Time) {
	c.events, c.source = log, source
	for e := range log.All() {
		c.setEvent(e)
	}
	var all []events.Told
	for kind := range QuotaForests {
		c.tables[kind].Scan(func(position string, e entry) bool {
			if t := c.tell(kind, nil, e); len(t.Happenings) > 0 {
				all = append(all, t)
			}
			return true
		})
	}
	for i, e := range c.takeEvents(log.Begin(all, now)) {
		e.Revision, e.Index = at, i
	}
	c.view = nil
}

// ExpireEvents drops the events that are too old.
func (c *Cache) ExpireEvents(now time.Time) {
	if c.events == nil {
		return
	}
	if dropped := c.events.Expire(now); len(dropped) > 0 {
		c.takeEvents(events.Changes{Dropped: dropped})
		c.view = nil
	}
}

// happened derives the events of a change of an object. index counts the events of
// the revision, in the order of the objects' names: every coordinator counts alike.
func (c *Cache) happened(kind Kind, before, after entry, at resource.Revision, now time.Time, index *int) {
	if c.events == nil || before != nil && after != nil && isSame(before, after) {
		return
	}
	t := c.tell(kind, before, after)
	if len(t.Happenings) == 0 {
		return
	}
	changes := c.events.Take(t, now)
	for _, e := range changes.Put {
		e.Revision, e.Index = at, *index
		*index++
	}
	was := make([]entry, len(changes.Put))
	for i, e := range changes.Put {
		was[i] = c.setEvent(e)
	}
	c.dropEvents(changes.Dropped)
	if c.history == nil {
		return
	}
	for i, e := range changes.Put {
		c.history.add(&Event{Name: nameOf(e), ID: ID{at, e.Index}, before: was[i], after: &eventEntry{e, c.source}})
	}
}

// nameOf is the name of an event.
func nameOf(e *events.Event) Name { return Name{Events, e.Namespace, e.Name()} }

// takeEvents puts changes of the log into the table, and returns the events put.
func (c *Cache) takeEvents(changes events.Changes) []*events.Event {
	for _, e := range changes.Put {
		c.setEvent(e)
	}
	c.dropEvents(changes.Dropped)
	return changes.Put
}

// setEvent puts an event into the table, and returns the entry that was there.
func (c *Cache) setEvent(e *events.Event) entry {
	was, _ := c.tables[Events].Set(nameOf(e).position(), &eventEntry{e, c.source})
	return was
}

func (c *Cache) dropEvents(dropped []*events.Event) {
	for _, e := range dropped {
		c.tables[Events].Delete(nameOf(e).position())
	}
}

// isSame reports whether nothing has changed of which there are events. It is quick:
// an entry is made anew for many other reasons.
func isSame(before, after entry) bool {
	switch was := before.(type) {
	case *memberEntry:
		is := after.(*memberEntry)
		return isSameUnit(&was.Unit, &is.Unit)
	case *jobEntry:
		is := after.(*jobEntry)
		return was.Revision == is.Revision && slices.EqualFunc(was.Units, is.Units, func(a, b shown.Unit) bool { return isSameUnit(&a, &b) })
	case *nodeEntry:
		is := after.(*nodeEntry)
		return was.node == is.node && (!is.node.Spec.Unschedulable || len(was.shares) == len(is.shares))
	case *quotaEntry:
		is := after.(*quotaEntry)
		return was.Revision == is.Revision && maps.Equal(was.Used, is.Used)
	case *treeEntry:
		return was.tree == after.(*treeEntry).tree
	}
	return true
}

func isSameUnit(was, is *shown.Unit) bool {
	return was.Revision == is.Revision && was.Phase() == is.Phase() && was.Ready == is.Ready && was.Signaled == is.Signaled && was.Idle == is.Idle &&
		(was.Places == nil) == (is.Places == nil) &&
		(was.Ending.Asked == nil) == (is.Ending.Asked == nil) && (was.Ending.Notice == nil) == (is.Ending.Notice == nil) &&
		slices.EqualFunc(was.Lost, is.Lost, slices.Equal)
}

// tell derives the happenings of a change of an object; before is nil for a new
// object, after for an object that is gone.
func (c *Cache) tell(kind Kind, before, after entry) (t events.Told) {
	var meta api.ObjectMeta
	switch kind {
	case Allocations:
		was, is := c.shows.allocation(before), c.shows.allocation(after)
		meta, t.Happenings = cmp.Or(is, was).Metadata, events.OfAllocation(was, is)
		if e, there := after.(*memberEntry); there {
			endedAt(t.Happenings, e.Record.Ended)
		}
	case Jobs:
		was, is := baseOf[api.Job](before), baseOf[api.Job](after)
		meta, t.Happenings = cmp.Or(is, was).Metadata, append(events.OfJob(was, is), unitsOf(before, after)...)
		if e, there := after.(*jobEntry); there && len(e.Units) > 0 {
			endedAt(t.Happenings, e.Units[len(e.Units)-1].Record.Ended)
		}
	case Nodes:
		was, is := nodeOf(before), nodeOf(after)
		meta, t.Happenings = cmp.Or(is.Node, was.Node).Metadata, events.OfNode(was, is)
	case ResourceQuotas:
		q := cmp.Or(after, before).(*quotaEntry)
		meta, t.Happenings = q.Object.Metadata, events.OfQuota(quotaOf(before), quotaOf(after))
	case QuotaTrees:
		e := cmp.Or(after, before).(*treeEntry)
		meta, t.Happenings = e.tree.Object.Metadata, events.OfTree(treeOf(before), treeOf(after))
	default:
		return t
	}
	t.Object = events.Object{Kind: kind.String(), Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID}
	return t
}

// baseOf is an object without its figures, nil for no entry.
func baseOf[T any](e entry) *T {
	if e == nil {
		return nil
	}
	return e.base().(*T)
}

// endedAt gives the ends among happenings the instant that the unit's key has.
func endedAt(all []events.Happening, ended string) {
	for i := range all {
		if h := &all[i]; h.At == "" && api.Phase(h.Reason).Ended() {
			h.At = ended
		}
	}
}

// unitsOf derives the happenings of a job's units that have changed.
func unitsOf(before, after entry) (all []events.Happening) {
	is, there := after.(*jobEntry)
	if !there {
		return nil
	}
	was := map[int]*shown.Unit{}
	if before, there := before.(*jobEntry); there {
		for i := range before.Units {
			was[before.Units[i].Record.N] = &before.Units[i]
		}
	}
	for i := range is.Units {
		u := &is.Units[i]
		if before := was[u.Record.N]; before == nil || !isSameUnit(before, u) {
			all = append(all, events.OfUnit(unitOf(before), unitOf(u))...)
		}
	}
	return all
}

func unitOf(u *shown.Unit) (shows events.Unit) {
	if u == nil {
		return shows
	}
	m := shown.Member{Unit: *u}
	shows = events.Unit{First: u.Record.FirstMember, Members: u.Record.Members, Shown: m.Show(), Differs: u.Job != nil && len(u.Job.Spec.Members) > 1 && !u.Record.Replaces}
	for _, p := range u.Places {
		shows.Nodes = append(shows.Nodes, string(p.Node))
	}
	return shows
}

func nodeOf(e entry) (n events.Node) {
	if at, there := e.(*nodeEntry); there {
		n.Node = at.base().(*api.Node)
		for _, s := range at.shares {
			n.Held += len(s.members)
		}
	}
	return n
}

func quotaOf(e entry) (q *events.Quota) {
	if at, there := e.(*quotaEntry); there {
		q = &events.Quota{Created: at.Object.Metadata.CreationTimestamp, Hard: at.Hard, Soft: at.Soft, Used: at.Used}
		q.Scopes = fmt.Sprint(at.Object.Spec.Scopes, Encode(at.Object.Spec.ScopeSelector))
	}
	return q
}

func treeOf(e entry) (t *events.Tree) {
	if at, there := e.(*treeEntry); there {
		t = &events.Tree{Created: at.tree.Object.Metadata.CreationTimestamp, Nodes: make(map[string]events.TreeNode, len(at.tree.spec.Nodes))}
		for name, n := range at.tree.spec.Nodes {
			t.Nodes[name] = events.TreeNode{Parent: n.Parent, Hard: n.Hard, Quota: n.Quota, Limits: fmt.Sprint(n.Borrowing, n.Lending, n.Cap, n.PerOwner)}
		}
	}
	return t
}
