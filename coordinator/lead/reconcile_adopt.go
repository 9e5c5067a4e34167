package lead

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// adoptee is the unit that a grant gets whose record is lost.
type adoptee struct {
	unit *work.Unit
	job  *work.Job // that is made for it, or nil
	// waited: the store has the unit, in the order.
	waited bool
}

// adopt makes record, unit and index of a lost grant again, as one Txn: if this
// epoch leads, nobody has decided the transaction, the name is free or the unit
// what it was, and no agent of a member has registered since it was read.
func (r *reconciliation) adopt(g *lost, done func(*api.Status)) {
	l := r.l
	who, status := l.adoptee(g)
	if status != nil {
		done(status)
		return
	}
	u := who.unit
	found := map[resource.NodeID][]grant.Member{}
	for id, held := range g.holders {
		found[id] = held.Members
	}
	l.chooseForm(u, l.formHeld(u, found))
	l.reserveName(who)
	a := l.chargeAdopted(u, g)
	a.SetCharges(l.quotas.Seated(u.Path, a.Charges))
	_, epoch, _, _ := g.Tx.Attempt() // judged before
	rec := record.Tx{
		State: grant.RecordCommitted, Epoch: epoch, Unit: u.Record.Path(), UnitUID: u.Record.UID, Tenant: u.Record.Tenant, Charges: a.Charges, Alternative: u.Number, Committed: r.l.post.Stamp(), CommittedMillis: r.l.post.Millis(),
	}
	key := record.TxKey(g.Tx)
	// model: mutant NO_ABSENT_COMPARE
	d := post.Decision{Compares: []record.Compare{record.Absent(key), record.ModRevIs(u.Record.Path().Key(), u.Stored)}}
	for _, id := range slices.Sorted(maps.Keys(g.holders)) {
		d.Compares = append(d.Compares, r.registrations[id].compares(id)...)
		index := record.NodeTx{}
		for _, m := range g.holders[id].Members {
			rec.Members = append(rec.Members, record.Placement{
				Member: m.Index, Node: id, Incarnation: r.registrations[id].incarnation, Assignment: m.Assignment,
			})
			index.Members = append(index.Members, m.Index)
		}
		d.Ops = append(d.Ops, record.Put(record.NodeTxKey(id, g.Tx), record.MustEncode(index)))
	}
	written := u.Record
	written.Phase, written.TxID, written.Started = string(api.Running), g.Tx, cmp.Or(written.Started, r.l.post.Stamp())
	d.Ops = append(d.Ops, record.Put(key, record.MustEncode(rec)), record.Put(written.Path().Key(), record.MustEncode(written)))
	if u.Queued {
		d.Ops = append(d.Ops, record.Delete(written.Order().Key()))
	}
	if who.job != nil {
		job := record.JobKey(written.Namespace, written.Name)
		d.Compares = append(d.Compares, record.Absent(job))
		d.Ops = append(d.Ops, record.Put(job, record.MustEncode(who.job.Record)))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if l.work.Units[u.Path] != u { // nobody forgets a unit while it is written: the next term loads what is true
			l.post.End(fmt.Errorf("unit %s was forgotten while the record of %s was made again", u.Path, g.Tx))
			return
		}
		u.Life.Finish(work.WriteAdoption)
		u.QueueNews.Note(u.Path)
		if o != txn.Landed {
			l.notAdopted(who, a)
			done(api.Errorf(409, "%s: something changed while its record was made again (%v); ask again", g.Tx, err))
			return
		}
		u.Readopt(a, written, rev)
		l.census.Note(u)
		if who.job != nil {
			who.job.SetStored(rev)
		}
		l.adopted(a, g, r.votes(g), rev)
		done(nil)
	}
	l.post.SettleCreation(post.Creating{What: u.Path, UID: u.Record.UID, Key: key, Mine: func(value []byte) bool {
		rec, err := record.Decode[record.Tx](key, value)
		return err == nil && rec.State == grant.RecordCommitted
	}}, d)
}

// votes are what the members' agents hold.
func (r *reconciliation) votes(g *lost) map[resource.NodeID]txn.Vote {
	votes := map[resource.NodeID]txn.Vote{}
	for id, held := range g.holders {
		v := txn.Vote{Incarnation: r.registrations[id].incarnation, Revision: r.registrations[id].identity}
		for _, m := range held.Members {
			v.Members = append(v.Members, grant.Member{Index: m.Index, Assignment: m.Assignment})
		}
		votes[id] = v
	}
	return votes
}

// membersOf are the members that each node holds.
func membersOf(g *lost) map[resource.NodeID][]grant.Member {
	found := map[resource.NodeID][]grant.Member{}
	for id, held := range g.holders {
		found[id] = held.Members
	}
	return found
}

// chargeAdopted charges a unit that runs already: evicting nobody, and over its
// quota if need be.
func (l *Leader) chargeAdopted(u *work.Unit, g *lost) *work.Attempt {
	if short := l.judge(u); short != nil {
		l.post.Warn("adopted_over_quota", "tx", g.Tx, "unit", u.Path, "reasons", l.quotas.Reasons(short))
	}
	a := work.NewAttempt(u, sched.WithModels(slices.Clone(u.Charges), l.modelsOf(u, membersOf(g))), time.Time{})
	l.removeConsumer(u)
	l.quotas.Charge(g.Tx, u.Record.Tenant, quota.Charge{
		Group: a.Charges[0].Group, Request: a.Charges[0].Request, Members: u.Charge.Members, User: u.Charge.User, Class: u.Charge.Class, Terminating: u.Charge.Terminating,
	}, l.post.Now())
	l.chargeCommitted(a)
	l.noteCharged(a)
	machine, _ := txn.Recover(g.Tx, txn.Found{State: grant.RecordCommitted}, nil) // until it is
	a.SetMachine(machine)
	return a
}

// adopted goes on with a record as if it had been found at the election.
func (l *Leader) adopted(a *work.Attempt, g *lost, votes map[resource.NodeID]txn.Vote, rev resource.Revision) {
	u := a.Unit
	machine, effects := txn.Recover(g.Tx, txn.Found{State: grant.RecordCommitted, Revision: rev}, votes)
	a.SetMachine(machine)
	a.SetCommitted(rev)
	l.noteSeats(a)
	l.insertAttempt(g.Tx, a)
	for _, id := range slices.Sorted(maps.Keys(g.holders)) {
		if n := l.nodes[id]; n != nil {
			n.confirm(g.Tx, g.holders[id].Members, nil, false, l.post)
		}
	}
	l.post.Warn("grant_adopted", "tx", g.Tx, "unit", u.Path, "was", g.Name, "revision", int64(rev))
	l.perform(a, effects)
	// Others may have it evicted now.
	l.wakeAll()
	l.growWith(u)
	if u.Life.EndAsked() { // asked for in the meantime
		l.step(a, *u.Life.Ending())
	}
	l.notify(u)
}

// notAdopted undoes what was prepared.
func (l *Leader) notAdopted(who adoptee, a *work.Attempt) {
	l.discharge(a)
	l.wakeAll()
	switch u := who.unit; {
	case who.waited:
		if u.Life.EndAsked() {
			l.endQueued(u)
			return
		}
		l.offer(u)
		l.notify(u)
	case who.job != nil:
		l.forgetJob(who.job)
	default:
		l.removeUnit(u)
	}
}

// reserveName keeps the unit's name, and keeps it from being placed.
func (l *Leader) reserveName(who adoptee) {
	u := who.unit
	u.Life.Begin(work.WriteAdoption)
	u.QueueNews.Note(u.Path)
	if who.waited {
		l.room.Remove(u.Key)
		return
	}
	u.SetSequence(l.post.NextArrival())
	if who.job != nil {
		l.work.InsertJob(who.job)
	}
	l.insertUnit(u)
	l.census.Note(u)
}

// adoptee is the unit that waits for the grant, or a new one with a document
// that asks for what the grant has: under its old name where that is free.
func (l *Leader) adoptee(g *lost) (adoptee, *api.Status) {
	if u := l.waitingUnit(g); u != nil {
		return adoptee{unit: u, waited: true}, nil
	}
	if u := l.unitOf(g.Unit); u != nil {
		return adoptee{}, api.Errorf(409, "%s: its unit %s goes on otherwise by now; ask again", g.Tx, u.Path)
	}
	path, err := record.ParseUnitPath(g.Name)
	if err != nil {
		path = record.UnitPath{Namespace: "default", Kind: record.AllocUnit}
	}
	var members []grant.Member
	for _, id := range slices.Sorted(maps.Keys(g.holders)) {
		members = append(members, g.holders[id].Members...)
	}
	slices.SortFunc(members, func(a, b grant.Member) int { return cmp.Compare(a.Index, b.Index) })
	gang := len(members) > 1 || path.Kind == record.JobUnit && path.N == 0
	for _, name := range []string{path.Name, "adopted-" + shortTx(g.Tx)} {
		if name == "" || path.N > 0 && name == path.Name || !l.free(path.Namespace, name, len(members), gang) {
			continue
		}
		if gang {
			return l.adoptedJob(path.Namespace, name, g, members)
		}
		return l.adoptedAllocation(path.Namespace, name, g, members[0].Assignment)
	}
	return adoptee{}, api.Errorf(409, "%s: the names %s and adopted-%s are both taken in namespace %s; delete one, and ask again", g.Tx, path.Name, shortTx(g.Tx), path.Namespace).Because(api.AlreadyExists)
}

// shortTx tells transactions apart in names: the first eight digits of the
// nonce.
func shortTx(tx resource.TxID) string {
	text := string(tx)
	if len(text) < 32 {
		return text
	}
	return text[len(text)-32:][:8]
}

// free reports whether nothing has a name, nor one of its members.
func (l *Leader) free(namespace, name string, members int, gang bool) bool {
	if !gang {
		return l.work.Members[namespace+"/"+name] == nil
	}
	if l.work.Jobs[namespace+"/"+name] != nil {
		return false
	}
	for i := range members {
		if l.work.Members[namespace+"/"+work.MemberOfJob(name, i)] != nil {
			return false
		}
	}
	return true
}

func specFor(a resource.Assignment) api.AllocationSpec {
	amounts := a.Vector()
	delete(amounts, resource.Pods) // each member has one
	return api.AllocationSpec{Resources: api.Requirements{Requests: api.Amounts(amounts)}}
}

func (l *Leader) adoptedAllocation(namespace, name string, g *lost, a resource.Assignment) (adoptee, *api.Status) {
	document, err := json.Marshal(api.Allocation{
		APIVersion: api.APIVersion, Kind: api.KindAllocation, Metadata: api.ObjectMeta{Namespace: namespace, Name: name}, Spec: specFor(a),
	})
	if err != nil {
		return adoptee{}, api.Errorf(500, "%s: %v", g.Tx, err)
	}
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		return adoptee{}, status
	}
	u, status := work.NewUnit(l.namespaceOf(namespace, g).Tenant, record.Unit{
		UID: g.Unit, Kind: record.AllocUnit, Namespace: namespace, Name: name, Phase: string(api.Pending), Members: 1, Document: document, Created: l.post.Stamp(),
		NodeResources: namesOf(a.Counts),
	}, doc.Spec, nil, "")
	if status != nil {
		return adoptee{}, api.Errorf(422, "%s: %v", g.Tx, status)
	}
	u.SetAllocation(doc)
	return adoptee{unit: u}, nil
}

func (l *Leader) adoptedJob(namespace, name string, g *lost, members []grant.Member) (adoptee, *api.Status) {
	size := int32(len(members))
	spec := specFor(members[0].Assignment)
	spec.Scheduling.GangScheduling = &api.GangScheduling{MinMembers: &size}
	document, err := json.Marshal(api.Job{
		APIVersion: api.APIVersion, Kind: api.KindJob, Metadata: api.ObjectMeta{Namespace: namespace, Name: name},
		Spec: api.JobSpec{Parallelism: &size, Members: setsHeld(members), Template: api.Template{Spec: spec}},
	})
	if err != nil {
		return adoptee{}, api.Errorf(500, "%s: %v", g.Tx, err)
	}
	doc, status := api.DecodeJob(document)
	if status != nil {
		return adoptee{}, status
	}
	rec := record.Unit{
		UID: g.Unit, Kind: record.JobUnit, Namespace: namespace, Name: name, Phase: string(api.Pending), Members: len(members), Created: l.post.Stamp(),
		NodeResources: namesOf(countsOf(members)),
	}
	j := work.NewJob(doc, true, record.Job{
		UID: l.post.UID("job"), Namespace: namespace, Name: name, Tenant: l.namespaceOf(namespace, g).Tenant,
		Phase: string(api.Queued), Document: document, Units: []record.UnitPath{rec.Path()}, Created: rec.Created,
	})
	u, status := work.NewUnit(l.namespaceOf(namespace, g).Tenant, rec, doc.Spec.Template.Spec, doc, "")
	if status != nil {
		return adoptee{}, api.Errorf(422, "%s: %v", g.Tx, status)
	}
	total := resource.Vector{}
	for _, m := range members {
		total.Add(m.Assignment.Vector())
	}
	delete(total, resource.Pods) // charged by members
	u.SetRequest(total)
	u.SetJob(j)
	j.RestoreUnit(u)
	return adoptee{unit: u, job: j}, nil
}

// setsHeld are the sets of members that hold different amounts; nil where all hold the
// same, or a job has not so many sets.
func setsHeld(members []grant.Member) []api.MemberSet {
	var sets []api.MemberSet
	for i := range members {
		held := specFor(members[i].Assignment).Resources
		if last := len(sets) - 1; last >= 0 && maps.Equal(sets[last].Resources.Requests, held.Requests) {
			sets[last].Count++
			continue
		}
		sets = append(sets, api.MemberSet{Name: fmt.Sprintf("set-%d", len(sets)+1), Count: 1, Resources: &held})
	}
	if len(sets) == 1 || len(sets) > api.MaxMemberSets {
		return nil
	}
	return sets
}

// countsOf are the counted resources of all members.
func countsOf(members []grant.Member) (all []resource.CountGrant) {
	for i := range members {
		all = append(all, members[i].Assignment.Counts...)
	}
	return all
}

// namespaceOf is what is configured of a namespace, with the tenant that the
// agent knows the grant by.
func (l *Leader) namespaceOf(namespace string, g *lost) Namespace {
	n := l.namespace(namespace)
	n.Tenant = cmp.Or(g.Tenant, n.Tenant)
	return n
}
