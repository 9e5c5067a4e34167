package lead

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// newWorkScene is a scene of a cluster that starts processes.
func newWorkScene(t *testing.T) *scene {
	rules := sceneRules()
	rules.StartsWork = true
	return newSceneOf(t, rules)
}

const command = `"command":["train"],"args":["--fast"],"env":[{"name":"A","value":"b"}],"workingDir":"/w",`

// submitWork submits a job whose members run a command on 8 GPUs each, without retries.
func (x *scene) submitWork(name string, members int, gang string) *work.Unit {
	x.t.Helper()
	return x.submitLife(name, members, `"backoffLimit":0,`, gang)
}

// submitLife is submitWork with more of the job's specification.
func (x *scene) submitLife(name string, members int, spec, gang string) *work.Unit {
	x.t.Helper()
	u := x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"parallelism":%d,%s"template":{"spec":{%s%s"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`, name, members, spec, command, gang))
	if members > 2 || gang == "" { // its units are stored before they are tried
		x.answers()
	}
	return u
}

const gangOfTwo = `"gangScheduling":{"minMembers":2},`

// holdsAll has a unit committed and held by all its agents.
func (x *scene) holdsAll(u *work.Unit) {
	x.t.Helper()
	x.settles(u, grant.Reserved)
	x.settles(u, grant.Held)
}

// ends has the agent of a member's node report the end of the member's work.
func (x *scene) ends(u *work.Unit, member, code int, reason string) {
	x.t.Helper()
	x.hear(grant.Worked{Node: x.memberNode(u, member), Tx: u.Attempt.Machine.ID(), States: []grant.WorkState{{Member: member, Phase: grant.WorkEnded, Code: code, Reason: reason}}})
}

func (x *scene) memberNode(u *work.Unit, member int) resource.NodeID {
	for _, id := range u.Attempt.Machine.Nodes() {
		vote, _ := u.Attempt.Machine.Vote(id)
		if slices.ContainsFunc(vote.Members, func(m grant.Member) bool { return m.Index == member }) {
			return id
		}
	}
	x.t.Fatalf("no node has member %d of %s", member, u.Path)
	return ""
}

// starts are the commands since clear that start work.
func (x *scene) starts() (list []grant.Start) {
	for _, e := range x.left {
		if s, ok := e.Command.(grant.Start); ok {
			list = append(list, s)
		}
	}
	return list
}

// stored is a unit as the store has it.
func (x *scene) stored(u *work.Unit) record.Unit {
	x.t.Helper()
	r, _ := storedAs[record.Unit](x, u.Record.Path().Key())
	return r
}

// check checks the leader, and compares each unit with the record in the store.
func (x *scene) check() {
	x.t.Helper()
	if err := x.Check(); err != nil {
		x.t.Error(err)
	}
	for path, u := range x.work.Units {
		if len(x.asked) == 0 && u.Stored != 0 && !u.Life.IsBeingWritten() {
			stored := x.stored(u)
			stored.Document = u.Record.Document // equal documents are kept once
			if d := cmp.Diff(stored, u.Record); d != "" {
				x.t.Errorf("%s: the leader has another record than the store (-store +leader)\n%s", path, d)
			}
		}
	}
}

func TestWorkStartsOnceAllAgentsHoldTheirMembers(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 2, gangOfTwo)
	x.settles(u, grant.Reserved)
	held := x.reply(u, grant.Held)
	x.hear(held)
	if got := x.starts(); len(got) > 0 {
		t.Fatalf("%+v was sent while one agent holds nothing", got)
	}
	x.says(u, grant.Held)
	got := x.starts()
	if len(got) != 2 {
		t.Fatalf("%d starts, want one for each node", len(got))
	}
	want := grant.Start{
		Tx: u.Attempt.Machine.ID(), Epoch: x.post.Epoch(), Args: []string{"train", "--fast"}, Env: []string{"A=b"}, Dir: "/w",
		Hosts: []string{string(x.memberNode(u, 0)), string(x.memberNode(u, 1))}, Port: rendezvous.Default.Preferred(u.Attempt.Machine.ID()),
	}
	for _, s := range got {
		if len(s.Members) != 1 {
			t.Errorf("members %v, want the one of the node", s.Members)
		}
		s.Members = nil
		if diff := cmp.Diff(want, s); diff != "" {
			t.Error(diff)
		}
	}
	// An agent whose stream was opened anew says HELD again: the start may be lost.
	x.clear()
	x.hear(grant.Worked{Node: x.memberNode(u, 0), Tx: u.Attempt.Machine.ID(), States: []grant.WorkState{{Member: 0, Phase: grant.WorkStarting}}})
	x.says(u, grant.Held)
	for _, s := range x.starts() {
		if s.Members[0].Index == 0 {
			t.Error("a member that was started is started again")
		}
	}
	x.check()
}

func TestAUnitEndsWithItsWork(t *testing.T) {
	type end struct {
		member, code int
		reason       string
	}
	for name, c := range map[string]struct {
		ends  []end
		phase api.Phase
		why   string
		exits []record.Exit
	}{
		"all succeed": {
			[]end{{1, 0, "Completed"}, {0, 0, "Completed"}}, api.Succeeded, "its work is done",
			[]record.Exit{{Member: 0, Reason: "Completed"}, {Member: 1, Reason: "Completed"}},
		},
		"one fails": {
			[]end{{1, 7, "Completed"}, {0, 143, "Stopped"}}, api.Failed, "train-1 exited with code 7",
			[]record.Exit{{Member: 0, Code: 143, Reason: "Stopped"}, {Member: 1, Code: 7, Reason: "Completed"}},
		},
		"one fails after another has succeeded": {
			[]end{{0, 0, "Completed"}, {1, 1, "Completed"}}, api.Failed, "train-1 exited with code 1",
			[]record.Exit{{Member: 0, Reason: "Completed"}, {Member: 1, Code: 1, Reason: "Completed"}},
		},
		"a lost supervisor is no success": {
			[]end{{0, 255, "SupervisorLost"}, {1, 143, "Stopped"}}, api.Failed, "train-0 lost its supervisor",
			[]record.Exit{{Member: 0, Code: 255, Reason: "SupervisorLost"}, {Member: 1, Code: 143, Reason: "Stopped"}},
		},
		"a member that was never started": {
			[]end{{0, 127, "NotStarted"}, {1, 143, "Stopped"}}, api.Failed, "train-0 could not be started",
			[]record.Exit{{Member: 0, Code: 127, Reason: "NotStarted"}, {Member: 1, Code: 143, Reason: "Stopped"}},
		},
		"code 0 after a stop is no success": {
			[]end{{0, 0, "Stopped"}, {1, 0, "Stopped"}}, api.Failed, "train-0 exited with code 0",
			[]record.Exit{{Member: 0, Reason: "Stopped"}, {Member: 1, Reason: "Stopped"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.submitWork("train", 2, gangOfTwo)
			x.holdsAll(u)
			tx := u.Attempt.Machine.ID()
			for i := range c.exits {
				c.exits[i].Node = x.memberNode(u, c.exits[i].Member)
			}
			for _, e := range c.ends {
				x.ends(u, e.member, e.code, e.reason)
				x.answers()
				x.check()
			}
			if u.Phase() != api.Terminating {
				t.Fatalf("the unit is %s, want Terminating until its agents are rid of it", u.Phase())
			}
			x.settles(u, grant.Tombstone)
			got := x.stored(u)
			if api.Phase(got.Phase) != c.phase || got.Reason != c.why || got.LastTx != tx {
				t.Errorf("unit %s, %q, last transaction %s; want %s, %q", got.Phase, got.Reason, got.LastTx, c.phase, c.why)
			}
			if diff := cmp.Diff(c.exits, got.Exits); diff != "" {
				t.Error(diff)
			}
			j := x.jobObject(u.Job)
			if j.Status.Phase != c.phase || j.Status.Message != c.why {
				t.Errorf("job %s, %q, want as its unit", j.Status.Phase, j.Status.Message)
			}
			for i, m := range j.Status.Allocations {
				if m.ExitCode == nil || int(*m.ExitCode) != c.exits[i].Code || m.ExitReason != c.exits[i].Reason || m.Node == "" {
					t.Errorf("member %+v, want %+v", m, c.exits[i])
				}
			}
			x.check()
		})
	}
}

// TestAnEndForAnotherReasonIsNoFailure: work that was stopped by an eviction runs again,
// and work that its owner has cancelled is Cancelled.
func TestAnEndForAnotherReasonIsNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*scene, *work.Unit)
		want api.Phase
	}{
		"an eviction": {func(x *scene, u *work.Unit) {
			x.do(func() { x.evict(u, txn.EvictAsked{GraceSeconds: 30, Reason: "Drained"}) })
		}, api.Pending},
		"its owner": {func(x *scene, u *work.Unit) {
			x.do(func() {
				x.cancelJob(u.Job, record.Cancellation{Reason: "UserRequested", GraceSeconds: 30}, func(*api.Status) {})
			})
		}, api.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.submitWork("train", 2, gangOfTwo)
			x.holdsAll(u)
			c.end(x, u)
			x.answers()
			x.ends(u, 0, 143, "Stopped")
			x.ends(u, 1, 143, "Stopped")
			x.answers()
			tx := u.Attempt.Machine.ID()
			x.settles(u, grant.Tombstone)
			if got := x.stored(u); api.Phase(got.Phase) != c.want || len(got.Exits) != 2 || got.LastTx != tx {
				t.Errorf("unit %s with exits %v of %s, want %s with those of its output", got.Phase, got.Exits, got.LastTx, c.want)
			}
			x.check()
		})
	}
}

// TestADeletionOfAJobThatEndsIsKept: the name is free once the work has ended.
func TestADeletionOfAJobThatEndsIsKept(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 2, gangOfTwo)
	x.holdsAll(u)
	x.ends(u, 0, 1, "Completed")
	x.answers()
	x.finish(func() { x.cancelJob(u.Job, record.Cancellation{Remove: true}, func(*api.Status) {}) })
	x.settles(u, grant.Tombstone)
	if !u.Job.Gone {
		t.Errorf("the job is %s", u.Job.Record.Phase)
	}
	x.check()
}

func TestAGangEndsWithItsFirstUnit(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 3, gangOfTwo) // the third member finds no room
	x.holdsAll(u)
	x.ends(u, 0, 0, "Completed")
	x.ends(u, 1, 0, "Completed")
	x.answers()
	x.settles(u, grant.Tombstone)
	growth := u.Job.Units[1]
	if growth.Phase() == api.Running || growth.Attempt != nil {
		x.settles(growth, grant.Tombstone)
	}
	if got := api.Phase(u.Job.Record.Phase); got != api.Succeeded || growth.Phase() != api.Cancelled {
		t.Errorf("the job is %s and its third member %s, want Succeeded and Cancelled", got, growth.Phase())
	}
	x.check()
}

// TestMembersOfTheirOwnEndByThemselves: without a gang the others go on where the job
// ignores the failure of a member, and end where the job fails.
func TestMembersOfTheirOwnEndByThemselves(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		second api.Phase // after the failure of the first
		want   api.JobStatus
		reason string
	}{
		"the job has no retries": {`"backoffLimit":0,`, api.Terminating, api.JobStatus{
			Phase: api.Failed, Message: "sweep-0 exited with code 3", Failed: 1,
		}, "BackoffLimitExceeded"},
		"the job fails with a member": {`"onMemberFailure":"FailJob",`, api.Terminating, api.JobStatus{
			Phase: api.Failed, Message: "sweep-0 exited with code 3", Failed: 1,
		}, "MemberFailed"},
		"the job ignores the failure": {`"onMemberFailure":"Ignore",`, api.Running, api.JobStatus{
			Phase: api.Succeeded, Message: "its work is done", Succeeded: 1, Failed: 1,
		}, "CompletionsReached"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			first := x.submitLife("sweep", 2, c.spec, "")
			second := first.Job.Units[1]
			x.holdsAll(first)
			x.holdsAll(second)
			for i, s := range x.starts() {
				if s.First != i || len(s.Hosts) != 1 || s.Members[0].Index != 0 {
					t.Errorf("start %+v, want member %d of the job as the only one of its unit", s, i)
				}
			}
			x.ends(first, 0, 3, "Completed")
			x.answers()
			x.settles(first, grant.Tombstone)
			if second.Phase() != c.second || first.Phase() != api.Failed || api.Phase(first.Job.Record.Phase).Ended() {
				t.Fatalf("units are %s and %s, the job %s", first.Phase(), second.Phase(), first.Job.Record.Phase)
			}
			if second.Phase() == api.Running {
				x.ends(second, 0, 0, "Completed")
			}
			x.answers()
			x.settles(second, grant.Tombstone)
			got := x.jobObject(first.Job).Status
			if got.Phase != c.want.Phase || got.Message != c.want.Message || got.Succeeded != c.want.Succeeded || got.Failed != c.want.Failed {
				t.Errorf("job %+v, want %+v", got, c.want)
			}
			if len(got.Conditions) != 1 || got.Conditions[0].Reason != c.reason {
				t.Errorf("conditions %+v, want the reason %s", got.Conditions, c.reason)
			}
			x.check()
		})
	}
}

// TestReportsThatDoNotCount change nothing and are idle.
func TestReportsThatDoNotCount(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 2, gangOfTwo)
	x.holdsAll(u)
	tx, there := u.Attempt.Machine.ID(), x.memberNode(u, 0)
	over := []grant.WorkState{{Member: 1, Phase: grant.WorkEnded, Code: 1, Reason: "Completed"}}
	x.hear(grant.Worked{Node: there, Tx: tx, States: []grant.WorkState{{Member: 0, Phase: grant.WorkRunning}}})
	for name, e := range map[string]grant.Worked{
		"of a member elsewhere":     {Node: there, Tx: tx, States: over},
		"of another transaction":    {Node: there, Tx: "x", States: over},
		"a repetition":              {Node: there, Tx: tx, States: []grant.WorkState{{Member: 0, Phase: grant.WorkRunning}}},
		"an earlier phase":          {Node: there, Tx: tx, States: []grant.WorkState{{Member: 0, Phase: grant.WorkStarting}}},
		"of a member out of bounds": {Node: there, Tx: tx, States: []grant.WorkState{{Member: 9, Phase: grant.WorkEnded, Code: 1, Reason: "Completed"}}},
	} {
		idle := x.IdleMessages()
		x.hear(e)
		if x.IdleMessages() != idle+1 || u.Phase() != api.Running {
			t.Errorf("a report %s counts: the unit is %s", name, u.Phase())
		}
	}
	x.check()
}

// TestTheOutcomeOutlivesTheLeader: a record in RELEASING has it, with the exits that
// were known.
func TestTheOutcomeOutlivesTheLeader(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 2, gangOfTwo)
	x.holdsAll(u)
	x.ends(u, 1, 7, "Completed")
	x.answers()
	rec := x.tx(u.Attempt.Machine.ID())
	if rec.State != grant.RecordReleasing || rec.Outcome == nil {
		t.Fatalf("record %s with outcome %+v", rec.State, rec.Outcome)
	}
	later := &work.Attempt{Unit: u, Machine: u.Attempt.Machine}
	later.RestoreOutcome(rec.Outcome)
	later.SetWork(grant.WorkState{Member: 0, Phase: grant.WorkEnded, Code: 143, Reason: "Stopped", Use: &grant.WorkUse{CPU: time.Second, OOMKills: grant.UnknownKills}})
	end := x.endOfUnit(later)
	if end.Record.Phase != string(api.Failed) || end.Record.Reason != "train-1 exited with code 7" || len(end.Record.Exits) != 2 || end.Record.Exits[1].Code != 7 {
		t.Errorf("the next leader ends the unit as %s, %q, %+v", end.Record.Phase, end.Record.Reason, end.Record.Exits)
	}
	if u := end.Record.Exits[0].Use; u == nil || u.CPUMillis != 1000 || u.OOMKills != nil {
		t.Errorf("the use of train-0 is %+v, want a second and no count of kills", u)
	}
}

func TestACommandIsRefusedWhereNothingIsStarted(t *testing.T) {
	x := newScene(t)
	doc, status := api.DecodeJob([]byte(`{"metadata":{"name":"a"},"spec":{"template":{"spec":{"command":["true"],"resources":{"requests":{"cpu":"1"}}}}}}`))
	if status != nil {
		t.Fatal(status)
	}
	_, status = x.submissionOfJob(Submitted{Namespace: "default"}, doc)
	if status == nil || status.Code != 422 || !strings.HasPrefix(status.Message, "spec.template.spec.command: this cluster starts no processes: ") {
		t.Errorf("status %v, want 422", status)
	}
	alone, status := api.DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{"command":["true"],"resources":{"requests":{"cpu":"1"}}}}`))
	if status != nil {
		t.Fatal(status)
	}
	if _, status = newWorkScene(t).submissionOfAllocation(Submitted{Namespace: "default"}, alone); status == nil || status.Code != 422 || !strings.HasPrefix(status.Message, "spec.command: ") {
		t.Errorf("status %v, want 422", status)
	}
}

// TestACommandGoesToANodeWhoseAgentStartsIt: a node whose agent starts nothing takes other
// work, and is told as the reason where there is no other node.
func TestACommandGoesToANodeWhoseAgentStartsIt(t *testing.T) {
	x := newScene(t) // its agents start nothing
	x.rules.StartsWork = true
	u := x.submitWork("train", 1, "")
	x.answers()
	if u.Attempt != nil {
		t.Fatalf("the command goes to %v", u.Attempt.Machine.Nodes())
	}
	answer := x.explain(u, Asked{Operator: true}).Answer()
	if text := fmt.Sprintf("%+v", answer); !strings.Contains(text, "label muster.dev/starts-work is not set, want true") || len(answer.Help) > 0 {
		t.Errorf("the answer why is %s, want the label and nothing that the client can do about it", text)
	}
	if other := x.submit("plain", 8, ""); other.Attempt == nil {
		t.Error("other work has no place on these nodes")
	}
	x.connect("starter")
	x.answers()
	x.pass(time.Second)
	if u.Attempt == nil || !slices.Equal(u.Attempt.Machine.Nodes(), []resource.NodeID{"starter"}) {
		t.Errorf("the command has the attempt %+v, want one on the node that starts it", u.Attempt)
	}
}
