package sim

import (
	"fmt"
	"hash/fnv"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
)

// This file has clients be users, which the limits of namespaces bound one by one. That
// the sums of each user are the sums over the live units is lead's Check, which runs
// after each input of each term.

// planUsers draws whether clients are users, and the limit of each user: often a small
// one, and else a limit that no user reaches.
func (s *Sim) planUsers(o Options) {
	rng, drawn := o.draw(Users, 1, 3)
	if drawn {
		s.perUser = s.gpus([]int64{2, 4, 100}[rng.IntN(3)])
	}
}

// user is one of three, by the name of the client.
func (c *client) user() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.name))
	return fmt.Sprint("user-", h.Sum32()%3)
}

// asUser is a request of the client's user.
func (s *Sim) asUser(c *client, r lead.Request) lead.Request {
	if s.perUser == 0 {
		return r
	}
	s.stats["submissions of users"]++
	return lead.AskedBy{By: &record.Audit{Actor: record.Actor{ID: c.name, Person: c.user()}, Verb: "create", Kind: "allocations"}, Request: r}
}
