package grpcapi

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// execLast bounds the status that ends a session.
const execLast = 2 * time.Second

// Exec implements apiv1.JobsServer. A further command ends with the call.
func (s jobs) Exec(stream grpc.BidiStreamingServer[apiv1.ExecRequest, apiv1.ExecAnswer]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	if open == nil {
		return api.Errorf(http.StatusBadRequest, "open: absent: the first message of a session opens it")
	}
	if status := s.a.in(ctx, service.VerbExec, service.KindJobs, open.GetNamespace(), open.GetName()); status != nil {
		return status
	}
	window, status := windowOf(open.GetWindow())
	if status != nil {
		return status
	}
	q := service.ExecQuery{Member: int(open.GetMember()), Attach: open.GetAttach(), From: open.From, Command: open.GetCommand(), TTY: open.GetTty(), Window: window, Term: open.GetTerm(), Input: open.GetInput()}
	if status := q.Check(); status != nil {
		return status
	}
	release, status := s.a.Gate.Hold(caller(ctx), gate.Sessions, 1)
	if status != nil {
		return status
	}
	defer release()
	session, err := s.a.Service.JobExec(ctx, open.GetNamespace(), open.GetName(), q)
	gate.TurnOf(ctx).End()
	if err != nil {
		return err
	}
	defer session.Close()
	return s.a.run(ctx, stream, session, &q)
}

// run hands messages on until the command ends, the client goes away, or may not go on.
func (a *API) run(ctx context.Context, stream grpc.BidiStreamingServer[apiv1.ExecRequest, apiv1.ExecAnswer], session grant.ExecSession, q *service.ExecQuery) error {
	a.answerBy(ctx, time.Time{}) // a silent command is no fault
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { // ends a Send that waits for the client, and a Receive
		session.Close()
		a.answerBy(ctx, time.Now().Add(execLast))
	})()
	go func() { cancel(a.takeInput(stream, session)) }()
	m := &apiv1.ExecAnswer{Message: &apiv1.ExecAnswer_Opened{Opened: true}}
	for {
		if err := stream.Send(m); err != nil {
			return err
		}
		out, err := session.Receive()
		if err != nil {
			if why := context.Cause(ctx); why != nil {
				err = why
			}
			return q.Lost(err)
		}
		m = execAnswer(out)
		if out.Exit != nil {
			return stream.Send(m)
		}
	}
}

// takeInput hands a client's messages on until the client goes away, or breaks a rule.
func (a *API) takeInput(stream grpc.BidiStreamingServer[apiv1.ExecRequest, apiv1.ExecAnswer], session grant.ExecSession) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		in, status := execInput(m)
		if status != nil {
			return status
		}
		_ = session.Send(in) // a command that has ended takes none: Receive has its end
	}
}

// windowOf is the size of a terminal, where it is one.
func windowOf(w *apiv1.ExecWindow) (grant.Window, *api.Status) {
	const most = 1<<16 - 1
	if w.GetRows() < 0 || w.GetRows() > most || w.GetColumns() < 0 || w.GetColumns() > most {
		return grant.Window{}, api.Errorf(http.StatusBadRequest, "window: %d rows and %d columns: want 0 to %d", w.GetRows(), w.GetColumns(), most)
	}
	return grant.Window{Rows: uint16(w.GetRows()), Columns: uint16(w.GetColumns())}, nil
}

// execInput is a message to a command.
func execInput(m *apiv1.ExecRequest) (grant.ExecInput, *api.Status) {
	switch m := m.GetMessage().(type) {
	case *apiv1.ExecRequest_Input:
		if len(m.Input) > grant.MaxExecPiece {
			return grant.ExecInput{}, api.Errorf(http.StatusBadRequest, "input: %d bytes in a message, the limit is %d", len(m.Input), grant.MaxExecPiece)
		}
		return grant.ExecInput{Data: m.Input}, nil
	case *apiv1.ExecRequest_End:
		return grant.ExecInput{End: true}, nil
	case *apiv1.ExecRequest_Window:
		w, status := windowOf(m.Window)
		if status == nil && w == (grant.Window{}) {
			status = api.Errorf(http.StatusBadRequest, "window: it has no size")
		}
		return grant.ExecInput{Window: w}, status
	case *apiv1.ExecRequest_Signal:
		if m.Signal < 1 || m.Signal > grant.MaxSignal {
			return grant.ExecInput{}, api.Errorf(http.StatusBadRequest, "signal: %d: want 1 to %d", m.Signal, grant.MaxSignal)
		}
		return grant.ExecInput{Signal: int(m.Signal)}, nil
	}
	return grant.ExecInput{}, api.Errorf(http.StatusBadRequest, "a message of a session that is not known")
}

// execAnswer is a message of a command.
func execAnswer(out grant.ExecOutput) *apiv1.ExecAnswer {
	switch {
	case out.Exit != nil:
		e := out.Exit
		return &apiv1.ExecAnswer{Message: &apiv1.ExecAnswer_Exit{Exit: &apiv1.ExecExit{Code: int32(e.Code), Signal: int32(e.Signal), Reason: e.Reason, Message: e.Message}}}
	case out.Taken > 0:
		return &apiv1.ExecAnswer{Message: &apiv1.ExecAnswer_Taken{Taken: int32(out.Taken)}}
	case out.Error:
		return &apiv1.ExecAnswer{Message: &apiv1.ExecAnswer_Error{Error: out.Data}}
	}
	return &apiv1.ExecAnswer{Message: &apiv1.ExecAnswer_Output{Output: out.Data}}
}
