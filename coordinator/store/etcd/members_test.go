package etcd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// town is a cluster whose members answer at the endpoints of up. It is asked
// for its list over the endpoints in use.
type town struct {
	inside
	given []string
	up    map[string]uint64 // member ids
	over  []string          // the endpoints in use
	leads map[uint64]uint64 // by member, the leader that it knows; 1 where absent
	terms map[uint64]uint64 // by member
	near  string            // the endpoint that is preferred
}

func (c *town) configured() []string { return c.given }

func (c *town) list(context.Context) ([]*pb.Member, error) {
	if !slices.ContainsFunc(c.over, func(e string) bool { return c.up[e] != 0 }) {
		return nil, errors.New("nobody answers")
	}
	var all []*pb.Member
	for endpoint, id := range c.up {
		all = append(all, &pb.Member{ID: id, ClientURLs: []string{endpoint}})
	}
	slices.SortFunc(all, func(a, b *pb.Member) int { return int(a.ID) - int(b.ID) })
	return all, nil
}

func (c *town) status(_ context.Context, endpoint string) (*pb.StatusResponse, error) {
	if c.up[endpoint] == 0 {
		return nil, errors.New("no answer")
	}
	id := c.up[endpoint]
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: id}, Leader: cmp.Or(c.leads[id], 1), RaftTerm: c.terms[id]}, nil
}

func (c *town) use(endpoints []string) { c.over = endpoints }

func (c *town) prefer(endpoint string) error {
	c.near = endpoint
	return nil
}

// TestTheLeaderIsPreferred: reads of one key go to the member that leads by the newest
// term, and to none while no member is known to lead, or there is one alone.
func TestTheLeaderIsPreferred(t *testing.T) {
	const first, second, third = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
	all := map[string]uint64{first: 1, second: 2, third: 3}
	c := &town{given: []string{first, second, third}, over: []string{first, second, third}}
	metrics, err := newMetrics(nil, newHistory())
	if err != nil {
		t.Fatal(err)
	}
	m := newMonitor(make(chan struct{}, 1), c, time.Minute, slog.New(slog.DiscardHandler), metrics)
	for i, step := range []struct {
		up           map[string]uint64
		leads, terms map[uint64]uint64
		want         string
	}{
		{all, map[uint64]uint64{1: 2, 2: 2, 3: 2}, nil, second},
		{all, map[uint64]uint64{1: 1, 2: 2, 3: 2}, map[uint64]uint64{1: 6, 2: 7, 3: 7}, second}, // the first was cut off and leads no more
		{all, map[uint64]uint64{1: 1, 2: 2, 3: 1}, map[uint64]uint64{1: 8, 2: 7, 3: 8}, first},
		{map[string]uint64{second: 2, third: 3}, map[uint64]uint64{2: 1, 3: 1}, nil, ""}, // it does not answer
		{map[string]uint64{second: 2, third: 3}, map[uint64]uint64{2: 3, 3: 3}, nil, third},
		{map[string]uint64{third: 3}, map[uint64]uint64{3: 3}, nil, ""},
		{nil, nil, nil, ""},
	} {
		c.up, c.leads, c.terms = step.up, step.leads, step.terms
		m.round(t.Context())
		if c.near != step.want {
			t.Errorf("step %d: %q is preferred, want %q", i, c.near, step.want)
		}
	}
}

// TestReplacedMembersAreNotForgotten: once all configured members have been
// replaced, a moment in which nobody answers does not send requests to the old
// addresses for ever.
func TestReplacedMembersAreNotForgotten(t *testing.T) {
	const first, second, third, fourth = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3", "http://127.0.0.1:4"
	c := &town{given: []string{first, second}, over: []string{first, second}}
	metrics, err := newMetrics(nil, newHistory())
	if err != nil {
		t.Fatal(err)
	}
	m := newMonitor(make(chan struct{}, 1), c, time.Minute, slog.New(slog.DiscardHandler), metrics)
	steps := []struct {
		up   map[string]uint64
		want []string
	}{
		{map[string]uint64{first: 1, second: 2}, []string{first, second}},
		{map[string]uint64{third: 3, second: 2}, []string{second, third}},
		{map[string]uint64{third: 3, fourth: 4}, []string{third, fourth}},
		{nil, []string{third, fourth, first, second}},
		{nil, []string{third, fourth, first, second}},
		{map[string]uint64{third: 3, fourth: 4}, []string{third, fourth}},
		{nil, []string{third, fourth, first, second}},
		{map[string]uint64{first: 5}, []string{first}},
	}
	for i, step := range steps {
		c.up = step.up
		m.round(t.Context())
		if !slices.Equal(c.over, step.want) {
			t.Errorf("step %d: requests go to %v, want %v", i, c.over, step.want)
		}
	}
}
