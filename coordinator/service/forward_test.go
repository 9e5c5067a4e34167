package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// terms is a Peer with one leader after the other, each for a second.
type terms struct {
	began   time.Time
	leaders []service.Leader // "" is a second without a leader; the last one stays
}

func (s terms) Leader(ctx context.Context) (service.Leader, error) {
	for {
		at := min(int(time.Since(s.began)/time.Second), len(s.leaders)-1)
		if l := s.leaders[at]; l.ID != "" {
			return l, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return service.Leader{}, ctx.Err()
		}
	}
}

func (terms) Reach(context.Context, int64) error { return nil }

var (
	self    = service.Leader{ID: "self", Own: true}
	one     = service.Leader{ID: "one", Address: "192.0.2.1:80"}
	two     = service.Leader{ID: "two", Address: "192.0.2.2:80"}
	nobodyL = service.Leader{}
)

// answers are how each coordinator answers a try.
func answers(ctx context.Context, l service.Leader) service.Attempt {
	switch l {
	case two:
		return service.Attempt{}
	default: // swallows the request
		<-ctx.Done()
		return service.Attempt{At: l.Address, Err: errors.New("no answer"), Sent: true, Silent: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	}
}

func TestForward(t *testing.T) {
	for name, c := range map[string]struct {
		leaders []service.Leader
		repeat  service.Repeat
		wait    time.Duration
		lasts   time.Duration
		hopped  bool
		lost    bool   // this coordinator led when it began the request
		by      string // that answered; "" for none
		reason  string
		after   time.Duration // at least
		until   time.Duration // at most
	}{
		"the leader answers":                                 {leaders: []service.Leader{two}, by: "two"},
		"this coordinator led and may have done it":          {leaders: []service.Leader{two}, lost: true, reason: api.LeaderLost},
		"this coordinator is elected meanwhile":              {leaders: []service.Leader{nobodyL, self}, by: "self", after: time.Second, until: 1100 * time.Millisecond},
		"no leader comes":                                    {leaders: []service.Leader{nobodyL}, reason: api.NotLeader, after: 7 * time.Second, until: 7100 * time.Millisecond},
		"a request that was passed on goes no further":       {leaders: []service.Leader{two}, hopped: true, reason: api.NotLeader},
		"a request that was passed on waits a second":        {leaders: []service.Leader{nobodyL}, hopped: true, reason: api.NotLeader, after: time.Second, until: 1100 * time.Millisecond},
		"a leader is silent":                                 {leaders: []service.Leader{one}, reason: api.LeaderUnreachable, after: 2 * time.Second, until: 2100 * time.Millisecond},
		"a leader is silent to a client that waits":          {leaders: []service.Leader{one}, wait: 3 * time.Second, reason: api.LeaderUnreachable, after: 5 * time.Second, until: 5100 * time.Millisecond},
		"a leader is silent where answers last":              {leaders: []service.Leader{one}, lasts: 3 * time.Second, reason: api.LeaderUnreachable, after: 5 * time.Second, until: 5100 * time.Millisecond},
		"a silent leader has done nothing of a read":         {leaders: []service.Leader{one}, repeat: service.Read, reason: api.NotLeader, after: 2 * time.Second, until: 2100 * time.Millisecond},
		"a silent leader is followed by another":             {leaders: []service.Leader{one, two}, reason: api.LeaderLost, after: time.Second, until: 1300 * time.Millisecond},
		"a read is repeated at the next leader":              {leaders: []service.Leader{one, two}, repeat: service.Read, by: "two", after: time.Second, until: 1300 * time.Millisecond},
		"a creation with a key is repeated at the next one":  {leaders: []service.Leader{one, two}, repeat: service.Keyed, by: "two", after: time.Second, until: 1300 * time.Millisecond},
		"a creation without a key may have been done before": {leaders: []service.Leader{one, self}, reason: api.LeaderLost, after: time.Second, until: 1300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := service.NewForward("self", terms{began, c.leaders}, 0, nil)
				refused := api.Errorf(503, "self does not lead").Because(api.NotLeader)
				if c.lost {
					refused.Because(api.LeaderLost)
				}
				by := ""
				status := f.Pass(t.Context(), service.Passage{
					Name: "POST /x", Repeat: c.repeat, Wait: c.wait, Lasts: c.lasts, Hopped: c.hopped,
					Here: func(time.Duration) *api.Status { by = "self"; return nil },
					There: func(ctx context.Context, l service.Leader, _ time.Duration) service.Attempt {
						got := answers(ctx, l)
						if got.Err == nil {
							by = l.ID
						}
						return got
					},
				}, refused)
				if took := time.Since(began); took < c.after || took > c.until { // of the bubble's clock
					t.Errorf("it took %s, want %s to %s", took, c.after, c.until)
				}
				switch {
				case by != c.by:
					t.Errorf("answered by %q, want %q", by, c.by)
				case c.reason == "" && status != nil:
					t.Errorf("refused: %s", status.Message)
				case c.reason != "" && (status == nil || status.Code != 503 || status.Reason != c.reason):
					t.Errorf("got %+v, want a 503 with %s", status, c.reason)
				case c.reason == api.LeaderUnreachable && !strings.Contains(status.Message, one.Address):
					t.Errorf("the message does not say where: %s", status.Message)
				case status != nil && !c.hopped && status.RetryAfterSeconds == 0:
					t.Errorf("the refusal does not say when to ask again")
				}
			})
		})
	}
}
