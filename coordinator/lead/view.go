package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// view is the cluster as the leader knows it and decides by it: loaded from the
// store's keys, and kept up to date by what it does and hears. Nobody else has
// one.
//
// Invariant: state has the views of nodes and no others.
type view struct {
	// floor is a revision that no list is older than.
	floor resource.Revision

	nodes map[resource.NodeID]*node
	state *cluster.State
	// occupancy names the occupants of state that are out of date.
	occupancy *occupancyNews
	work      work.Register
	learner   place.Learner // of the mix of work that has arrived
	ports     portHolders
	// lostHolds are the live transactions that have lost members on a node whose agent has not
	// told yet that it holds nothing of them.
	lostHolds map[resource.NodeID]map[resource.TxID]bool
	room      *sched.Room // of the waiting units
	queues    rule.Book   // the named queues
	quotas    *charges.Book
	spaces    *spaces
	objects   *edit.Objects
	declared  declarations
}

func newView(r *Rules, floor resource.Revision, now time.Time) view {
	return view{
		floor: floor, work: work.NewRegister(r.PreemptionPolicy), state: &cluster.State{}, occupancy: &occupancyNews{}, nodes: map[resource.NodeID]*node{},
		lostHolds: map[resource.NodeID]map[resource.TxID]bool{}, quotas: charges.New(r.Quota, now), room: sched.NewRoom(), spaces: newSpaces(), objects: edit.New(),
	}
}

// node returns the view of a node, made on first sight.
func (v *view) node(id resource.NodeID) *node {
	n := v.nodes[id]
	if n == nil {
		n = newNode(id, v.state, v.occupancy)
		v.nodes[id] = n
	}
	return n
}

// member finds an allocation as clients name it.
func (v *view) member(namespace, name string) (*work.Unit, int, *api.Status) {
	m := v.work.Members[namespace+"/"+name]
	if m == nil || m.Unit.IsHidden() {
		return nil, 0, NotFound("allocation", namespace, name)
	}
	return m.Unit, m.Index, nil
}

func NotFound(kind, namespace, name string) *api.Status {
	return api.Errorf(404, "%s %s not found in namespace %s", kind, name, namespace)
}

// removeNode takes a node out.
func (v *view) removeNode(id resource.NodeID) {
	delete(v.nodes, id)
	delete(v.lostHolds, id)
	v.declare(id)
	v.state.Remove(id)
}

// insertUnit takes a unit and its members in, and learns from them. A new leader so
// learns first from the units that the store has, in the order of their keys.
func (v *view) insertUnit(u *work.Unit) {
	v.learner.Observe(&u.Demand)
	v.work.InsertUnit(u)
}

// deleteUnit takes a unit and its members out.
func (v *view) deleteUnit(u *work.Unit) {
	v.work.DeleteUnit(u)
	v.occupancy.noteUnit(u)
}

// insertAttempt takes a transaction in that is under way or live.
func (v *view) insertAttempt(tx resource.TxID, a *work.Attempt) {
	v.work.InsertAttempt(tx, a)
	v.occupancy.noteUnit(a.Unit)
}

// deleteAttempt takes a transaction out that has ended.
func (v *view) deleteAttempt(tx resource.TxID) {
	a := v.work.DeleteAttempt(tx)
	if a == nil {
		return
	}
	v.occupancy.noteUnit(a.Unit)
	for _, m := range a.LostMembers {
		v.noteRid(tx, m.Node)
	}
}

// findJob finds a job in the loop.
func (l *Leader) findJob(namespace, name string) (*work.Job, *api.Status) {
	j := l.work.Jobs[namespace+"/"+name]
	if j == nil || j.IsHidden() {
		return nil, NotFound("job", namespace, name)
	}
	return j, nil
}

// noteLostOn notes that a node whose members a live transaction has lost has not told yet
// that it holds nothing of it.
func (v *view) noteLostOn(tx resource.TxID, node resource.NodeID) {
	if v.lostHolds[node] == nil {
		v.lostHolds[node] = map[resource.TxID]bool{}
	}
	v.lostHolds[node][tx] = true
}

// noteRid notes that a node holds nothing of a transaction.
func (v *view) noteRid(tx resource.TxID, node resource.NodeID) {
	if delete(v.lostHolds[node], tx); len(v.lostHolds[node]) == 0 {
		delete(v.lostHolds, node)
	}
}
