package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// ended is a session whose command has ended: it takes no input, and the exit comes once
// two pieces of input were refused.
type ended struct {
	Members
	refused chan struct{}
	closed  chan struct{}
	close   func()
}

func (e *ended) Exec(grant.Exec) (grant.ExecSession, error) { return e, nil }

func (e *ended) Send(grant.ExecInput) error {
	e.refused <- struct{}{}
	return io.ErrClosedPipe
}

func (e *ended) Receive() (grant.ExecOutput, error) {
	for range 2 {
		select {
		case <-e.refused:
		case <-e.closed:
			return grant.ExecOutput{}, errors.New("closed before its end")
		}
	}
	return grant.ExecOutput{Exit: &grant.ExecExit{Code: 3, Reason: "Completed"}}, nil
}

func (e *ended) Close() { e.close() }

// A command may end before it has read its input: the session has its exit all the same.
func TestInputThatNobodyTakesLeavesTheExit(t *testing.T) {
	e := &ended{refused: make(chan struct{}, 8), closed: make(chan struct{})}
	e.close = sync.OnceFunc(func() { close(e.closed) })
	l, server := bufconn.Listen(64<<10), grpc.NewServer()
	musterv1.RegisterAgentServer(server, &agentServer{cluster: "ml", work: e, sessions: make(chan struct{}, 1)})
	go server.Serve(l)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:agent", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := musterv1.NewAgentClient(conn).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	piece := &musterv1.ExecRequest{Message: &musterv1.ExecRequest_Input{Input: []byte("x")}}
	for _, m := range []*musterv1.ExecRequest{{Message: &musterv1.ExecRequest_Open{Open: &musterv1.ExecOpen{Cluster: "ml", Tx: "t", Args: []string{"head"}, Input: true}}}, piece, piece} {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := stream.Recv(); err != nil || !m.GetOpened() {
		t.Fatalf("the first answer is %v, %v", m, err)
	}
	if m, err := stream.Recv(); err != nil || m.GetExit().GetCode() != 3 {
		t.Errorf("the end is %v, %v, want the exit code 3", m, err)
	}
}
