package rpc_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// acts are a node's calls, by the budget that bounds it: the i-th time.
var acts = map[string]struct {
	budget rpc.Budget
	do     func(t *testing.T, s *rpc.Server, i int) error
}{
	"fences of invented transactions": {rpc.Fences, func(t *testing.T, s *rpc.Server, i int) error {
		tx := resource.NewTxID("u", 1, uint64(i), resource.Nonce{2})
		_, err := s.Resolve(t.Context(), &musterv1.ResolveRequest{NodeId: "n1", Tx: string(tx), Fence: true})
		return err
	}},
	"registrations": {rpc.Registrations, func(t *testing.T, s *rpc.Server, i int) error {
		_, err := s.Register(t.Context(), registration(t, resource.Incarnation{JournalID: fmt.Sprint("j", i), BootID: "b"}))
		return err
	}},
	"resolutions": {rpc.Resolutions, func(t *testing.T, s *rpc.Server, _ int) error {
		_, err := s.Resolve(t.Context(), &musterv1.ResolveRequest{NodeId: "n1", Tx: string(newTx())})
		return err
	}},
	"reads": {rpc.Reads, func(t *testing.T, s *rpc.Server, _ int) error {
		_, err := s.ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: "n1"})
		return err
	}},
}

func TestANodeHasABudget(t *testing.T) {
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, s := open(t, mem.Options{})
				over := 0
				server.OverBudget = func(node resource.NodeID, b rpc.Budget) {
					if node != "n1" || b.Name != act.budget.Name {
						t.Errorf("%s is over the budget %q, want n1 over %q", node, b.Name, act.budget.Name)
					}
					over++
				}
				for i := range act.budget.Burst {
					if err := act.do(t, server, i); err != nil {
						t.Fatalf("%d of %d: %v", i+1, act.budget.Burst, err)
					}
				}
				_, _, before, err := s.Get(t.Context(), "/")
				if err != nil {
					t.Fatal(err)
				}
				for i := range 100 {
					err := act.do(t, server, act.budget.Burst+i)
					if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "more "+act.budget.Name+" than its budget") {
						t.Fatalf("one more: %v, want ResourceExhausted that names the budget", err)
					}
				}
				if _, _, after, _ := s.Get(t.Context(), "/"); after != before || over != 100 {
					t.Errorf("%d writes came after the end of the budget, and %d refusals were told", after-before, over)
				}
				if _, err := server.Resolve(t.Context(), &musterv1.ResolveRequest{NodeId: "n2", Tx: string(newTx()), Fence: true}); err != nil {
					t.Errorf("another node is refused: %v", err)
				}
				time.Sleep(time.Duration(float64(time.Second)/float64(act.budget.Second)) + time.Millisecond) // of the bubble's clock
				if err := act.do(t, server, 1<<20); err != nil {
					t.Errorf("refused for ever: %v", err)
				}
			})
		})
	}
}

// A record that is there costs nothing: an agent that asks again is answered.
func TestAFenceOfADecidedTransactionIsFree(t *testing.T) {
	server, _ := open(t, mem.Options{})
	for i := range rpc.Fences.Burst {
		if err := acts["fences of invented transactions"].do(t, server, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := acts["fences of invented transactions"].do(t, server, 0); err != nil {
		t.Errorf("a decided transaction: %v", err)
	}
}

func TestAFenceIsOfATransactionThatALeaderCouldHaveMade(t *testing.T) {
	const nonce = "00000000000000000000000000000001"
	for name, c := range map[string]struct {
		tx   string
		code codes.Code
	}{
		"of a unit with a long name":       {strings.Repeat("u", 65) + ".1.1." + nonce, codes.InvalidArgument},
		"of a unit that is a path":         {"../u.1.1." + nonce, codes.InvalidArgument},
		"of a unit with an escape":         {"u\x1b[2J.1.1." + nonce, codes.InvalidArgument},
		"of no epoch":                      {"u.0.1." + nonce, codes.InvalidArgument},
		"of an epoch that has not come":    {"u.ffffffff.1." + nonce, codes.FailedPrecondition},
		"of a counter beyond every number": {"u.1.10000000000000000." + nonce, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			server, s := open(t, mem.Options{})
			_, err := server.Resolve(t.Context(), &musterv1.ResolveRequest{NodeId: "n1", Tx: c.tx, Fence: true})
			if status.Code(err) != c.code || len(err.Error()) > 500 {
				t.Errorf("error %v, want %s", err, c.code)
			}
			if kvs, _, _ := s.Range(t.Context(), "/", store.RangeOptions{}); len(kvs) > 0 {
				t.Errorf("something was written: %v", kvs)
			}
		})
	}
}

func TestARecordOfAFenceIsSmallAndNamesItsNode(t *testing.T) {
	server, s := open(t, mem.Options{})
	tx := resource.NewTxID(resource.UnitUID(strings.Repeat("u", 64)), 1, 1<<63, resource.Nonce{1})
	node := strings.Repeat("n", 63)
	if _, err := server.Resolve(t.Context(), &musterv1.ResolveRequest{NodeId: node, Tx: string(tx), Fence: true}); err != nil {
		t.Fatal(err)
	}
	rec, kv := get[record.Tx](t, s, record.TxKey(tx))
	if size := len(kv.Key) + len(kv.Value); size > 512 || rec.Reason != "fenced for "+node {
		t.Errorf("%d bytes, reason %q", size, rec.Reason)
	}
}

func TestConditionsAreWrittenAtMostSoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		stream := serve(t, s)
		say := func(reason string) record.KV {
			beat(t, stream, &schedulerv1.HeartbeatRequest{NodeId: "n1", Conditions: []*schedulerv1.NodeCondition{
				{Type: "Ready", Status: "True", Reason: reason, Message: strings.Repeat("m", 4096)}, {Type: "Ready", Status: "False"}, {Type: "Other"},
			}})
			_, kv := get[record.NodeStatus](t, s, record.NodeStatusKey("n1"))
			return kv
		}
		writes, last := 0, resource.Revision(0)
		for i := range 600 { // a minute
			if kv := say(fmt.Sprint("r", i)); kv.ModRev != last {
				writes, last = writes+1, kv.ModRev
				if len(kv.Value) > 2048 {
					t.Errorf("%d bytes were written", len(kv.Value))
				}
			}
			time.Sleep(100 * time.Millisecond) // of the bubble's clock
		}
		if most := rpc.Conditions.Burst + 12; writes > most {
			t.Errorf("%d writes in a minute, want at most %d", writes, most)
		}
		time.Sleep(10 * time.Second)
		say("last")
		status, _ := get[record.NodeStatus](t, s, record.NodeStatusKey("n1"))
		if len(status.Conditions) != 2 || status.Conditions[0].Reason != "last" || status.Conditions[0].Status != "True" || status.Conditions[1].Status != "Unknown" {
			t.Errorf("status %+v", status)
		}
		stream.CloseSend()
	})
}

// A node that has its lease made again and again, by streams or by races, has a
// lease no more until its budget grows.
func TestLeasesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		stream := serve(t, s)
		kept := 0
		for range rpc.Leases.Burst + 10 {
			if beat(t, stream, alive).GetLeaseDurationSeconds() > 0 {
				kept++
			}
			put(t, s, record.Delete(record.NodeLeaseKey("n1")))
		}
		if kept != rpc.Leases.Burst {
			t.Errorf("%d leases were made at once, want %d", kept, rpc.Leases.Burst)
		}
		time.Sleep(2 * time.Second) // of the bubble's clock
		if r := beat(t, stream, alive); r.GetLeaseDurationSeconds() == 0 || len(r.GetDirectives()) > 0 {
			t.Errorf("answer %v once the budget has grown", r)
		}
		stream.CloseSend()
	})
}

func TestHeartbeatsHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		stream := serve(t, s)
		for range rpc.Heartbeat.Burst {
			beat(t, stream, alive)
		}
		if err := stream.Send(alive); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "heartbeats") {
			t.Errorf("error %v, want ResourceExhausted", err)
		}
	})
}
