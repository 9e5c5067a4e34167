package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/hosts"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// node is the leader's view of one host.
//
// Invariant: view.Free is the host's amounts less every reservation that is
// taken.
type node struct {
	view cluster.Node
	// state is the State that the view is of, and changes the view.
	state     *cluster.State
	occupancy *occupancyNews // of the leader
	// spec is the specification in the store; specRev is its mod revision.
	spec    record.NodeSpec
	specRev resource.Revision

	connected    bool
	incarnation  resource.Incarnation
	revision     resource.Revision // of the registration; 0 = not registered
	host         grant.Host
	reservations map[resource.TxID]*reservation
	mirror       hosts.Mirror
	health       map[int]grant.DeviceHealth // by index; devices that are ok are left out
	// kubeletPool is the operators' part of the kubelet's pool that the agent follows.
	kubeletPool    grant.KubeletPool
	withheld       uint64              // the bit of each device beyond the bounds, see withholding
	conflicts      []registry.Conflict // resources that the node declares otherwise than others
	diskFull       bool
	memoryPressure bool
	fence          *fence      // nil: its incarnation may be counted on
	ban            *record.Ban // nil: it is not banned
	unheard        bool        // its lease is over
	assumption     assumption  // the leader's
	// quarantine is the reason why the agent makes no promises and obeys no
	// command, "" outside quarantine: isolated by the agent, outdated by the
	// registration, held by a reconciliation. grants is the agent's last report of
	// grants, told counts the reports, and known: that report was complete.
	quarantine, isolated, outdated, held string
	rejoins                              bool // with the next report of all grants

	grants map[resource.TxID]grant.Grant
	told   uint64
	known  bool
	// accused is the reason for the node's isolation, until the store has the
	// reason.
	accused  *record.Violation
	accusing bool // it is being written
	breaker  breaker.Breaker
	loud     time.Time // until then it is the last choice, see LoudBreak
	stream   uint64    // how many streams to its agent have begun
	// learning: its specification is being read; learnAgain: it is to be read
	// once more after that.
	learning, learnAgain bool
	// unanswered: an event of the agent had no answer, because of the rate limit.
	// The agent is asked for all its grants later.
	unanswered                   bool
	logs, answered, ended, woken pace.Bucket
	leased                       bool              // its lease lives, as far as the store has been followed
	lease                        record.LeaseID    // likewise; 0 for none
	identity                     resource.Revision // of the registration in the store, likewise; 0 for none
	// wakes: an event of the agent would have woken waiting units, and the rate
	// limit prevented that. The leader wakes them later.
	wakes bool
	said  said
	// observed is the leader's observation for readers.
	observed observed
	// lost are the held devices that are lost, as readers have them.
	lost hosts.LostKey
	// changes are operators' changes. The first is under way and the others wait,
	// because each compares the revision that its predecessor writes.
	changes []func()
	admitted
}

func newNode(id resource.NodeID, state *cluster.State, occupancy *occupancyNews) *node {
	n := &node{view: cluster.Node{ID: id}, state: state, occupancy: occupancy, reservations: map[resource.TxID]*reservation{}, mirror: hosts.Mirror{Prints: map[resource.TxID]uint64{}}}
	state.Insert(&n.view)
	n.admit()
	return n
}

// setHost sets the host's hardware and rebuilds the free amounts, which depend
// on the hardware.
func (n *node) setHost(h grant.Host, host *fit.Host, out *post.Post) {
	n.host = h
	n.withheld = 0 // it was chosen of other devices, perhaps
	n.state.Reset(&n.view, host, n.closedDevices())
	n.rebuild(out)
	n.compareOffer()
}

// applyHealth marks the devices that take no new work.
func (n *node) applyHealth() {
	if n.view.Free != nil {
		n.withheld = n.withholding()
		n.state.SetUnhealthy(&n.view, n.closedDevices())
	}
}

// unhealthy has the bit of each device set whose health lets it take no new work.
func (n *node) unhealthy() uint64 {
	var mask uint64
	for i, h := range n.health {
		if i < len(n.host.Inventory.Devices) && !h.Health.Allocatable() {
			mask |= 1 << i
		}
	}
	return mask
}

// followLimit withholds the amounts beyond the bounds, chooses the
// withheld devices anew and marks them. Every change of the free amounts that may have
// freed a device is followed by it.
func (n *node) followLimit() {
	if n.view.Free == nil {
		return
	}
	if w := n.view.Free.Withheld; n.bounds.Amounts == nil && n.withheld == 0 && w == (fit.Withheld{}) {
		return
	}
	w := n.view.Host.WithheldBeyond(n.bounds.Amounts)
	w.Unapproved = !n.unapproved.IsZero()
	n.state.SetWithheld(&n.view, w)
	n.withheld = n.withholding()
	if closed := n.closedDevices(); closed != n.view.Free.Unhealthy {
		n.state.SetUnhealthy(&n.view, closed)
	}
}

// closedDevices has the bit of each device set that takes no new work: it is
// unhealthy, or withheld.
func (n *node) closedDevices() uint64 { return n.unhealthy() | n.withheld }

// setSpec sets a specification, unless the node has a newer one, and reports
// whether the specification was set.
func (n *node) setSpec(spec record.NodeSpec, rev resource.Revision) bool {
	if rev <= n.specRev {
		return false
	}
	n.spec, n.specRev = spec, rev
	n.admit()
	return true
}

// cordoned reports whether the agent is to refuse new work too: an operator has
// cordoned the node, or it is isolated. Approval is the leader's matter alone.
func (n *node) cordoned() bool { return n.spec.Unschedulable || n.violation() != nil }

// setReady recomputes whether the node takes new work.
func (n *node) setReady() {
	ready := n.connected && n.registered() && n.specified() && n.view.Host != nil && !n.diskFull && !n.memoryPressure && n.quarantine == "" && n.ban == nil && n.unregistered.IsZero()
	n.state.SetReady(&n.view, ready)
	n.state.SetUnschedulable(&n.view, n.cordoned() || n.ban != nil || n.foreign)
	n.state.SetClosed(&n.view, n.closedReason())
}
