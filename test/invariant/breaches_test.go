package invariant_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// breach is another way to break a rule; text is in what is found.
type breach struct {
	rule invariant.Rule
	text string
	act  func(s *scene)
}

// agent shows another agent on n1.
func (s *scene) agent(a *invariant.Agent) {
	s.host.Agent = a
	s.note(s.c.Observe(s.host))
}

// wrong are breaches in the order of the rules.
func wrong() map[string]breach {
	order := func(key, name, uid string) invariant.Change {
		return invariant.Order{Key: key, Path: path(name), UID: resource.UnitUID(uid)}
	}
	return map[string]breach{
		"a MIG instance is given twice": {invariant.I1Grants, "2000 milli of mig-1", func(s *scene) {
			for _, name := range []string{"u1", "u2"} {
				s.hold(tx(name), grant.Reserved, "").Members[0].Assignment = resource.Assignment{MIG: []resource.MIGGrant{{UUID: "mig-1"}}}
			}
			s.show()
		}},
		"a CPU is given beyond all of it": {invariant.I1Grants, "1200 milli of CPU 3 of n1", func(s *scene) {
			for _, name := range []string{"u1", "u2"} {
				s.hold(tx(name), grant.Reserved, "").Members[0].Assignment = resource.Assignment{CPUs: []resource.CPUGrant{{ID: 3, Milli: 600}}}
			}
			s.show()
		}},
		"a process that was left behind": {invariant.I1Workloads, "something of t2", func(s *scene) {
			s.host.Workloads = []invariant.Workload{{Tx: "t1", Assignments: []resource.Assignment{assignment("g1")}}}
			s.host.Remains = []invariant.Remain{{Tx: "t2", UUID: "g1"}}
			s.show()
		}},
		"nobody has admitted it": {invariant.I2Admissions, "no leader has admitted it", func(s *scene) {
			t := tx("u1")
			s.batch(put(t, recordOf(grant.RecordCommitted, "u1", "g1")), s.unit("u1", "Running", t), listed(t))
		}},
		"a tree goes that is charged": {invariant.I2Trees, "tree t is deleted", func(s *scene) { s.commit("u1", "g1"); s.batch(invariant.Tree{Name: "t"}) }},
		"a member is missing": {invariant.I3Demand, "the members [0], which asked for 2", func(s *scene) {
			s.c.Demanded(path("u1"), invariant.Wants{Members: 2, GPUs: 1})
			s.commit("u1", "g1")
		}},
		"a replacement has the devices of another member": {invariant.I3Demand, "with 1 devices for member 0, which asked for 2", func(s *scene) {
			s.gang("u1")
			s.batch(dead("n2"))
			s.lose("u1")
			s.c.Demanded(path("u1"), invariant.Wants{Members: 2, GPUs: 1, Differs: true, Last: 2})
			s.replace("u1")
		}},
		"a lost member stays charged": {invariant.I10Lost, "with 1 of 2 members, and charges", func(s *scene) {
			s.gang("u1")
			s.batch(dead("n2"))
			r, whole := recordOf(grant.RecordCommitted, "u1", "g1"), gangOf(grant.RecordCommitted, "u1")
			r.LostMembers, r.Charges = []record.LostMember{{Placement: whole.Members[1], AtMillis: 1}}, whole.Charges
			s.batch(put(tx("u1"), r), s.gangUnit("u1", "Running", 1), invariant.Index{Node: "n2", Tx: tx("u1"), Gone: true}, s.replacement("u1", "Pending", ""))
		}},
		"a member has other things": {invariant.I3Protected, "has other things", func(s *scene) {
			s.commit("u1", "g1")
			s.hold(tx("u1"), grant.Held, "g2")
			s.show()
		}},
		"a client is told of two units": {invariant.I4Told, "of u1 and of u2", func(s *scene) {
			s.commit("u1", "g1")
			s.note(s.c.Told(path("u1"), "u1"))
			s.note(s.c.Told(path("u1"), "u2"))
		}},
		"a unit runs without a record": {invariant.I4Told, "whose record t9", func(s *scene) {
			s.batch(s.unit("u1", "Running", "t9"))
			s.note(s.c.Told(path("u1"), "u1"))
		}},
		"a unit has failed": {invariant.I4Told, "which is Failed", func(s *scene) {
			s.batch(s.unit("u1", "Failed", ""))
			s.note(s.c.Told(path("u1"), "u1"))
		}},
		"a unit ends, and is not evicted": {invariant.I4Told, "not evicted", func(s *scene) {
			s.commit("u1", "g1")
			s.note(s.c.Told(path("u1"), "u1"))
			s.batch(put(tx("u1"), recordOf(grant.RecordReleasing, "u1", "g1")), s.unit("u1", "Terminating", tx("u1")))
		}},
		"two units of one name": {invariant.I6Unit, "ns/alloc/u1/0 is live in", func(s *scene) {
			s.commit("u1", "g1")
			r, t := recordOf(grant.RecordCommitted, "u1", "g2"), resource.NewTxID("other", 1, 7, resource.Nonce{})
			r.UnitUID = "other"
			s.c.Admitted(t, gpus(8))
			s.batch(put(t, r), listed(t))
		}},
		"a record of nobody that came to nothing": {invariant.I6Unit, `becomes ABORTED for unit ""`, func(s *scene) {
			s.batch(put(s.wait("u1", "g1"), record.Tx{State: grant.RecordAborted}))
		}},
		"a victim of what is decided": {invariant.I7Victims, "which is ABORTED", func(s *scene) {
			by := s.wait("u2", "g1", s.commit("u1", "g1"))
			s.batch(put(by, record.Tx{State: grant.RecordAborted, UnitUID: "u2"}))
			s.evict("u1", "g1", by)
		}},
		"a victim of nothing": {invariant.I7Victims, `for "nonsense"`, func(s *scene) { s.commit("u1", "g1"); s.evict("u1", "g1", "nonsense") }},
		"no notice":           {invariant.I8Stopped, "without a notice", func(s *scene) { s.note(s.c.Stopped(invariant.Stop{Node: "n1", Tx: "t"})) }},
		"a journal that cannot be replayed": {invariant.I9Replay, "torn", func(s *scene) {
			s.note(s.c.Replayed(invariant.Replay{Node: "n1", Problem: errors.New("torn")}))
		}},
		"a quarantine that is forgotten": {invariant.I9Replay, "was in quarantine", func(s *scene) {
			s.note(s.c.Replayed(invariant.Replay{Node: "n1", Before: &invariant.Memory{Quarantine: ledger.Quarantine{Store: 1}}}))
		}},
		"RELEASED, and it runs": {invariant.I10Workloads, "runs on n1", func(s *scene) {
			t := s.commit("u1", "g1")
			s.host.Workloads = []invariant.Workload{{Tx: t, Assignments: []resource.Assignment{assignment("g1")}}}
			s.free(s.release("u1", "g1"))
			s.end("u1", "g1")
		}},
		"a quarantine in which a grant ends": {invariant.QuarantineKept, "is in quarantine", func(s *scene) {
			s.note(s.c.Decided(invariant.Decision{Node: "n1", Quarantined: true, Command: ledger.Tick{}, Events: []ledger.Event{ledger.Buried{}}}))
		}},
		"an attempt that has no name":  {invariant.NamesAttempts, `asks for "nonsense"`, func(s *scene) { s.note(s.c.Asked("nonsense", 1)) }},
		"an attempt of a later leader": {invariant.NamesAttempts, "the leader of epoch 0", func(s *scene) { s.note(s.c.Asked(tx("u1"), 0)) }},
		"an agent that is down":        {invariant.I13Grants, "is down", func(s *scene) { s.agent(nil); s.quiet() }},
		"an agent in quarantine":       {invariant.I13Grants, "quarantine", func(s *scene) { s.agent(&invariant.Agent{Quarantined: true}); s.quiet() }},
		"an orphan": {invariant.I13Grants, "orphan", func(s *scene) {
			s.agent(&invariant.Agent{Grants: []ledger.Grant{{Tx: ledger.OrphanTx("g1"), Origin: ledger.OriginOrphan, State: grant.Held}}})
			s.quiet()
		}},
		"a grant without a record": {invariant.I13Grants, "holds [g1] for member 0", func(s *scene) { s.hold("t", grant.Held, "g1"); s.show(); s.quiet() }},
		"a grant of other devices": {invariant.I13Grants, "its record has [g1]", func(s *scene) {
			s.commit("u1", "g1")
			s.hold(tx("u1"), grant.Held, "g2")
			s.show()
			s.quiet()
		}},
		"a record without a grant": {invariant.I13Grants, "not held on n1", func(s *scene) { s.commit("u1", "g1"); s.grants = nil; s.show(); s.quiet() }},
		"a unit that is ordered twice": {invariant.I13Units, "twice in the order", func(s *scene) {
			s.batch(s.unit("u1", "Pending", ""), order("a", "u1", "u1"), order("b", "u1", "u1"))
			s.quiet()
		}},
		"an order of nothing":            {invariant.I13Units, "does not exist", func(s *scene) { s.batch(order("a", "u1", "u1")); s.quiet() }},
		"an order of another unit":       {invariant.I13Units, "the unit is u1", func(s *scene) { s.batch(s.unit("u1", "Pending", ""), order("a", "u1", "u7")); s.quiet() }},
		"a unit that runs nowhere":       {invariant.I13Units, "is Running with", func(s *scene) { s.batch(s.unit("u1", "Running", "t9")); s.quiet() }},
		"a unit that waits and runs":     {invariant.I13Units, `names transaction "t9"`, func(s *scene) { s.batch(s.unit("u1", "Pending", "t9"), order("a", "u1", "u1")); s.quiet() }},
		"a unit that still ends":         {invariant.I13Units, "still Terminating", func(s *scene) { s.batch(s.unit("u1", "Terminating", "")); s.quiet() }},
		"a record whose unit is another": {invariant.I13Units, `names "t9"`, func(s *scene) { s.commit("u1", "g1"); s.batch(s.unit("u1", "Running", "t9")); s.quiet() }},
		"a job that is cancelled and runs": {invariant.I13Units, "is cancelled", func(s *scene) {
			s.batch(invariant.Job{Name: "ns/j", New: &record.Job{Phase: string(api.Running), Cancelled: &record.Cancellation{}}})
			s.quiet()
		}},
		"an index that is left over": {invariant.I13Index, "lists it at [n1]", func(s *scene) { s.c.Load(invariant.Batch{Changes: []invariant.Change{listed("t9")}}); s.quiet() }},
	}
}

func TestEachBreachIsFound(t *testing.T) {
	for name, b := range wrong() {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			b.act(s)
			if !slices.ContainsFunc(s.found, func(v invariant.Violation) bool { return v.Rule == b.rule && strings.Contains(v.Text, b.text) }) {
				t.Errorf("want %s: %q, found:\n%s", b.rule, b.text, invariant.Texts(s.found))
			}
		})
	}
}

func TestWhatClientsWereToldIsHeldAgainstTheEnd(t *testing.T) {
	done := invariant.Answer{Outcome: invariant.Done, Phase: api.Running, Tx: tx("u1"), Devices: []string{"n1 g1"}}
	moved, job := done, done
	moved.Devices = []string{"n1 g2"}
	job.Members = 2
	refused := func(code, repeats int) invariant.Answer {
		return invariant.Answer{Outcome: invariant.Refused, Code: code, Repeats: repeats}
	}
	unknown := invariant.Answer{Outcome: invariant.Unknown}
	deleted := func(a invariant.Answer) *invariant.Answer { return &a }
	for name, c := range map[string]struct {
		fate invariant.Fate // u1 runs, others do not
		want string
	}{
		"it runs":                                {fate: invariant.Fate{Name: "u1", Created: done}},
		"nobody knows":                           {fate: invariant.Fate{Name: "u1", Created: unknown}},
		"one that waited is gone":                {fate: invariant.Fate{Name: "u2", Created: unknown}},
		"lost":                                   {fate: invariant.Fate{Name: "u2", Created: done}, want: "not there"},
		"lost, as its owner found":               {fate: invariant.Fate{Name: "u2", Created: done, Deleted: deleted(refused(404, 0))}, want: "not found"},
		"a repeated deletion finds none":         {fate: invariant.Fate{Name: "u2", Created: done, Deleted: deleted(refused(404, 1))}},
		"a deletion that was forbidden":          {fate: invariant.Fate{Name: "u1", Created: done, Deleted: deleted(refused(403, 0))}, want: "refused with 403"},
		"refused, and yet it runs":               {fate: invariant.Fate{Name: "u1", Created: refused(403, 0)}, want: "refused with 403"},
		"refused, and an earlier try came later": {fate: invariant.Fate{Name: "u1", Created: refused(403, 1)}},
		"not found, and then created":            {fate: invariant.Fate{Name: "u1", Created: unknown, Deleted: deleted(refused(404, 0))}},
		"deleted, and yet it runs":               {fate: invariant.Fate{Name: "u1", Created: done, Deleted: deleted(done)}, want: "deleted, and yet"},
		"it has moved":                           {fate: invariant.Fate{Name: "u1", Created: moved}, want: "now it is"},
		"a job has lost a member":                {fate: invariant.Fate{Name: "u1", Created: job}, want: "now it has 1"},
		"a read did not find it":                 {fate: invariant.Fate{Name: "u1", Created: done, Read: []invariant.Answer{refused(404, 0)}}, want: "a read was refused"},
		"a read found another":                   {fate: invariant.Fate{Name: "u1", Created: done, Read: []invariant.Answer{{Outcome: invariant.Done, Phase: api.Running, Tx: "t2"}}}, want: "read as t2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.commit("u1", "g1")
			c.fate.Namespace = "ns"
			found := invariant.Texts(s.c.Judge([]invariant.Fate{c.fate}))
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
