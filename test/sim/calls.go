package sim

import (
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is what any coordinator does for agents on the store: Register,
// ReadNode and Resolve, each step of them a request of its own.

// lost reports whether a call comes to nothing here: the coordinator or the
// connection to it ended.
func (s *Sim) lost() bool { return s.mishap(25) }

// record is a transaction's record as a node is to see it.
func (s *Sim) record(node resource.NodeID, tx resource.TxID) ledger.Record {
	rec, e := value[record.Tx](s.store, record.TxKey(tx))
	r := ledger.Record{Tx: tx, Revision: s.store.rev}
	if e.ModRev == 0 {
		return r
	}
	r.Unit, r.Epoch, r.Revision, r.Grace = rec.UnitUID, rec.Epoch, e.ModRev, seconds(rec.GraceSeconds)
	r.State, _ = rec.SeenBy(node)
	r.UnitMembers = len(rec.Members) + len(rec.LostMembers)
	for _, m := range rec.Members {
		if m.Node == node {
			r.Members = append(r.Members, ledger.Holding{Index: m.Member, Assignment: m.Assignment})
		}
	}
	return r
}

// call resolves one transaction, if that is not under way already.
func (a *agent) call(tx resource.TxID) {
	if a.calls[tx] || a.dead {
		return
	}
	a.calls[tx] = true
	g, _ := a.l.Lookup(tx)
	s, node, fence := a.h.sim, a.h.node, g.State == grant.Waiting || g.State == grant.Reserved
	resolved := func(r ledger.Record) { a.resolved(r, g.State) }
	if fence && s.bug == FreeWithoutFencing {
		s.reply("an expired reservation", func() { resolved(ledger.Record{Tx: tx, State: grant.RecordAborted}) })
		return
	}
	what := string(node) + " resolves " + short(tx)
	read := func(then func(ledger.Record)) {
		s.ask(what, func() func() {
			r := s.record(node, tx)
			return func() { then(r) }
		})
	}
	read(func(r ledger.Record) {
		switch {
		case s.lost():
			delete(a.calls, tx)
		case r.State != grant.RecordAbsent || !fence:
			resolved(r)
		default:
			unit, epoch, _, err := tx.Attempt()
			if err != nil {
				panic("sim: " + err.Error())
			}
			s.send(&write{
				what: what + " with a fence", compares: []record.Compare{record.Absent(record.TxKey(tx))},
				ops: []record.Op{record.Put(record.TxKey(tx), record.MustEncode(record.Tx{
					State: grant.RecordAborted, Epoch: epoch, UnitUID: unit, Reason: record.FencedFor + string(node),
				}))},
				done: func(o txn.Outcome, _ resource.Revision) {
					if o == txn.Unknown || s.lost() {
						delete(a.calls, tx)
						return
					}
					read(resolved)
				},
			})
		}
	})
}

// resolved is the end of a call that was made when the grant was in a state.
func (a *agent) resolved(r ledger.Record, asked grant.State) {
	delete(a.calls, r.Tx)
	if a.dead || a.h.sim.lost() {
		return
	}
	delete(a.unresolved, r.Tx)
	a.sure[r.Tx] = a.sure[r.Tx] || r.State == grant.RecordCommitted
	a.h.sim.logf("%s: learns that %s is %s", a.h.node, short(r.Tx), r.State)
	if reply, ok := a.do(ledger.Resolved{Tx: r.Tx, State: r.State, Revision: r.Revision, Grace: r.Grace, Asked: asked}, nil); ok {
		a.tell(replied{Reply: reply})
	}
}

// callRegister is register, read, apply, in this order.
func (a *agent) callRegister() {
	if a.calling || a.dead {
		return
	}
	s, node := a.h.sim, a.h.node
	a.calling, a.register = true, false
	heard := a.l.Heard() // before anything is asked for
	a.heard = heard
	if s.bug == RestoreUnnoticed {
		heard = 0
	}
	if s.bug == ReadBeforeRegistering {
		s.ask("the index of "+string(node), func() func() {
			listed := s.index(node)
			return func() {
				a.registerAt(func(rev, now resource.Revision) {
					a.enrol(ledger.Registered{Revision: rev, Store: now, Heard: heard, Records: listed})
				})
			}
		})
		return
	}
	a.registerAt(func(rev, now resource.Revision) {
		c := ledger.Registered{Revision: rev, Store: now, Heard: max(heard, now)}
		if s.bug == RegisterWithoutReading {
			a.enrol(c)
			return
		}
		s.ask("the index of "+string(node), func() func() {
			listed := s.index(node)
			c.Store = min(c.Store, s.store.rev)
			return func() {
				s.ask("the records of "+string(node), func() func() {
					c.Records = listed[:0:0]
					for _, r := range listed {
						if r = s.record(node, r.Tx); r.State != grant.RecordAbsent {
							c.Records = append(c.Records, r)
						}
					}
					return func() { a.enrol(c) }
				})
			}
		})
	})
}

// index lists what the store has for a node.
func (s *Sim) index(node resource.NodeID) []ledger.Record {
	var records []ledger.Record
	for _, at := range s.store.under(record.NodeTxIn(node)) {
		key, err := record.ParseNodeKey(at)
		must(err)
		records = append(records, s.record(node, key.Tx))
	}
	return records
}

// registerAt writes the registration and hands on its revision, and the store's.
func (a *agent) registerAt(then func(rev, now resource.Revision)) {
	s, node := a.h.sim, a.h.node
	s.ask("identity of "+string(node), func() func() {
		old, e := value[record.NodeIdentity](s.store, record.NodeIdentityKey(node))
		spec, specEntry := value[record.NodeSpec](s.store, record.NodeSpecKey(node))
		return func() {
			if a.dead || s.lost() {
				a.notRegistered()
				return
			}
			w := &write{
				what:     "registration of " + string(node) + " as " + a.incarnation.String(),
				compares: []record.Compare{record.ModRevIs(record.NodeIdentityKey(node), e.ModRev), record.ModRevIs(record.NodeSpecKey(node), specEntry.ModRev)},
				ops:      []record.Op{record.Put(record.NodeSpecKey(node), record.MustEncode(a.h.spec(spec)))},
			}
			same := old.Incarnation == a.incarnation && !old.Fenced
			if !same {
				w.ops = append(w.ops, record.Put(record.NodeIdentityKey(node), record.MustEncode(record.NodeIdentity{Incarnation: a.incarnation})))
			}
			w.done = func(o txn.Outcome, rev resource.Revision) {
				if o == txn.Landed {
					s.withTerm(nil, func(t *term) { t.registered(node) })
				}
				if o != txn.Landed || a.dead || s.lost() {
					a.notRegistered()
					return
				}
				now := rev
				if same {
					rev = e.ModRev
				}
				then(rev, now)
			}
			s.send(w)
		}
	})
}

// spec is what a registration writes over what operators have set. What has been
// approved is the largest that the host may be, so that no growth waits.
func (h *host) spec(stored record.NodeSpec) record.NodeSpec {
	kinds := hardware()[int(h.node[1]-'1')]
	largest := kinds[len(kinds)-1]
	hardware := grant.Host{Hostname: string(h.node), Topology: largest.Topology(), Inventory: largest.Inventory()}
	stored.Hostname, stored.Allocatable = hardware.Hostname, largest.Allocatable()
	stored.Capacity = admission.CapacityOf(hardware, stored.Allocatable)
	if h.sim.rules {
		stored.Labels = map[string]string{"kubernetes.io/hostname": string(h.node), "rack": rackOf(h.node)}
	}
	stored.Topology = record.TopologySummary{GPUModels: []string{"A100"}, GPUModel: make([]int, len(hardware.Inventory.Devices))}
	return stored
}

func (a *agent) notRegistered() { a.calling, a.register = false, true }

// enrol applies what was read.
func (a *agent) enrol(c ledger.Registered) {
	s := a.h.sim
	a.calling = false
	if a.dead {
		return
	}
	if s.lost() {
		a.register = true
		return
	}
	s.logf("%s: registered at %d, %d records", a.h.node, c.Revision, len(c.Records))
	for _, r := range c.Records {
		a.sure[r.Tx] = a.sure[r.Tx] || r.State == grant.RecordCommitted
	}
	a.h.blind = s.restored && c.Store >= a.l.Heard() && s.hasLost(a.h)
	if _, ok := a.do(c, nil); ok {
		if a.l.Quarantine().IsZero() {
			a.tell(enrolled{a.incarnation, c.Revision})
		} else {
			a.tell(a.health())
		}
		a.tell(a.occupancy())
	}
}
