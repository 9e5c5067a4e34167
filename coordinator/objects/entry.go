package objects

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// entry is an object in a table. It never changes: an object that changes gets
// another entry, so a View keeps its entries without a lock.
//
// An object has two parts. The base follows from the object's own keys, and has
// a resourceVersion. The figures follow from the keys of other objects: the
// place in the queue, the use of a quota, the free part of a node. They change
// with every allocation of somebody else, so they are computed for each reader
// and make no event (DECISIONS D12).
type entry interface {
	// base returns the object without figures, as the caller's own copy.
	base() any
	// figures sets the figures in an object that base returned.
	figures(object any, v *View)
	// size estimates the memory of the object, in bytes.
	size() int
}

// memberEntry is an allocation.
type memberEntry struct {
	shown.Member
	key queue.Key
	// together counts the running members of the group, this one included.
	together int
}

func (e *memberEntry) base() any {
	m := e.Member
	return m.Show()
}

func (e *memberEntry) figures(object any, v *View) {
	if e.Phase() == api.Pending {
		object.(*api.Allocation).Status.QueuePosition = v.queuePosition(e.Record.Queue, e.key)
	}
	m := e.Member
	m.Together = e.together
	m.ShowGang(&object.(*api.Allocation).Status)
}

// jobEntry is a job. first is the place of its first unit that waits, the zero
// value for none.
type jobEntry struct {
	shown.Job
	first queue.Key
	line  string // the queue of that unit
}

func (e *jobEntry) base() any {
	j := e.Job
	return j.Show()
}

func (e *jobEntry) figures(object any, v *View) {
	if e.first.Path != "" {
		object.(*api.Job).Status.QueuePosition = v.queuePosition(e.line, e.first)
	}
	j := e.Job
	j.UseOf = v.useOf
	j.ShowUses(&object.(*api.Job).Status)
}

// useOf is the last measured use of a member that its node has reported, nil for none.
func (v *View) useOf(node resource.NodeID, tx resource.TxID, member int) *record.Use {
	e, found := at[*nodeEntry](v, Name{Nodes, "", string(node)})
	if !found {
		return nil
	}
	return e.node.Told.UseOf(tx, member)
}

// nodeEntry is a node and the shares that transactions hold there.
type nodeEntry struct {
	node   *shown.Node
	shares []*share
}

func (e *nodeEntry) base() any {
	n := *e.node
	o := n.Show()
	o.Status.Available = nil
	return o
}

// figures are the free part of a node, the holders of the rest, and the conditions that
// pass with time.
func (e *nodeEntry) figures(object any, v *View) {
	n := e.show(v.now)
	full := n.Show()
	s := &object.(*api.Node).Status
	s.Available, s.Allocations, s.Conditions = full.Status.Available, full.Status.Allocations, full.Status.Conditions
	s.NUMANodes, s.Devices = full.Status.NUMANodes, full.Status.Devices
}

// show makes the shown value of a node, with the transactions that hold a share
// there.
func (e *nodeEntry) show(now time.Time) shown.Node {
	s := *e.node
	s.Now = now
	for _, h := range e.shares {
		for _, m := range h.members {
			s.Allocations = append(s.Allocations, h.of.unit.record.Namespace+"/"+h.of.unit.MemberName(m.Member))
			s.Held = append(s.Held, m.Assignment)
		}
	}
	return s
}

// quotaEntry is a resource quota and its use.
type quotaEntry struct {
	shown.ResourceQuota
}

func (e *quotaEntry) base() any {
	q := e.Object
	return &q
}

func (e *quotaEntry) figures(object any, _ *View) {
	object.(*api.ResourceQuota).Status = e.Show().Status
}

// forestEntry is a quota forest.
type forestEntry struct {
	shown.Versioned[api.QuotaForest]
}

func (e *forestEntry) base() any          { return e.Copy() }
func (e *forestEntry) figures(any, *View) {}

// bindingEntry is a quota binding.
type bindingEntry struct {
	shown.Versioned[api.QuotaBinding]
}

func (e *bindingEntry) base() any          { return e.Copy() }
func (e *bindingEntry) figures(any, *View) {}

func (e *memberEntry) size() int {
	if e.Document == nil {
		return 3 << 10 // that of a job is shared
	}
	return 3<<10 + 2*len(e.Record.Document)
}

func (e *jobEntry) size() int     { return 4<<10 + 2*len(e.Record.Document) + 512*len(e.Units) }
func (e *nodeEntry) size() int    { return 8<<10 + 8*len(e.shares) }
func (e *quotaEntry) size() int   { return 4 << 10 }
func (e *forestEntry) size() int  { return 2 << 10 }
func (e *bindingEntry) size() int { return 2 << 10 }
