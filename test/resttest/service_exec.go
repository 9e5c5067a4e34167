package resttest

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
)

// JobExec implements service.Execs. The command is an echo of this process: its output
// begins with the query; input comes back; a signal is the exit code, and the end of the
// input is the exit code 0. A command "false" has ended with 1 already. A command "head" has
// ended, too, takes no input, and its exit comes with the second piece of it.
func (c *Cluster) JobExec(ctx context.Context, namespace, name string, q service.ExecQuery) (grant.ExecSession, error) {
	c.mu.Lock()
	_, found := c.output[namespace+"/"+name]
	c.mu.Unlock()
	if !found {
		return nil, lead.NotFound("job", namespace, name)
	}
	s := &echo{messages: make(chan grant.ExecOutput, 64), over: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.over) })
	context.AfterFunc(ctx, s.close)
	first := strings.Join(q.Command, " ")
	if q.Attach {
		if first = "attached"; q.From != nil {
			first += " from " + strconv.FormatInt(*q.From, 10)
		}
	}
	s.messages <- grant.ExecOutput{Data: []byte(first + "\n")}
	if !q.Attach && q.Command[0] == "false" {
		s.messages <- grant.ExecOutput{Data: []byte("failed\n"), Error: true}
		s.messages <- grant.ExecOutput{Exit: &grant.ExecExit{Code: 1, Reason: "Completed"}}
	}
	if !q.Attach && q.Command[0] == "head" {
		return &deaf{echo: s}, nil
	}
	return s, nil
}

// deaf is a session whose command has ended, and which says so late.
type deaf struct {
	*echo
	pieces atomic.Int32
}

// Send implements grant.ExecSession.
func (d *deaf) Send(grant.ExecInput) error {
	if d.pieces.Add(1) == 2 {
		d.messages <- grant.ExecOutput{Exit: &grant.ExecExit{Reason: "Completed"}}
	}
	return io.ErrClosedPipe
}

// echo is a session whose command hands its input back.
type echo struct {
	messages chan grant.ExecOutput
	over     chan struct{}
	close    func()
}

// Send implements grant.ExecSession.
func (s *echo) Send(in grant.ExecInput) error {
	var out []grant.ExecOutput
	switch {
	case in.End:
		out = append(out, grant.ExecOutput{Exit: &grant.ExecExit{Reason: "Completed"}})
	case in.Signal != 0:
		out = append(out, grant.ExecOutput{Exit: &grant.ExecExit{Code: 128 + in.Signal, Signal: in.Signal, Reason: "Completed"}})
	case in.Window != grant.Window{}:
		out = append(out, grant.ExecOutput{Data: []byte("resized\n")})
	default:
		out = append(out, grant.ExecOutput{Data: in.Data}, grant.ExecOutput{Taken: len(in.Data)})
	}
	for _, m := range out {
		select {
		case s.messages <- m:
		case <-s.over:
			return io.ErrClosedPipe
		}
	}
	return nil
}

// Receive implements grant.ExecSession.
func (s *echo) Receive() (grant.ExecOutput, error) {
	select {
	case m := <-s.messages:
		return m, nil
	case <-s.over:
		return grant.ExecOutput{}, errors.New("the session was closed")
	}
}

// Close implements grant.ExecSession.
func (s *echo) Close() { s.close() }
