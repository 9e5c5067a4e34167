package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// This file finds the starts of a job's members: the transactions in which they run or
// ran, and the nodes. Package agents reads their output.

const (
	// mostLogReaders bounds the members whose output this coordinator reads at a time.
	mostLogReaders = 1024
	// mostFollowed bounds the members whose output one request reads.
	mostFollowed = api.MaxFollowedMembers
)

// memberStart is the start of one member in one transaction.
type memberStart struct {
	member int // in the job
	tx     resource.TxID
	index  int // in the transaction
	node   resource.NodeID
}

// JobLogs implements service.Logs.
func (c *Coordinator) JobLogs(ctx context.Context, namespace, name string, q service.LogQuery) (service.LogStream, error) {
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
	members, status := selectedMembers(&j, q)
	if status != nil {
		return nil, status
	}
	if !c.readers.TryAcquire(int64(members)) {
		status := api.Errorf(http.StatusTooManyRequests, "the output of %d members is read at this coordinator at a time, and %d more are too many: ask another coordinator, or again", mostLogReaders, members)
		status.RetryAfterSeconds = 1
		return nil, status
	}
	release := func() { c.readers.Release(int64(members)) }
	if c.config.Note != nil {
		if err := c.config.Note(ctx); err != nil {
			release()
			return nil, api.Errorf(http.StatusServiceUnavailable, "the audit cannot be written: %v; ask again", err)
		}
	}
	return openLogStream(ctx, c, objects.Name{Kind: objects.Jobs, Namespace: namespace, Name: name}, j.Record.UID, q, v, release), nil
}

// selectedMembers is the number of members that a query selects.
func selectedMembers(j *shown.Job, q service.LogQuery) (int, *api.Status) {
	if !j.Document.Spec.Template.Spec.HasWork() {
		return 0, api.Errorf(http.StatusUnprocessableEntity, "job %s has no command, so Muster keeps no output of it", j.Record.Name)
	}
	members := 0
	for i := range j.Units {
		if u := j.Units[i].Record; !u.Replaces { // a replacement is one of the members of its gang
			members += u.Members
		}
	}
	switch {
	case !q.AllMembers && q.Member >= members:
		return 0, api.Errorf(http.StatusUnprocessableEntity, "member: %d: job %s has the members 0..%d", q.Member, j.Record.Name, members-1)
	case !q.AllMembers:
		return 1, nil
	case members > mostFollowed:
		return 0, api.Errorf(http.StatusUnprocessableEntity, "member: absent: job %s has %d members, and the output of %d at most is read at a time; name a member", j.Record.Name, members, mostFollowed)
	}
	return members, nil
}

// startsOf are the starts that a query selects, as far as a job has them now.
func startsOf(j *shown.Job, q service.LogQuery) (starts []memberStart) {
	for i := range j.Units {
		u := j.Units[i].Record
		for index := range u.Members {
			s := memberStart{member: u.FirstMember + index, tx: u.TxID, index: index}
			switch {
			case !q.AllMembers && s.member != q.Member, u.HasLost(index):
				continue
			case s.tx != "" && index < len(j.Units[i].Places):
				s.node = j.Units[i].Places[index].Node
			case s.tx == "":
				s.tx, s.node, s.index = lastStart(u, index)
			}
			if s.tx != "" && s.node != "" {
				starts = append(starts, s)
			}
		}
	}
	return starts
}

// lastStart is the last start of a member that has ended: the transaction, its node, ""
// where none is known, and the index there. A member that another unit has replaced is the
// one member of the transaction of that unit.
func lastStart(u *record.Unit, index int) (resource.TxID, resource.NodeID, int) {
	for _, e := range u.Exits {
		switch {
		case e.Member != index:
		case e.Tx != "":
			return e.Tx, e.Node, 0
		default:
			return u.LastTx, e.Node, index
		}
	}
	return u.LastTx, "", index
}

// agentAddress is where the agent of a node serves, as it has registered. A follower
// has the store's word alone: it dials nobody that a leader would not dial.
func (c *Coordinator) agentAddress(node resource.NodeID) (string, error) {
	v, err := c.follower.View()
	if err != nil {
		return "", err
	}
	n, found := v.Node(node)
	switch {
	case !found || n.Spec == nil || n.Spec.AgentAddr == "":
		return "", fmt.Errorf("node %s is not registered", node)
	case n.Ban != nil || n.Spec.Violation != nil && n.Spec.Violation.Severed:
		return "", fmt.Errorf("node %s is isolated or banned", node)
	case c.config.CheckAgent != nil:
		err = c.config.CheckAgent(n.Spec.AgentAddr)
	}
	return n.Spec.AgentAddr, err
}
