package lead

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// idleScene is a scene of work on GPUs that are measured.
type idleScene struct {
	*scene
	members map[resource.NodeID][]record.MemberUse // as the agents have reported it
	at      resource.Revision                      // of the last report
}

func newIdleScene(t *testing.T, rule api.NamespaceIdle) *idleScene {
	rules := sceneRules()
	rules.StartsWork = true
	rules.Namespaces = map[string]Namespace{"default": {Admission: "queue", Idle: &rule}}
	return &idleScene{newSceneOf(t, rules), map[resource.NodeID][]record.MemberUse{}, 1000}
}

// runs has a job of members with 8 GPUs each run.
func (x *idleScene) runs(name string, members int, gang string) *work.Job {
	x.t.Helper()
	u := x.submitWork(name, members, gang)
	for _, u := range u.Job.Units {
		x.holdsAll(u)
	}
	return u.Job
}

// works has all members of a unit use their GPUs for a while, in percent, and their agents
// report that, one after the other, except for those that are silent. Without a measurement the
// driver reports nothing.
func (x *idleScene) works(u *work.Unit, span time.Duration, percent int64, measured bool, silent ...resource.NodeID) {
	x.t.Helper()
	tx, nodes := u.Attempt.Machine.ID(), u.Attempt.Machine.Nodes()
	x.clock = x.clock.Add(span - time.Duration(len(nodes))*judgedEvery)
	for _, id := range nodes {
		x.clock = x.clock.Add(judgedEvery)
		if slices.Contains(silent, id) {
			continue
		}
		vote, _ := u.Attempt.Machine.Vote(id)
		for _, m := range vote.Members {
			at := slices.IndexFunc(x.members[id], func(w record.MemberUse) bool { return w.CompareMember(tx, m.Index) == 0 })
			if at < 0 {
				w := record.MemberUse{Tx: tx, Member: m.Index}
				for _, g := range m.Assignment.GPUs {
					w.Use.Devices = append(w.Use.Devices, record.WorkDevice{UUID: g.UUID})
				}
				x.members[id] = append(x.members[id], w)
				slices.SortFunc(x.members[id], func(a, b record.MemberUse) int { return a.CompareMember(b.Tx, b.Member) })
				at = slices.IndexFunc(x.members[id], func(w record.MemberUse) bool { return w.CompareMember(tx, m.Index) == 0 })
			}
			devices := slices.Clone(x.members[id][at].Use.Devices) // the leader has the former ones
			for i := range devices {
				if measured {
					devices[i].MeasuredMillis += span.Milliseconds()
					devices[i].BusyMillis += span.Milliseconds() * percent / 100
				}
			}
			x.members[id][at].Use.Devices = devices
		}
		x.reports(id)
	}
	x.answers()
}

// reports has the leader learn the last report of a node.
func (x *idleScene) reports(id resource.NodeID) {
	x.at++
	n := x.nodes[id]
	x.give(NodeFacts{
		Node: id, Leased: true, Status: record.KV{Key: record.NodeStatusKey(id), Value: record.MustEncode(record.NodeStatus{Work: x.members[id]}), ModRev: x.at},
		Observed: n.observed.revision, Lost: n.lost.Revision,
	})
}

// next is the scene of the next leader, whose agents have registered again.
func (x *idleScene) next() *idleScene {
	next := &idleScene{x.succeeded(), x.members, x.at}
	for id := range x.hosts {
		next.connect(id)
	}
	next.answers()
	return next
}

func idleOf(u *work.Unit) string {
	if u.Attempt == nil || u.Attempt.Ready.IdleMillis == 0 {
		return "busy"
	}
	return fmt.Sprintf("below %d%% since %d", u.Attempt.Ready.IdleBelow, u.Attempt.Ready.IdleMillis)
}

var anHour = api.NamespaceIdle{Below: new(int32(10)), For: "1h", Then: api.IdleWarn}

func TestAUnitIsIdleAfterItsTimeAlone(t *testing.T) {
	x := newIdleScene(t, anHour)
	u := x.runs("train", 2, gangOfTwo).Units[0]
	x.works(u, time.Minute, 100, true)
	since := x.post.Millis()
	for range 59 {
		x.works(u, time.Minute, 9, true)
	}
	if got := idleOf(u); got != "busy" {
		t.Fatalf("after 59 minutes: %s", got)
	}
	x.works(u, time.Minute, 9, true)
	if got, want := idleOf(u), fmt.Sprintf("below 10%% since %d", since); got != want {
		t.Fatalf("after an hour: %s, want %s", got, want)
	}
	if got := x.conditionOf(u, "Idle"); got.Status != "True" || !strings.HasPrefix(got.Message, "the use of its GPUs is below 10% since 2023-11-14T") {
		t.Errorf("the condition is %+v", got)
	}
	x.works(u, 3*time.Hour, 0, true)
	if u.Phase() != api.Running || u.Life.EndAsked() {
		t.Errorf("the rule says warn, and the unit is %s", u.Phase())
	}
	if got, want := idleOf(u), fmt.Sprintf("below 10%% since %d", since); got != want {
		t.Errorf("three hours later: %s, want %s", got, want)
	}
	x.works(u, time.Minute, 10, true)
	if got := idleOf(u); got != "busy" {
		t.Errorf("after work: %s", got)
	}
	if got := x.conditionOf(u, "Idle"); got.Status != "" {
		t.Errorf("the condition is %+v", got)
	}
	x.check()
}

func TestNoUnitIsIdleThatIsNotMeasured(t *testing.T) {
	for name, works := range map[string]func(x *idleScene, u *work.Unit){
		"one host of two, which never reports": func(x *idleScene, u *work.Unit) {
			x.members["n2"] = nil
			x.works(u, 30*time.Minute, 0, true, "n2")
			x.reports("n2")
		},
		"a driver that measures nothing":         func(x *idleScene, u *work.Unit) { x.works(u, 30*time.Minute, 0, false) },
		"one host of two, which reports nothing": func(x *idleScene, u *work.Unit) { x.works(u, 30*time.Minute, 0, true, "n2") },
		"hosts that repeat their last report": func(x *idleScene, u *work.Unit) {
			x.clock = x.clock.Add(30 * time.Minute)
			x.reports("n1")
			x.reports("n2")
			x.answers()
		},
		"members that start anew": func(x *idleScene, u *work.Unit) {
			x.members = map[resource.NodeID][]record.MemberUse{}
			x.works(u, 30*time.Minute, 50, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newIdleScene(t, api.NamespaceIdle{Below: new(int32(10)), For: "1h", Then: api.IdleEnd})
			u := x.runs("train", 2, gangOfTwo).Units[0]
			x.works(u, time.Minute, 100, true)
			for range 5 {
				works(x, u)
				if got := idleOf(u); got != "busy" || u.Life.EndAsked() {
					t.Fatalf("%s, ending %t", got, u.Life.EndAsked())
				}
			}
		})
	}
}

func TestAnIdleJobIsEnded(t *testing.T) {
	x := newIdleScene(t, api.NamespaceIdle{Below: new(int32(10)), For: "30m", Then: api.IdleEnd})
	j := x.runs("train", 2, "")
	a, b := j.Units[0], j.Units[1]
	for range 31 {
		x.works(a, time.Minute, 0, true)
		x.works(b, time.Minute, 50, true)
	}
	if idleOf(a) == "busy" || idleOf(b) != "busy" || a.Life.EndAsked() {
		t.Fatalf("the units are %s and %s, the first ends %t: want it idle, and going on for the sake of the second", idleOf(a), idleOf(b), a.Life.EndAsked())
	}
	for range 61 { // minutes of both in turn
		x.works(a, time.Minute, 0, true)
		if a.Life.EndAsked() {
			break
		}
		x.works(b, time.Minute, 0, true)
	}
	if !a.Life.EndAsked() || !b.Life.EndAsked() {
		t.Fatal("the job goes on although all its units are idle")
	}
	if a.Attempt.Machine.State() == 0 || a.Life.Ending().GraceSeconds != DefaultGrace {
		t.Errorf("the grace is %d s, want %d", a.Life.Ending().GraceSeconds, DefaultGrace)
	}
	x.says(a, grant.Tombstone)
	x.settles(b, grant.Tombstone)
	phase, reason, message, ok := j.EndOfJob()
	if !ok || phase != api.Failed || reason != "Idle" || !strings.HasPrefix(message, "Idle: the use of its GPUs was below 10% since ") {
		t.Errorf("the job is %s, %s: %s", phase, reason, message)
	}
	if got := x.stored(a); got.Phase != "Failed" || got.End != record.Idle || got.Retries != 0 {
		t.Errorf("the unit is stored as %+v", got)
	}
	x.check()
}

func TestAnIdleJobIsSuspended(t *testing.T) {
	x := newIdleScene(t, api.NamespaceIdle{Below: new(int32(10)), For: "30m", Then: api.IdleSuspend})
	j := x.runs("train", 2, gangOfTwo)
	u := j.Units[0]
	x.works(u, time.Minute, 80, true)
	for range 30 {
		x.works(u, time.Minute, 1, true)
	}
	if !j.Doc.IsSuspended() || u.Attempt.Notice == nil || u.Attempt.Notice.GraceSeconds != x.graceSeconds() || !strings.HasPrefix(u.Attempt.Notice.Reason, "Suspended: the use of its GPUs was below 10% since ") {
		t.Fatalf("suspended %t, under notice %+v", j.Doc.IsSuspended(), u.Attempt.Notice)
	}
	x.settles(u, grant.Tombstone)
	if got := x.waitingOf(u).Message; u.Phase() != api.Pending || !strings.HasPrefix(got, "suspended (the use of its GPUs was below 10% since 2023-11-14T") || !strings.Contains(got, "`muster resume job/train -n default` lets it run") {
		t.Errorf("the unit is %s: %s", u.Phase(), got)
	}
	x.ask(PatchJob{"default", "train", api.WorkPatch{Spec: []byte(`{"suspend":false}`)}})
	x.answers()
	if j.Record.Suspended != "" {
		t.Errorf("resumed, and still %q", j.Record.Suspended)
	}
	x.holdsAll(u)
	if u.Phase() != api.Running || idleOf(u) != "busy" {
		t.Errorf("resumed: %s, %s", u.Phase(), idleOf(u))
	}
	x.check()
}

// The next leader goes on with what it finds in the store, and begins the time of all others anew.
func TestTheNextLeaderKeepsWhatWasFound(t *testing.T) {
	rule := api.NamespaceIdle{Below: new(int32(10)), For: "1h", Then: api.IdleEnd}
	for name, c := range map[string]struct {
		used            int64 // percent of the first minutes
		minutes, after  int   // before and after the election
		warns           bool  // the rule is warn before the election
		wantEnds, wantA bool  // at the end; idle already at the election
	}{
		"found before the election, acted on after it": {used: 100, minutes: 60, after: 1, warns: true, wantA: true, wantEnds: true},
		"half an hour on each side":                    {used: 100, minutes: 30, after: 31},
		"an hour after the election":                   {used: 100, minutes: 30, after: 62, wantEnds: true},
		"never used: the whole time counts":            {used: 0, minutes: 50, after: 11, wantEnds: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := rule
			if c.warns {
				before.Then = api.IdleWarn
			}
			x := newIdleScene(t, before)
			u := x.runs("train", 2, gangOfTwo).Units[0]
			x.works(u, time.Minute, c.used, true)
			for range c.minutes {
				x.works(u, time.Minute, 0, true)
			}
			if got := idleOf(u) != "busy"; got != c.wantA || u.Life.EndAsked() {
				t.Fatalf("before the election: %s, ending %t", idleOf(u), u.Life.EndAsked())
			}
			x.rules.Namespaces["default"] = Namespace{Admission: "queue", Idle: &rule}
			next := x.next()
			u = next.work.Units[u.Path]
			for range c.after {
				if !u.Life.EndAsked() {
					next.works(u, time.Minute, 0, true)
				}
			}
			if got := u.Life.EndAsked(); got != c.wantEnds {
				t.Errorf("after the election: ends %t, want %t; %s", got, c.wantEnds, idleOf(u))
			}
			next.check()
		})
	}
}

// A rule that is gone or has another percentage takes its finding back.
func TestAnotherRuleJudgesAnew(t *testing.T) {
	x := newIdleScene(t, anHour)
	u := x.runs("train", 2, gangOfTwo).Units[0]
	x.works(u, time.Minute, 100, true)
	for range 60 {
		x.works(u, time.Minute, 6, true)
	}
	if idleOf(u) == "busy" {
		t.Fatal("the unit is not idle")
	}
	ends := api.NamespaceIdle{Below: new(int32(5)), For: "1h", Then: api.IdleEnd}
	x.rules.Namespaces["default"] = Namespace{Idle: &ends}
	x.works(u, time.Minute, 6, true)
	if u.Life.EndAsked() {
		t.Error("the unit ends by the finding of another rule")
	}
	x.works(u, time.Minute, 6, true)
	if got := idleOf(u); got != "busy" || u.Life.EndAsked() {
		t.Errorf("below a smaller percentage: %s, ends %t", got, u.Life.EndAsked())
	}
	x.rules.Namespaces["default"] = Namespace{Idle: &anHour}
	for range 61 {
		x.works(u, time.Minute, 6, true)
	}
	if idleOf(u) == "busy" {
		t.Fatal("the unit is not idle again")
	}
	longer := api.NamespaceIdle{Below: new(int32(10)), For: "2h", Then: api.IdleEnd}
	x.rules.Namespaces["default"] = Namespace{Idle: &longer}
	x.works(u, time.Minute, 6, true)
	if u.Life.EndAsked() {
		t.Error("the unit ends after an hour, the rule says two")
	}
	x.rules.Namespaces["default"] = Namespace{}
	x.works(u, time.Minute, 6, true)
	if got := idleOf(u); got != "busy" || u.Life.EndAsked() {
		t.Errorf("without a rule: %s, ends %t", got, u.Life.EndAsked())
	}
	x.check()
}

// A finding without an answer of the store is written again, and nothing is done before.
func TestNothingIsDoneBeforeTheFindingIsStored(t *testing.T) {
	x := newIdleScene(t, api.NamespaceIdle{Below: new(int32(10)), For: "1m", Then: api.IdleEnd})
	u := x.runs("train", 2, gangOfTwo).Units[0]
	x.works(u, time.Minute, 100, true)
	tx := u.Attempt.Machine.ID()
	x.clock = x.clock.Add(time.Minute - judgedEvery)
	for _, id := range u.Attempt.Machine.Nodes() {
		list := x.members[id]
		for i := range list {
			list[i].Use.Devices = slices.Clone(list[i].Use.Devices)
			for k := range list[i].Use.Devices {
				list[i].Use.Devices[k].MeasuredMillis += 60_000
			}
		}
		x.reports(id)
		x.clock = x.clock.Add(judgedEvery)
	}
	if u.Life.EndAsked() || u.Attempt.Ready.IdleMillis != 0 {
		t.Fatalf("%s, ends %t, before the store has it", idleOf(u), u.Life.EndAsked())
	}
	x.loses(false)
	if u.Life.EndAsked() {
		t.Fatal("the unit ends, and the store has no finding")
	}
	x.answers()
	if r, _ := storedAs[record.Ready](x.scene, record.ReadyKey(tx)); r.IdleMillis == 0 || !u.Life.EndAsked() {
		t.Errorf("the store has %+v; the unit ends %t", r, u.Life.EndAsked())
	}
}
