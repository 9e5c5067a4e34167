package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire/limits"
)

func TestEveryErrorHasOneStatus(t *testing.T) {
	for want, err := range map[codes.Code]error{
		codes.OK:                 nil,
		codes.FailedPrecondition: fmt.Errorf("open: %w", &StaleEpochError{Got: 1, Highest: 2}),
		codes.InvalidArgument:    fmt.Errorf("read: %w", ErrBadMessage),
		codes.ResourceExhausted:  ErrSlowLeader,
		codes.Aborted:            ErrReplaced,
		codes.Unavailable:        ErrStopping,
		codes.Canceled:           context.Canceled,
		codes.DeadlineExceeded:   context.DeadlineExceeded,
		codes.Internal:           errors.New("something else"),
		codes.NotFound:           status.Error(codes.NotFound, "has one already"),
	} {
		if got := status.Code(statusOf(err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestListeningNamesFieldAndAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, want := range map[string]string{
		taken.Addr().String(): "in use by another process",
		"0.0.0.0:0":           "not on the loopback interface",
		"127.0.0.1":           "want HOST:PORT",
	} {
		_, err := ListenAs(rpcauth.Token{}, "metricsListen", address)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "metricsListen") || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

func TestALeaderThatDoesNotReadLosesItsSession(t *testing.T) {
	out := NewOutbox()
	for range outboxSize {
		out.Put(Envelope{Body: Reply{}})
	}
	if out.Reason() != nil {
		t.Fatalf("ended early: %v", out.Reason())
	}
	out.Put(Envelope{Body: Reply{}})
	<-out.Ended()
	if !errors.Is(out.Reason(), ErrSlowLeader) {
		t.Errorf("ended with %v", out.Reason())
	}
	out.End(ErrReplaced)
	if !errors.Is(out.Reason(), ErrSlowLeader) {
		t.Errorf("the first reason gave way to %v", out.Reason())
	}
}

func TestOrders(t *testing.T) {
	request := &musterv1.Request{Cpu: 1000}
	for name, c := range map[string]struct {
		message *musterv1.LeaderMessage
		want    Order
		err     string
	}{
		"reserve": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{
				Tx: "a", Unit: "u", Epoch: 3, TtlMillis: 1500, After: []string{"v"},
				Members: []*musterv1.MemberRequest{{Member: 2, Request: request, PinnedGpus: []int32{1, 4}}},
				Name:    "default/alloc/a/1", Tenant: "team", UnitMembers: 5, Registered: 7,
			}}},
			want: Order{Command: grant.Reserve{
				Tx: "a", Unit: "u", Epoch: 3, TTL: 1500 * time.Millisecond, After: []resource.TxID{"v"},
				Members: []grant.MemberRequest{{Index: 2, Request: resource.Request{CPU: 1000}, PinnedGPUs: []int{1, 4}}},
				Name:    "default/alloc/a/1", Tenant: "team", UnitMembers: 5, Registered: 7,
			}},
		},
		"a reserve with a bad member is answered No": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{
				Tx: "a", Members: []*musterv1.MemberRequest{{Request: request}, {}},
			}}},
			want: Order{Refused: &Reply{Tx: "a", Reasons: []resource.Reason{{Code: "InvalidRequest", Detail: "reserve.members[1].request: missing"}}}},
		},
		"a reserve of nobody is answered No": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{Tx: "a"}}},
			want:    Order{Refused: &Reply{Tx: "a", Reasons: []resource.Reason{{Code: "InvalidRequest", Detail: "reserve.members: 0, outside 1..1024"}}}},
		},
		"commit": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Commit{Commit: &musterv1.Commit{Tx: "a", Epoch: 3, Revision: 9}}},
			want:    Order{Command: grant.Commit{Tx: "a", Epoch: 3, Revision: 9}},
		},
		"release": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Release{Release: &musterv1.Release{Tx: "a", Epoch: 3, GraceMillis: 7, Reason: "r"}}},
			want:    Order{Command: grant.Release{Tx: "a", Epoch: 3, Grace: 7 * time.Millisecond, Reason: "r"}},
		},
		"evict": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Evict{Evict: &musterv1.Evict{Tx: "a", Epoch: 3, GraceMillis: 7, By: "p"}}},
			want:    Order{Command: grant.Evict{Tx: "a", Epoch: 3, Grace: 7 * time.Millisecond, By: "p"}},
		},
		"reconcile": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reconcile{Reconcile: &musterv1.Reconcile{
				Epoch: 3, Revision: 9, Adopted: []string{"a"}, Released: []string{"b", "c"}, GraceMillis: 7,
			}}},
			want: Order{Command: grant.Reconcile{
				Epoch: 3, Revision: 9, Adopted: []resource.TxID{"a"}, Released: []resource.TxID{"b", "c"}, Grace: 7 * time.Millisecond,
			}},
		},
		"a reconcile with a negative grace": {
			message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reconcile{Reconcile: &musterv1.Reconcile{Epoch: 3, GraceMillis: -1}}},
			err:     "reconcile.grace_millis: -1",
		},
		"resync":           {message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Resync{Resync: &musterv1.Resync{}}}, want: Order{Resync: true}},
		"a negative grace": {message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Evict{Evict: &musterv1.Evict{Tx: "a", GraceMillis: -1}}}, err: "evict.grace_millis: -1"},
		"an endless grace": {message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Release{Release: &musterv1.Release{Tx: "a", GraceMillis: 1 << 62}}}, err: "release.grace_millis"},
		"no transaction":   {message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Abort{Abort: &musterv1.Abort{}}}, err: "abort.tx: 0 bytes"},
		"a long one":       {message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Forget{Forget: &musterv1.Forget{Tx: strings.Repeat("x", 300)}}}, err: "forget.tx: 300 bytes"},
		"a second hello":   {message: &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Hello{}}, err: "is no command"},
		"nothing at all":   {message: &musterv1.LeaderMessage{}, err: "is no command"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := orderOf(c.message)
			if c.err != "" {
				if !errors.Is(err, ErrBadMessage) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

func FuzzOrder(f *testing.F) {
	seed, err := proto.Marshal(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{
		Tx: "a", Epoch: 1, TtlMillis: 1, Members: []*musterv1.MemberRequest{{Request: &musterv1.Request{Gpus: 1}}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &musterv1.LeaderMessage{}
		if limits.Decode(data, m) != nil {
			return
		}
		order, err := orderOf(m)
		if set := order.Command != nil || order.Resync || order.Refused != nil; set == (err != nil) {
			t.Fatalf("order %+v and error %v", order, err)
		}
		if err != nil && len(err.Error()) > 2048 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &musterv1.Record{}
		if limits.Decode(data, m) != nil {
			return
		}
		if r, err := recordOf(m); err == nil && (r.Tx == "" || r.Grace < 0) {
			t.Fatalf("accepted %+v", r)
		}
	})
}

func TestStatesOfRepliesOnTheWire(t *testing.T) {
	for state, want := range map[grant.State]musterv1.Reply_State{
		grant.None: musterv1.Reply_NONE, grant.Waiting: musterv1.Reply_WAITING, grant.Reserved: musterv1.Reply_RESERVED,
		grant.Held: musterv1.Reply_HELD, grant.Evicting: musterv1.Reply_EVICTING, grant.Stopping: musterv1.Reply_STOPPING,
		grant.Tombstone: musterv1.Reply_FREED,
	} {
		if got := (Envelope{Body: Reply{Tx: "a", State: state}}).message().GetReply().GetState(); got != want {
			t.Errorf("%s is %s, want %s", state, got, want)
		}
		no := Envelope{Body: Reply{Tx: "a", State: state, Reasons: []resource.Reason{{Code: "Decided"}}}}
		if got := no.message().GetReply().GetState(); got != musterv1.Reply_NO {
			t.Errorf("refused %s is %s, want NO", state, got)
		}
	}
}

func TestCallsSayWhoDidNotAnswer(t *testing.T) {
	token, err := rpcauth.NewToken("0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	none := NewCoordinators(func() []string { return nil }, token, nil)
	if _, _, err := none.ReadNode(t.Context(), "n1"); !errors.Is(err, ErrNoCoordinator) {
		t.Errorf("nobody known: %v", err)
	}
	const closed = "127.0.0.1:1" // nobody is given this port
	away := NewCoordinators(func() []string { return []string{closed, "192.0.2.1:1"} }, token, nil)
	defer away.Close()
	_, err = away.Resolve(t.Context(), "n1", "a", true)
	for _, want := range []string{"resolve a: coordinator " + closed, "192.0.2.1:1", "not on the loopback interface"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// An agent may hold no more than its leader accepts.
func TestTheLedgerKeepsToTheLimitsOfMessages(t *testing.T) {
	if ledger.MaxGrants != limits.MaxGrants {
		t.Errorf("the ledger keeps %d grants, a message has %d", ledger.MaxGrants, limits.MaxGrants)
	}
	long := strings.Repeat("x\t", 64<<10)
	occupancy := Occupancy{Health: []DeviceHealth{{Index: 1, Health: devices.Tainted, Reason: long}}, Grants: []ledger.Grant{{
		Tx: resource.TxID(strings.Repeat("t", ledger.MaxText)), Unit: resource.UnitUID(strings.Repeat("u", ledger.MaxText)), State: grant.Held,
		Name: strings.Repeat("n", ledger.MaxName), Tenant: resource.TenantID(strings.Repeat("t", ledger.MaxText)),
		Members: make([]ledger.Holding, ledger.MaxMembers), UnitMembers: ledger.MaxUnitMembers,
	}}}
	reasons := make([]resource.Reason, 1000)
	for i := range reasons {
		reasons[i] = resource.Reason{Code: resource.ReasonInsufficient, Detail: long}
	}
	for name, body := range map[string]Body{
		"occupancy": occupancy, "reply": Reply{Tx: "tx", Reasons: reasons}, "health": HealthChange{Health: occupancy.Health, Quarantine: long},
	} {
		if err := limits.Admit(Envelope{Body: body}.message()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	beat := Heartbeat{Conditions: []Condition{{Type: "OrphanProcesses", Reason: "NoGrant", Message: long}}}
	for range 100 {
		beat.Conditions = append(beat.Conditions, beat.Conditions[0])
	}
	if err := limits.Admit(heartbeatMessage("n1", beat)); err != nil {
		t.Error(err)
	}
}
