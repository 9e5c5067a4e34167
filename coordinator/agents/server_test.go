package agents_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that end at once when all is well.
const patience = 20 * time.Second

// network is where servers listen, by address.
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
}

func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: nobody listens", addr)
	}
	return l.DialContext(ctx)
}

// session is a stream as the agent sees it. The handler ends when finish is
// closed or the stream ends.
type session struct {
	musterv1.Agent_SessionServer
	finish chan struct{}
	err    error // with which the handler ends
}

// server is an agent whose script is the test.
type server struct {
	musterv1.UnimplementedAgentServer
	sessions chan *session
	grpc     *grpc.Server
}

func (s *server) Session(stream musterv1.Agent_SessionServer) error {
	one := &session{Agent_SessionServer: stream, finish: make(chan struct{})}
	select {
	case s.sessions <- one:
	case <-stream.Context().Done():
		return nil
	}
	select {
	case <-one.finish:
		return one.err
	case <-stream.Context().Done():
	}
	return nil
}

// listen starts an agent at an address.
func (n *network) listen(t *testing.T, addr string) *server {
	t.Helper()
	l := bufconn.Listen(64 << 10)
	s := &server{sessions: make(chan *session), grpc: grpc.NewServer()}
	musterv1.RegisterAgentServer(s.grpc, s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.grpc.Serve(l)
	}()
	n.mu.Lock()
	n.listeners[addr] = l
	n.mu.Unlock()
	t.Cleanup(func() { s.grpc.Stop(); <-served })
	return s
}

func (n *network) stop(addr string, s *server) {
	n.mu.Lock()
	delete(n.listeners, addr)
	n.mu.Unlock()
	s.grpc.Stop()
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

// accept waits for a stream and its hello.
func (s *server) accept(t *testing.T) (*session, *musterv1.LeaderHello) {
	t.Helper()
	one := receive(t, "stream", s.sessions)
	m, err := one.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if m.GetHello() == nil {
		t.Fatalf("the first message is %v, want hello", m)
	}
	return one, m.GetHello()
}

func (s *session) say(t *testing.T, m *musterv1.AgentMessage) {
	t.Helper()
	if err := s.Send(m); err != nil {
		t.Fatal(err)
	}
}

// ended waits until the leader has ended the stream.
func (s *session) ended(t *testing.T) {
	t.Helper()
	receive(t, "end of the stream", s.Context().Done())
}

var incarnation = resource.Incarnation{JournalID: "journal", BootID: "boot"}

func host(t testing.TB) grant.Host {
	t.Helper()
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		t.Fatal(err)
	}
	return grant.Host{Hostname: "host", Topology: profile.Topology(), Inventory: profile.Inventory("n1")}
}

func hello(t testing.TB, node string) *musterv1.AgentMessage {
	return &musterv1.AgentMessage{LedgerHash: 7, Message: &musterv1.AgentMessage_Hello{Hello: &musterv1.AgentHello{
		NodeId: node, Incarnation: wire.ToIncarnation(incarnation), RegisteredRevision: 5, Host: wire.ToHost(host(t)),
		Occupancy: &musterv1.Occupancy{Cordoned: true, Grants: []*musterv1.Grant{{Tx: "tx-0", Unit: "u", Epoch: 3, State: musterv1.Reply_HELD}}},
	}}}
}

// newPool returns a pool and the events that it delivers.
func newPool(t *testing.T, n *network) (*agents.Pool, <-chan grant.Event) {
	t.Helper()
	events := make(chan grant.Event, 64)
	p := agents.NewPool(context.Background(), agents.Options{
		Cluster: "c", LeaderID: "coordinator-1", Epoch: 42,
		Identity: func(context.Context, resource.NodeID) (resource.Incarnation, resource.Revision, error) {
			return incarnation, 5, nil
		},
		Deliver: func(e grant.Event) { events <- e },
		Dial:    []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dial)},
		Logger:  slog.New(slog.DiscardHandler),
	})
	t.Cleanup(p.Close)
	return p, events
}

func newNetwork() *network { return &network{listeners: map[string]*bufconn.Listener{}} }

// next returns the next event, which must be of type E.
func next[E grant.Event](t *testing.T, events <-chan grant.Event) E {
	t.Helper()
	e := receive(t, "event", events)
	want, ok := e.(E)
	if !ok {
		t.Fatalf("event %T %+v, want %T", e, e, want)
	}
	return want
}
