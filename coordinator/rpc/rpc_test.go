package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	first = resource.Incarnation{JournalID: "j1", BootID: "b1"}
)

// open returns a server on an empty store.
func open(t *testing.T, o mem.Options) (*rpc.Server, *mem.Store) {
	t.Helper()
	s := mem.Open(o)
	t.Cleanup(func() { s.Close() })
	return &rpc.Server{Cluster: "c", Store: s, Logger: quiet}, s
}

func registration(t *testing.T, i resource.Incarnation) *musterv1.RegisterRequest {
	t.Helper()
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		t.Fatal(err)
	}
	return &musterv1.RegisterRequest{
		Cluster: "c", NodeId: "n1", Incarnation: wire.ToIncarnation(i), AgentAddr: "10.0.0.1:7077", Version: "v1",
		Host: wire.ToHost(grant.Host{
			Hostname: "host-1", Topology: profile.Topology(), Inventory: profile.Inventory("n1"),
			ReservedMemory: 1 << 30, Labels: map[string]string{"zone": "a"},
		}),
	}
}

func register(t *testing.T, s *rpc.Server, i resource.Incarnation) resource.Revision {
	t.Helper()
	r, err := s.Register(t.Context(), registration(t, i))
	if err != nil {
		t.Fatal(err)
	}
	return resource.Revision(r.GetRevision())
}

func get[R record.Type](t *testing.T, s *mem.Store, key string) (R, record.KV) {
	t.Helper()
	kv, found, _, err := s.Get(t.Context(), key)
	if err != nil || !found {
		t.Fatalf("get %s: found %t, %v", key, found, err)
	}
	r, err := record.Decode[R](key, kv.Value)
	if err != nil {
		t.Fatal(err)
	}
	return r, kv
}

func put(t *testing.T, s *mem.Store, ops ...record.Op) resource.Revision {
	t.Helper()
	r, err := s.Txn(t.Context(), record.Txn{Then: ops})
	if err != nil {
		t.Fatal(err)
	}
	return r.Revision
}

func TestRegisterRecordsTheHost(t *testing.T) {
	server, s := open(t, mem.Options{})
	var told record.NodeSpec
	server.Registered = func(node resource.NodeID, spec record.NodeSpec, rev resource.Revision) { told = spec }
	revision := register(t, server, first)
	identity, kv := get[record.NodeIdentity](t, s, record.NodeIdentityKey("n1"))
	if kv.ModRev != revision || identity != (record.NodeIdentity{Incarnation: first}) {
		t.Errorf("identity %+v at %d, the answer says %d", identity, kv.ModRev, revision)
	}
	spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1"))
	if diff := cmp.Diff(spec, told); diff != "" {
		t.Errorf("told (-stored +told):\n%s", diff)
	}
	if spec.Hostname != "host-1" || spec.AgentAddr != "10.0.0.1:7077" || spec.Version != "v1" || spec.Labels["zone"] != "a" ||
		spec.Topology.GPUs != 2 || spec.Capacity[resource.GPU] != 2000 ||
		spec.Capacity[resource.Memory]-spec.Allocatable[resource.Memory] != 1<<30 {
		t.Errorf("spec %+v", spec)
	}
}

func TestRegisterRecordsHugePagesAndInstances(t *testing.T) {
	profile, err := fake.ParseProfile([]byte(`{
		"name": "partitioned", "driver": "550", "threadsPerCore": 2,
		"nodes": [{"socket": 0, "cores": 4, "memory": "16Gi", "hugepages": {"2048": 1024, "1048576": 2}}],
		"gpus": [{"model": "A100", "memory": "80Gi", "pciBusID": "0000:01:00.0", "numaNode": 0, "path": "rc0", "mig": {"enabled": true, "instances": [
			{"profile": "1g.10gb", "memory": "10Gi"}, {"profile": "1g.10gb+me", "memory": "10Gi"}, {"profile": "1g.10gb", "memory": "10Gi"}]}}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	server, s := open(t, mem.Options{})
	_, err = server.Register(t.Context(), &musterv1.RegisterRequest{
		Cluster: server.Cluster, NodeId: "n1", Incarnation: wire.ToIncarnation(first),
		Host: wire.ToHost(grant.Host{Hostname: "h", Topology: profile.Topology(), Inventory: profile.Inventory("n1"), ReservedMemory: 1 << 30}),
	})
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1"))
	want := resource.Vector{
		resource.CPU: 8000, resource.Memory: 11 << 30, "hugepages-2Mi": 2 << 30, "hugepages-1Gi": 2 << 30, "nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-1g.10gb.me": 1,
	}
	if diff := cmp.Diff(want, spec.Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	want[resource.Memory] = 16 << 30
	if diff := cmp.Diff(want, spec.Capacity); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
}

func TestTheSameIncarnationKeepsItsRegistration(t *testing.T) {
	server, s := open(t, mem.Options{})
	revision := register(t, server, first)
	request := registration(t, first)
	request.AgentAddr = "10.0.0.2:7077"
	again, err := server.Register(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if resource.Revision(again.GetRevision()) != revision {
		t.Errorf("registered at %d, before at %d", again.GetRevision(), revision)
	}
	if _, kv := get[record.NodeIdentity](t, s, record.NodeIdentityKey("n1")); kv.ModRev != revision {
		t.Errorf("the identity was written again, at %d", kv.ModRev)
	}
	if spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1")); spec.AgentAddr != "10.0.0.2:7077" {
		t.Errorf("the address is %s", spec.AgentAddr)
	}
}

func TestANewIncarnationIsANewRegistration(t *testing.T) {
	for name, next := range map[string]resource.Incarnation{
		"after a boot":       {JournalID: "j1", BootID: "b2"},
		"with a new journal": {JournalID: "j2", BootID: "b1"},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := open(t, mem.Options{})
			before := register(t, server, first)
			after := register(t, server, next)
			if after <= before {
				t.Errorf("registered at %d, before at %d", after, before)
			}
			if back := register(t, server, first); back <= after {
				t.Errorf("an earlier incarnation came back at %d, want after %d", back, after)
			}
		})
	}
}

func TestAFencedIncarnationRegistersAnew(t *testing.T) {
	server, s := open(t, mem.Options{})
	register(t, server, first)
	fenced := put(t, s, record.Put(record.NodeIdentityKey("n1"), record.MustEncode(record.NodeIdentity{Incarnation: first, Fenced: true})))
	if after := register(t, server, first); after <= fenced {
		t.Errorf("registered at %d, fenced at %d", after, fenced)
	}
	if identity, _ := get[record.NodeIdentity](t, s, record.NodeIdentityKey("n1")); identity.Fenced {
		t.Error("still fenced")
	}
}

func TestRegisterKeepsWhatOperatorsSet(t *testing.T) {
	server, s := open(t, mem.Options{})
	register(t, server, first)
	key := record.NodeSpecKey("n1")
	spec, _ := get[record.NodeSpec](t, s, key)
	spec.Taints, spec.Unschedulable = []record.Taint{{Key: "k", Effect: "NoSchedule"}}, true
	put(t, s, record.Put(key, record.MustEncode(spec)))
	register(t, server, resource.Incarnation{JournalID: "j1", BootID: "b2"})
	after, _ := get[record.NodeSpec](t, s, key)
	if diff := cmp.Diff(spec, after, cmpopts.IgnoreFields(record.NodeSpec{}, "Registrations", "RegisteredBy")); diff != "" {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
}

// TestTheLastRegistrationsAreKeptWithTheirTimes: eight of them, the newest last.
func TestTheLastRegistrationsAreKeptWithTheirTimes(t *testing.T) {
	server, s := open(t, mem.Options{})
	key := record.NodeSpecKey("n1")
	for n := 1; n <= 2*record.MaxRegistrations; n++ {
		register(t, server, resource.Incarnation{JournalID: "j1", BootID: fmt.Sprint("b", n)})
		spec, _ := get[record.NodeSpec](t, s, key)
		if len(spec.RegisteredBy) != len(spec.Registrations) || spec.RegisteredBy[len(spec.RegisteredBy)-1] != (record.Registrant{Hostname: "host-1", AgentAddr: spec.AgentAddr, Journal: "j1"}) {
			t.Fatalf("after %d registrations by %+v", n, spec.RegisteredBy)
		}
		if got := len(spec.Registrations); got != min(n, record.MaxRegistrations) || !slices.IsSorted(spec.Registrations) {
			t.Fatalf("after %d registrations: %q", n, spec.Registrations)
		}
	}
}

func TestRegisterTriesAgainWhenAnOperatorWasFaster(t *testing.T) {
	var s *mem.Store
	var once sync.Once
	key := record.NodeSpecKey("n1")
	server, s := open(t, mem.Options{BeforeCommit: func(x record.Txn) error {
		if len(x.If) > 0 {
			once.Do(func() {
				put(t, s, record.Put(key, record.MustEncode(record.NodeSpec{Unschedulable: true})))
			})
		}
		return nil
	}})
	register(t, server, first)
	if spec, _ := get[record.NodeSpec](t, s, key); !spec.Unschedulable || spec.Hostname != "host-1" {
		t.Errorf("spec %+v, want both the operator's word and the host's", spec)
	}
}

func TestRegisterRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*musterv1.RegisterRequest)
		code   codes.Code
		want   string
	}{
		"another cluster":     {func(r *musterv1.RegisterRequest) { r.Cluster = "d" }, codes.FailedPrecondition, `"d"`},
		"no node":             {func(r *musterv1.RegisterRequest) { r.NodeId = "" }, codes.InvalidArgument, "node_id"},
		"a long name":         {func(r *musterv1.RegisterRequest) { r.NodeId = strings.Repeat("n", 64) }, codes.InvalidArgument, "node_id"},
		"no incarnation":      {func(r *musterv1.RegisterRequest) { r.Incarnation = nil }, codes.InvalidArgument, "incarnation"},
		"half an incarnation": {func(r *musterv1.RegisterRequest) { r.Incarnation.BootId = "" }, codes.InvalidArgument, "boot_id"},
		"no host":             {func(r *musterv1.RegisterRequest) { r.Host = nil }, codes.InvalidArgument, "host"},
		"NUMA nodes of 2^63-1 bytes": {
			func(r *musterv1.RegisterRequest) {
				r.Host.Topology.Nodes = []*musterv1.NUMANode{{Memory: 1<<63 - 1}, {Id: 1, Memory: 1<<63 - 1}}
				r.Host.Topology.Cpus = nil
			},
			codes.InvalidArgument, "host.topology.nodes[0].memory: 9223372036854775807",
		},
		"more memory reserved than there is": {
			func(r *musterv1.RegisterRequest) { r.Host.ReservedMemory = 1 << 60 },
			codes.InvalidArgument, "n1",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server, s := open(t, mem.Options{})
			request := registration(t, first)
			c.change(request)
			_, err := server.Register(t.Context(), request)
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s with %s in it", err, c.code, c.want)
			}
			if kvs, _, _ := s.Range(context.Background(), "/", store.RangeOptions{}); len(kvs) > 0 {
				t.Errorf("something was written: %v", kvs)
			}
		})
	}
}

func TestAStoreThatFailsIsUnavailable(t *testing.T) {
	server, _ := open(t, mem.Options{AfterCommit: func(record.Txn, record.TxnResult) error { return record.ErrUnknownOutcome }})
	if _, err := server.Register(t.Context(), registration(t, first)); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want Unavailable", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := server.Register(ended, registration(t, first)); status.Code(err) != codes.Canceled {
		t.Errorf("error %v, want Canceled", err)
	}
}

// record is a COMMITTED record of two members on n1 and one on n2.
func committed(tx resource.TxID) record.Tx {
	a := resource.Assignment{GPUs: []resource.GPUGrant{{Index: 1, UUID: "GPU-1", Milli: 1000}}}
	return record.Tx{
		State: grant.RecordCommitted, Epoch: 7, UnitUID: "u", Tenant: "t", Unit: record.UnitPath{Namespace: "ns", Kind: record.AllocUnit, Name: "a"},
		GraceSeconds: 30,
		Members: []record.Placement{
			{Member: 2, Node: "n1", Incarnation: first, Assignment: a}, {Member: 1, Node: "n2"}, {Member: 0, Node: "n1", Incarnation: first},
		},
	}
}

func newTx() resource.TxID { return resource.NewTxID("u", 1, 1, resource.Nonce{1}) }

func TestReadNodeReturnsTheNodesOwnMembers(t *testing.T) {
	server, s := open(t, mem.Options{})
	tx := newTx()
	index := record.MustEncode(record.NodeTx{Members: []int{0, 2}})
	at := put(t, s, record.Put(record.TxKey(tx), record.MustEncode(committed(tx))), record.Put(record.NodeTxKey("n1", tx), index))
	put(t, s, record.Put(record.NodeTxKey("n1", resource.NewTxID("u", 7, 2, resource.Nonce{})), index)) // its record is gone
	put(t, s, record.Put(record.NodeTxKey("n10", tx), index))                                           // another node
	got, err := server.ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	want := &musterv1.ReadNodeResponse{Revision: int64(at) + 2, Records: []*musterv1.Record{{
		Tx: string(tx), Unit: "u", Epoch: 7, State: musterv1.Record_COMMITTED, GraceMillis: 30_000, Revision: int64(at),
		Name: "ns/alloc/a/0", Tenant: "t", UnitMembers: 3,
		Incarnation: wire.ToIncarnation(first),
		Members:     []*musterv1.MemberAssignment{wire.ToMember(0, resource.Assignment{}), wire.ToMember(2, committed(tx).Members[0].Assignment)},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if none, err := server.ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: "n3"}); err != nil || len(none.GetRecords()) > 0 {
		t.Errorf("a node without records: %v, %v", none, err)
	}
	if _, err := server.ReadNode(t.Context(), &musterv1.ReadNodeRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no node: error %v", err)
	}
}

func TestResolve(t *testing.T) {
	cases := map[string]struct {
		state grant.RecordState
		fence bool
		want  musterv1.Record_State
	}{
		"absent stays undecided without a fence": {grant.RecordAbsent, false, musterv1.Record_ABSENT},
		"absent becomes aborted by a fence":      {grant.RecordAbsent, true, musterv1.Record_ABORTED},
		"a fence does not touch COMMITTED":       {grant.RecordCommitted, true, musterv1.Record_COMMITTED},
		"a fence does not touch EVICTING":        {grant.RecordEvicting, true, musterv1.Record_EVICTING},
		"a fence does not touch RELEASING":       {grant.RecordReleasing, true, musterv1.Record_RELEASING},
		"a fence does not touch RELEASED":        {grant.RecordReleased, true, musterv1.Record_RELEASED},
		"a fence does not touch ABORTED":         {grant.RecordAborted, true, musterv1.Record_ABORTED},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server, s := open(t, mem.Options{})
			tx := newTx()
			var at resource.Revision
			if c.state != grant.RecordAbsent {
				r := committed(tx)
				r.State = c.state
				at = put(t, s, record.Put(record.TxKey(tx), record.MustEncode(r)))
			}
			request := &musterv1.ResolveRequest{NodeId: "n1", Tx: string(tx), Fence: c.fence}
			got, err := server.Resolve(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetRecord().GetState() != c.want || got.GetRecord().GetTx() != string(tx) {
				t.Errorf("%v, want %s", got, c.want)
			}
			kv, found, _, _ := s.Get(t.Context(), record.TxKey(tx))
			if found != (c.state != grant.RecordAbsent || c.fence) || at != 0 && kv.ModRev != at {
				t.Errorf("the record is at %d (found %t), before at %d", kv.ModRev, found, at)
			}
			if unit, _, _, err := tx.Attempt(); found {
				if r, bad := record.Decode[record.Tx](kv.Key, kv.Value); err != nil || bad != nil || r.UnitUID != unit {
					t.Errorf("the record is of unit %q, want %q; %v, %v", r.UnitUID, unit, err, bad)
				}
			}
			again, err := server.Resolve(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if c.fence {
				if diff := cmp.Diff(got, again, protocmp.Transform()); diff != "" {
					t.Errorf("asked again (-first +second):\n%s", diff)
				}
			}
		})
	}
}

func TestACommitThatIsFasterThanTheFenceWins(t *testing.T) {
	tx := newTx()
	var s *mem.Store
	server, s := open(t, mem.Options{BeforeCommit: func(x record.Txn) error {
		if len(x.If) > 0 { // the fence, on its way
			put(t, s, record.Put(record.TxKey(tx), record.MustEncode(committed(tx))))
		}
		return nil
	}})
	got, err := server.Resolve(t.Context(), &musterv1.ResolveRequest{NodeId: "n2", Tx: string(tx), Fence: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := got.GetRecord(); r.GetState() != musterv1.Record_COMMITTED || len(r.GetMembers()) != 1 || r.GetMembers()[0].GetMember() != 1 {
		t.Errorf("%v, want COMMITTED with member 1", r)
	}
}

func TestManyFencesMakeOneRecord(t *testing.T) {
	server, s := open(t, mem.Options{})
	tx := newTx()
	var wg sync.WaitGroup
	states := make([]musterv1.Record_State, 8)
	for i := range states {
		wg.Go(func() {
			r, err := server.Resolve(t.Context(), &musterv1.ResolveRequest{NodeId: "n1", Tx: string(tx), Fence: true})
			if err == nil {
				states[i] = r.GetRecord().GetState()
			}
		})
	}
	wg.Wait()
	for i, state := range states {
		if state != musterv1.Record_ABORTED {
			t.Errorf("answer %d is %s", i, state)
		}
	}
	if _, kv := get[record.Tx](t, s, record.TxKey(tx)); kv.CreateRev != kv.ModRev {
		t.Errorf("the record was created at %d and written again at %d", kv.CreateRev, kv.ModRev)
	}
}

func TestResolveOfAnUnknownFenceIsNoAnswer(t *testing.T) {
	server, _ := open(t, mem.Options{AfterCommit: func(record.Txn, record.TxnResult) error { return record.ErrUnknownOutcome }})
	request := &musterv1.ResolveRequest{NodeId: "n1", Tx: string(newTx()), Fence: true}
	if _, err := server.Resolve(t.Context(), request); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v, want Unavailable", err)
	}
	// It had landed: asked again, that is the answer.
	if r, err := server.Resolve(t.Context(), request); err != nil || r.GetRecord().GetState() != musterv1.Record_ABORTED {
		t.Errorf("%v, %v", r, err)
	}
}

func TestResolveRefuses(t *testing.T) {
	server, _ := open(t, mem.Options{BeforeCommit: func(record.Txn) error { return errors.New("nothing may be written") }})
	for name, r := range map[string]*musterv1.ResolveRequest{
		"no node":                   {Tx: string(newTx()), Fence: true},
		"no transaction":            {NodeId: "n1", Fence: true},
		"what is not a transaction": {NodeId: "n1", Tx: "../../leader", Fence: true},
	} {
		if _, err := server.Resolve(t.Context(), r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: error %v, want InvalidArgument", name, err)
		}
	}
}

func TestALimitWithoutContactIsOfItsRegistration(t *testing.T) {
	server, s := open(t, mem.Options{})
	announce := func(millis int64) (resource.Revision, error) {
		r := registration(t, first)
		r.AssumeDeadAfterMillis = millis
		done, err := server.Register(t.Context(), r)
		return resource.Revision(done.GetRevision()), err
	}
	last := resource.Revision(0)
	for i, c := range []struct {
		millis int64
		anew   bool // promises of before do not count any more
	}{{0, true}, {60_000, true}, {60_000, false}, {86_400_000, true}, {0, true}, {0, false}} {
		at, err := announce(c.millis)
		if identity, _ := get[record.NodeIdentity](t, s, record.NodeIdentityKey("n1")); err != nil || identity.AssumeDeadMillis != c.millis || at > last != c.anew {
			t.Errorf("%d: %d ms: %v, identity %+v at %d, before at %d", i, c.millis, err, identity, at, last)
		}
		last = at
	}
	for _, millis := range []int64{-1, 1, 59_999, 86_400_001} {
		if _, err := announce(millis); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "assume_dead_after_millis") {
			t.Errorf("%d ms: error %v", millis, err)
		}
	}
}
