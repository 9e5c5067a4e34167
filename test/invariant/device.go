package invariant

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is I1: to whom devices and CPUs belong.

// shares adds up what belongs to transactions of one thing.
type shares struct {
	c    *Checker
	rule Rule
	says string // where, for the text
	by   map[thing]share
}

// thing is a device or a MIG instance by UUID, which is the cluster's, or a CPU of
// a node.
type thing struct {
	uuid string
	node resource.NodeID
	cpu  int
}

// String is the thing in the words of a violation.
func (t thing) String() string {
	if t.uuid != "" {
		return t.uuid
	}
	return fmt.Sprintf("CPU %d of %s", t.cpu, t.node)
}

type share struct {
	sum  int64
	last resource.TxID
}

func (c *Checker) shares(rule Rule, says string) *shares {
	return &shares{c, rule, says, map[thing]share{}}
}

// give adds a share in milli of 1000.
func (s *shares) give(tx resource.TxID, t thing, milli int64) {
	at := s.by[t]
	if at.sum += milli; at.sum > whole {
		v := of(s.rule, t.String(), string(at.last), string(tx))
		v.Have, v.Bound = at.sum, whole
		s.c.report(v, "%s %d milli of %s to %s and before it to %s", s.says, at.sum, t, tx, at.last)
	}
	at.last = tx
	s.by[t] = at
}

// whole is all of a device or a CPU, in milli.
const whole = int64(resource.WholeDevice)

// add gives a transaction what an assignment on a node has.
func (s *shares) add(tx resource.TxID, node resource.NodeID, a resource.Assignment) {
	for _, g := range a.GPUs {
		s.give(tx, thing{uuid: g.UUID}, int64(g.Milli))
	}
	for _, g := range a.MIG {
		s.give(tx, thing{uuid: g.UUID}, whole)
	}
	for _, p := range a.CPUs {
		s.give(tx, thing{node: node, cpu: p.ID}, int64(p.Milli))
	}
}

// checkDevices checks that COMMITTED records have nothing in common. Agents may
// have freed already what belongs to others, and to records that a restored
// store lists again.
func (c *Checker) checkDevices() {
	s := c.shares(I1Records, "the store gives")
	for tx, r := range c.live() {
		if r.State != grant.RecordCommitted || c.back[tx] {
			continue
		}
		for _, m := range r.Members {
			if !c.omitted[m.Node] {
				s.add(tx, m.Node, m.Assignment)
			}
			c.checkHardware(tx, m)
		}
	}
}

// checkHardware checks that a member has devices of its node alone.
func (c *Checker) checkHardware(tx resource.TxID, m record.Placement) {
	if _, fresh := c.before[tx]; !fresh {
		return
	}
	for _, g := range m.Assignment.GPUs {
		if !c.cards[m.Node][g.UUID] {
			c.report(of(I1Hardware, string(tx), string(m.Node), g.UUID), "%s is COMMITTED on %s with %s", tx, m.Node, g.UUID)
		}
	}
}

// Cards says which devices, by UUID, a node may have, beyond those known already.
func (c *Checker) Cards(node resource.NodeID, uuids ...string) {
	if c.cards[node] == nil {
		c.cards[node] = map[string]bool{}
	}
	for _, uuid := range uuids {
		c.cards[node][uuid] = true
	}
}

// Wants is what a client has asked for.
type Wants struct {
	Members, GPUs int // GPUs of each member
	// Alternative is the GPUs of each member by the alternative, 0 for none.
	Alternative int
	// Differs: the last member has Last GPUs in place of GPUs.
	Differs bool
	Last    int
}

// of is the GPUs of a member, and all those of all members.
func (w *Wants) of(member int) int {
	if w.Differs && member == w.Members-1 {
		return w.Last
	}
	return w.GPUs
}

func (w *Wants) all() int {
	if w.Differs {
		return (w.Members-1)*w.GPUs + w.Last
	}
	return w.Members * w.GPUs
}

// Demanded says what the client of a unit has asked for.
func (c *Checker) Demanded(unit record.UnitPath, w Wants) { c.demands[unit] = w }

// gpusOf counts the devices of all members.
func gpusOf(r record.Tx) (n int) {
	for _, m := range r.Members {
		n += len(m.Assignment.GPUs)
	}
	return n
}

// checkAlternative checks that a record has a request that its client gave, and that its
// charges are those of that request; it sets the devices of a member in w.
func (c *Checker) checkAlternative(tx resource.TxID, r record.Tx, w *Wants) {
	own := w.Alternative == 0
	switch {
	case r.Alternative == 1 && !own:
		w.GPUs = w.Alternative
	case r.Alternative == 0 && !own && c.restored && gpusOf(r) == w.Members*w.Alternative:
		// The store has lost the unit: its document is made from the devices that it holds.
		w.GPUs = w.Alternative
	case r.Alternative != 0:
		v := of(I3Demand, string(tx), r.Unit.String())
		v.Have = int64(r.Alternative)
		c.report(v, "%s is COMMITTED with alternative %d, which its client did not give", tx, r.Alternative)
	}
	if own && !w.Differs {
		return
	}
	want := int64(w.all()) * int64(resource.WholeDevice)
	for _, charge := range r.Charges {
		if have := charge.Request[resource.GPU]; have != want {
			v := of(I3Demand, string(tx), r.Unit.String())
			v.Have, v.Bound = have, want
			c.report(v, "%s is charged %d thousandths of a device to %s of %s, its members have %d", tx, have, charge.Group, charge.Tree, want)
		}
	}
}

// checkModels checks that a record which is charged to models is charged for each GPU to
// one model.
func (c *Checker) checkModels(tx resource.TxID, r record.Tx) {
	for _, charge := range r.Charges {
		var sum int64
		models := 0
		for name, amount := range charge.Request {
			if resource.IsGPUModel(name) {
				sum, models = sum+amount, models+1
			}
		}
		if all := charge.Request[resource.GPU]; models > 0 && sum != all {
			v := of(I3Demand, string(tx), r.Unit.String())
			v.Have, v.Bound = sum, all
			c.report(v, "%s is charged %d thousandths of a device to %s of %s, and %d to models", tx, all, charge.Group, charge.Tree, sum)
		}
	}
}

// checkDemand checks that a record is what its client asked for, whatever agents
// have said.
func (c *Checker) checkDemand(tx resource.TxID, r record.Tx) {
	w, known := c.demands[r.Unit]
	if u := c.state.byUID[r.UnitUID]; !known && u.Replaces {
		w, known = c.demands[c.state.byUID[u.Parent].Path()]
		w = Wants{Members: 1, GPUs: w.of(u.FirstMember), Alternative: w.Alternative, Differs: w.Differs, Last: w.of(u.FirstMember)}
	}
	if !known {
		return
	}
	c.checkAlternative(tx, r, &w)
	c.checkModels(tx, r)
	for _, m := range r.Members {
		if have := len(m.Assignment.GPUs); have != w.of(m.Member) {
			v := of(I3Demand, string(tx), string(m.Node))
			v.Have, v.Bound = int64(have), int64(w.of(m.Member))
			c.report(v, "%s is COMMITTED with %d devices for member %d, which asked for %d", tx, have, m.Member, w.of(m.Member))
		}
	}
	indices := memberIndices(r)
	once := len(slices.Compact(slices.Clone(indices))) == len(indices)
	if len(indices) != w.Members || !once || len(indices) == 0 || indices[0] != 0 || indices[len(indices)-1] != w.Members-1 {
		v := of(I3Demand, string(tx), r.Unit.String())
		v.Have, v.Bound = int64(len(indices)), int64(w.Members)
		c.report(v, "%s is COMMITTED with the members %v, which asked for %d", tx, indices, w.Members)
	}
}
