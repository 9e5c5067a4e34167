package coordinator

import (
	"context"
	"encoding/json"
	"strings"
	"time"

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

func (c *Coordinator) answerQueue() []byte {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	l, err := c.leading()
	if err != nil {
		return []byte(err.Error())
	}
	answer := struct {
		Waiting int         `json:"waiting"`
		Head    []queueLine `json:"head"`
	}{}
	err = l.do(ctx, func() {
		answer.Waiting = l.queue.Len()
		for i, key := range l.queue.Head(10) {
			u := l.units[key.Path]
			answer.Head = append(answer.Head, queueLine{i + 1, u.record.Namespace + "/" + u.record.Name, key.Priority, u.record.Members})
		}
	})
	if err != nil {
		return []byte(err.Error())
	}
	return encodeAnswer(answer)
}

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
