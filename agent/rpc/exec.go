package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// Members is what other coordinators than the leader ask of the work of a host.
type Members interface {
	Logs
	// Exec opens a session in a member. The error wraps grant.ErrNotRunning,
	// grant.ErrManySessions, grant.ErrInputHeld, grant.ErrNoInput or grant.ErrNoExec where
	// that is the reason.
	Exec(e grant.Exec) (grant.ExecSession, error)
}

// mostSessions bounds the sessions in all members of the host at a time.
const mostSessions = 128

// Exec implements musterv1.AgentServer. A further command ends with the call.
func (s *agentServer) Exec(stream musterv1.Agent_ExecServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	switch {
	case open == nil:
		return statusOf(fmt.Errorf("exec: the first message does not open a session: %w", ErrBadMessage))
	case open.GetCluster() != s.cluster:
		return statusOf(fmt.Errorf("exec: the request is for cluster %q, this agent is of %q: %w", open.GetCluster(), s.cluster, ErrWrongCluster))
	}
	if err := needTx("exec", open.GetTx()); err != nil {
		return statusOf(fmt.Errorf("%w: %w", err, ErrBadMessage))
	}
	select {
	case s.sessions <- struct{}{}:
		defer func() { <-s.sessions }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d sessions are open on this host; ask again", mostSessions)
	}
	session, err := s.work.Exec(grant.Exec{
		Tx: resource.TxID(open.GetTx()), Member: int(open.GetMember()), Restart: int(open.GetRestart()), Attach: open.GetAttach(), From: open.From, Args: open.GetArgs(),
		TTY: open.GetTty(), Window: windowOf(open.GetWindow()), Term: open.GetTerm(), Input: open.GetInput(),
	})
	if err != nil {
		return statusOf(err)
	}
	defer session.Close()
	defer context.AfterFunc(stream.Context(), session.Close)() // ends a Receive that waits
	if err := stream.Send(&musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Opened{Opened: true}}); err != nil {
		return err
	}
	go func() {
		defer session.Close() // also where the caller's messages are refused
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			_ = session.Send(inputOf(m)) // a command that has ended takes none: Receive has its end
		}
	}()
	for {
		out, err := session.Receive()
		if err != nil {
			return status.Errorf(codes.Aborted, "exec: the session is lost: %v", err)
		}
		if err := stream.Send(execAnswer(out)); err != nil || out.Exit != nil {
			return err
		}
	}
}

func windowOf(w *musterv1.ExecWindow) grant.Window {
	return grant.Window{Rows: uint16(w.GetRows()), Columns: uint16(w.GetColumns())}
}

// inputOf is a message to a command; one that is empty is an empty piece of input.
func inputOf(m *musterv1.ExecRequest) grant.ExecInput {
	switch m := m.GetMessage().(type) {
	case *musterv1.ExecRequest_Input:
		return grant.ExecInput{Data: m.Input}
	case *musterv1.ExecRequest_End:
		return grant.ExecInput{End: true}
	case *musterv1.ExecRequest_Window:
		return grant.ExecInput{Window: windowOf(m.Window)}
	case *musterv1.ExecRequest_Signal:
		return grant.ExecInput{Signal: int(m.Signal)}
	}
	return grant.ExecInput{}
}

// execAnswer is a message of a command.
func execAnswer(out grant.ExecOutput) *musterv1.ExecAnswer {
	switch {
	case out.Exit != nil:
		e := out.Exit
		return &musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Exit{Exit: &musterv1.ExecExit{Code: int32(e.Code), Signal: int32(e.Signal), Reason: e.Reason, Message: limits.Plain(e.Message, limits.MaxReason)}}}
	case out.Taken > 0:
		return &musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Taken{Taken: int32(out.Taken)}}
	case out.Error:
		return &musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Error{Error: out.Data}}
	}
	return &musterv1.ExecAnswer{Message: &musterv1.ExecAnswer_Output{Output: out.Data}}
}

// execCode is the status code of an error of Members.Exec; codes.OK for any other error.
func execCode(err error) codes.Code {
	switch {
	case errors.Is(err, grant.ErrNotRunning):
		return codes.FailedPrecondition
	case errors.Is(err, grant.ErrManySessions):
		return codes.ResourceExhausted
	case errors.Is(err, grant.ErrNoExec):
		return codes.Unimplemented
	case errors.Is(err, grant.ErrInputHeld):
		return codes.AlreadyExists
	case errors.Is(err, grant.ErrNoInput):
		return codes.OutOfRange
	}
	return codes.OK
}
