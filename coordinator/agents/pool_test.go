package agents_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

func TestSessionBeginsWithBothHellos(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	stream, got := agent.accept(t)
	want := &musterv1.LeaderHello{Cluster: "c", LeaderId: "coordinator-1", Epoch: 42, Registered: wire.ToIncarnation(incarnation), RegisteredRevision: 5}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("the leader's hello (-want +got):\n%s", diff)
	}
	if pool.Send("n1", grant.Resync{}) {
		t.Error("a command was taken before the agent's hello")
	}
	stream.say(t, hello(t, "n1"))
	e := next[agents.Connected](t, events)
	if e.Node != "n1" || e.Incarnation != incarnation || e.Revision != 5 || e.LedgerHash != 7 || len(e.Host.Inventory.Devices) != 2 {
		t.Errorf("connected: %+v", e)
	}
	occupied := grant.Occupancy{Cordoned: true, Grants: []grant.Grant{{Tx: "tx-0", Unit: "u", Epoch: 3, State: grant.Held}}}
	if diff := cmp.Diff(occupied, e.Occupancy); diff != "" {
		t.Errorf("occupancy (-want +got):\n%s", diff)
	}
}

// open connects to an agent and returns its end of the stream.
func open(t *testing.T, agent *server, events <-chan grant.Event) *session {
	t.Helper()
	stream, _ := agent.accept(t)
	stream.say(t, hello(t, "n1"))
	next[agents.Connected](t, events)
	return stream
}

func TestCommandsArriveInOrder(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	stream := open(t, agent, events)
	request := resource.Request{GPUs: 1, CPU: 1000}
	for _, c := range []grant.Command{
		grant.Reserve{
			Tx: "tx", Unit: "unit", Name: "ns/alloc/a/0", Tenant: "t", Epoch: 42, TTL: 2 * time.Second, After: []resource.TxID{"v", "w"}, UnitMembers: 5, Registered: 7,
			Members: []grant.MemberRequest{{Index: 3, Request: request, PinnedGPUs: []int{1}}},
		},
		grant.Commit{Tx: "tx", Epoch: 42, Revision: 9}, grant.Abort{Tx: "tx", Epoch: 42}, grant.Release{Tx: "tx", Epoch: 42, Grace: 30 * time.Second, Reason: "deleted"},
		grant.Evict{Tx: "tx", Epoch: 42, Grace: time.Minute, By: "p"},
		grant.Forget{Tx: "tx"}, grant.Resync{}, grant.Cordon{Cordoned: true},
		grant.Reconcile{Epoch: 42, Revision: 9, Adopted: []resource.TxID{"a"}, Released: []resource.TxID{"b"}, Grace: 3 * time.Second},
	} {
		if !pool.Send("n1", c) {
			t.Fatal("a command was not taken")
		}
	}
	for i, want := range []*musterv1.LeaderMessage{
		{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{
			Tx: "tx", Unit: "unit", Name: "ns/alloc/a/0", Tenant: "t", Epoch: 42, TtlMillis: 2000, After: []string{"v", "w"}, UnitMembers: 5, Registered: 7,
			Members: []*musterv1.MemberRequest{{Member: 3, Request: wire.ToRequest(request), PinnedGpus: []int32{1}}},
		}}},
		{Message: &musterv1.LeaderMessage_Commit{Commit: &musterv1.Commit{Tx: "tx", Epoch: 42, Revision: 9}}},
		{Message: &musterv1.LeaderMessage_Abort{Abort: &musterv1.Abort{Tx: "tx", Epoch: 42}}},
		{Message: &musterv1.LeaderMessage_Release{Release: &musterv1.Release{Tx: "tx", Epoch: 42, GraceMillis: 30_000, Reason: "deleted"}}},
		{Message: &musterv1.LeaderMessage_Evict{Evict: &musterv1.Evict{Tx: "tx", Epoch: 42, GraceMillis: 60_000, By: "p"}}},
		{Message: &musterv1.LeaderMessage_Forget{Forget: &musterv1.Forget{Tx: "tx"}}},
		{Message: &musterv1.LeaderMessage_Resync{Resync: &musterv1.Resync{}}},
		{Message: &musterv1.LeaderMessage_Cordon{Cordon: &musterv1.Cordon{Cordoned: true}}},
		{Message: &musterv1.LeaderMessage_Reconcile{Reconcile: &musterv1.Reconcile{
			Epoch: 42, Revision: 9, Adopted: []string{"a"}, Released: []string{"b"}, GraceMillis: 3000,
		}}},
	} {
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("command %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestEventsAreDecodedInOrder(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	stream := open(t, agent, events)
	a := resource.Assignment{GPUs: []resource.GPUGrant{{Index: 1, UUID: "GPU-1", Milli: 1000}}}
	reason := resource.Reason{Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: 2000, Have: 1000}
	health := []*musterv1.DeviceHealth{{Index: 1, Health: devices.Tainted.String(), Reason: "XID 79: fell off the bus"}}
	for _, m := range []*musterv1.AgentMessage{
		{Message: &musterv1.AgentMessage_Registered{Registered: &musterv1.Registered{Incarnation: wire.ToIncarnation(incarnation), Revision: 6}}},
		{LedgerHash: 8, Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{
			Tx: "tx", State: musterv1.Reply_RESERVED,
			Incarnation: wire.ToIncarnation(incarnation), RegisteredRevision: 6, Members: []*musterv1.MemberAssignment{wire.ToMember(2, a)},
		}}},
		{LedgerHash: 8, Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{Tx: "tx2", State: musterv1.Reply_NO, Reasons: wire.ToReasons([]resource.Reason{reason})}}},
		{LedgerHash: 9, Message: &musterv1.AgentMessage_Occupancy{Occupancy: &musterv1.Occupancy{DiskFull: true, Health: health}}},
		{Message: &musterv1.AgentMessage_Health{Health: &musterv1.HealthChange{Devices: health, Cordoned: true, Quarantine: "why"}}},
	} {
		stream.say(t, m)
	}
	bad := map[int]grant.DeviceHealth{1: {Health: devices.Tainted, Reason: "XID 79: fell off the bus"}}
	for _, want := range []grant.Event{
		grant.Registered{Node: "n1", Incarnation: incarnation, Revision: 6},
		grant.Replied{Node: "n1", Tx: "tx", State: grant.Reserved, Incarnation: incarnation, Revision: 6, Members: []grant.Member{{Index: 2, Assignment: a}}, LedgerHash: 8},
		grant.Replied{Node: "n1", Tx: "tx2", State: grant.No, Reasons: []resource.Reason{reason}, LedgerHash: 8},
		grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{DiskFull: true, Health: bad}, LedgerHash: 9},
		grant.HealthChanged{Node: "n1", Health: bad, Cordoned: true, Quarantine: "why"},
	} {
		if diff := cmp.Diff(want, receive(t, "event", events)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
}

func TestAnAgentThatComesBackIsFoundAgain(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	open(t, agent, events)
	n.stop("a:1", agent)
	if e := next[grant.Disconnected](t, events); e.Node != "n1" || e.Err == nil {
		t.Errorf("disconnected: %+v", e)
	}
	if pool.Send("n1", grant.Resync{}) {
		t.Error("a command was taken without a stream")
	}
	open(t, n.listen(t, "a:1"), events)
	if !pool.Send("n1", grant.Resync{}) {
		t.Error("a command was not taken on the new stream")
	}
}

func TestAStreamThatBreaksTheRulesIsEnded(t *testing.T) {
	impossible := hello(t, "n1")
	impossible.GetHello().Host.ReservedMemory = 1 << 60 // more than it has
	cases := map[string]struct {
		connected bool // the agent's hello is good
		message   *musterv1.AgentMessage
		wantErr   string // of Disconnected
	}{
		"another node answers at the address": {false, hello(t, "n2"), ""},
		"the first message is no hello":       {false, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Occupancy{}}, ""},
		"a hello of no host":                  {false, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Hello{Hello: &musterv1.AgentHello{NodeId: "n1"}}}, ""},
		"a hello of a host that cannot be":    {false, impossible, ""},
		"an empty message":                    {true, &musterv1.AgentMessage{}, "unknown"},
		"a second hello":                      {true, hello(t, "n1"), "second hello"},
		"a message past its size": {
			true, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Health{Health: &musterv1.HealthChange{Quarantine: strings.Repeat("q", limits.MaxSession)}}},
			"larger than max",
		},
		"more elements than its size is for": {
			true, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{Tx: "tx", Members: make([]*musterv1.MemberAssignment, 200_000)}}},
			"more than 131072 entries",
		},
		"a reason of 60 KB": {
			true, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{
				Tx: "tx", State: musterv1.Reply_NO, Reasons: []*musterv1.Reason{{Code: "c", Detail: strings.Repeat("r", 60_000)}},
			}}},
			"reply.reasons[0].detail: 60000 bytes, more than 4096",
		},
		"more grants than an agent keeps": {
			true, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Occupancy{Occupancy: &musterv1.Occupancy{Grants: make([]*musterv1.Grant, 10_000)}}},
			"occupancy.grants: 10000 entries, more than 3072",
		},
		"a state that is unknown": {
			true, &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{Tx: "tx", State: 99}}},
			"reply.state: 99 is no value of Reply_State",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n := newNetwork()
			agent := n.listen(t, "a:1")
			pool, events := newPool(t, n)
			pool.SetTarget("n1", "a:1")
			var stream *session
			if c.connected {
				stream = open(t, agent, events)
			} else {
				stream, _ = agent.accept(t)
			}
			stream.say(t, c.message)
			stream.ended(t)
			if c.connected {
				e := next[grant.Disconnected](t, events)
				if !strings.Contains(e.Err.Error(), c.wantErr) {
					t.Errorf("disconnected: %v, want %q in it", e.Err, c.wantErr)
				}
				if want := c.wantErr != "unknown"; e.Broken != want { // a later version's message accuses nobody
					t.Errorf("broken: %v, want %v", e.Broken, want)
				}
				pool.Trust("n1") // or the next stream would be late
			}
			open(t, agent, events) // nothing but this was delivered in between
		})
	}
}

func TestSetTargetMovesASession(t *testing.T) {
	n := newNetwork()
	first, second := n.listen(t, "a:1"), n.listen(t, "b:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	old := open(t, first, events)
	pool.SetTarget("n1", "a:1") // as it is
	pool.SetTarget("n1", "b:1")
	old.ended(t)
	next[grant.Disconnected](t, events) // before the new stream's Connected
	open(t, second, events)
	if !pool.Send("n1", grant.Resync{}) {
		t.Error("a command was not taken after the move")
	}
}

func TestRemoveTargetEndsASession(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.RemoveTarget("n1") // was never there
	pool.SetTarget("n1", "a:1")
	stream := open(t, agent, events)
	pool.RemoveTarget("n1")
	if pool.Send("n1", grant.Resync{}) {
		t.Error("a command was taken for a target that was removed")
	}
	pool.SetTarget("n1", "a:1") // and back at once: in order
	stream.ended(t)
	next[grant.Disconnected](t, events)
	open(t, agent, events)
	pool.RemoveTarget("n1")
	next[grant.Disconnected](t, events)
}

func TestCloseEndsEverySession(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	pool.SetTarget("n2", "nowhere:1")
	stream := open(t, agent, events)
	pool.Close()
	stream.ended(t)
	next[grant.Disconnected](t, events)
	pool.SetTarget("n3", "a:1")
	if pool.Send("n1", grant.Resync{}) || pool.Send("n3", grant.Resync{}) {
		t.Error("a closed pool took a command")
	}
}

func TestASlowAgentIsGivenUp(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	stream := open(t, agent, events) // which reads nothing from here on
	reason := strings.Repeat("x", 1<<10)
	taken := 0
	for pool.Send("n1", grant.Release{Tx: "tx", Epoch: 42, Grace: 0, Reason: reason}) {
		if taken++; taken > 1<<20 {
			t.Fatal("a million commands were taken by an agent that reads none")
		}
	}
	stream.ended(t)
	next[grant.Disconnected](t, events)
	open(t, agent, events)
	if !pool.Send("n1", grant.Resync{}) {
		t.Error("a command was not taken on the new stream")
	}
}

func TestAttemptsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []time.Time
		pool := agents.NewPool(t.Context(), agents.Options{
			Identity: func(context.Context, resource.NodeID) (resource.Incarnation, resource.Revision, error) {
				attempts = append(attempts, time.Now())
				return resource.Incarnation{}, 0, nil
			},
			Deliver: func(e grant.Event) { t.Errorf("event %+v without an agent", e) },
			Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				return nil, errors.New("nobody listens")
			})},
			Logger: slog.New(slog.DiscardHandler),
		})
		pool.SetTarget("n1", "nowhere:1")
		time.Sleep(30 * time.Second) // of the bubble's clock
		pool.Close()
		if len(attempts) < 12 {
			t.Fatalf("%d attempts in 30 s", len(attempts))
		}
		for i := 1; i < len(attempts); i++ {
			least := min(50*time.Millisecond<<(i-1), 3*time.Second)
			if gap := attempts[i].Sub(attempts[i-1]); gap < least || gap > least*3/2 {
				t.Errorf("attempt %d after %v, want %v and up to a quarter more", i, gap, least)
			}
		}
	})
}

func TestASessionThatWaitsHurriesWhenItsAgentIsHeardOf(t *testing.T) {
	wakes := map[string]func(*agents.Pool){
		"it registers":       func(p *agents.Pool) { p.Registered("n1", incarnation) },
		"gossip tells of it": func(p *agents.Pool) { p.SetTarget("n1", "nowhere:1") },
		"it has moved":       func(p *agents.Pool) { p.SetTarget("n1", "elsewhere:1") },
	}
	for name, wake := range wakes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last atomic.Int64 // when it connected last, in Unix nanoseconds
				pool := agents.NewPool(t.Context(), agents.Options{
					Identity: func(context.Context, resource.NodeID) (resource.Incarnation, resource.Revision, error) {
						last.Store(time.Now().UnixNano())
						return resource.Incarnation{}, 0, errors.New("the store is away")
					},
					Dial:   []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
					Logger: slog.New(slog.DiscardHandler),
				})
				pool.SetTarget("n1", "nowhere:1")
				time.Sleep(30 * time.Second) // of the bubble's clock, as all here
				synctest.Wait()
				for time.Now().UnixNano() == last.Load() {
					time.Sleep(time.Millisecond)
				}
				heard := time.Now().UnixNano()
				wake(pool)
				synctest.Wait()
				if last.Load() != heard {
					t.Errorf("connected %v before it was heard of, and not then", time.Duration(heard-last.Load()))
				}
				time.Sleep(100 * time.Millisecond)
				if synctest.Wait(); last.Load() <= heard {
					t.Error("it waits as long as before, though it was heard of")
				}
				pool.Close()
			})
		})
	}
}

func TestAStreamToAnIncarnationThatIsGoneIsNew(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.Registered("n1", incarnation) // of no target
	pool.SetTarget("n1", "a:1")
	old := open(t, agent, events)
	pool.Registered("n1", incarnation) // as it is
	if !pool.Send("n1", grant.Resync{}) {
		t.Fatal("a registration of the incarnation that is connected ended its stream")
	}
	pool.Registered("n1", resource.Incarnation{JournalID: "journal", BootID: "another"})
	old.ended(t)
	next[grant.Disconnected](t, events)
	open(t, agent, events)
}
