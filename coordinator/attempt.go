package coordinator

import (
	"time"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// attempt is one transaction for a unit.
type attempt struct {
	machine *txn.Machine
	unit    *unit
	// charges are what the record carries.
	charges []record.Charge
	// adrift: not charged to a tree as the record says, because the tree does
	// not have the group, or nothing at all.
	adrift bool
	// requests per node, for Reserve and its repetition.
	requests map[resource.NodeID][]agents.MemberRequest
	// asked is, by node, the stream on which Reserve was first sent; 0 where it
	// was another leader's.
	asked  map[resource.NodeID]uint64
	failed map[resource.NodeID]fault // nodes that failed it
	late   map[resource.NodeID]bool  // nodes that had not voted in good time
	budget *alarm
	// victims end for this one, in the order of their transactions; claims:
	// their quota is what it takes. noticed is when they were given notice.
	victims []*attempt
	claims  bool
	// prey is the preemption whose victim this one was chosen to be.
	prey    *attempt
	noticed time.Time
	// notice is the eviction that ends this one, by the preemptor's, if any.
	notice *txn.EvictAsked
	by     resource.TxID
	// lost: it ends because a node of its is confirmed dead. presumed are the
	// nodes that count as freed for that reason alone.
	lost bool
	// unheard are those of the Txn to RELEASED that was sent last.
	presumed map[resource.NodeID]bool
	unheard  []resource.NodeID
	// closing is what becomes of the unit at RELEASED, once a Txn to it was
	// sent.
	closing   *unitEnd
	committed resource.Revision // of the commit
	// begun is when Reserve was sent, voted when the last Yes came.
	begun, voted time.Time
	places       []placement // of the members, once they have been shown
	// held are the nodes whose agents hold their members.
	held map[resource.NodeID]bool
}

// fail notes that a node has failed an attempt; the first fault counts.
func (a *attempt) fail(id resource.NodeID, f fault) {
	if a.failed == nil {
		a.failed = map[resource.NodeID]fault{}
	}
	if a.failed[id] == "" {
		a.failed[id] = f
	}
}
