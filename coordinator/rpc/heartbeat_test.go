package rpc_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

type beats = grpc.BidiStreamingClient[schedulerv1.HeartbeatRequest, schedulerv1.HeartbeatResponse]

// serve starts a coordinator's heartbeats and returns a stream to them.
func serve(t *testing.T, s *mem.Store) beats {
	t.Helper()
	return serveAs(t, &rpc.Heartbeats{CoordinatorID: "c1", Store: s, Logger: quiet})
}

func serveAs(t *testing.T, h *rpc.Heartbeats) beats {
	t.Helper()
	l := bufconn.Listen(64 << 10)
	server := grpc.NewServer()
	schedulerv1.RegisterNodeAgentServer(server, h)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()
	conn, err := grpc.NewClient("passthrough:///c1", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-served
	})
	stream, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func beat(t *testing.T, stream beats, r *schedulerv1.HeartbeatRequest) *schedulerv1.HeartbeatResponse {
	t.Helper()
	if err := stream.Send(r); err != nil {
		t.Fatal(err)
	}
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return response
}

var alive = &schedulerv1.HeartbeatRequest{NodeId: "n1"}

func TestHeartbeatsKeepTheLeaseAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		stream := serve(t, s)
		if r := beat(t, stream, alive); r.GetLeaseDurationSeconds() != 40 || len(r.GetDirectives()) > 0 {
			t.Errorf("answer %v", r)
		}
		lease, kv := get[record.NodeLease](t, s, record.NodeLeaseKey("n1"))
		if lease.Coordinator != "c1" || kv.Lease == 0 {
			t.Errorf("lease %+v on %d", lease, kv.Lease)
		}
		for range 5 {
			time.Sleep(30 * time.Second) // of the bubble's clock
			beat(t, stream, alive)
		}
		if _, again := get[record.NodeLease](t, s, record.NodeLeaseKey("n1")); again.ModRev != kv.ModRev {
			t.Errorf("the lease was made anew at %d", again.ModRev)
		}
		time.Sleep(grant.NodeLeaseTTL + time.Second)
		if _, found, _, _ := s.Get(t.Context(), record.NodeLeaseKey("n1")); found {
			t.Error("the lease outlived its node's silence")
		}
		beat(t, stream, alive)
		get[record.NodeLease](t, s, record.NodeLeaseKey("n1"))
		stream.CloseSend()
	})
}

func TestAnUnknownNodeIsToldToRegister(t *testing.T) {
	server, s := open(t, mem.Options{})
	stream := serve(t, s)
	if r := beat(t, stream, alive); len(r.GetDirectives()) != 1 || r.GetDirectives()[0].GetType() != "register" {
		t.Errorf("answer %v, want the directive to register", r)
	}
	register(t, server, first)
	if r := beat(t, stream, alive); len(r.GetDirectives()) > 0 {
		t.Errorf("answer %v after the registration", r)
	}
	get[record.NodeLease](t, s, record.NodeLeaseKey("n1"))
}

func TestALeaseThatCouldNotBeWrittenIsTriedAgain(t *testing.T) {
	cases := map[string]func(s *mem.Store) error{
		"the store did not answer": func(*mem.Store) error { return record.ErrUnknownOutcome },
		"the node registered in between": func(s *mem.Store) error {
			i := record.NodeIdentity{Incarnation: resource.Incarnation{JournalID: "j2", BootID: "b"}}
			_, err := s.Txn(context.Background(), record.Txn{Then: []record.Op{record.Put(record.NodeIdentityKey("n1"), record.MustEncode(i))}})
			return err
		},
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			var s *mem.Store
			left := 1
			server, s := open(t, mem.Options{BeforeCommit: func(x record.Txn) error {
				if x.Then[0].Key == record.NodeLeaseKey("n1") && left > 0 {
					left--
					return fault(s)
				}
				return nil
			}})
			register(t, server, first)
			stream := serve(t, s)
			if r := beat(t, stream, alive); len(r.GetDirectives()) > 0 {
				t.Errorf("a registered node is told %v", r.GetDirectives())
			}
			if _, found, _, _ := s.Get(t.Context(), record.NodeLeaseKey("n1")); found {
				t.Fatal("the first lease was written")
			}
			beat(t, stream, alive)
			get[record.NodeLease](t, s, record.NodeLeaseKey("n1"))
		})
	}
}

// measured is the status that a node has after one heartbeat with a usage.
func measured(t *testing.T, u *schedulerv1.ResourceUsage) (record.NodeStatus, record.NodeSpec) {
	t.Helper()
	server, s := open(t, mem.Options{})
	register(t, server, first)
	beat(t, serve(t, s), &schedulerv1.HeartbeatRequest{NodeId: "n1", CurrentUsage: u})
	status, _ := get[record.NodeStatus](t, s, record.NodeStatusKey("n1"))
	spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1"))
	return status, spec
}

func TestTheUsageOfAHostIsWrittenAsFarAsItIsPossible(t *testing.T) {
	got, spec := measured(t, &schedulerv1.ResourceUsage{CpuMillicores: 1 << 62, MemoryBytes: -1})
	if diff := cmp.Diff(resource.Vector{resource.CPU: spec.Capacity[resource.CPU], resource.Memory: 0}, got.Usage); diff != "" {
		t.Errorf("usage beyond the host (-want +got):\n%s", diff)
	}
	if got, _ := measured(t, nil); got.Usage != nil || got.HeardAt == "" {
		t.Errorf("status %+v where no usage was told", got)
	}
}

func TestTheUseOfDevicesIsWrittenAsFarAsItIsPossible(t *testing.T) {
	percent, memory := func(n int32) *int32 { return &n }, func(n int64) *int64 { return &n }
	got, _ := measured(t, &schedulerv1.ResourceUsage{Devices: []*schedulerv1.DeviceUse{
		{Uuid: "GPU-busy", Percent: percent(37), MemoryBytes: memory(12 << 30)},
		{Uuid: "GPU-idle", Percent: percent(0), MemoryBytes: memory(0)},
		{Uuid: "GPU-silent"},
		{Uuid: "GPU-lying", Percent: percent(101), MemoryBytes: memory(1 << 62)},
		{Uuid: "GPU-below", Percent: percent(-7), MemoryBytes: memory(-7)},
	}})
	const unknown = devices.UnknownUse
	want := []record.DeviceUse{
		{UUID: "GPU-busy", Percent: 37, Memory: 12 << 30},
		{UUID: "GPU-idle"},
		{UUID: "GPU-silent", Percent: unknown, Memory: unknown},
		{UUID: "GPU-lying", Percent: unknown, Memory: unknown},
		{UUID: "GPU-below", Percent: unknown, Memory: unknown},
	}
	if diff := cmp.Diff(want, got.Devices); diff != "" {
		t.Errorf("use (-want +got):\n%s", diff)
	}
}

// The use and the time of the heartbeats alone are written once a minute for a node,
// also by the next stream.
func TestAReportWithoutNewsIsWrittenOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		writes := 0
		var last resource.Revision
		hear := func(stream beats, seconds int) {
			for i := range seconds / 10 {
				beat(t, stream, &schedulerv1.HeartbeatRequest{NodeId: "n1", CurrentUsage: &schedulerv1.ResourceUsage{CpuMillicores: int64(i)}})
				if _, kv := get[record.NodeStatus](t, s, record.NodeStatusKey("n1")); kv.ModRev != last {
					writes, last = writes+1, kv.ModRev
				}
				time.Sleep(10 * time.Second) // of the bubble's clock
			}
		}
		stream := serve(t, s)
		hear(stream, 600)
		if writes != 10 {
			t.Errorf("%d writes in 10 minutes, want 10", writes)
		}
		stream.CloseSend()
		next := serve(t, s)
		hear(next, 30)
		if writes > 11 {
			t.Errorf("a new stream has written %d times within half a minute", writes-10)
		}
		next.CloseSend()
	})
}

// However many nodes a coordinator hears, it writes 15 reports without news a second.
func TestReportsWithoutNewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		h := &rpc.Heartbeats{CoordinatorID: "c1", Store: s, Logger: quiet}
		const nodes = 300
		streams := make([]beats, nodes)
		revision := func() resource.Revision {
			_, _, at, err := s.Get(t.Context(), "none")
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		round := func() {
			for i, stream := range streams {
				beat(t, stream, &schedulerv1.HeartbeatRequest{NodeId: fmt.Sprint("n", i)})
			}
		}
		for i := range streams {
			r := registration(t, first)
			r.NodeId = fmt.Sprint("n", i)
			if _, err := server.Register(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			streams[i] = serveAs(t, h)
		}
		round() // the leases too
		time.Sleep(time.Second)
		began := revision()
		for range 9 {
			round()
			time.Sleep(time.Second) // of the bubble's clock
		}
		if wrote := revision() - began; wrote > 15*10 || wrote < 15*8 {
			t.Errorf("%d writes in 9 seconds for %d nodes, want about %d", wrote, nodes, 15*9)
		}
		for _, stream := range streams {
			stream.CloseSend()
		}
	})
}

func TestConditionsAreWrittenWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		stream := serve(t, s)
		say := func(ready, disk string) (record.NodeStatus, record.KV) {
			beat(t, stream, &schedulerv1.HeartbeatRequest{NodeId: "n1", Conditions: []*schedulerv1.NodeCondition{
				{Type: "Ready", Status: ready}, {Type: "DiskPressure", Status: disk, Reason: "JournalFull"},
			}})
			return get[record.NodeStatus](t, s, record.NodeStatusKey("n1"))
		}
		fine, wrote := say("True", "False")
		if len(fine.Conditions) != 2 || fine.Conditions[1].Reason != "JournalFull" {
			t.Errorf("status %+v", fine)
		}
		time.Sleep(10 * time.Second) // of the bubble's clock
		if _, again := say("True", "False"); again.ModRev != wrote.ModRev {
			t.Errorf("the same conditions were written again at %d", again.ModRev)
		}
		full, _ := say("True", "True")
		if full.Conditions[1].Status != "True" || full.Conditions[1].LastTransition == fine.Conditions[1].LastTransition {
			t.Errorf("disk pressure is %+v, was %+v", full.Conditions[1], fine.Conditions[1])
		}
		if full.Conditions[0] != fine.Conditions[0] {
			t.Errorf("a condition that stayed became %+v, was %+v", full.Conditions[0], fine.Conditions[0])
		}
		stream.CloseSend()
	})
}

func TestAStreamIsOfOneNode(t *testing.T) {
	for name, second := range map[string]string{"another node": "n2", "no node": ""} {
		t.Run(name, func(t *testing.T) {
			_, s := open(t, mem.Options{})
			stream := serve(t, s)
			beat(t, stream, alive)
			if err := stream.Send(&schedulerv1.HeartbeatRequest{NodeId: second}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
				t.Errorf("error %v, want InvalidArgument", err)
			}
		})
	}
}

func TestAFencedNodeIsToldToRegisterAndHasNoLease(t *testing.T) {
	server, s := open(t, mem.Options{})
	before := register(t, server, first)
	key := record.NodeIdentityKey("n1")
	identity, _ := get[record.NodeIdentity](t, s, key)
	identity.Fenced, identity.ConfirmedDead = true, true
	if _, err := s.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(key, record.MustEncode(identity))}}); err != nil {
		t.Fatal(err)
	}
	stream := serve(t, s)
	if r := beat(t, stream, alive); len(r.GetDirectives()) != 1 || r.GetDirectives()[0].GetType() != "register" {
		t.Errorf("answer %v, want the directive to register", r)
	}
	if _, found, _, _ := s.Get(t.Context(), record.NodeLeaseKey("n1")); found {
		t.Error("a fenced node has a lease")
	}
	if after := register(t, server, first); after <= before {
		t.Errorf("registered at %d, before the fence at %d", after, before)
	}
	if identity, _ := get[record.NodeIdentity](t, s, key); identity.Fenced || identity.ConfirmedDead {
		t.Errorf("identity %+v after the registration", identity)
	}
	beat(t, stream, alive)
	get[record.NodeLease](t, s, record.NodeLeaseKey("n1"))
}

// TestAnAnswerPromisesALeaseOnlyWhereItsKeyIs: agents take it for contact.
func TestAnAnswerPromisesALeaseOnlyWhereItsKeyIs(t *testing.T) {
	key := record.NodeLeaseKey("n1")
	for name, c := range map[string]struct {
		act       func(t *testing.T, s *mem.Store) // between two heartbeats
		want      int64
		registers bool
	}{
		"nothing happens": {func(*testing.T, *mem.Store) {}, 40, false},
		"the key is deleted, the lease lives": {func(t *testing.T, s *mem.Store) {
			put(t, s, record.Delete(key))
		}, 40, false}, // it has a new one
		"the key is another lease's": {func(t *testing.T, s *mem.Store) {
			lease, err := s.Grant(t.Context(), grant.NodeLeaseTTL)
			if err != nil {
				t.Fatal(err)
			}
			put(t, s, record.PutLeased(key, record.MustEncode(record.NodeLease{Coordinator: "c2"}), lease.ID))
		}, 40, false},
		"it is fenced by force, and the lease lives": {func(t *testing.T, s *mem.Store) {
			identity, _ := get[record.NodeIdentity](t, s, record.NodeIdentityKey("n1"))
			identity.Fenced = true
			put(t, s, record.Delete(key), record.Put(record.NodeIdentityKey("n1"), record.MustEncode(identity)))
		}, 0, true},
		"the store is away": {func(t *testing.T, s *mem.Store) { s.Close() }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, s := open(t, mem.Options{})
			register(t, server, first)
			stream := serve(t, s)
			if r := beat(t, stream, alive); r.GetLeaseDurationSeconds() != 40 {
				t.Fatalf("answer %v", r)
			}
			c.act(t, s)
			r := beat(t, stream, alive)
			if r.GetLeaseDurationSeconds() != c.want || len(r.GetDirectives()) > 0 != c.registers {
				t.Errorf("answer %v", r)
			}
			if c.want == 0 {
				return
			}
			if lease, kv := get[record.NodeLease](t, s, key); lease.Coordinator != "c1" || kv.Lease == 0 {
				t.Errorf("lease %+v on %d", lease, kv.Lease)
			}
		})
	}
}

// A change is sent at once and once, on a stream without heartbeats.
func TestAChangeIsToldWithoutAHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		var mu sync.Mutex
		print, changed := "one", make(chan struct{})
		say := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			print = text
			close(changed)
			changed = make(chan struct{})
		}
		h := &rpc.Heartbeats{
			CoordinatorID: "c1", Store: s, Logger: quiet,
			Fingerprint: func() string { mu.Lock(); defer mu.Unlock(); return print },
			Changed:     func() <-chan struct{} { mu.Lock(); defer mu.Unlock(); return changed },
		}
		stream := serveAs(t, h)
		told := func(r *schedulerv1.HeartbeatResponse, kind, message string) {
			t.Helper()
			if d := r.GetDirectives(); len(d) != 1 || d[0].GetType() != kind || d[0].GetMessage() != message {
				t.Errorf("told %v, want %s %q", d, kind, message)
			}
		}
		told(beat(t, stream, alive), "renew", "one")
		say("two")
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		told(r, "renew_now", "two")
		if r.GetLeaseDurationSeconds() != 0 {
			t.Error("it promises a lease that nobody has asked for")
		}
		say("two") // nothing is new
		if r := beat(t, stream, alive); len(r.GetDirectives()) > 0 || r.GetLeaseDurationSeconds() != 40 {
			t.Errorf("the next answer is %v", r)
		}
		stream.CloseSend()
	})
}

func TestTheKubeletsPoolIsWrittenWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s := open(t, mem.Options{})
		register(t, server, first)
		stream := serve(t, s)
		defer stream.CloseSend()
		told := func(report *schedulerv1.KubeletReport) (*record.KubeletReport, resource.Revision) {
			t.Helper()
			beat(t, stream, &schedulerv1.HeartbeatRequest{NodeId: "n1", Kubelet: report})
			status, kv := get[record.NodeStatus](t, s, record.NodeStatusKey("n1"))
			return status.Kubelet, kv.ModRev
		}
		lent := &schedulerv1.KubeletReport{Devices: []*schedulerv1.KubeletDevice{
			{Uuid: "GPU-a", State: "Lent", Configured: true, Since: 1_700_000_000, Containers: []*schedulerv1.KubeletContainer{{Namespace: "default", Pod: "p", Container: "main", Unit: "GPU-a"}}},
			{Uuid: "GPU-a", State: "Free"},
			{Uuid: "GPU-b", State: "Odd"},
			{State: "Free"},
		}}
		want := &record.KubeletReport{Devices: []record.KubeletDevice{
			{UUID: "GPU-a", State: "Lent", Configured: true, Since: 1_700_000_000, Containers: []record.KubeletContainer{{Namespace: "default", Pod: "p", Container: "main", Unit: "GPU-a"}}},
		}}
		got, at := told(lent)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
		if _, again := told(lent); again != at {
			t.Error("a report without news is written at once")
		}
		lent.Devices[0].Containers[0].Pod = "q"
		if got, again := told(lent); again == at || got.Devices[0].Containers[0].Pod != "q" {
			t.Errorf("another pod is not written: %+v", got)
		}
		if got, _ := told(nil); got != nil {
			t.Errorf("a kubelet that gets no devices has %+v", got)
		}
	})
}
