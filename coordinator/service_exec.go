package coordinator

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/grant"
)

// mostSessions bounds the sessions in members by this coordinator at a time.
const mostSessions = 256

// JobExec implements service.Execs: the coordinator finds the member in the store's records
// and asks its agent, as with output.
func (c *Coordinator) JobExec(ctx context.Context, namespace, name string, q service.ExecQuery) (grant.ExecSession, error) {
	v, err := c.follower.Fresh(ctx)
	if errors.Is(err, follow.ErrBehind) {
		return nil, api.Errorf(http.StatusServiceUnavailable, "%v; ask again", err)
	} else if err != nil {
		return nil, err
	}
	j, found := v.Job(namespace + "/" + name)
	if !found {
		return nil, lead.NotFound("job", namespace, name)
	}
	start, status := runningMember(&j, q.Member)
	if status != nil {
		return nil, status
	}
	if q.Attach && q.Input && !j.Document.Spec.Template.Spec.Stdin {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "input: the command of job %s takes none: spec.template.spec.stdin is not true", name)
	}
	select {
	case c.sessions <- struct{}{}:
	default:
		status := api.Errorf(http.StatusTooManyRequests, "%d sessions of exec are open at this coordinator: ask another coordinator, or again", mostSessions)
		status.RetryAfterSeconds = 1
		return nil, status
	}
	release := sync.OnceFunc(func() { <-c.sessions })
	if c.config.Note != nil {
		if err := c.config.Note(ctx); err != nil {
			release()
			return nil, api.Errorf(http.StatusServiceUnavailable, "the audit cannot be written: %v; ask again", err)
		}
	}
	session, err := c.openSession(ctx, start, q)
	if err != nil {
		release()
		return nil, execRefused(j.Record.Name, start, err)
	}
	return &countedSession{session, release}, nil
}

func (c *Coordinator) openSession(ctx context.Context, start memberStart, q service.ExecQuery) (grant.ExecSession, error) {
	address, err := c.agentAddress(start.node)
	if err != nil {
		return nil, err
	}
	return c.execs.Open(ctx, start.node, address, grant.Exec{
		Tx: start.tx, Member: start.index, Attach: q.Attach, From: q.From, Args: q.Command, TTY: q.TTY, Window: q.Window, Term: q.Term, Input: q.Input,
	})
}

// runningMember is the start in which a member runs.
func runningMember(j *shown.Job, member int) (memberStart, *api.Status) {
	name := j.Record.Name
	if !j.Document.Spec.Template.Spec.HasWork() {
		return memberStart{}, api.Errorf(http.StatusUnprocessableEntity, "job %s has no command, so Muster has started nothing of it", name)
	}
	if _, status := selectedMembers(j, service.LogQuery{Member: member}); status != nil {
		return memberStart{}, status
	}
	for i := range j.Units {
		u := j.Units[i].Record
		index := member - u.FirstMember
		switch {
		case index < 0 || index >= u.Members:
			continue
		case u.TxID != "" && index < len(j.Units[i].Places):
			return memberStart{member: member, tx: u.TxID, index: index, node: j.Units[i].Places[index].Node}, nil
		}
		return memberStart{}, api.Errorf(http.StatusConflict, "member %d of job %s does not run: the member is %s", member, name, u.Phase)
	}
	return memberStart{}, api.Errorf(http.StatusConflict, "member %d of job %s does not run: the job is %s", member, name, j.Record.Phase)
}

// execRefused is the refusal for the reason of an agent.
func execRefused(job string, start memberStart, err error) *api.Status {
	switch {
	case errors.Is(err, grant.ErrNotRunning):
		return api.Errorf(http.StatusConflict, "member %d of job %s does not run now: %v", start.member, job, err)
	case errors.Is(err, grant.ErrManySessions):
		status := api.Errorf(http.StatusTooManyRequests, "exec in member %d of job %s: %v", start.member, job, err)
		status.RetryAfterSeconds = 1
		return status
	case errors.Is(err, grant.ErrInputHeld):
		return api.Errorf(http.StatusConflict, "member %d of job %s: another session sends its standard input: end that session, or attach without input", start.member, job)
	case errors.Is(err, grant.ErrNoInput):
		return api.Errorf(http.StatusUnprocessableEntity, "member %d of job %s takes no standard input: it has ended, or the agent that has started the member is of an older version", start.member, job)
	case errors.Is(err, grant.ErrNoExec):
		return api.Errorf(http.StatusUnprocessableEntity, "exec in member %d of job %s: %v", start.member, job, err)
	}
	return api.Errorf(http.StatusServiceUnavailable, "exec in member %d of job %s: the agent cannot be asked: %v; ask again", start.member, job, err)
}

// countedSession gives its place back at its end.
type countedSession struct {
	grant.ExecSession
	release func()
}

// Close implements grant.ExecSession.
func (s *countedSession) Close() {
	s.ExecSession.Close()
	s.release()
}
