package invariant_test

import (
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// scene is a cluster of node n1 and a leader of epoch 1, as a harness shows it
// that gives every fact. Its namespace "ns" has a resource quota of 2 GPUs, its
// tree "t" a hard group "g" of 3.
type scene struct {
	c        *invariant.Checker
	revision resource.Revision
	at       time.Time
	grants   []ledger.Grant // of n1
	host     invariant.Host // what else n1 is
	priority map[string]int32
	found    []invariant.Violation
}

func incarnation(boot string) resource.Incarnation {
	return resource.Incarnation{JournalID: "j", BootID: boot}
}

func identity(boot string) invariant.Identity {
	return invariant.Identity{Node: "n1", New: &record.NodeIdentity{Incarnation: incarnation(boot)}}
}

func gpus(n int64) resource.Vector {
	return resource.Vector{resource.GPU: n * int64(resource.WholeDevice)}
}

func treeOf(g int64) invariant.Tree {
	return invariant.Tree{Name: "t", New: &quota.TreeSpec{Name: "t", Resources: []resource.Name{resource.GPU}, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: gpus(8)}, "g": {Parent: "root", Quota: gpus(g), Hard: true},
	}}}
}

func newScene() *scene {
	s := &scene{c: invariant.New(invariant.Harness{Name: "all", Gives: ^invariant.Facts(0)}), at: time.Unix(1000, 0), priority: map[string]int32{}}
	s.host = invariant.Host{Node: "n1", Devices: []string{"g1", "g2", "g3", "g4"}}
	s.c.Cards("n1", s.host.Devices...)
	s.c.NoClaims()
	s.batch(invariant.Candidate{Key: "leader/1", Epoch: 1})
	s.batch(identity("b1"), invariant.Quota{Namespace: "ns", Name: "q", Hard: gpus(2)}, treeOf(3))
	s.show()
	return s
}

// note keeps what a call has found.
func (s *scene) note(found []invariant.Violation) { s.found = append(s.found, found...) }

// batch is the next revision.
func (s *scene) batch(changes ...invariant.Change) {
	s.revision++
	s.note(s.c.Apply(invariant.Batch{Revision: s.revision, At: s.at, Changes: changes}))
}

// show shows n1 as it is now.
func (s *scene) show() {
	s.host.Agent = &invariant.Agent{Incarnation: incarnation("b1"), Registered: true, Grants: s.grants}
	s.note(s.c.Observe(s.host))
	s.note(s.c.Moment())
}

func path(name string) record.UnitPath {
	return record.UnitPath{Namespace: "ns", Kind: record.AllocUnit, Name: name}
}

// tx is the unit's transaction in epoch 1.
func tx(name string) resource.TxID {
	return resource.NewTxID(resource.UnitUID(name), 1, uint64(name[len(name)-1]), resource.Nonce{})
}

func assignment(uuid string) resource.Assignment {
	return resource.Assignment{GPUs: []resource.GPUGrant{{UUID: uuid, Milli: resource.WholeDevice}}}
}

// record is a unit's, of one member with one device.
func recordOf(state grant.RecordState, name, uuid string) record.Tx {
	return record.Tx{
		State: state, Epoch: 1, Unit: path(name), UnitUID: resource.UnitUID(name),
		Charges: []record.Charge{{Tree: quota.Tree, Group: "ns", Request: gpus(1)}, {Tree: "t", Group: "g", Request: gpus(1)}},
		Members: []record.Placement{{Node: "n1", Incarnation: incarnation("b1"), Assignment: assignment(uuid)}},
	}
}

func put(tx resource.TxID, r record.Tx) invariant.Change {
	return invariant.Record{Tx: tx, New: &r}
}

// unit is a unit's record in a phase.
func (s *scene) unit(name, phase string, tx resource.TxID) invariant.Change {
	p := path(name)
	return invariant.Unit{Path: p, New: &record.Unit{
		UID: resource.UnitUID(name), Kind: p.Kind, Namespace: p.Namespace, Name: name, Phase: phase, TxID: tx, Members: 1, Priority: s.priority[name],
	}}
}

// ofGroup is a unit of a group of which two members start together.
func (s *scene) ofGroup(name, phase string, tx resource.TxID) invariant.Change {
	u := s.unit(name, phase, tx).(invariant.Unit)
	if u.New.Gang = (&record.GangPlace{First: record.Sequence{Epoch: 1, Counter: 1}, MinMembers: 2}); tx != "" {
		u.New.Started = "2026-11-23T10:00:00Z"
	}
	return u
}

func listed(tx resource.TxID) invariant.Change { return invariant.Index{Node: "n1", Tx: tx} }

func unlisted(tx resource.TxID) invariant.Change {
	return invariant.Index{Node: "n1", Tx: tx, Gone: true}
}

// hold gives a transaction a grant on n1.
func (s *scene) hold(tx resource.TxID, state grant.State, uuid string) *ledger.Grant {
	for i := range s.grants {
		if s.grants[i].Tx == tx {
			s.grants = append(s.grants[:i:i], s.grants[i+1:]...)
			break
		}
	}
	g := ledger.Grant{Tx: tx, State: state, Incarnation: incarnation("b1"), Members: []ledger.Holding{{Assignment: assignment(uuid)}}}
	s.grants = append(s.grants, g)
	return &s.grants[len(s.grants)-1]
}

// reserve begins a unit's transaction on n1.
func (s *scene) reserve(name, uuid string) resource.TxID {
	s.c.Admitted(tx(name), gpus(8))
	s.note(s.c.Asked(tx(name), 1))
	s.hold(tx(name), grant.Reserved, uuid)
	s.show()
	return tx(name)
}

// commit is a unit's life up to HELD.
func (s *scene) commit(name, uuid string) resource.TxID {
	t := s.reserve(name, uuid)
	s.batch(put(t, recordOf(grant.RecordCommitted, name, uuid)), s.unit(name, "Running", t), listed(t))
	s.hold(t, grant.Held, uuid)
	s.show()
	return t
}

// release begins the end that a unit's client asks for.
func (s *scene) release(name, uuid string) resource.TxID {
	s.c.EndAsked(path(name))
	s.batch(put(tx(name), recordOf(grant.RecordReleasing, name, uuid)), s.unit(name, "Terminating", tx(name)))
	return tx(name)
}

// free is the agent's word that it is rid of a transaction.
func (s *scene) free(t resource.TxID) {
	s.hold(t, grant.Tombstone, "g1").Members = nil
	s.show()
	s.note(s.c.Freed("n1", t, s.at))
}

// end ends the charge of a unit that has been freed.
func (s *scene) end(name, uuid string) {
	s.batch(put(tx(name), recordOf(grant.RecordReleased, name, uuid)), invariant.Unit{Path: path(name)}, unlisted(tx(name)))
	s.show()
}

// evict makes a unit EVICTING for a transaction, or for nobody.
func (s *scene) evict(name, uuid string, by resource.TxID) resource.TxID {
	r := recordOf(grant.RecordEvicting, name, uuid)
	r.By, r.Evicted, r.GraceSeconds = by, true, 5
	s.batch(put(tx(name), r), s.unit(name, "Terminating", tx(name)))
	return tx(name)
}

// wait makes a unit of priority 1 wait for a device on n1.
func (s *scene) wait(name, uuid string, victims ...resource.TxID) resource.TxID {
	s.priority[name] = 1
	s.batch(s.unit(name, "Pending", ""), invariant.Order{Key: name, Path: path(name), UID: resource.UnitUID(name)})
	s.c.Admitted(tx(name), gpus(8))
	s.hold(tx(name), grant.Waiting, uuid).Victims = victims
	s.c.Nominated(tx(name), []resource.NodeID{"n1"})
	s.show()
	return tx(name)
}

// quiet is the end of a run.
func (s *scene) quiet() { s.note(s.c.Quiet()) }

// dead is the identity of n2, fenced and confirmed dead; alive is it registered.
func dead(node resource.NodeID) invariant.Identity {
	return invariant.Identity{Node: node, New: &record.NodeIdentity{Incarnation: incarnation("b2"), Fenced: true, ConfirmedDead: true}}
}

func alive(node resource.NodeID) invariant.Identity {
	return invariant.Identity{Node: node, New: &record.NodeIdentity{Incarnation: incarnation("b2")}}
}

// gangOf is the record of a gang with a member on n1 and one on n2.
func gangOf(state grant.RecordState, name string) record.Tx {
	r := recordOf(state, name, "g1")
	r.Members = append(r.Members, record.Placement{Member: 1, Node: "n2", Incarnation: incarnation("b2"), Assignment: assignment("h1")})
	for i := range r.Charges {
		r.Charges[i].Request = gpus(2)
	}
	return r
}

// gangUnit is the unit of a gang that has lost these members.
func (s *scene) gangUnit(name, phase string, lost ...int) invariant.Change {
	u := s.unit(name, phase, tx(name)).(invariant.Unit)
	u.New.Members, u.New.Lost = 2, lost
	return u
}

// gang commits a gang with a member on n1 and one on n2.
func (s *scene) gang(name string) {
	s.c.Cards("n2", "h1")
	s.batch(alive("n2"))
	t := s.reserve(name, "g1")
	s.batch(put(t, gangOf(grant.RecordCommitted, name)), s.gangUnit(name, "Running"), listed(t), invariant.Index{Node: "n2", Tx: t})
	s.hold(t, grant.Held, "g1")
	s.show()
}

// lose has a gang lose its member on n2.
func (s *scene) lose(name string) {
	r, whole := recordOf(grant.RecordCommitted, name, "g1"), gangOf(grant.RecordCommitted, name)
	r.LostMembers = []record.LostMember{{Placement: whole.Members[1], AtMillis: 1}}
	s.batch(put(tx(name), r), s.gangUnit(name, "Running", 1), invariant.Index{Node: "n2", Tx: tx(name), Gone: true}, s.replacement(name, "Pending", ""))
}

// replacement is the unit that replaces the lost member of a gang.
func (s *scene) replacement(name, phase string, t resource.TxID) invariant.Change {
	u := s.unit(name, phase, t).(invariant.Unit)
	u.Path.N = record.FirstReplacement + 1
	u.New.UID, u.New.N, u.New.FirstMember, u.New.Replaces, u.New.Parent = resource.UnitUID(name+"r7"), u.Path.N, 1, true, resource.UnitUID(name)
	return u
}

// replace commits the replacement of a gang's member on n1.
func (s *scene) replace(name string) {
	t := tx(name + "r7")
	s.c.Admitted(t, gpus(8))
	s.note(s.c.Asked(t, 1))
	s.hold(t, grant.Reserved, "g2")
	s.show()
	r := recordOf(grant.RecordCommitted, name, "g2")
	r.Unit.N, r.UnitUID = record.FirstReplacement+1, resource.UnitUID(name+"r7")
	s.batch(put(t, r), s.replacement(name, "Running", t), listed(t))
	s.hold(t, grant.Held, "g2")
	s.show()
}
