package lead

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// concerned lists a node, first, and those that hold members of its units.
func (l *Leader) concerned(id resource.NodeID) []resource.NodeID {
	ids := []resource.NodeID{id}
	for _, at := range l.state.Nodes() {
		n := l.nodes[at.ID]
		if at.ID == id || !n.connected {
			continue
		}
		for tx := range l.nodes[id].grants {
			if _, shared := n.grants[tx]; shared {
				ids = append(ids, at.ID)
				break
			}
		}
	}
	return ids
}

// readRegistrations reads the nodes' registrations, before the agents report
// their grants: a later registration fails the compares of the reconciliation's
// writes.
func (r *reconciliation) readRegistrations() bool {
	if r.next == len(r.concerned) {
		r.bePatient()
		return r.enter(resyncing)
	}
	r.readRegistration(r.concerned[r.next])
	r.next++
	return true
}

// resync asks the next agent for all its grants, once the previous agent has
// answered.
func (r *reconciliation) resync() bool {
	if r.next == len(r.concerned) {
		r.l.post.Cancel(r.patience)
		return r.lookAtGrants()
	}
	id := r.concerned[r.next]
	n := r.l.nodes[id]
	switch {
	case n != nil && !r.begun:
		r.begun, r.toldBefore = true, n.told
		r.l.post.Command(id, grant.Resync{})
		return true
	case n != nil && n.told > r.toldBefore:
		r.begun = false
		r.next++
		return true
	case n == nil || r.late:
		return r.refuse(api.Errorf(409, "the agent of node %s does not say what it holds: ask again when it is connected", id).Because(api.FailedPrecondition))
	}
	return false
}

// lookAtGrants collects the agents' grants, if all agents have reported all of
// them.
func (r *reconciliation) lookAtGrants() bool {
	if unknown := r.unknown(); unknown != "" {
		return r.refuse(api.Errorf(409, "the agent of node %s is registering and does not say what it holds: ask again", unknown).Because(api.FailedPrecondition))
	}
	r.collect()
	return r.enter(readingRecords)
}

// readRecords reads the record of the next grant, after the agents have
// reported their grants.
func (r *reconciliation) readRecords() bool {
	if r.next == len(r.grants) {
		return r.lookAtRecords()
	}
	g := r.grants[r.next]
	r.next++
	key := record.TxKey(g.Tx)
	r.read(key, func(kv record.KV, found bool, _ resource.Revision) {
		if !found {
			return
		}
		rec, err := record.Decode[record.Tx](key, kv.Value)
		if err != nil {
			r.refusal = api.Errorf(500, "node %s: %v", r.id, err)
			return
		}
		g.record = rec.State
	})
	return true
}

// lookAtRecords compares grants and records. Without a mode the report is the
// answer.
func (r *reconciliation) lookAtRecords() bool {
	r.judge()
	r.report = r.makeReport()
	if r.options.Mode == "" {
		return r.end(r.report, nil)
	}
	if status := r.mayBegin(); status != nil {
		return r.refuse(status)
	}
	return r.enter(endingReturned)
}

// unknown is the first node whose grants are not known, "" if there is none: a
// grant that an agent does not report would count as gone.
func (r *reconciliation) unknown() resource.NodeID {
	for _, id := range r.concerned {
		if n := r.l.nodes[id]; n == nil || !n.known {
			return id
		}
	}
	return ""
}

// collect takes the grants that the agents have reported.
func (r *reconciliation) collect() {
	n := r.l.nodes[r.id]
	r.why = cmp.Or(n.isolated, n.outdated, r.why)
	for _, tx := range slices.Sorted(maps.Keys(n.grants)) {
		g := &lost{Grant: n.grants[tx], holders: map[resource.NodeID]grant.Grant{}}
		if g.State == grant.Tombstone {
			continue
		}
		for _, id := range r.concerned {
			other, found := r.l.nodes[id].grants[tx]
			if found && (other.State == grant.Held || other.State == grant.Evicting) {
				g.holders[id] = other
			}
		}
		r.grants = append(r.grants, g)
	}
}

// judge finds the records that came back, and the grants that can have a record
// again.
func (r *reconciliation) judge() {
	n := r.l.nodes[r.id]
	for _, tx := range r.l.attemptsOn(r.id) {
		a, g := r.l.work.Attempts[tx], n.grants[tx]
		if !a.Machine.Undecided() && g.State.Ends() {
			r.back = append(r.back, returned{tx: tx, path: a.Unit.Path, unit: a.Unit.Record.UID, state: a.Machine.State(), outcome: outcomeWhereBack(a)})
		}
	}
	for _, g := range r.grants {
		if g.held() && g.record == grant.RecordAbsent {
			g.problem, g.partial = r.problem(g)
		}
	}
}

// held reports whether the agent keeps it until somebody decides.
func (g *lost) held() bool { return g.State == grant.Held || g.State == grant.Evicting }

// adoptable reports whether a record is to be made again.
func (g *lost) adoptable() bool { return g.record == grant.RecordAbsent && g.problem == "" }

// problem is the obstacle to a new record of a grant, and whether the obstacle
// is permanent: a member that no agent holds never comes back.
func (r *reconciliation) problem(g *lost) (text string, forGood bool) {
	if _, _, _, err := g.Tx.Attempt(); err != nil {
		return err.Error(), true
	}
	seen := map[int]bool{}
	most := -1
	for _, id := range slices.Sorted(maps.Keys(g.holders)) {
		if n := r.l.nodes[id]; n == nil || r.registrations[id].incarnation != n.incarnation {
			return fmt.Sprintf("the agent of node %s is not registered as what it is", id), false
		}
		for _, m := range g.holders[id].Members {
			if seen[m.Index] {
				return fmt.Sprintf("member %d is held twice", m.Index), true
			}
			seen[m.Index] = true
			most = max(most, m.Index)
		}
	}
	if len(seen) == 0 {
		return "its agents list no members of it", true
	}
	stored := 0
	if u := r.l.waitingUnit(g); u != nil {
		stored = u.Record.Members
	} else if u := r.l.unitOf(g.Unit); u != nil { // I6: a unit is live in one transaction
		return fmt.Sprintf("its unit %s is %s without it", u.Path, u.Life.Phase()), u.Attempt != nil && !u.Attempt.Machine.Undecided()
	}
	size, contradiction := grant.UnitMembers(stored, g.holders)
	switch {
	case contradiction != "":
		return contradiction, true
	case size == 0: // its agents are of versions that do not say
		size = most + 1
	case most >= size:
		return fmt.Sprintf("member %d is held of a unit of %d", most, size), true
	}
	if len(seen) == size && g.alone() {
		return "", false
	}
	for _, at := range r.l.state.Nodes() { // any node may hold members of a gang
		n := r.l.nodes[at.ID]
		if away := !n.connected || n.isolated == "" && n.revision == 0; away && (n.fence == nil || !n.fence.dead) {
			return fmt.Sprintf("node %s is not heard and may hold members of it: bring it back, or say that it is dead with muster fence %s --confirm-dead", at.ID, at.ID), false
		}
	}
	for i := range size {
		if !seen[i] { // model: mutant ADOPT_PARTIAL
			return fmt.Sprintf("no agent holds its member %d", i), true
		}
	}
	return "", false
}

// alone reports whether a grant is of a unit that has one member by its kind.
func (g *lost) alone() bool {
	path, err := record.ParseUnitPath(g.Name)
	return err == nil && path.Kind == record.AllocUnit
}

// waitingUnit is the unit that the store has of a grant, if it waits for a
// place: it was submitted before the backup and committed after it.
func (l *Leader) waitingUnit(g *lost) *work.Unit {
	u := l.work.Units[g.Name]
	if u == nil || u.Record.UID != g.Unit || u.Stored == 0 || !u.Waiting() || u.Attempt != nil || u.Life.IsBeingWritten() || u.Adopting != "" || u.Life.EndAsked() {
		return nil
	}
	return u
}

// unitOf is the unit with a UID, nil where there is none.
func (l *Leader) unitOf(uid resource.UnitUID) *work.Unit {
	for _, u := range l.work.Units {
		if u.Record.UID == uid {
			return u
		}
	}
	return nil
}
