package invariant_test

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// story is a history that breaks a rule and nothing else, but for the rules in
// also, and one like it that breaks none.
type story struct {
	breaks, holds func(s *scene)
	also          []invariant.Rule
}

func stories() map[invariant.Rule]story {
	all := map[invariant.Rule]story{}
	for _, some := range []map[invariant.Rule]story{recordStories(), quotaStories(), lifeStories(), agentStories(), clientStories(), quietStories()} {
		for rule, story := range some {
			all[rule] = story
		}
	}
	return all
}

// recordStories are about what one revision writes.
func recordStories() map[invariant.Rule]story {
	const committed = grant.RecordCommitted
	return map[invariant.Rule]story{
		invariant.I1Records: {
			breaks: func(s *scene) {
				s.commit("u1", "g1")
				t := tx("u2")
				s.c.Admitted(t, gpus(8))
				s.batch(put(t, recordOf(committed, "u2", "g1")), s.unit("u2", "Running", t), listed(t))
			},
			holds: func(s *scene) {
				half := func(name string) {
					t, r := tx(name), recordOf(committed, name, "g1")
					r.Members[0].Assignment.GPUs[0].Milli = 500
					s.c.Admitted(t, gpus(8))
					s.hold(t, grant.Held, "g1").Members[0].Assignment = r.Members[0].Assignment
					s.batch(put(t, r), s.unit(name, "Running", t), listed(t))
				}
				half("u1")
				half("u2")
				s.show()
			},
		},
		invariant.I1Hardware: {
			breaks: func(s *scene) { s.commit("u1", "another's") },
			holds:  func(s *scene) { s.c.Cards("n1", "another's"); s.commit("u1", "another's") },
		},
		invariant.I3Incarnations: {
			breaks: func(s *scene) { s.batch(identity("b2")); s.commit("u1", "g1") },
			holds: func(s *scene) { // a Txn may commit, and fence
				t := s.reserve("u1", "g1")
				fenced := invariant.Identity{Node: "n1", New: &record.NodeIdentity{Incarnation: incarnation("b1"), Fenced: true}}
				s.batch(fenced, put(t, recordOf(committed, "u1", "g1")), s.unit("u1", "Running", t), listed(t))
			},
		},
		invariant.I17Group: {
			breaks: func(s *scene) {
				t := s.reserve("u1", "g1")
				s.batch(put(t, recordOf(committed, "u1", "g1")), s.ofGroup("u1", "Running", t), s.ofGroup("u2", "Pending", ""), listed(t))
			},
			holds: func(s *scene) {
				first, second := s.reserve("u1", "g1"), s.reserve("u2", "g2")
				s.batch(put(first, recordOf(committed, "u1", "g1")), s.ofGroup("u1", "Running", first), listed(first),
					put(second, recordOf(committed, "u2", "g2")), s.ofGroup("u2", "Running", second), listed(second))
			},
		},
		invariant.I10Lost: {
			breaks: func(s *scene) { s.gang("u1"); s.batch(dead("n2")); s.batch(alive("n2")); s.lose("u1") },
			holds:  func(s *scene) { s.gang("u1"); s.batch(dead("n2")); s.lose("u1") },
		},
		invariant.I18Replacement: {
			breaks: func(s *scene) {
				s.gang("u1")
				s.batch(dead("n2"))
				s.lose("u1")
				s.c.EndAsked(path("u1"))
				ending := recordOf(grant.RecordReleasing, "u1", "g1")
				ending.LostMembers = []record.LostMember{{Placement: gangOf(committed, "u1").Members[1], AtMillis: 1}}
				s.batch(put(tx("u1"), ending), s.gangUnit("u1", "Terminating", 1))
				s.replace("u1")
			},
			holds: func(s *scene) { s.gang("u1"); s.batch(dead("n2")); s.lose("u1"); s.replace("u1") },
		},
		invariant.I3Members: {
			breaks: func(s *scene) {
				t, r := s.reserve("u1", "g1"), recordOf(committed, "u1", "g1")
				r.Members[0].Member = 1
				s.batch(put(t, r), s.unit("u1", "Running", t), listed(t))
			},
			holds: func(s *scene) { s.commit("u1", "g1") },
		},
		invariant.I3Demand: {
			breaks: func(s *scene) {
				s.c.Demanded(path("u1"), invariant.Wants{Members: 1, GPUs: 2})
				s.commit("u1", "g1")
			},
			holds: func(s *scene) {
				s.c.Demanded(path("u1"), invariant.Wants{Members: 1, GPUs: 1})
				s.commit("u1", "g1")
			},
		},
		invariant.I6Unit: {
			breaks: func(s *scene) {
				s.commit("u1", "g1")
				again := resource.NewTxID("u1", 1, 99, resource.Nonce{})
				s.c.Admitted(again, gpus(8))
				s.batch(put(again, recordOf(committed, "u1", "g2")), listed(again))
			},
			holds: func(s *scene) { s.commit("u1", "g1"); s.commit("u2", "g2") },
		},
		invariant.I11Edges: {
			breaks: func(s *scene) {
				s.commit("u1", "g1")
				s.release("u1", "g1")
				s.batch(put(tx("u1"), recordOf(committed, "u1", "g1")))
			},
			holds: func(s *scene) { s.commit("u1", "g1"); s.free(s.release("u1", "g1")); s.end("u1", "g1") },
		},
		invariant.I11Deleted: {
			breaks: func(s *scene) { t := s.commit("u1", "g1"); s.batch(invariant.Record{Tx: t}, unlisted(t)) },
			holds: func(s *scene) {
				t := s.commit("u1", "g1")
				s.free(s.release("u1", "g1"))
				s.end("u1", "g1")
				s.batch(invariant.Record{Tx: t})
			},
		},
		invariant.I11Again: {
			breaks: func(s *scene) {
				s.batch(put(tx("u1"), record.Tx{State: grant.RecordAborted, UnitUID: "u1"}))
				s.batch(invariant.Record{Tx: tx("u1")})
				s.commit("u1", "g1")
			},
			holds: func(s *scene) { // an agent that asks again
				s.batch(put(tx("u1"), record.Tx{State: grant.RecordAborted, UnitUID: "u1"}))
				s.batch(invariant.Record{Tx: tx("u1")})
				s.batch(put(tx("u1"), record.Tx{State: grant.RecordAborted, UnitUID: "u1"}))
			},
		},
		invariant.I11Swap: {
			breaks: func(s *scene) { displace(s, false) },
			holds:  func(s *scene) { displace(s, true) },
			also:   []invariant.Rule{invariant.I7Undecided},
		},
		invariant.I11Named: {
			breaks: func(s *scene) {
				victim, by := abort(s)
				r := recordOf(grant.RecordReleasing, "u1", "g1")
				r.By = by
				s.batch(put(victim, r), invariant.Record{Tx: by})
			},
			holds: func(s *scene) {
				victim, by := abort(s)
				s.batch(put(victim, recordOf(grant.RecordReleasing, "u1", "g1")))
				s.end("u1", "g1")
				s.batch(invariant.Record{Tx: by})
			},
		},
		invariant.I12Commits: {
			breaks: func(s *scene) {
				s.batch(invariant.Candidate{Key: "leader/2", Epoch: 3})
				s.batch(invariant.Candidate{Key: "leader/1", Gone: true})
				s.commit("u1", "g1")
			},
			holds: func(s *scene) { s.batch(invariant.Candidate{Key: "leader/2", Epoch: 3}); s.commit("u1", "g1") },
		},
		invariant.I12Writers: {
			breaks: func(s *scene) {
				s.note(s.c.Wrote(invariant.Write{Revision: s.revision + 2, What: "late", Epoch: 1}))
				s.batch(invariant.Candidate{Key: "leader/1", Gone: true})
				s.batch(s.unit("u1", "Pending", ""))
			},
			holds: func(s *scene) { // what lands with the end of the lease
				s.note(s.c.Wrote(invariant.Write{Revision: s.revision + 1, What: "in time", Epoch: 1}))
				s.batch(s.unit("u1", "Pending", ""), invariant.Candidate{Key: "leader/1", Gone: true})
			},
		},
		invariant.I13Index: {
			breaks: func(s *scene) {
				t := s.reserve("u1", "g1")
				s.batch(put(t, recordOf(committed, "u1", "g1")), s.unit("u1", "Running", t))
			},
			holds: func(s *scene) { s.commit("u1", "g1") },
		},
	}
}

// displace lets u2 take the place of u1, with the commit in the same revision or
// in the next.
func displace(s *scene, together bool) {
	victim := s.commit("u1", "g1")
	by := s.wait("u2", "g1", victim)
	s.evict("u1", "g1", by)
	s.free(victim)
	s.hold(by, grant.Reserved, "g1")
	s.show()
	r := recordOf(grant.RecordReleased, "u1", "g1")
	r.By = by
	ends := []invariant.Change{put(victim, r), invariant.Unit{Path: path("u1")}, unlisted(victim)}
	begins := []invariant.Change{put(by, recordOf(grant.RecordCommitted, "u2", "g1")), s.unit("u2", "Running", by), listed(by)}
	if together {
		s.batch(append(ends, begins...)...)
		return
	}
	s.batch(ends...)
	s.batch(begins...)
}

// abort gives up the preemption of u1 by u2, and frees u1.
func abort(s *scene) (victim, by resource.TxID) {
	victim = s.commit("u1", "g1")
	by = s.wait("u2", "g1", victim)
	s.evict("u1", "g1", by)
	s.batch(put(by, record.Tx{State: grant.RecordAborted, UnitUID: "u2"}))
	s.free(victim)
	return victim, by
}

func quotaStories() map[invariant.Rule]story {
	return map[invariant.Rule]story{
		invariant.I2Configured: {
			breaks: func(s *scene) { s.c.Limit("ns", gpus(1)); s.commit("u1", "g1"); s.commit("u2", "g2") },
			holds: func(s *scene) { // what is adopted does not count
				s.c.Limit("ns", gpus(2))
				s.c.Adopted(tx("u0"))
				for i, name := range []string{"u1", "u0", "u2"} {
					s.commit(name, fmt.Sprint("g", i+1))
				}
			},
		},
		invariant.I2Quotas: {
			breaks: func(s *scene) { s.commit("u1", "g1"); s.commit("u2", "g2"); s.commit("u3", "g3") },
			holds: func(s *scene) { // a limit that is lowered, and one that comes late, take nothing back
				s.commit("u1", "g1")
				s.batch(invariant.Quota{Namespace: "ns", Name: "q", Hard: gpus(1)}, invariant.Quota{Namespace: "ns", Name: "late", Hard: gpus(0)})
				s.commit("u2", "g2")
			},
		},
		invariant.I2Admissions: {
			breaks: func(s *scene) { s.c.Admitted(tx("u0"), gpus(1)); admit(s, "u1", 1); admit(s, "u2", 1) },
			holds: func(s *scene) {
				// The store refuses the first adoption of u3. u1 is admitted before the second one, u2 behind it.
				s.c.Adopted(tx("u3"))
				s.c.Admitted(tx("u3"), gpus(9))
				admit(s, "u1", 1)
				admit(s, "u3", 2)
				admit(s, "u2", 3)
			},
		},
		invariant.I2Trees: {
			breaks: func(s *scene) {
				s.batch(invariant.Tree{Name: "t"})
				s.batch(treeOf(1))
				s.commit("u1", "g1")
				s.commit("u2", "g2")
			},
			holds: func(s *scene) {
				s.commit("u1", "g1")
				s.batch(treeOf(1))
				s.c.Adopted(tx("u2"))
				s.commit("u2", "g2")
				s.batch(invariant.Mode{Maintenance: true})
				s.commit("u3", "g3")
			},
		},
	}
}

// admit commits a unit that a leader admits under a limit of so many GPUs.
func admit(s *scene, name string, limit int64) {
	t := tx(name)
	s.c.Admitted(t, gpus(limit))
	uuid := "g" + name[1:]
	s.hold(t, grant.Held, uuid)
	s.batch(put(t, recordOf(grant.RecordCommitted, name, uuid)), s.unit(name, "Running", t), listed(t))
}

func clientStories() map[invariant.Rule]story {
	done := func(t resource.TxID) invariant.Answer {
		return invariant.Answer{Outcome: invariant.Done, Phase: api.Running, Tx: t, Devices: []string{"n1 g1"}}
	}
	return map[invariant.Rule]story{
		invariant.I4Told: {
			breaks: func(s *scene) { s.commit("u1", "g1"); s.note(s.c.Told(path("u2"), "u2")) },
			holds:  func(s *scene) { s.commit("u1", "g1"); s.note(s.c.Told(path("u1"), "u1")) },
		},
		invariant.I4Committed: {
			breaks: func(s *scene) { s.note(s.c.CommitTold(s.reserve("u1", "g1"))) },
			holds:  func(s *scene) { s.note(s.c.CommitTold(s.commit("u1", "g1"))) },
		},
		invariant.I4History: {
			breaks: func(s *scene) {
				s.commit("u1", "g2")
				s.note(s.c.Judge([]invariant.Fate{{Namespace: "ns", Name: "u1", Created: done(tx("u1"))}}))
			},
			holds: func(s *scene) {
				s.note(s.c.Judge([]invariant.Fate{{Namespace: "ns", Name: "u1", Created: done(s.commit("u1", "g1"))}}))
			},
		},
	}
}

func quietStories() map[invariant.Rule]story {
	rest := func(s *scene) { s.commit("u1", "g1"); s.quiet() }
	return map[invariant.Rule]story{
		invariant.I13Records: {
			breaks: func(s *scene) { s.commit("u1", "g1"); s.release("u1", "g1"); s.quiet() },
			holds:  rest,
			also:   []invariant.Rule{invariant.I13Grants, invariant.I13Units},
		},
		invariant.I13Grants: {
			breaks: func(s *scene) { s.reserve("u1", "g1"); s.quiet() },
			holds: func(s *scene) {
				s.c.Lost("n1", invariant.LostRecords)
				s.hold("t", grant.Held, "g1")
				s.show()
				s.quiet()
			},
		},
		invariant.I13Devices: {
			breaks: func(s *scene) {
				s.commit("u1", "g1")
				s.hold(tx("u1"), grant.Held, "g1").Members[0].Assignment.GPUs[0].Index = 3
				s.show()
				s.quiet()
			},
			holds: rest,
		},
		invariant.I13Units: {
			breaks: func(s *scene) { s.batch(s.unit("u1", "Pending", "")); s.quiet() },
			holds: func(s *scene) {
				s.batch(s.unit("u1", "Pending", ""), invariant.Order{Key: "k", Path: path("u1"), UID: "u1"})
				s.quiet()
			},
		},
	}
}
