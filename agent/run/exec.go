package run

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// The bounds of the shim are those of everybody.
var (
	_ = [1]struct{}{}[grant.ExecWindow-shim.InputWindow]
	_ = [1]struct{}{}[grant.MaxExecPiece-shim.MaxFrame]
	_ = [1]struct{}{}[grant.MaxExecBytes-shim.MaxExecBytes]
	_ = [1]struct{}{}[grant.MaxExecArgs-shim.MaxExecArgs]
	_ = [1]struct{}{}[grant.MaxTerm-shim.MaxTerm]
)

// Exec opens a session in a member whose command runs. The error wraps grant.ErrNotRunning,
// grant.ErrManySessions, grant.ErrInputHeld, grant.ErrNoInput or grant.ErrNoExec where that
// is the reason. A session may be attached to a command that is being ended.
func (r *Runner) Exec(e grant.Exec) (grant.ExecSession, error) {
	id := identity{e.Tx, e.Member, e.Restart}
	of := fmt.Sprintf("%s, member %d, start %d", e.Tx, e.Member, e.Restart)
	r.mu.Lock()
	at := slices.IndexFunc(r.tasks[e.Tx], func(t *task) bool { return t.id == id })
	why := ""
	switch {
	case at < 0:
		why = "the host has no such start"
	case r.tasks[e.Tx][at].phase == grant.WorkEnded:
		why = "the command has ended"
	case !e.Attach && !r.tasks[e.Tx][at].deadline.IsZero():
		why = "the command is being ended"
	}
	r.mu.Unlock()
	if why != "" {
		return nil, fmt.Errorf("%s: %s: %w", of, why, grant.ErrNotRunning)
	}
	conn, err := r.newTask(id).folder.Exec(shim.Exec{
		Attach: e.Attach, From: e.From, Args: e.Args, TTY: e.TTY, Window: shim.Window{Rows: e.Window.Rows, Columns: e.Window.Columns}, Term: e.Term, Input: e.Input,
	})
	switch {
	case err == nil:
		return &session{conn}, nil
	case errors.Is(err, shim.ErrEnded), isNobody(err): // it starts, or has just ended
		err = fmt.Errorf("%w: %w", err, grant.ErrNotRunning)
	case errors.Is(err, shim.ErrSessions):
		err = fmt.Errorf("%w: %w", err, grant.ErrManySessions)
	case errors.Is(err, shim.ErrInputHeld):
		err = fmt.Errorf("%w: %w", err, grant.ErrInputHeld)
	case errors.Is(err, shim.ErrNoInput):
		err = fmt.Errorf("%w: %w", err, grant.ErrNoInput)
	case errors.Is(err, shim.ErrOldShim):
		err = fmt.Errorf("%w: %w", err, grant.ErrNoExec)
	}
	return nil, fmt.Errorf("%s: %w", of, err)
}

// isNobody reports whether no shim listens.
func isNobody(err error) bool {
	var dial *net.OpError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &dial) && dial.Op == "dial"
}

// session is a command by the frames of its shim.
type session struct{ conn net.Conn }

// Send implements grant.ExecSession.
func (s *session) Send(in grant.ExecInput) error {
	switch {
	case in.End:
		return shim.WriteFrame(s.conn, shim.FrameInputEnd, nil)
	case in.Signal != 0:
		return shim.WriteFrame(s.conn, shim.FrameSignal, []byte{byte(in.Signal)})
	case in.Window != grant.Window{}:
		return shim.WriteFrame(s.conn, shim.FrameResize, shim.Window{Rows: in.Window.Rows, Columns: in.Window.Columns}.Payload())
	}
	return shim.WriteFrame(s.conn, shim.FrameInput, in.Data)
}

// Receive implements grant.ExecSession.
func (s *session) Receive() (grant.ExecOutput, error) {
	f, err := shim.ReadFrame(s.conn)
	if err != nil {
		return grant.ExecOutput{}, fmt.Errorf("the supervisor of the member has hung up: %w", err)
	}
	switch f.Kind {
	case shim.FrameOutput, shim.FrameError:
		return grant.ExecOutput{Data: f.Payload, Error: f.Kind == shim.FrameError}, nil
	case shim.FrameTaken:
		n, err := shim.ParseTaken(f.Payload)
		return grant.ExecOutput{Taken: n}, err
	case shim.FrameExit:
		e, err := shim.ParseExit(f.Payload)
		if err != nil {
			return grant.ExecOutput{}, err
		}
		return grant.ExecOutput{Exit: &grant.ExecExit{Code: e.Code, Signal: e.Signal, Reason: string(e.Reason), Message: e.Message}}, nil
	default:
		return grant.ExecOutput{}, fmt.Errorf("the supervisor of the member has sent a frame of kind %q", byte(f.Kind))
	}
}

// Close implements grant.ExecSession.
func (s *session) Close() { _ = s.conn.Close() }
