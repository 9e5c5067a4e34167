package invariant_test

import (
	"errors"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// lifeStories are about evictions and ends.
func lifeStories() map[invariant.Rule]story {
	return map[invariant.Rule]story{
		invariant.I4Asked: {
			breaks: func(s *scene) {
				t := s.commit("u1", "g1")
				s.batch(put(t, recordOf(grant.RecordReleasing, "u1", "g1")), s.unit("u1", "Terminating", t))
			},
			holds: func(s *scene) { s.commit("u1", "g1"); s.release("u1", "g1") },
		},
		invariant.I7Victims: {
			breaks: func(s *scene) {
				s.priority["u1"] = 1
				t := s.commit("u1", "g1")
				s.evict("u1", "g1", s.wait("u2", "g1", t))
			},
			holds: func(s *scene) { t := s.commit("u1", "g1"); s.evict("u1", "g1", s.wait("u2", "g1", t)) },
		},
		invariant.I7Asked: {
			breaks: func(s *scene) { s.commit("u1", "g1"); s.evict("u1", "g1", "") },
			holds:  func(s *scene) { s.c.EvictionAsked(s.commit("u1", "g1")); s.evict("u1", "g1", "") },
		},
		invariant.I7Waiting: {
			breaks: func(s *scene) {
				t := s.commit("u1", "g1")
				by := s.wait("u2", "g1", t)
				s.hold(by, grant.Tombstone, "g1").Members = nil
				s.show()
				s.evict("u1", "g1", by)
			},
			holds: func(s *scene) { // a new incarnation is not registered yet
				t := s.commit("u1", "g1")
				by := s.wait("u2", "g1", t)
				s.host.Agent = &invariant.Agent{Incarnation: incarnation("b2")}
				s.note(s.c.Observe(s.host))
				s.evict("u1", "g1", by)
			},
		},
		invariant.I7Nominated: {
			breaks: func(s *scene) { t := s.commit("u1", "g1"); s.wait("u2", "g2", t); s.commit("u3", "g2") },
			holds:  func(s *scene) { t := s.commit("u1", "g1"); s.wait("u2", "g2", t); s.commit("u3", "g3") },
		},
		invariant.I7Undecided: {
			breaks: func(s *scene) {
				t := s.commit("u1", "g1")
				s.evict("u1", "g1", s.wait("u2", "g1", t))
				s.batch(put(t, recordOf(grant.RecordReleasing, "u1", "g1")))
			},
			holds: func(s *scene) { t, _ := abort(s); s.batch(put(t, recordOf(grant.RecordReleasing, "u1", "g1"))) },
		},
		invariant.I8Freed: {
			breaks: func(s *scene) { leave(s, 4*time.Second, func() {}) },
			holds: func(s *scene) { // a restart ends the work, and a death has ended it before
				leave(s, 4*time.Second, func() { s.c.Restarted("n1", s.at) })
				s.at = s.at.Add(time.Hour)
				t := s.commit("u2", "g2")
				s.c.Held("n1", t)
				s.batch(invariant.Identity{Node: "n1", New: &record.NodeIdentity{Incarnation: incarnation("b1"), Fenced: true, ConfirmedDead: true}})
				s.c.EvictionAsked(t)
				s.evict("u2", "g2", "")
				s.c.Warned("n1", t, 5*time.Second)
				s.free(t)
			},
		},
		invariant.I10Word: {
			breaks: func(s *scene) {
				t := s.commit("u1", "g1")
				s.release("u1", "g1")
				s.hold(t, grant.Tombstone, "g1").Members = nil
				s.show()
				s.end("u1", "g1")
			},
			holds: func(s *scene) { // the node is dead
				t := s.commit("u1", "g1")
				s.release("u1", "g1")
				s.hold(t, grant.Tombstone, "g1").Members = nil
				s.show()
				s.batch(invariant.Identity{Node: "n1", New: &record.NodeIdentity{Incarnation: incarnation("b1"), Fenced: true, ConfirmedDead: true}})
				s.end("u1", "g1")
			},
		},
		invariant.I10Held: {
			breaks: func(s *scene) {
				t := s.commit("u1", "g1")
				s.release("u1", "g1")
				s.hold(t, grant.Stopping, "g1")
				s.show()
				s.note(s.c.Freed("n1", t, s.at))
				s.batch(put(t, recordOf(grant.RecordReleased, "u1", "g1")), invariant.Unit{Path: path("u1")}, unlisted(t))
			},
			holds: func(s *scene) { s.commit("u1", "g1"); s.free(s.release("u1", "g1")); s.end("u1", "g1") },
		},
		invariant.I10Workloads: {
			breaks: func(s *scene) { s.note(s.c.Buried("n1", s.commit("u1", "g1"), true)) },
			holds:  func(s *scene) { s.note(s.c.Buried("n1", s.commit("u1", "g1"), false)) },
		},
		invariant.I5Freed: {
			breaks: func(s *scene) {
				s.free(s.commit("u1", "g1"))
				s.hold(tx("u1"), grant.Held, "g1")
				s.show()
			},
			holds: func(s *scene) {
				s.commit("u1", "g1")
				s.free(s.release("u1", "g1"))
				s.end("u1", "g1")
				s.hold(tx("u1"), grant.Reserved, "g1") // a message that comes again
				s.show()
			},
			also: []invariant.Rule{invariant.I3Protected},
		},
	}
}

// leave evicts u1 with a grace of 5 s, and frees it after a time.
func leave(s *scene, after time.Duration, first func()) {
	t := s.commit("u1", "g1")
	s.c.Held("n1", t)
	s.c.EvictionAsked(t)
	s.evict("u1", "g1", "")
	s.c.Warned("n1", t, 5*time.Second)
	s.at = s.at.Add(after)
	first()
	s.free(t)
}

// agentStories are about one host, one ledger and its messages.
func agentStories() map[invariant.Rule]story {
	runs := func(txs ...resource.TxID) (list []invariant.Workload) {
		for _, t := range txs {
			list = append(list, invariant.Workload{Tx: t, Assignments: []resource.Assignment{assignment("g1")}})
		}
		return list
	}
	stop := invariant.Stop{Node: "n1", Tx: "t", Noticed: true, Forced: true, Passed: time.Second, Grace: time.Second}
	early := stop
	early.Passed--
	kept := invariant.Memory{Hash: 7, Grants: 1}
	decision := func(c ledger.Command, quarantined bool, events ...ledger.Event) invariant.Decision {
		return invariant.Decision{Node: "n1", Seen: 3, Heard: 10, Quarantined: quarantined, Command: c, Events: events}
	}
	return map[invariant.Rule]story{
		invariant.I1Ledger: {
			breaks: func(s *scene) {
				s.note(s.c.Observe(invariant.Host{Node: "n1", Agent: &invariant.Agent{Problem: errors.New("sums differ")}}))
			},
			holds: func(s *scene) { s.show() },
		},
		invariant.I1Grants: {
			breaks: func(s *scene) { s.reserve("u1", "g1"); s.reserve("u2", "g1") },
			holds:  func(s *scene) { s.reserve("u1", "g1"); s.reserve("u2", "g2") },
		},
		invariant.I1Workloads: {
			breaks: func(s *scene) { s.host.Workloads = runs("t1", "t2"); s.show() },
			holds: func(s *scene) {
				s.host.Workloads, s.host.Remains = runs("t1"), []invariant.Remain{{Tx: "t1", UUID: "g1"}, {Tx: "t2", UUID: "g2"}}
				s.show()
			},
		},
		invariant.I3Protected: {
			breaks: func(s *scene) { s.commit("u1", "g1"); s.grants = nil; s.show() },
			holds: func(s *scene) { // it has not registered since it lost its memory
				s.commit("u1", "g1")
				s.note(s.c.Observe(invariant.Host{Node: "n1", Agent: &invariant.Agent{Incarnation: incarnation("b2")}}))
				s.note(s.c.Moment())
			},
		},
		invariant.I3Launch: {
			breaks: func(s *scene) { s.note(s.c.Launched("n1", s.reserve("u1", "g1"))) },
			holds:  func(s *scene) { s.note(s.c.Launched("n1", s.commit("u1", "g1"))) },
		},
		invariant.I8Stopped: {
			breaks: func(s *scene) { s.note(s.c.Stopped(early)) },
			holds:  func(s *scene) { s.note(s.c.Stopped(stop)) },
		},
		invariant.I9Replay: {
			breaks: func(s *scene) { s.note(s.c.Replayed(invariant.Replay{Node: "n1", Before: &kept})) },
			holds:  func(s *scene) { s.note(s.c.Replayed(invariant.Replay{Node: "n1", Before: &kept, After: kept})) },
		},
		invariant.I12Commands: {
			breaks: func(s *scene) {
				s.note(s.c.Decided(decision(grant.Commit{Tx: "t", Epoch: 2}, false, ledger.Committed{Tx: "t"})))
			},
			holds: func(s *scene) { s.note(s.c.Decided(decision(grant.Commit{Tx: "t", Epoch: 2}, false))) },
		},
		invariant.I12Promises: {
			breaks: func(s *scene) {
				s.c.Occupied("n1", 2, nil)
				s.note(s.c.Answered("n1", 2, tx("u1"), true))
			},
			holds: func(s *scene) {
				s.c.Occupied("n1", 2, []resource.TxID{tx("u1")})
				s.note(s.c.Answered("n1", 2, tx("u1"), true))
			},
		},
		invariant.NamesAttempts: {
			breaks: func(s *scene) {
				s.note(s.c.Asked(resource.NewTxID("u1", 1, 5, resource.Nonce{}), 1))
				s.note(s.c.Asked(resource.NewTxID("u2", 1, 5, resource.Nonce{}), 1))
			},
			holds: func(s *scene) { s.note(s.c.Asked(tx("u1"), 1)); s.note(s.c.Asked(tx("u1"), 2)) },
		},
		invariant.QuarantineKept: {
			breaks: func(s *scene) { s.note(s.c.Decided(decision(ledger.Registered{Store: 9}, false, ledger.Enrolled{}))) },
			holds: func(s *scene) {
				s.note(s.c.Decided(decision(ledger.Registered{Store: 9}, false, ledger.Quarantined{})))
				s.note(s.c.Decided(decision(grant.Cordon{}, true, ledger.CordonSet{})))
			},
		},
		invariant.AlarmRaised: {
			breaks: func(s *scene) { s.note(s.c.Alarmed("n1", "no record")) },
			holds:  func(s *scene) { s.c.Lost("n1", invariant.LostTail); s.note(s.c.Alarmed("n1", "no record")) },
		},
	}
}
