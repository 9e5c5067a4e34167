package coordinator

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/gossip"
)

// queryTimeout bounds the time that an operator's serf query may wait for the
// loop.
const queryTimeout = time.Second

// Queries answers the serf queries of ring members: `queue`, with how many
// units wait and no name. Every member may ask, and names of units are their
// tenants' matter; `why` only names the place where it is answered.
func (c *Coordinator) Queries() map[string]gossip.QueryHandler {
	return map[string]gossip.QueryHandler{
		"queue": func([]byte) []byte { return c.answerQueue(0) },
		"why":   func([]byte) []byte { return []byte(whyElsewhere) },
	}
}

// whyElsewhere is the answer to `why` for ring members.
const whyElsewhere = "answered on a coordinator's host alone: serf query against its gossip.serfRPC (127.0.0.1:7374), or muster why"

// LocalQueries answers the same queries for operators on this coordinator's
// host: `queue` with the first units by name, and `why` with "NAME" or
// "NAMESPACE/NAME" as payload.
func (c *Coordinator) LocalQueries() map[string]gossip.QueryHandler {
	return map[string]gossip.QueryHandler{
		"queue": func([]byte) []byte { return c.answerQueue(queueHead) },
		"why":   func(payload []byte) []byte { return c.answerWhy(string(payload)) },
	}
}

// queueLine is one waiting unit in the answer to `queue`.
type queueLine struct {
	Position int    `json:"pos"`
	Name     string `json:"name"`
	Priority int32  `json:"prio"`
	Members  int    `json:"members"`
}

// queueHead is how many waiting units the answer to `queue` names.
const queueHead = 10

// queueAnswer is how many units wait, and the first of them for operators.
type queueAnswer struct {
	Waiting int         `json:"waiting"`
	Head    []queueLine `json:"head,omitempty"`
}

// whyAnswer is the most bytes of an answer to `why`: serf cuts longer ones
// (gossip/profile.go), and this one ends with a whole line.
const whyAnswer = 1024

// answerQueue is the same at every coordinator. It names the first units, as many
// as head.
func (c *Coordinator) answerQueue(head int) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	answer, err := look(ctx, c, func(i *objects.View) (queueAnswer, *api.Status) {
		waiting, first := i.Queue(head)
		answer := queueAnswer{Waiting: waiting}
		for at, u := range first {
			answer.Head = append(answer.Head, queueLine{at + 1, u.Name, u.Priority, u.Members})
		}
		return answer, nil
	})
	if err != nil {
		return []byte(err.Error())
	}
	return encodeAnswer(answer)
}

// answerWhy is the leader's alone: only it knows the free capacity. A follower
// names the leader.
func (c *Coordinator) answerWhy(name string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	namespace, object, qualified := strings.Cut(strings.TrimSpace(name), "/")
	if !qualified {
		namespace, object = "default", namespace
	}
	e, err := c.ExplainJob(ctx, namespace, object, service.ExplainOptions{Operator: true})
	if err != nil {
		if e, err = c.ExplainAllocation(ctx, namespace, object, service.ExplainOptions{Operator: true}); err != nil {
			return []byte(err.Error())
		}
	}
	return []byte(why.Bounded(e, whyAnswer))
}

func encodeAnswer(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}
