package lead

import (
	"slices"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// mended is a gang of three with work that has lost a member, whose replacement runs on n4.
func mended(t *testing.T, spec string, member int) (x *scene, gang, replacement *work.Unit) {
	t.Helper()
	x = newWorkScene(t)
	u, r, _ := x.lose(replace+spec, command, member)
	x.connect("n4")
	x.answers()
	x.clear()
	x.holdsAll(r)
	return x, u, r
}

// startsOf are the starts of a unit since clear.
func (x *scene) startsOf(u *work.Unit) []grant.Start {
	return slices.DeleteFunc(x.starts(), func(s grant.Start) bool { return s.Tx != u.Attempt.Machine.ID() })
}

// A replacement starts with the rank, the index and the world size of its member, the port
// of the gang, and the hosts of now.
func TestAReplacementStartsInThePlaceOfItsMember(t *testing.T) {
	for _, member := range []int{0, 1, 2} {
		x, u, r := mended(t, "", member)
		starts := x.startsOf(r)
		if len(starts) != 1 {
			t.Fatalf("%d starts, want one", len(starts))
		}
		want := make([]string, 3)
		for i := range want {
			if want[i] = "n4"; i != member {
				want[i] = string(x.memberNode(u, i))
			}
		}
		s := starts[0]
		if s.Tx != r.Attempt.Machine.ID() || s.Rank != member || s.First != member || !slices.Equal(s.Hosts, want) || s.Port != u.Attempt.Port || s.Port == 0 {
			t.Errorf("member %d: %+v, want rank and index %d, the hosts %v and port %d", member, s, member, want, u.Attempt.Port)
		}
		if got := x.tx(r.Attempt.Machine.ID()).Port; got != u.Attempt.Port {
			t.Errorf("member %d: the record has port %d, the gang %d", member, got, u.Attempt.Port)
		}
		x.check()
	}
}

// The replacement of rank 0 takes another port where another unit has the gang's on its
// host, and the replacements that start later take that one.
func TestTheReplacementOfRankZeroMayHaveAnotherPort(t *testing.T) {
	x := newWorkScene(t)
	u, r, _ := x.lose(replace, command, 0)
	x.connect("n4")
	x.answers()
	x.ports.add(u.Attempt.Port, r.Attempt.Machine.ID()) // as if another unit had the port on that host
	x.settles(r, grant.Reserved)
	if r.Attempt.Port == u.Attempt.Port || r.Attempt.Port == 0 || x.gangPort(u.Attempt) != r.Attempt.Port {
		t.Errorf("port %d of the gang's %d, of those to come %d", r.Attempt.Port, u.Attempt.Port, x.gangPort(u.Attempt))
	}
}

// Nothing starts before the place of rank 0 is known: of two lost members the first waits
// for the other.
func TestAReplacementWaitsForRankZero(t *testing.T) {
	x := newWorkScene(t)
	u := x.gangOf(4, replace, command)
	zero, two := x.memberNode(u, 0), x.memberNode(u, 2)
	x.dies(two)
	x.answers()
	x.dies(zero)
	x.answers()
	r := u.Job.Replacements() // of member 0 and of member 2
	if len(r) != 2 || r[0].Rank() != 0 || r[1].Rank() != 2 {
		t.Fatalf("%d replacements", len(r))
	}
	x.do(func() { r[0].SetHold(work.HoldDelay); x.offer(r[0]) })
	x.connect("n5")
	x.answers()
	x.clear()
	x.holdsAll(r[1])
	if got := x.startsOf(r[1]); len(got) > 0 {
		t.Fatalf("%+v before rank 0 has a place", got)
	}
	x.do(func() { r[0].SetHold(work.NoHold); x.offer(r[0]) })
	x.connect("n6")
	x.answers()
	x.settles(r[0], grant.Reserved)
	starts := x.startsOf(r[1])
	if len(starts) != 1 || starts[0].Hosts[0] != "n6" {
		t.Errorf("%+v, want that of member 2 with rank 0 on n6", starts)
	}
	x.check()
}

// A gang has succeeded once all members that run have, those that replace others among
// them; their ends are on record with the transaction that they ran in.
func TestAGangSucceedsWithItsReplacements(t *testing.T) {
	x, u, r := mended(t, "", 1)
	tx := r.Attempt.Machine.ID()
	x.ends(u, 0, 0, "Completed")
	x.ends(u, 2, 0, "Completed")
	if u.Life.EndAsked() {
		t.Fatal("the gang ends while the replacement runs")
	}
	x.hear(grant.Worked{Node: "n4", Tx: tx, States: []grant.WorkState{{Phase: grant.WorkEnded, Reason: "Completed"}}})
	x.answers()
	x.settles(r, grant.Tombstone)
	x.settles(u, grant.Tombstone)
	if u.Phase() != api.Succeeded || !r.Life.Gone() || u.Job.Record.Phase != string(api.Succeeded) {
		t.Fatalf("the gang is %s, the job %s", u.Phase(), u.Job.Record.Phase)
	}
	exits := x.stored(u).Exits
	if len(exits) != 3 || exits[1].Member != 1 || exits[1].Node != "n4" || exits[1].Tx != tx || exits[0].Tx != "" {
		t.Errorf("exits %+v", exits)
	}
	x.check()
}

// A member that waits for another place is not needed once the others have succeeded.
func TestAGangSucceedsWithoutAMemberThatWaits(t *testing.T) {
	x := newWorkScene(t)
	u, r, _ := x.lose(replace, command, 1)
	x.ends(u, 0, 0, "Completed")
	x.ends(u, 2, 0, "Completed")
	x.answers()
	x.settles(u, grant.Tombstone)
	if u.Phase() != api.Succeeded || !r.Life.Gone() || u.Job.Record.Phase != string(api.Succeeded) {
		t.Errorf("the gang is %s, the replacement gone %t, the job %s", u.Phase(), r.Life.Gone(), u.Job.Record.Phase)
	}
	x.check()
}

// A failure of a replacement is one of its gang: all start again, with all members.
func TestAFailureOfAReplacementIsOneOfTheGang(t *testing.T) {
	x, u, r := mended(t, "", 1)
	x.hear(grant.Worked{Node: "n4", Tx: r.Attempt.Machine.ID(), States: []grant.WorkState{{Phase: grant.WorkEnded, Code: 3, Reason: "Completed"}}})
	x.answers()
	x.settles(u, grant.Tombstone)
	x.settles(r, grant.Tombstone)
	if u.Phase() != api.Pending || u.Record.Retries != 1 || len(u.Record.Lost) > 0 || !r.Life.Gone() || u.Record.Failure != "train-1 exited with code 3" {
		t.Errorf("the gang is %s after %d retries (%s), the replacement gone %t", u.Phase(), u.Record.Retries, u.Record.Failure, r.Life.Gone())
	}
	x.check()
}

// A preemption takes a gang with its replacements in one Txn, or leaves all alone.
func TestAGangGivesWayWithItsReplacements(t *testing.T) {
	x := newScene(t)
	u, r, _ := x.lose(replace, "", 1)
	x.connect("n4")
	x.answers()
	x.holdsAll(r)
	p := x.accepted("urgent", 8, `"priority":100,"preemptionPolicy":"PreemptLowerPriority",`)
	x.settles(p, grant.Waiting)
	if u.Phase() != api.Terminating || r.Phase() != api.Terminating || len(p.Attempt.Victims) != 2 {
		t.Fatalf("the gang is %s, the replacement %s", u.Phase(), r.Phase())
	}
	x.says(u, grant.Tombstone)
	x.says(r, grant.Tombstone)
	x.settles(p, grant.Reserved)
	if p.Phase() != api.Running || u.Phase() != api.Pending || !r.Life.Gone() || len(u.Record.Lost) > 0 {
		t.Errorf("the preemptor is %s, the gang %s, the replacement gone %t", p.Phase(), u.Phase(), r.Life.Gone())
	}
	x.check()
}

// The charge of a lost member ends, and the replacement is charged where it has a place.
func TestALostMemberIsChargedToNobody(t *testing.T) {
	x := newScene(t)
	u, r, _ := x.lose(replace, "", 1)
	charged := func(u *work.Unit) int64 {
		c, _ := x.quotas.Limits().Charged(u.Attempt.Machine.ID())
		return c.Request[resource.GPU]*10 + c.Members
	}
	if got := charged(u); got != 160002 {
		t.Errorf("the gang is charged %d", got)
	}
	x.connect("n4")
	x.answers()
	x.holdsAll(r)
	if got := charged(r); got != 80001 {
		t.Errorf("the replacement is charged %d", got)
	}
	next := x.succeeded()
	if c, _ := next.quotas.Limits().Charged(u.Attempt.Machine.ID()); c.Members != 2 || c.Request[resource.GPU] != 16000 {
		t.Errorf("the next leader charges the gang %+v", c)
	}
	next.check()
	x.finish(func() { x.cancelJob(u.Job, record.Cancellation{Remove: true}, func(*api.Status) {}) })
	x.says(u, grant.Tombstone)
	x.settles(r, grant.Tombstone)
	if !u.Life.Gone() || !r.Life.Gone() || x.keeps(r.Record.Path().Key()) {
		t.Errorf("gone: the gang %t, the replacement %t", u.Life.Gone(), r.Life.Gone())
	}
	x.check()
}

// A job says that its gang is below the minimum until the lost member has another place,
// and shows each member once, in order.
func TestAJobShowsItsLostMembers(t *testing.T) {
	x := newScene(t)
	u, r, node := x.lose(replace, "", 1)
	show := func() (members, conditions []string) {
		j := x.showJob(u.Job)
		s := j.Show().Status
		for _, m := range s.Allocations {
			members = append(members, m.Name+" "+string(m.Phase)+" "+m.Node)
		}
		for _, c := range s.Conditions {
			conditions = append(conditions, c.Type+" "+c.Message)
		}
		return members, conditions
	}
	members, conditions := show()
	zero, two := string(x.memberNode(u, 0)), string(x.memberNode(u, 2))
	want := []string{"train-0 Running " + zero, "train-1 Pending ", "train-2 Running " + two}
	if !slices.Equal(members, want) || len(conditions) != 2 || conditions[1] != "GangBelowMinimum 2 of 3 members of the gang run; the nodes of the others are lost, and they wait for another place" {
		t.Errorf("after the loss of %s: %q, %q", node, members, conditions)
	}
	x.connect("n4")
	x.answers()
	x.holdsAll(r)
	members, conditions = show()
	want[1] = "train-1 Running n4"
	if !slices.Equal(members, want) || len(conditions) != 1 {
		t.Errorf("%q, %q", members, conditions)
	}
}

// A gang that was suspended or evicted with a replacement that an earlier leader left
// behind waits for its end.
func TestALeaderEndsAReplacementWithoutAGang(t *testing.T) {
	x := newScene(t)
	u, r, _ := x.lose(replace, "", 1)
	x.connect("n4")
	x.answers()
	x.holdsAll(r)
	gang, rec := u.Record, x.tx(u.Attempt.Machine.ID()) // the leader dies before it ends the replacement
	gang.Phase, gang.TxID, gang.Lost = "Pending", "", nil
	rec.State, rec.Ended = grant.RecordReleased, "2026-01-02T03:04:06Z"
	x.put(record.TxKey(u.Attempt.Machine.ID()), record.MustEncode(rec))
	x.put(gang.Path().Key(), record.MustEncode(gang))
	x.put(gang.Order().Key(), record.MustEncode(record.Order{UnitUID: gang.UID}))
	next := x.succeeded()
	next.finish(next.resume)
	if got := next.work.Units[r.Path]; got.Phase() != api.Terminating {
		t.Fatalf("the replacement is %s", got.Phase())
	}
	if next.work.Units[u.Path].MayBeTried() {
		t.Error("the gang may be tried")
	}
	next.check()
}

// After a failure of the gang a replacement has the usual grace for the work.
func TestTheGraceOfAReplacement(t *testing.T) {
	x, u, r := mended(t, "", 1)
	x.ends(u, 0, 3, "Completed")
	if x.answers(); !r.Life.EndAsked() || r.Life.Ending().GraceSeconds != DefaultGrace {
		t.Errorf("it ends as %+v, want a grace of %d s", r.Life.Ending(), DefaultGrace)
	}
}
