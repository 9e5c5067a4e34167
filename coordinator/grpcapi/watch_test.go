package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/objects/objectstest"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/grant"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// A watch over gRPC has the events of a watch over REST: of each kind, in the same
// order, with the same ids.
func TestAWatchHasTheEventsOfREST(t *testing.T) {
	for kind, watch := range kindsWatched() {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back := mem.Open(mem.Options{})
				world := objectstest.New(7, "ml", "speech")
				change := func(n int) {
					for range n {
						if _, err := back.Txn(t.Context(), record.Txn{Then: world.Change()}); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
					}
				}
				change(40)
				d := openWatchDoor(t, back)
				ctx, cancel := context.WithCancel(bearing(t, "admin"))
				defer cancel()
				var lines []string
				var events []proto.Message
				ended := make(chan struct{}, 2)
				next, err := watch(ctx, d.conn, &apiv1.WatchRequest{})
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					for e, err := next(); err == nil; e, err = next() {
						events = append(events, e)
					}
					ended <- struct{}{}
				}()
				go func() {
					_ = d.overREST(ctx, kind+"?watch=true", func(line string) { lines = append(lines, line) })
					ended <- struct{}{}
				}()
				synctest.Wait()
				change(160)
				time.Sleep(2 * follow.BookmarkEvery)
				synctest.Wait()
				cancel()
				<-ended
				<-ended
				if len(events) != len(lines) || len(events) < 3 {
					t.Fatalf("gRPC has %d events, REST has %d", len(events), len(lines))
				}
				for i, line := range lines {
					if want := asEvent(t, line, events[i]); !proto.Equal(want, events[i]) {
						t.Fatalf("event %d: REST has\n%v\ngRPC has\n%v", i, want, events[i])
					}
				}
			})
		})
	}
}

// A client that has lost its watch goes on at another coordinator.
func TestAWatchGoesOnAtAnotherCoordinator(t *testing.T) {
	back := mem.Open(mem.Options{})
	put(t, back, "zero", "x")
	first, second := openWatchDoor(t, back), openWatchDoor(t, back)
	stream, err := apiv1.NewAllocationsClient(first.conn).Watch(bearing(t, "ml"), &apiv1.WatchRequest{Namespace: "ml"})
	if err != nil {
		t.Fatal(err)
	}
	expectTold(t, told(t, stream, 2), "- ADDED zero", "2 BOOKMARK")
	put(t, back, "a", "x")
	expectTold(t, told(t, stream, 1), "3.0 ADDED a")
	put(t, back, "b", "x")
	put(t, back, "a", "y")
	for name, c := range map[string]struct {
		request *apiv1.WatchRequest
		want    []string
	}{
		"after an event":   {&apiv1.WatchRequest{After: &apiv1.WatchID{Revision: 3, Index: proto.Int32(0)}}, []string{"4.0 ADDED b", "5.0 MODIFIED a"}},
		"after a revision": {&apiv1.WatchRequest{After: &apiv1.WatchID{Revision: 4}}, []string{"5.0 MODIFIED a"}},
		"with a selector":  {&apiv1.WatchRequest{After: &apiv1.WatchID{Revision: 3}, LabelSelector: "team=x"}, []string{"4.0 ADDED b", "5.0 DELETED a"}},
		"from the cache":   {&apiv1.WatchRequest{Cached: true, FieldSelector: "metadata.name=b"}, []string{"- ADDED b", "5 BOOKMARK"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Namespace = "ml"
			stream, err := apiv1.NewAllocationsClient(second.conn).Watch(bearing(t, "ml"), c.request)
			if err != nil {
				t.Fatal(err)
			}
			expectTold(t, told(t, stream, len(c.want)), c.want...)
		})
	}
}

// Each refusal of a watch has the code and the details that REST's table has.
func TestAWatchThatCannotBegin(t *testing.T) {
	back := mem.Open(mem.Options{})
	put(t, back, "zero", "x")
	d := openWatchDoor(t, back)
	for name, c := range map[string]struct {
		token   string
		request *apiv1.WatchRequest
		code    codes.Code
		want    string
	}{
		"a stranger":               {"stranger", &apiv1.WatchRequest{Namespace: "ml"}, codes.Unauthenticated, "the token is not valid here"},
		"of all namespaces":        {"ml", &apiv1.WatchRequest{}, codes.PermissionDenied, "have a role in the whole cluster"},
		"of another namespace":     {"ml", &apiv1.WatchRequest{Namespace: "speech"}, codes.NotFound, "namespace speech not found"},
		"no namespace's name":      {"admin", &apiv1.WatchRequest{Namespace: "A_B"}, codes.InvalidArgument, `namespace "A_B"`},
		"no selector":              {"admin", &apiv1.WatchRequest{LabelSelector: "a in b"}, codes.InvalidArgument, "label_selector="},
		"a selector without end":   {"admin", &apiv1.WatchRequest{LabelSelector: strings.Repeat("a,", 10_000)}, codes.InvalidArgument, "label_selector: 20000 bytes long, the limit is 16384"},
		"an unknown field":         {"admin", &apiv1.WatchRequest{FieldSelector: "spec.x=1"}, codes.InvalidArgument, `unknown field "spec.x"`},
		"no revision":              {"admin", &apiv1.WatchRequest{After: &apiv1.WatchID{}}, codes.InvalidArgument, "after.revision: 0: want the revision of an event's id"},
		"no index":                 {"admin", &apiv1.WatchRequest{After: &apiv1.WatchID{Revision: 1, Index: proto.Int32(-1)}}, codes.InvalidArgument, "after.index: -1"},
		"two beginnings":           {"admin", &apiv1.WatchRequest{Cached: true, After: &apiv1.WatchID{Revision: 1}}, codes.InvalidArgument, "cached: "},
		"a place of another store": {"admin", &apiv1.WatchRequest{After: &apiv1.WatchID{Revision: 99}}, codes.OutOfRange, "the store is at revision 2 and not yet at 99"},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := apiv1.NewAllocationsClient(d.conn).Watch(bearing(t, c.token), c.request)
			if err == nil {
				_, err = stream.Recv()
			}
			refused := wire.FromRefusal(err)
			if status.Code(err) != c.code || !wire.IsRefusal(err) || !strings.Contains(refused.Message, c.want) || refused.RequestID == "" {
				t.Errorf("got %v (%+v), want %s: %s", err, refused, c.code, c.want)
			}
		})
	}
	if stream, err := apiv1.NewNodesClient(d.conn).Watch(bearing(t, "admin"), &apiv1.WatchRequest{Namespace: "ml"}); err != nil {
		t.Error(err)
	} else if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a watch of nodes in a namespace: %v", err)
	}
}

func TestWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openWatchDoor(t, mem.Open(mem.Options{}))
		for range mostWatches {
			d.api.watches <- struct{}{}
		}
		stream, err := apiv1.NewAllocationsClient(d.conn).Watch(bearing(t, "admin"), &apiv1.WatchRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if s := wire.FromRefusal(err); s.Code != http.StatusTooManyRequests || s.RetryAfterSeconds != 1 {
			t.Errorf("got %+v", s)
		}
		d.api.Watches = nil
		if stream, err = apiv1.NewAllocationsClient(d.conn).Watch(bearing(t, "admin"), &apiv1.WatchRequest{}); err == nil {
			_, err = stream.Recv()
		}
		if s := wire.FromRefusal(err); s.Code != http.StatusUnprocessableEntity {
			t.Errorf("without watches: %+v", s)
		}
	})
}

// A watch outlives silence: over HTTP/2 a write deadline that passes would end its
// stream.
func TestAWatchOutlivesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		put(t, back, "zero", "x")
		d := openWatchDoor(t, back)
		ctx, cancel := context.WithCancel(bearing(t, "admin"))
		defer cancel()
		stream, err := apiv1.NewAllocationsClient(d.conn).Watch(ctx, &apiv1.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var overGRPC, overREST atomic.Int32
		ended := make(chan string, 2)
		go func() {
			for _, err := stream.Recv(); err == nil; _, err = stream.Recv() {
				overGRPC.Add(1)
			}
			ended <- "gRPC"
		}()
		go func() {
			err := d.overREST(ctx, "allocations?watch=true", func(string) { overREST.Add(1) })
			ended <- fmt.Sprintf("REST: %v", err)
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case which := <-ended:
			t.Fatalf("the watch ended within an hour of silence: %s", which)
		default:
		}
		put(t, back, "late", "x")
		synctest.Wait()
		least := int(time.Hour/follow.BookmarkEvery) / 2
		for over, events := range map[string]*atomic.Int32{"gRPC": &overGRPC, "REST": &overREST} {
			if n := int(events.Load()); n < least {
				t.Errorf("%s has %d events in an hour, want at least %d bookmarks", over, n, least)
			}
		}
		cancel()
		<-ended
		<-ended
	})
}

// A client that takes nothing loses its watch, which holds one message until
// then, and another client's watch goes on.
func TestASlowReaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		d := openWatchDoor(t, back)
		slow, err := apiv1.NewAllocationsClient(d.conn).Watch(bearing(t, "admin"), &apiv1.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 { // about 1 KiB each, beyond the window of 64 KiB
			put(t, back, fmt.Sprintf("a%d", i), strings.Repeat("x", 60))
		}
		synctest.Wait()
		if n := len(d.api.watches); n != 1 {
			t.Fatalf("%d watches are open, want 1", n)
		}
		time.Sleep(2*watchWrite + follow.BookmarkEvery)
		synctest.Wait()
		if n := len(d.api.watches); n != 0 {
			t.Errorf("%d watches are open, want none", n)
		}
		for err == nil {
			_, err = slow.Recv()
		}
		if errors.Is(err, io.EOF) {
			t.Error("the watch ended without an error")
		}
		quick, err := apiv1.NewAllocationsClient(d.conn).Watch(bearing(t, "admin"), &apiv1.WatchRequest{After: &apiv1.WatchID{Revision: 290}})
		if err != nil {
			t.Fatal(err)
		}
		told(t, quick, 5)
	})
}

// A tenant watches itself and its own namespaces alone.
func TestATenantWatchesItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		d := openWatchDoor(t, back)
		for _, name := range []string{"ml", "speech"} {
			object := func(key, name, spec string) record.Op {
				document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":%s}`, name, spec)
				return record.Put(key, record.MustEncode(record.Object{UID: "s", Name: name, Document: document}))
			}
			if _, err := back.Txn(t.Context(), record.Txn{Then: []record.Op{
				object(record.NamedKey(record.TenantsPrefix, name), name, "{}"), object(record.NamedKey(record.NamespacesPrefix, name+"-dev"), name+"-dev", `{"tenant":"`+name+`"}`),
			}}); err != nil {
				t.Fatal(err)
			}
		}
		ofTenants, err := apiv1.NewTenantsClient(d.conn).Watch(bearing(t, "ml"), &apiv1.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		ofSpaces, err := apiv1.NewNamespacesClient(d.conn).Watch(bearing(t, "ml"), &apiv1.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"ml ml-dev", " "} {
			tenant, err := ofTenants.Recv()
			if err != nil {
				t.Fatal(err)
			}
			space, err := ofSpaces.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got := tenant.GetObject().GetMetadata().GetName() + " " + space.GetObject().GetMetadata().GetName(); got != want {
				t.Errorf("event %d: got %q, want %q", i, got, want)
			}
		}
	})
}

// putNotice writes an allocation of a node whose record is EVICTING.
func putNotice(t *testing.T, back *mem.Store, name string, node resource.NodeID) {
	t.Helper()
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: "default", Phase: string(api.Terminating), Members: 1,
		TxID: resource.TxID("uid-" + name + ".1.1.00000000000000000000000000000001"), Reason: "maintenance", Started: "2024-01-15T10:00:00Z",
		Document: []byte(`{"metadata":{"name":"` + name + `"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`),
	}
	rec := record.Tx{
		State: grant.RecordEvicting, Epoch: 1, Unit: unit.Path(), UnitUID: unit.UID, Tenant: "ml", Reason: unit.Reason, GraceSeconds: 30, Evicted: true,
		EndingMillis: time.Date(2024, 1, 15, 10, 35, 0, 0, time.UTC).UnixMilli(),
		Members:      []record.Placement{{Node: node, Assignment: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 1, Milli: 1000}}}}},
	}
	if _, err := back.Txn(t.Context(), record.Txn{Then: []record.Op{
		record.Put(unit.Path().Key(), record.MustEncode(unit)), record.Put(record.TxKey(unit.TxID), record.MustEncode(rec)),
	}}); err != nil {
		t.Fatal(err)
	}
}

// A client reads the notices of one node, each once, and goes on behind the last.
func TestTheEvictionsOfANodeAreWatched(t *testing.T) {
	back := mem.Open(mem.Options{})
	d := openWatchDoor(t, back)
	client := apiv1.NewNodesClient(d.conn)
	putNotice(t, back, "before", "n1")
	watch := func(r *apiv1.WatchEvictionsRequest) grpc.ServerStreamingClient[apiv1.EvictionWatchEvent] {
		stream, err := client.WatchEvictions(bearing(t, "admin"), r)
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	next := func(stream grpc.ServerStreamingClient[apiv1.EvictionWatchEvent]) string {
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(fmt.Sprintf("%d %s %s %s", e.GetId().GetRevision(), e.GetType(), e.GetObject().GetAllocation(), e.GetObject().GetDeadline()))
	}
	stream := watch(&apiv1.WatchEvictionsRequest{Name: "n1"})
	got := []string{next(stream), next(stream)}
	putNotice(t, back, "elsewhere", "n2")
	putNotice(t, back, "a", "n1")
	putNotice(t, back, "b", "n1")
	got = append(got, next(stream), next(stream))
	got = append(got, next(watch(&apiv1.WatchEvictionsRequest{Name: "n1", After: &apiv1.WatchID{Revision: 4}})))
	expectTold(t, got, "0 ADDED before 2024-01-15T10:35:30Z", "2 BOOKMARK", "4 ADDED a 2024-01-15T10:35:30Z", "5 ADDED b 2024-01-15T10:35:30Z", "5 ADDED b 2024-01-15T10:35:30Z")
	for name, c := range map[string]struct {
		token, node string
		code        codes.Code
	}{
		"a tenant":       {"ml", "n1", codes.PermissionDenied},
		"no node":        {"admin", "n9", codes.NotFound},
		"no node's name": {"admin", "N_1", codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := client.WatchEvictions(bearing(t, c.token), &apiv1.WatchEvictionsRequest{Name: c.node})
			if err == nil {
				_, err = stream.Recv()
			}
			if status.Code(err) != c.code || !wire.IsRefusal(err) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
}
