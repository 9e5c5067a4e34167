package invariant

import (
	"maps"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Host is what a harness shows of one machine at one moment. A harness gives the
// fields that it has facts for (Rest, Moments, Workloads, Hardware).
type Host struct {
	Node resource.NodeID
	// Agent is nil while there is no process.
	Agent *Agent
	// Devices are the UUIDs of the present cards.
	Devices   []string
	Workloads []Workload
	// Remains are processes that have outlived their workload.
	Remains []Remain
}

// Agent is one process of an agent, and what its ledger holds.
type Agent struct {
	Incarnation resource.Incarnation
	Registered  bool // since it lost its memory
	Quarantined bool
	// Grants are all, tombstones included.
	Grants []ledger.Grant
	// Problem is what the ledger's own check finds.
	Problem error
}

// Workload is what runs for a transaction.
type Workload struct {
	Tx          resource.TxID
	Assignments []resource.Assignment
}

// Remain is a process on a device, left behind by a transaction.
type Remain struct {
	Tx   resource.TxID
	UUID string
	// Excused: a record of a restored store names the device for another.
	Excused bool
}

// lookup finds a transaction's grant.
func (a *Agent) lookup(tx resource.TxID) (ledger.Grant, bool) {
	i := slices.IndexFunc(a.Grants, func(g ledger.Grant) bool { return g.Tx == tx })
	if i < 0 {
		return ledger.Grant{}, false
	}
	return a.Grants[i], true
}

// runs reports whether a transaction's workload runs.
func (h Host) runs(tx resource.TxID) bool {
	return slices.ContainsFunc(h.Workloads, func(w Workload) bool { return w.Tx == tx })
}

// LeaveOut says that the agent of a node lies. What it says, and what it keeps of
// its promises, is not checked; all that concerns others is.
func (c *Checker) LeaveOut(node resource.NodeID) { c.omitted[node] = true }

// Loss is what a host has lost of its disk while its machine ran on.
type Loss uint8

// The losses.
const (
	// LostTail: records that were not synced.
	LostTail Loss = 1 + iota
	// LostRecords: synced records.
	LostRecords
)

// Lost says that a host has lost records.
func (c *Checker) Lost(node resource.NodeID, l Loss) { c.lost[node] = max(c.lost[node], l) }

// Observe takes a host as it is now.
func (c *Checker) Observe(h Host) []Violation {
	c.hosts[h.Node] = h
	if h.Agent == nil || c.omitted[h.Node] {
		return c.taken()
	}
	if h.Agent.Problem != nil {
		c.report(of(I1Ledger, h.Node), "%s: %v", h.Node, h.Agent.Problem)
	}
	s := c.shares(I1Grants, string(h.Node)+" hands out")
	for _, g := range h.Agent.Grants {
		if g.State.Holds() {
			for _, m := range g.Members {
				s.add(g.Tx, h.Node, m.Assignment)
			}
		}
	}
	c.checkFreed(h)
	return c.taken()
}

// checkFreed checks that an agent does not hold again what it has freed, before
// the record has ended. That charges end once is I11.
func (c *Checker) checkFreed(h Host) {
	freed := c.freed[h.Node]
	if len(freed) == 0 || c.lost[h.Node] == LostRecords || !h.Agent.Registered {
		return
	}
	for _, g := range h.Agent.Grants {
		if !freed[g.Tx] || !g.State.Holds() {
			continue
		}
		if state := c.state.decided[g.Tx]; state.Charged() || g.State != grant.Reserved {
			c.report(of(I5Freed, string(h.Node), string(g.Tx)), "%s freed %s, which is %q, and has it in %s", h.Node, g.Tx, state, g.State)
		}
	}
}

// Moment checks what must agree between the store and the hosts at every moment.
// All hosts have been observed since they changed.
func (c *Checker) Moment() []Violation {
	for _, node := range slices.Sorted(maps.Keys(c.hosts)) {
		if !c.omitted[node] {
			c.checkWorkloads(c.hosts[node])
		}
	}
	for tx, r := range c.live() {
		if r.State == grant.RecordCommitted && !c.back[tx] {
			c.checkProtected(tx, r)
		}
	}
	return c.taken()
}

// checkProtected checks that every member of a COMMITTED record is protected by
// its agent, unless that is down or has not registered since it lost its memory.
func (c *Checker) checkProtected(tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		a := c.hosts[m.Node].Agent
		if a == nil || !a.Registered || c.omitted[m.Node] {
			continue
		}
		g, _ := a.lookup(tx)
		if g.State != grant.Reserved && g.State != grant.Held && g.State != grant.Evicting {
			c.report(of(I3Protected, string(tx), string(m.Node)), "%s is COMMITTED and %s on %s", tx, g.State, m.Node)
			return
		}
		i := slices.IndexFunc(g.Members, func(x ledger.Holding) bool { return x.Index == m.Member })
		if i < 0 || !sameThings(g.Members[i].Assignment, m.Assignment) {
			c.report(of(I3Protected, string(tx), string(m.Node)), "%s is COMMITTED and member %d has other things on %s", tx, m.Member, m.Node)
			return
		}
	}
}

// sameThings compares assignments. Cards are told by their UUIDs: their indices
// change when others come and go.
func sameThings(a, b resource.Assignment) bool {
	return maps.Equal(devices(a), devices(b)) && slices.Equal(a.CPUs, b.CPUs) && slices.Equal(a.Memory, b.Memory) && slices.Equal(a.Hugepages, b.Hugepages) &&
		slices.Equal(a.Counts, b.Counts)
}

// devices are the devices and MIG instances of an assignment, in milli.
func devices(a resource.Assignment) map[string]int64 {
	all := map[string]int64{}
	for _, g := range a.GPUs {
		all[g.UUID] += int64(g.Milli)
	}
	for _, g := range a.MIG {
		all[g.UUID] += whole
	}
	return all
}
