package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Execs open sessions in members at their agents. The sessions of one agent share a
// connection of their own. Methods may be called by any goroutine.
type Execs struct {
	Cluster string
	// Dial holds credentials and, in tests, a dialer.
	Dial []grpc.DialOption

	conns conns
}

// MostExecs bounds the sessions of one agent by one coordinator: a connection has 64
// streams.
const MostExecs = 48

// openWithin bounds the time until an agent has opened a session.
const openWithin = 10 * time.Second

// Open opens a session. It ends with ctx. The error wraps grant.ErrNotRunning,
// grant.ErrManySessions, grant.ErrInputHeld, grant.ErrNoInput or grant.ErrNoExec where that
// is the reason.
func (x *Execs) Open(ctx context.Context, node resource.NodeID, addr string, e grant.Exec) (grant.ExecSession, error) {
	at := target{node, addr}
	conn, err := x.conns.take(at, x.Dial, MostExecs)
	if errors.Is(err, errBusy) {
		return nil, fmt.Errorf("%w: %w", grant.ErrManySessions, err)
	} else if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &execSession{node: node, end: sync.OnceFunc(func() { cancel(); x.conns.release(at) })}
	late := time.AfterFunc(openWithin, s.end)
	if err := s.open(ctx, conn, x.Cluster, e); err != nil {
		s.end()
		return nil, fmt.Errorf("node %s at %s: %w", node, addr, err)
	}
	if !late.Stop() {
		s.end()
		return nil, fmt.Errorf("node %s at %s has not opened the session within %s", node, addr, openWithin)
	}
	return s, nil
}

// execSession is a session at an agent.
type execSession struct {
	node   resource.NodeID
	stream musterv1.Agent_ExecClient
	end    func() // of the stream; it may be called again
}

func (s *execSession) open(ctx context.Context, conn *grpc.ClientConn, cluster string, e grant.Exec) (err error) {
	if s.stream, err = musterv1.NewAgentClient(conn).Exec(ctx); err != nil {
		return execError(err)
	}
	err = s.stream.Send(&musterv1.ExecRequest{Message: &musterv1.ExecRequest_Open{Open: &musterv1.ExecOpen{
		Cluster: cluster, Tx: string(e.Tx), Member: int32(e.Member), Restart: int32(e.Restart), Attach: e.Attach, From: e.From, Args: e.Args,
		Tty: e.TTY, Window: windowMessage(e.Window), Term: e.Term, Input: e.Input,
	}}})
	if err != nil && !errors.Is(err, io.EOF) { // the answer has the reason
		return execError(err)
	}
	first, err := s.stream.Recv()
	switch {
	case err != nil:
		return execError(err)
	case !first.GetOpened():
		return errors.New("the agent has not opened the session")
	}
	return nil
}

// execError adds the reason of an agent's refusal.
func execError(err error) error {
	reason := err
	switch status.Code(err) {
	case codes.FailedPrecondition:
		reason = grant.ErrNotRunning
	case codes.ResourceExhausted:
		reason = grant.ErrManySessions
	case codes.Unimplemented:
		reason = grant.ErrNoExec
	case codes.AlreadyExists:
		reason = grant.ErrInputHeld
	case codes.OutOfRange:
		reason = grant.ErrNoInput
	default:
		return err
	}
	return fmt.Errorf("%s: %w", status.Convert(err).Message(), reason)
}

func windowMessage(w grant.Window) *musterv1.ExecWindow {
	return &musterv1.ExecWindow{Rows: int32(w.Rows), Columns: int32(w.Columns)}
}

// Send implements grant.ExecSession.
func (s *execSession) Send(in grant.ExecInput) error {
	m := &musterv1.ExecRequest{}
	switch {
	case in.End:
		m.Message = &musterv1.ExecRequest_End{End: true}
	case in.Signal != 0:
		m.Message = &musterv1.ExecRequest_Signal{Signal: int32(in.Signal)}
	case in.Window != grant.Window{}:
		m.Message = &musterv1.ExecRequest_Window{Window: windowMessage(in.Window)}
	default:
		m.Message = &musterv1.ExecRequest_Input{Input: in.Data}
	}
	return s.stream.Send(m)
}

// Receive implements grant.ExecSession.
func (s *execSession) Receive() (grant.ExecOutput, error) {
	m, err := s.stream.Recv()
	if err != nil {
		return grant.ExecOutput{}, fmt.Errorf("node %s: %w", s.node, err)
	}
	switch m := m.GetMessage().(type) {
	case *musterv1.ExecAnswer_Output:
		return grant.ExecOutput{Data: m.Output}, nil
	case *musterv1.ExecAnswer_Error:
		return grant.ExecOutput{Data: m.Error, Error: true}, nil
	case *musterv1.ExecAnswer_Taken:
		return grant.ExecOutput{Taken: int(m.Taken)}, nil
	case *musterv1.ExecAnswer_Exit:
		e := m.Exit
		return grant.ExecOutput{Exit: &grant.ExecExit{Code: int(e.GetCode()), Signal: int(e.GetSignal()), Reason: e.GetReason(), Message: e.GetMessage()}}, nil
	}
	return grant.ExecOutput{}, fmt.Errorf("node %s has sent a message that is not known", s.node)
}

// Close implements grant.ExecSession.
func (s *execSession) Close() { s.end() }
