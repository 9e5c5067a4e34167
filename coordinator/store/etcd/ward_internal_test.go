package etcd

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestTheConnectionToTheLeader: dialled once for an endpoint, again after a failed read, and closed
// with the next.
func TestTheConnectionToTheLeader(t *testing.T) {
	var dialled []*clientv3.Client
	n := near{dial: func(endpoint string) (*clientv3.Client, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
		dialled = append(dialled, c)
		return c, err
	}}
	prefer := func(endpoint string, want int) {
		t.Helper()
		if err := n.prefer(endpoint); err != nil || len(dialled) != want {
			t.Fatalf("%q: %d connections, %v; want %d", endpoint, len(dialled), err, want)
		}
		for i, c := range dialled {
			if open := c.Ctx().Err() == nil; open != (i == want-1 && endpoint != "") {
				t.Errorf("%q: connection %d of %d is open: %t", endpoint, i+1, want, open)
			}
		}
		if (n.current.Load() != nil) != (endpoint != "") {
			t.Errorf("%q: reads use %v", endpoint, n.current.Load())
		}
	}
	const first, second = "http://127.0.0.1:1", "http://127.0.0.1:2"
	prefer(first, 1)
	prefer(first, 1)
	before := n.current.Load()
	prefer(second, 2)
	n.drop(before) // a read over the connection of before has failed
	if n.current.Load() == nil {
		t.Error("a failed read over an earlier connection drops the present connection")
	}
	n.drop(n.current.Load())
	if n.current.Load() != nil {
		t.Error("a dropped connection is used")
	}
	prefer(second, 3)
	prefer("", 3)
}

// ward is a town with learners and alarms.
type ward struct {
	town
	learners map[uint64]bool
	blind    map[uint64]bool // without a leader
	alarms   []string
	rooms    int // tries to make room
}

func (w *ward) list(ctx context.Context) ([]*pb.Member, error) {
	all, err := w.town.list(ctx)
	for _, m := range all {
		m.IsLearner = w.learners[m.ID]
	}
	return all, err
}

func (w *ward) status(ctx context.Context, endpoint string) (*pb.StatusResponse, error) {
	s, err := w.town.status(ctx, endpoint)
	if err == nil {
		s.IsLearner, s.Errors = w.learners[s.Header.MemberId], w.alarms
		if w.blind[s.Header.MemberId] {
			s.Leader = 0
		}
	}
	return s, err
}

func (w *ward) makeRoom(context.Context) error { w.rooms++; return nil }

// watched is a monitor of a ward.
func watched(t *testing.T, w *ward) *monitor {
	t.Helper()
	metrics, err := newMetrics(nil, newHistory())
	if err != nil {
		t.Fatal(err)
	}
	w.over = w.given
	return newMonitor(make(chan struct{}, 1), w, time.Minute, slog.New(slog.DiscardHandler), metrics)
}

// TestWhichMembersAreAsked: learners and members without a leader are not, and a member with two
// endpoints once.
func TestWhichMembersAreAsked(t *testing.T) {
	const first, second, third = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
	for name, c := range map[string]struct {
		w    ward
		want []string
		well bool
	}{
		"all":                        {ward{town: town{given: []string{first, second}, up: map[string]uint64{first: 1, second: 2}}}, []string{first, second}, true},
		"a learner":                  {ward{town: town{given: []string{first, second}, up: map[string]uint64{first: 1, second: 2}}, learners: map[uint64]bool{2: true}}, []string{first}, false},
		"a learner in the list":      {ward{town: town{given: []string{first}, up: map[string]uint64{first: 1, second: 2}}, learners: map[uint64]bool{2: true}}, []string{first}, true},
		"a member without a leader":  {ward{town: town{given: []string{first, second}, up: map[string]uint64{first: 1, second: 2}}, blind: map[uint64]bool{2: true}}, []string{first}, false},
		"a member with two names":    {ward{town: town{given: []string{first, second, third}, up: map[string]uint64{first: 1, second: 2, third: 2}}}, []string{first, second}, true},
		"a member found by the list": {ward{town: town{given: []string{first}, up: map[string]uint64{first: 1, second: 2}}}, []string{first, second}, true},
	} {
		m := watched(t, &c.w)
		well, _ := m.round(t.Context())
		if diff := cmp.Diff(c.want, m.used); diff != "" || well != c.well {
			t.Errorf("%s: well %t, want %t; requests go to (-want +got):\n%s", name, well, c.well, diff)
		}
	}
}

// TestRoomIsMadeEverLessOften: in the rounds 1, 2, 4 and 8 of an alarm, and from 1 at the next alarm.
func TestRoomIsMadeEverLessOften(t *testing.T) {
	w := &ward{town: town{given: []string{"http://127.0.0.1:1"}, up: map[string]uint64{"http://127.0.0.1:1": 1}}}
	m := watched(t, w)
	for alarm := range 2 {
		w.alarms, w.rooms = []string{"etcdserver: NOSPACE on 1"}, 0
		for round := 1; round <= 9; round++ {
			if well, _ := m.round(t.Context()); well {
				t.Error("a store without space is well")
			}
			if want := map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 3, 7: 3, 8: 4, 9: 4}[round]; w.rooms != want {
				t.Errorf("alarm %d, round %d: room was made %d times, want %d", alarm+1, round, w.rooms, want)
			}
		}
		w.alarms = nil
		if well, _ := m.round(t.Context()); !well || m.alarms[noSpace] {
			t.Errorf("after the alarm: well %t, alarms %v", well, m.alarms)
		}
	}
}

// TestEndpointsAlike: of a list those with TLS count beside endpoints with TLS, and those of this
// host beside endpoints without.
func TestEndpointsAlike(t *testing.T) {
	for _, c := range []struct {
		configured, listed string
		want               bool
	}{
		{"https://a:1", "https://b:2", true}, {"https://a:1", "http://b:2", false}, {"https://a:1", "unix://b:2", false}, {"https://a:1", "http://127.0.0.1:2", false},
		{"http://a:1", "http://127.0.0.1:2", true}, {"http://a:1", "http://[::1]:2", true}, {"http://a:1", "http://localhost:2", true}, {"http://a:1", "http://192.0.2.1:2", false},
		{"http://a:1", "http://b:2", false}, {"http://a:1", "https://127.0.0.1:2", false}, {"http://a:1", "http://%zz", false},
	} {
		if got := alike(c.configured, c.listed); got != c.want {
			t.Errorf("%s beside %s: %t, want %t", c.listed, c.configured, got, c.want)
		}
	}
}
