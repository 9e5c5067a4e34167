package limits_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire/limits"
)

// peer answers with its prepared answer, and records the messages that reach
// it.
type peer struct {
	musterv1.UnimplementedCoordinatorServer
	musterv1.UnimplementedAgentServer
	records *musterv1.ReadNodeResponse
	says    *musterv1.AgentMessage
	reached int
}

func (p *peer) ReadNode(context.Context, *musterv1.ReadNodeRequest) (*musterv1.ReadNodeResponse, error) {
	p.reached++
	return p.records, nil
}

func (p *peer) Session(stream musterv1.Agent_SessionServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	p.reached++
	return stream.Send(p.says)
}

func dial(t *testing.T, p *peer, server []grpc.ServerOption, client []grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(64 << 10)
	s := grpc.NewServer(server...)
	musterv1.RegisterCoordinatorServer(s, p)
	musterv1.RegisterAgentServer(s, p)
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(l)
	}()
	conn, err := grpc.NewClient("passthrough:///peer", append(client, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		s.Stop()
		<-served
	})
	return conn
}

func read(t *testing.T, conn *grpc.ClientConn, node string) error {
	_, err := musterv1.NewCoordinatorClient(conn).ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: node})
	return err
}

func converse(t *testing.T, conn *grpc.ClientConn, leader string) error {
	stream, err := musterv1.NewAgentClient(conn).Session(t.Context())
	if err != nil {
		return err
	}
	if err := stream.Send(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Hello{Hello: &musterv1.LeaderHello{LeaderId: leader, Epoch: 1}}}); err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

func TestAServerJudgesWhatItReceives(t *testing.T) {
	p := &peer{records: &musterv1.ReadNodeResponse{}, says: &musterv1.AgentMessage{}}
	var mu sync.Mutex
	told := map[string]string{}
	conn := dial(t, p, limits.ServerOptions(func(_ context.Context, method string, v *limits.Violation) {
		mu.Lock()
		defer mu.Unlock()
		told[method] = v.Field
	}), nil)
	if err := errors.Join(read(t, conn, "n1"), converse(t, conn, "c1")); err != nil || p.reached != 2 {
		t.Fatalf("%d calls reached the server: %v", p.reached, err)
	}
	for want, err := range map[string]error{
		`muster.v1.ReadNodeRequest: node_id: "n 1" has a character`:          read(t, conn, "n 1"),
		"muster.v1.LeaderMessage: hello.leader_id: 300 bytes, more than 256": converse(t, conn, strings.Repeat("l", 300)),
	} {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want InvalidArgument with %q", err, want)
		}
	}
	if err := read(t, conn, strings.Repeat("n", 1<<20)); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "more than 65536") {
		t.Errorf("a request of 1 MiB: %v, want Internal that names its size", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if told["/muster.v1.Coordinator/ReadNode"] != "node_id" || told["/muster.v1.Agent/Session"] != "hello.leader_id" {
		t.Errorf("told of %v", told)
	}
	if p.reached != 2 {
		t.Errorf("%d refused calls reached the server", p.reached-2)
	}
}

func TestAClientJudgesWhatItReceives(t *testing.T) {
	p := &peer{
		records: &musterv1.ReadNodeResponse{Revision: -1},
		says:    &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Registered{Registered: &musterv1.Registered{Revision: -1}}},
	}
	conn := dial(t, p, nil, limits.DialOptions())
	for want, err := range map[string]error{
		"muster.v1.ReadNodeResponse: revision: -1 is outside 0..":        read(t, conn, "n1"),
		"muster.v1.AgentMessage: registered.revision: -1 is outside 0..": converse(t, conn, "c1"),
	} {
		var violation *limits.Violation
		if !errors.As(err, &violation) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v of type %T, want a violation with %q", err, err, want)
		}
	}
}
