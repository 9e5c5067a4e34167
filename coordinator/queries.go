package coordinator

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/gossip"
)

// queryTimeout bounds what an operator's serf query may cost the loop.
const queryTimeout = time.Second

// Queries answers the serf queries that coordinators serve: `queue`, and `why`
// with "NAME" or "NAMESPACE/NAME" as payload.
func (c *Coordinator) Queries() map[string]gossip.QueryHandler {
	return map[string]gossip.QueryHandler{
		"queue": func([]byte) []byte { return c.answerQueue() },
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

// queueAnswer is how many units wait, and the first of them.
type queueAnswer struct {
	Waiting int         `json:"waiting"`
	Head    []queueLine `json:"head"`
}

// answerQueue is the same at every coordinator.
func (c *Coordinator) answerQueue() []byte {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	answer, err := see(ctx, c, func(v *view) (queueAnswer, *api.Status) {
		answer := queueAnswer{Waiting: v.queue.Len()}
		for i, key := range v.queue.Head(queueHead) {
			u := v.units[key.Path]
			answer.Head = append(answer.Head, queueLine{i + 1, u.record.Namespace + "/" + u.record.Name, key.Priority, u.record.Members})
		}
		return answer, nil
	})
	if err != nil {
		return []byte(err.Error())
	}
	return encodeAnswer(answer)
}

// answerWhy is the leader's alone: only it knows what is free. A follower says
// where that is asked.
func (c *Coordinator) answerWhy(name string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	namespace, object, qualified := strings.Cut(strings.TrimSpace(name), "/")
	if !qualified {
		namespace, object = "default", namespace
	}
	e, err := c.ExplainJob(ctx, namespace, object)
	if err != nil {
		if e, err = c.ExplainAllocation(ctx, namespace, object); err != nil {
			return []byte(err.Error())
		}
	}
	return []byte(e.Summary)
}

func encodeAnswer(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}
