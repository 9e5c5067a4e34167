package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/handoff"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// TestAnEndedSessionIsNotObeyed: a command that a leader sent over a session
// that its next one replaced has no effect after the next one's welcome.
func TestAnEndedSessionIsNotObeyed(t *testing.T) {
	r := newRig(t)
	r.start()
	old := r.lead(1)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range 2000 {
			reserve := &musterv1.Reserve{
				Tx: fmt.Sprint("old-", i), Unit: "u", Epoch: 1, TtlMillis: 60000,
				Members: []*musterv1.MemberRequest{{Request: &musterv1.Request{Cpu: 1}}},
			}
			if old.stream.Send(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: reserve}}) != nil {
				return // the session has ended
			}
		}
	}()
	next, err := r.try(r.store.hello(1))
	if err != nil {
		t.Fatal(err)
	}
	<-sent
	welcome := len(next.hello.GetOccupancy().GetGrants())
	next.send(&musterv1.Resync{})
	o := next.until("occupancy", func(m *musterv1.AgentMessage) bool { return m.GetOccupancy() != nil }).GetOccupancy()
	if now := len(o.GetGrants()); now != welcome {
		t.Errorf("%d grants at the welcome, %d after it", welcome, now)
	}
}

// awaitFiles waits until exactly these files are there.
func (r *rig) awaitFiles(suffix string, want ...string) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patient); ; <-tick.C {
		got := r.files(suffix)
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("files %v, want %v", got, want)
		}
	}
}

func (r *rig) files(suffix string) []string {
	r.t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.dir, "assignments"))
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && e.Name() != handoff.RoomFile {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestTheLifeOfAnAllocation(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	if l.hello.GetNodeId() != node || len(l.hello.GetHost().GetInventory().GetDevices()) != 8 {
		t.Errorf("hello %v", l.hello)
	}
	empty := uint64(0)

	yes := l.reserve("a", 4, time.Minute)
	mustBe(t, yes, musterv1.Reply_RESERVED)
	if yes.GetRegisteredRevision() == 0 || yes.GetIncarnation() == nil || len(uuids(yes)) != 4 {
		t.Errorf("yes %v", yes)
	}
	if files := r.files(".json"); len(files) != 0 {
		t.Errorf("files %v before the commit", files)
	}
	if again := l.reserve("a", 4, time.Minute); cmp.Diff(uuids(yes), uuids(again)) != "" {
		t.Errorf("asked twice: %v then %v", uuids(yes), uuids(again))
	}
	no := l.reserve("b", 5, time.Minute)
	mustBe(t, no, musterv1.Reply_NO)
	if reason := no.GetReasons()[0]; reason.GetCode() != "Insufficient" || reason.GetWant() != 5000 || reason.GetHave() != 4000 {
		t.Errorf("reasons %v", no.GetReasons())
	}

	r.store.put("a", musterv1.Record_COMMITTED, yes.GetMembers())
	l.send(&musterv1.Commit{Tx: "a", Epoch: 1, Revision: 20})
	mustBe(t, l.reply("a"), musterv1.Reply_HELD)
	r.awaitFiles(".env", "a.env")
	env, err := os.ReadFile(filepath.Join(r.dir, "assignments", "a.env"))
	if err != nil || !strings.Contains(string(env), "CUDA_VISIBLE_DEVICES=GPU-") {
		t.Errorf("environment %q, %v", env, err)
	}

	l.send(&musterv1.Release{Tx: "a", Epoch: 1, Reason: "done"})
	freed := l.until("freed", func(m *musterv1.AgentMessage) bool { return m.GetReply().GetTx() == "a" })
	mustBe(t, freed.GetReply(), musterv1.Reply_FREED)
	if freed.GetLedgerHash() != empty {
		t.Errorf("hash %x of an empty ledger", freed.GetLedgerHash())
	}
	r.awaitFiles("")
	l.send(&musterv1.Forget{Tx: "a"})
	mustBe(t, l.reply("a"), musterv1.Reply_NONE)
	mustBe(t, l.reserve("c", 8, time.Minute), musterv1.Reply_RESERVED)
	l.send(&musterv1.Abort{Tx: "c", Epoch: 1})
	mustBe(t, l.reply("c"), musterv1.Reply_NONE)
	if err := r.end(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestNothingIsPromisedBeforeRegistration(t *testing.T) {
	r := newRig(t)
	r.store.set(func(s *store) { s.away = true })
	r.start()
	l, err := r.try(&musterv1.LeaderHello{Cluster: cluster, Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	if l.hello.GetRegisteredRevision() != 0 {
		t.Errorf("registered at %d", l.hello.GetRegisteredRevision())
	}
	for _, m := range []any{
		&musterv1.Reserve{Tx: "a", Epoch: 1, TtlMillis: 1000, Members: []*musterv1.MemberRequest{want(1)}},
		&musterv1.Release{Tx: "a", Epoch: 1}, &musterv1.Evict{Tx: "a", Epoch: 1}, &musterv1.Commit{Tx: "a", Epoch: 1}, &musterv1.Abort{Tx: "a", Epoch: 1},
	} {
		l.send(m)
		no := l.reply("a")
		mustBe(t, no, musterv1.Reply_NO)
		if no.GetReasons()[0].GetCode() != "Unregistered" {
			t.Errorf("%T: %v", m, no)
		}
	}
	r.store.set(func(s *store) { s.away = false })
	l.until("registered", func(m *musterv1.AgentMessage) bool { return m.GetRegistered() != nil })
	mustBe(t, l.reserve("a", 1, time.Minute), musterv1.Reply_RESERVED)
}

func TestAReservationOutOfTimeIsResolvedNotFreed(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	r.store.set(func(s *store) { s.away = true })
	mustBe(t, l.reserve("a", 5, 20*time.Millisecond), musterv1.Reply_RESERVED)
	yes := l.reserve("b", 3, 20*time.Millisecond)
	mustBe(t, yes, musterv1.Reply_RESERVED)
	// Nobody answers: the promise stands long after its time.
	refused := func() (n int) { r.store.set(func(s *store) { n = s.refused }); return n }
	eventually(t, "it is asked twice about them", func() bool { return refused() >= 2 })
	mustBe(t, l.reserve("a", 5, 20*time.Millisecond), musterv1.Reply_RESERVED)
	r.store.put("b", musterv1.Record_COMMITTED, yes.GetMembers())
	r.store.set(func(s *store) { s.away = false })
	mustBe(t, l.reply("a"), musterv1.Reply_NONE)
	// The first leader of an epoch has the agent register within 10 s. If that
	// comes first, it takes b up as COMMITTED, which is no news for the leader.
	eventually(t, "b is held", func() bool { return l.state("b") == musterv1.Reply_HELD })
	if state := r.store.record("a"); state != musterv1.Record_ABORTED {
		t.Errorf("a is %s in the store", state)
	}
	mustBe(t, l.reserve("c", 5, time.Minute), musterv1.Reply_RESERVED)
}

func TestANewEpochResolvesOlderReservationsAtOnce(t *testing.T) {
	r := newRig(t)
	r.start()
	old := r.lead(1)
	mustBe(t, old.reserve("a", 8, time.Hour), musterv1.Reply_RESERVED)
	l := r.lead(2)
	if err := <-old.failed; status.Code(err) != codes.Aborted {
		t.Errorf("the older session ended with %v", err)
	}
	mustBe(t, l.reply("a"), musterv1.Reply_NONE)
	mustBe(t, l.reserve("b", 8, time.Hour), musterv1.Reply_RESERVED)
	_, err := r.try(r.store.hello(1))
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "epoch 1") || !strings.Contains(err.Error(), "epoch 2") {
		t.Errorf("an older leader: %v", err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.start() // the epoch is remembered
	if _, err := r.try(r.store.hello(1)); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an older leader after a restart: %v", err)
	}
}

func TestSessionsOfStrangersAreRefused(t *testing.T) {
	r := newRig(t)
	r.start()
	for name, c := range map[string]struct {
		hello *musterv1.LeaderHello
		want  codes.Code
		text  string
	}{
		"another cluster":     {&musterv1.LeaderHello{Cluster: "other", Epoch: 1}, codes.FailedPrecondition, `cluster "other"`},
		"no epoch":            {&musterv1.LeaderHello{Cluster: cluster}, codes.InvalidArgument, "hello.epoch: 0"},
		"half an incarnation": {&musterv1.LeaderHello{Cluster: cluster, Epoch: 1, Registered: &musterv1.Incarnation{BootId: "b"}}, codes.InvalidArgument, "hello.registered"},
		"no hello":            {nil, codes.InvalidArgument, "want hello"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := r.try(c.hello); status.Code(err) != c.want || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %s with %q", err, c.want, c.text)
			}
		})
	}
	other, err := rpcauth.NewToken("another-cluster's-token")
	if err != nil {
		t.Fatal(err)
	}
	_, err = schedulerv1.NewNodeAgentClient(r.dial(other)).GetResourceSnapshot(t.Context(), &schedulerv1.SnapshotRequest{})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("another token: %v", err)
	}
}

func TestABrokenCommandIsRefusedAndTheSessionGoesOn(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	l.send(&musterv1.Reserve{Tx: "a", Epoch: 1, TtlMillis: 1000, Members: []*musterv1.MemberRequest{{Request: &musterv1.Request{Gpus: -3}}}})
	no := l.reply("a")
	mustBe(t, no, musterv1.Reply_NO)
	if reason := no.GetReasons()[0]; reason.GetCode() != "InvalidRequest" || !strings.Contains(reason.GetDetail(), "-3 devices") {
		t.Errorf("reasons %v", no.GetReasons())
	}
	mustBe(t, l.reserve("b", 1, time.Minute), musterv1.Reply_RESERVED)
	l.send(&musterv1.Commit{Epoch: 1})
	if err := <-l.failed; status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "commit.tx") {
		t.Errorf("a commit of nothing: %v", err)
	}
}

func TestAnswersComeInOrder(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	const n = 300
	name := func(i int) string { return "t" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	for i := range n {
		m := want(0)
		m.Request = &musterv1.Request{Cpu: 100}
		l.send(&musterv1.Reserve{Tx: name(i), Epoch: 1, TtlMillis: 60000, Members: []*musterv1.MemberRequest{m}})
	}
	for i := range n {
		m := l.until("a reply", func(m *musterv1.AgentMessage) bool { return m.GetReply() != nil })
		if m.GetReply().GetTx() != name(i) {
			t.Fatalf("reply %d is about %s, want %s", i, m.GetReply().GetTx(), name(i))
		}
	}
	l.send(&musterv1.Resync{})
	o := l.until("occupancy", func(m *musterv1.AgentMessage) bool { return m.GetOccupancy() != nil })
	if got := len(o.GetOccupancy().GetGrants()); got != n {
		t.Errorf("%d grants, want %d", got, n)
	}
}

func TestACordonedHostTakesNoNewWork(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	l.send(&musterv1.Cordon{Cordoned: true})
	if h := l.until("health", func(m *musterv1.AgentMessage) bool { return m.GetHealth() != nil }); !h.GetHealth().GetCordoned() {
		t.Errorf("answer %v", h)
	}
	no := l.reserve("a", 1, time.Minute)
	mustBe(t, no, musterv1.Reply_NO)
	if no.GetReasons()[0].GetCode() != "Cordoned" {
		t.Errorf("reasons %v", no.GetReasons())
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.start() // a cordon outlives a restart
	if l := r.lead(1); !l.hello.GetOccupancy().GetCordoned() {
		t.Error("not cordoned after a restart")
	}
}

func TestEvictionLetsTheGraceRun(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 4)
	r.grant(l, "b", 4)
	l.send(&musterv1.Evict{Tx: "a", Epoch: 1, GraceMillis: time.Hour.Milliseconds(), By: "p"})
	mustBe(t, l.reply("a"), musterv1.Reply_EVICTING)
	mustBe(t, l.reserve("p", 4, time.Minute), musterv1.Reply_NO)
	began := time.Now()
	l.send(&musterv1.Evict{Tx: "b", Epoch: 1, GraceMillis: 100, By: "p"})
	mustBe(t, l.reply("b"), musterv1.Reply_EVICTING)
	mustBe(t, l.outcome("b"), musterv1.Reply_FREED)
	if took := time.Since(began); took < 95*time.Millisecond {
		t.Errorf("stopped after %s of a grace of 100ms", took)
	}
	if a := l.state("a"); a != musterv1.Reply_EVICTING {
		t.Errorf("a is %s in its grace of an hour, want EVICTING", a)
	}
	mustBe(t, l.reserve("p", 4, time.Minute), musterv1.Reply_RESERVED)
}

func TestAPreemptorIsWokenByItsVictim(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "v", 8)
	l.send(&musterv1.Reserve{Tx: "p", Unit: "u", Epoch: 1, TtlMillis: 60000, Members: []*musterv1.MemberRequest{want(4)}, After: []string{"v"}})
	mustBe(t, l.reply("p"), musterv1.Reply_WAITING)
	l.send(&musterv1.Evict{Tx: "v", Epoch: 1, By: "p"})
	mustBe(t, l.reply("v"), musterv1.Reply_EVICTING)
	var order []string
	for len(order) < 2 {
		m := l.until("freed and yes", func(m *musterv1.AgentMessage) bool {
			return m.GetReply() != nil && m.GetReply().GetState() != musterv1.Reply_EVICTING // the agent may send it again
		}).GetReply()
		order = append(order, m.GetTx()+" "+m.GetState().String())
	}
	want := []string{"p RESERVED", "v FREED"}
	if order[0] > order[1] {
		order[0], order[1] = order[1], order[0]
	}
	if d := cmp.Diff(want, order); d != "" {
		t.Error(d)
	}
}

func TestAnotherIncarnationInTheStoreMakesTheAgentRegisterAnew(t *testing.T) {
	r := newRig(t)
	r.start()
	r.lead(1)
	r.store.set(func(s *store) {
		s.identity = &musterv1.Incarnation{JournalId: "x", BootId: "y"}
		s.revision++
		s.identityAt = s.revision
	})
	l, err := r.try(r.store.hello(1))
	if err != nil {
		t.Fatal(err)
	}
	m := l.until("registered", func(m *musterv1.AgentMessage) bool { return m.GetRegistered() != nil })
	if m.GetRegistered().GetIncarnation().GetJournalId() != r.agent.Incarnation().JournalID {
		t.Errorf("registered %v", m)
	}
}

func TestHeartbeatsTellUsageAndObey(t *testing.T) {
	r := newRig(t)
	r.tune = func(c *agent.Config, _ *agent.Deps) { c.Heartbeat = 5 * time.Millisecond }
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	eventually(t, "a heartbeat with the grant", func() bool {
		b := <-r.store.beats
		return b.GetNodeId() == node && b.GetCurrentUsage().GetCpuMillicores() == 1500 &&
			len(b.GetPodStatuses()) == 1 && b.GetPodStatuses()[0].GetPhase() == "Running" &&
			len(b.GetConditions()) == 4 && b.GetConditions()[0].GetStatus() == "True"
	})
	calls := func() (n int) { r.store.set(func(s *store) { n = s.registered }); return n }
	before := calls()
	r.store.directives <- &schedulerv1.HeartbeatResponse{Directives: []*schedulerv1.SchedulingDirective{{Type: "register"}}}
	eventually(t, "the agent registers anew", func() bool { return calls() > before })
}

func TestTheServiceOfTheAPIDesign(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	held := r.grant(l, "a", 2)
	mustBe(t, l.reserve("b", 1, time.Minute), musterv1.Reply_RESERVED)
	client := schedulerv1.NewNodeAgentClient(r.dial(token(t)))
	for name, c := range map[string]struct {
		request *schedulerv1.BindRequest
		want    string
		code    codes.Code
	}{
		"a committed transaction is confirmed": {request: &schedulerv1.BindRequest{AllocationId: "a", NodeId: node}},
		"its unit too":                         {request: &schedulerv1.BindRequest{AllocationId: "u-a"}},
		"a promise is not":                     {request: &schedulerv1.BindRequest{AllocationId: "b"}, want: "NotCommitted"},
		"what is not known is not":             {request: &schedulerv1.BindRequest{AllocationId: "z"}, want: "NotFound"},
		"another node is refused":              {request: &schedulerv1.BindRequest{AllocationId: "a", NodeId: "n2"}, code: codes.InvalidArgument},
		"no allocation is refused":             {request: &schedulerv1.BindRequest{}, code: codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := client.BindAllocation(t.Context(), c.request)
			if status.Code(err) != c.code || got.GetFailureReason() != c.want || (err == nil && got.GetSuccess() != (c.want == "")) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	evicted, err := client.EvictAllocation(t.Context(), &schedulerv1.EvictRequest{AllocationId: "u-a", Reason: "maintenance"})
	if err != nil || !evicted.GetAccepted() {
		t.Errorf("evict: %v, %v", evicted, err)
	}
	r.store.set(func(s *store) {
		if s.evicted.GetAllocation() != "a" || s.evicted.GetNodeId() != node || s.evicted.GetReason() != "maintenance" {
			t.Errorf("the coordinator was asked to evict %v", s.evicted)
		}
	})
	s, err := client.GetResourceSnapshot(t.Context(), &schedulerv1.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if s.GetCapacity()["nvidia.com/gpu"] != "8" || s.GetAvailable()["nvidia.com/gpu"] != "5" || len(s.GetAllocations()) != 2 {
		t.Errorf("snapshot %v", s)
	}
	if d := cmp.Diff(uuids(held), s.GetAllocations()[0].GetGpuUuids()); d != "" {
		t.Error(d)
	}
}
