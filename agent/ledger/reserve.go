package ledger

import (
	"fmt"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// reserve answers Reserve: the present state of a known transaction, else Yes
// or Waiting if all members fit at once, else No with reasons.
func (d *decision) reserve(c *grant.Reserve) {
	g, ok := d.admit(c.Tx, c.Epoch)
	if !ok {
		return
	}
	if g != nil {
		d.reserveAgain(g, c)
		return
	}
	if err := validate(c); err != nil {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: err.Error()})
		return
	}
	if c.Registered != 0 && c.Registered != d.l.registered {
		d.refuse(resource.Reason{
			Code: resource.ReasonUnregistered, Want: int64(c.Registered), Have: int64(d.l.registered),
			Detail: fmt.Sprintf("the request is for the registration at %d, this agent is registered at %d", c.Registered, d.l.registered),
		})
		return
	}
	if d.l.isForgotten(c.Tx) { // model: mutant REPEATED_RESERVE
		d.refuse(resource.Reason{Code: resource.ReasonDecided, Detail: "a newer attempt has ended here already: this one has, or has been overtaken"})
		return
	}
	if d.l.cordoned {
		d.refuse(resource.Reason{Code: resource.ReasonCordoned, Detail: "the host takes no new work"})
	}
	if d.l.diskFull != "" {
		d.refuse(resource.Reason{Code: resource.ReasonDiskFull, Detail: d.l.diskFull})
	}
	if d.l.memory != "" {
		d.refuse(resource.Reason{Code: resource.ReasonMemoryPressure, Detail: d.l.memory})
	}
	if n := len(d.l.grants); n >= MaxGrants {
		d.refuse(resource.Reason{Code: resource.ReasonInsufficient, Detail: fmt.Sprintf("the agent keeps %d grants, at most %d", n, MaxGrants)})
	}
	if d.reply.Refused() {
		return
	}
	var victims []resource.TxID
	if len(c.After) > 0 {
		live, other := d.l.claimants(c.After)
		if other != "" {
			d.refuse(resource.Reason{Code: resource.ReasonInsufficient, Detail: "a victim is claimed by " + string(other) + " already"})
			return
		}
		victims = live
	}
	members, reasons := d.l.fitAll(c.Members, victims)
	if len(reasons) > 0 {
		d.reply.Reasons = reasons
		return
	}
	state := grant.Reserved
	if len(victims) > 0 { // model: mutant YES_FOR_WAITING
		state = grant.Waiting
	}
	d.emit(Granted{Grant{
		Tx: c.Tx, Unit: c.Unit, Epoch: c.Epoch, Origin: OriginTxn, State: state, Members: members, Victims: victims,
		Since: d.now, TTL: c.TTL, Deadline: d.now.Add(c.TTL), Name: c.Name, Tenant: c.Tenant,
		UnitMembers: c.UnitMembers,
	}})
	d.become(state, members)
}

// reserveAgain answers a repeated Reserve. It renews a Waiting grant's
// patience, and lets a newer leader adopt a grant that waits or waited.
func (d *decision) reserveAgain(g *entry, c *grant.Reserve) {
	switch {
	case g.State == grant.Tombstone:
		d.refuse(resource.Reason{Code: resource.ReasonDecided, Detail: "the transaction has ended here"})
	case c.TTL <= 0:
	case g.State == grant.Waiting || g.State == grant.Reserved && g.WasWaiting && c.Epoch > g.Epoch:
		if deadline := d.now.Add(c.TTL); c.Epoch > g.Epoch || deadline.After(g.Deadline) {
			d.emit(Renewed{g.Tx, max(c.Epoch, g.Epoch), deadline})
		}
	}
}

// validate names the first broken rule of a Reserve.
func validate(c *grant.Reserve) error {
	switch {
	case c.Tx == "" || len(c.Tx) > MaxText:
		return fmt.Errorf("tx: %d bytes are outside 1..%d", len(c.Tx), MaxText)
	case len(c.Unit) > MaxText:
		return fmt.Errorf("unit: %d bytes are more than %d", len(c.Unit), MaxText)
	case len(c.Name) > MaxName:
		return fmt.Errorf("name: %d bytes are more than %d", len(c.Name), MaxName)
	case len(c.Tenant) > MaxText:
		return fmt.Errorf("tenant: %d bytes are more than %d", len(c.Tenant), MaxText)
	case c.TTL <= 0:
		return fmt.Errorf("ttl: %s is not positive", c.TTL)
	case len(c.Members) == 0 || len(c.Members) > MaxMembers:
		return fmt.Errorf("members: %d are outside 1..%d", len(c.Members), MaxMembers)
	case len(c.After) > MaxVictims:
		return fmt.Errorf("after: %d victims are more than %d", len(c.After), MaxVictims)
	}
	if c.UnitMembers < 0 || c.UnitMembers > MaxUnitMembers {
		return fmt.Errorf("members of the unit: %d are outside 0..%d", c.UnitMembers, MaxUnitMembers)
	}
	last := -1
	for i, m := range c.Members {
		if m.Index <= last {
			return fmt.Errorf("members[%d].member: %d is less than %d (members ascend from 0)", i, m.Index, last+1)
		}
		last = m.Index
		if err := m.Request.Validate(); err != nil {
			return fmt.Errorf("members[%d].request: %w", i, err)
		}
	}
	if c.UnitMembers > 0 && last >= c.UnitMembers {
		return fmt.Errorf("member %d: the unit has %d members", last, c.UnitMembers)
	}
	return nil
}

// fitAll finds room for all members as if the victims were gone, or returns the
// reason why there is none.
func (l *Ledger) fitAll(requests []grant.MemberRequest, victims []resource.TxID) ([]Holding, []resource.Reason) {
	own := &l.own
	if len(requests) > 1 || len(victims) > 0 {
		own = &l.scratch
		own.copyFrom(&l.own)
	}
	for _, v := range victims {
		for _, m := range l.grants[v].Members {
			own.give(&m.Assignment)
		}
	}
	members := make([]Holding, len(requests))
	for i := range requests {
		r := &requests[i]
		if !l.fitOne(own.free, r) {
			return nil, l.explain(own.free, r, i, len(requests))
		}
		members[i] = Holding{r.Index, r.Request, compact(&l.assignment)}
		if i+1 == len(requests) {
			break
		}
		if err := own.take(&l.assignment); err != nil {
			panic(fmt.Sprintf("ledger: fit chose for member %d what is not free: %v", r.Index, err))
		}
	}
	return members, nil
}

// compact copies the scratch assignment; empty lists become nil, as they are
// when read back from the journal.
func compact(a *resource.Assignment) resource.Assignment {
	return resource.Assignment{
		CPUs: exact(a.CPUs), Memory: exact(a.Memory), Hugepages: exact(a.Hugepages), GPUs: exact(a.GPUs), MIG: exact(a.MIG), Counts: exact(a.Counts),
	}
}

func exact[E any](list []E) []E {
	if len(list) == 0 {
		return nil
	}
	c := make([]E, len(list))
	copy(c, list)
	return c
}

// fitOne leaves its choice in l.assignment.
func (l *Ledger) fitOne(free *fit.Free, r *grant.MemberRequest) bool {
	if len(r.PinnedGPUs) > 0 {
		return l.places.host.Pinned(free, r.Request, r.PinnedGPUs, &l.assignment)
	}
	return l.places.host.Assign(free, r.Request, &l.assignment)
}

// explain returns the reason why member i of n does not fit after those before
// it.
func (l *Ledger) explain(free *fit.Free, r *grant.MemberRequest, i, n int) []resource.Reason {
	var reasons []resource.Reason
	if len(r.PinnedGPUs) > 0 {
		reasons = l.places.host.ExplainPinned(free, r.Request, r.PinnedGPUs)
	} else {
		reasons = l.places.host.Explain(free, r.Request)
	}
	if len(reasons) == 0 {
		panic(fmt.Sprintf("ledger: fit refuses %+v and gives no reason", r.Request))
	}
	if i > 0 {
		for k := range reasons {
			reasons[k].Detail = joinDetail(reasons[k].Detail, fmt.Sprintf("member %d, with %d of %d members of this host placed", r.Index, i, n))
		}
	}
	return reasons
}

func joinDetail(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
