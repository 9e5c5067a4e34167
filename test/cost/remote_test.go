package cost_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/etcd"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/test/ratchet"
)

const secret = "0123456789abcdef0123456789abcdef"

// instant is a service whose allocations run at once, so that the doors alone are
// counted.
type instant struct{ service.Service }

func (instant) CreateAllocation(_ context.Context, _ service.Create, a *api.Allocation) (*api.Allocation, error) {
	a.Metadata.UID, a.Metadata.ResourceVersion = "alloc-1", "1"
	a.Status = api.AllocationStatus{
		Phase: api.Running, NodeID: "node-1", NodeName: "node-1", StartTime: "2026-01-02T03:04:05Z",
		Conditions: []api.Condition{{Type: "Scheduled", Status: "True"}, {Type: "Ready", Status: "True"}},
		Assignment: &api.AssignmentStatus{CPUs: "0-7", NUMANodes: []int{0}, GPUs: []api.GPUStatus{{UUID: "GPU-1", Milli: 1000}}},
	}
	return a, nil
}

// runs are how often a call through a library is counted. The least count is within
// two percent from run to run: goroutines of the library end when they like.
const runs = 20

// door counts a call of a door.
func door(m *meter, name, means string, call func(i int)) []ratchet.Figure {
	m.leastOf(5, call)
	figures := m.leastOf(runs, call).figures("doors/"+name, means)
	for i := range figures {
		figures[i].Within = 2
	}
	return figures
}

func TestDoors(t *testing.T) {
	m := newMeter(t)
	post, create, commit := overHTTP(t), overGRPC(t), inEtcd(t)
	m.settle(t)
	figures := door(m, "rest", "a submission over net/http, client and server, without the service", post)
	figures = append(figures, door(m, "grpc", "a submission over gRPC, client and server, without the service", create)...)
	figures = append(figures, door(m, "etcd", "the Txn of a commit in the embedded etcd, with its client", commit)...)
	hold(t, "doors", figures)
}

// overHTTP posts an allocation to a real server on loopback.
func overHTTP(t *testing.T) func(int) {
	s := httptest.NewUnstartedServer(nil)
	s.Config = rest.NewServer(rest.NewHandler(rest.Config{Service: instant{}, Authenticator: service.StaticToken(secret)}), slog.New(slog.DiscardHandler))
	s.Start()
	t.Cleanup(s.Close)
	body := document("train", 1, 1024)
	return func(int) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/v1/namespaces/default/allocations?wait=10s", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Content-Type", "application/json")
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s, %v", answer.StatusCode, text, err)
		}
	}
}

// overGRPC creates an allocation over a connection in memory.
func overGRPC(t *testing.T) func(int) {
	server := (&grpcapi.API{Service: instant{}, Authenticator: service.StaticToken(secret)}).NewServer().Server
	listener, done := bufconn.Listen(1<<16), make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	token, err := rpcauth.NewToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(rpcauth.Credentials(token)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-done
	})
	client := apiv1.NewAllocationsClient(conn)
	return func(int) {
		a := &apiv1.Allocation{
			Metadata: &apiv1.ObjectMeta{Name: "train", Namespace: "default"},
			Spec:     &apiv1.AllocationSpec{Resources: &apiv1.Requirements{Requests: map[string]string{"memory": "1024Mi", "nvidia.com/gpu": "1"}}},
		}
		if _, err := client.Create(t.Context(), &apiv1.CreateAllocationRequest{Allocation: a}); err != nil {
			t.Fatal(err)
		}
	}
}

// inEtcd commits an allocation: its record, unit and index, beside the leader's key and
// the node's identity.
func inEtcd(t *testing.T) func(int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(t.TempDir(), "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	leader, identity := record.LeaderKey(1), record.NodeIdentityKey("n1")
	written, err := s.Txn(ctx, record.Txn{Then: []record.Op{record.Put(leader, []byte("{}")), record.Put(identity, []byte("{}"))}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	return func(int) {
		n++
		u, held := records(n)
		unit, tx := u.Path().Key(), record.TxKey(u.TxID)
		got, err := s.Txn(t.Context(), record.Txn{
			If:   []record.Compare{record.CreateRevIs(leader, written.Revision), record.Absent(tx), record.Absent(unit), record.ModRevIs(identity, written.Revision)},
			Then: []record.Op{record.MustPutRecord(tx, held), record.MustPutRecord(unit, u), record.Put(fmt.Sprintf("%sn1/tx/%s", record.NodesPrefix, u.TxID), []byte(`{"v":1}`))},
		})
		if err != nil || !got.Succeeded {
			t.Fatalf("commit %d: %+v, %v", n, got, err)
		}
	}
}
