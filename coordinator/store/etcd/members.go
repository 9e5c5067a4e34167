package etcd

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// How often the members are looked at: while all is well; first and, doubling,
// later while one is left out; and at most.
const (
	lookEvery = 30 * time.Second
	lookAgain = 2 * time.Second
	lookPause = time.Second
)

const noSpace = "NOSPACE"

// alarmNames are etcd's alarms.
var alarmNames = []string{noSpace, "CORRUPT"}

// monitor looks at every member now and then, and at once when one did not
// answer. Requests go to members that answer and know a leader: gRPC alone
// would ask a frozen one in its turn for as long as its connection stands. Of a
// cluster's list of members it takes those that it can reach, so that one that
// was replaced is found; a moment in which none answers makes it forget none of
// them. Its goroutine owns it.
type monitor struct {
	wake    chan struct{} // capacity 1: look now
	members cluster
	timeout time.Duration // of one look
	log     *slog.Logger
	metrics *metrics

	used    []string
	missing []uint64 // members of the cluster that did not answer
	alarms  map[string]bool
	full    int // rounds that found the store out of space
}

// cluster is the view of a cluster that a monitor needs.
type cluster interface {
	// configured are the endpoints that the operator named.
	configured() []string
	// list asks for all members.
	list(ctx context.Context) ([]*pb.Member, error)
	status(ctx context.Context, endpoint string) (*pb.StatusResponse, error)
	// use sends requests to these from now on.
	use(endpoints []string)
	// prefer sends reads of one key to this one from now on, "" for none.
	prefer(endpoint string) error
	// makeRoom ends the NOSPACE alarm where that is this process's to do.
	makeRoom(ctx context.Context) error
}

func newMonitor(wake chan struct{}, c cluster, timeout time.Duration, log *slog.Logger, m *metrics) *monitor {
	return &monitor{
		wake: wake, members: c, timeout: timeout, log: log, metrics: m,
		used: c.configured(), alarms: make(map[string]bool),
	}
}

// look has run look at the members now.
func (m *monitor) look() { wakeUp(m.wake) }

func wakeUp(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// run looks at the members until ctx ends, and reports when the store goes
// back.
func (m *monitor) run(ctx context.Context, s *Store) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	era := s.history.present()
	ended := era.ended
	again := lookEvery
	for {
		select {
		case <-timer.C:
		case <-m.wake:
		case <-ended:
			m.metrics.wentBack.Inc()
			m.log.Error("store_went_back", "had", era.err.Had, "has", era.err.Has,
				"do", "see docs/store.md: compare what agents hold with the restored store, then muster reconcile")
			ended = nil
		case <-ctx.Done():
			return
		}
		if now := s.history.present(); now != era {
			era, ended = now, now.ended
		}
		well, changed := m.round(ctx)
		switch {
		case well:
			again = lookEvery
		case changed || again == lookEvery:
			again = lookAgain
		default:
			again = min(2*again, lookEvery/2)
		}
		select {
		case <-m.wake: // also by the members that this look could not reach
		default:
		}
		if !sleep(ctx, lookPause) {
			return
		}
		timer.Reset(again)
	}
}

// sleep waits; it reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sight is one member; status is nil if it did not answer.
type sight struct {
	endpoint   string
	configured bool
	status     *pb.StatusResponse
}

// round looks at every member once. It reports whether all is well, and whether
// it is otherwise than before.
func (m *monitor) round(ctx context.Context) (well, changed bool) {
	members, seen := m.candidates(ctx)
	m.ask(ctx, seen)
	if ctx.Err() != nil {
		return true, false
	}
	var good, bad []string
	var leader *sight // of the newest term that a member knows
	var size int64
	raised := make(map[string]bool)
	known := make(map[uint64]bool)
	for i, one := range seen {
		if one.status == nil || one.status.Leader == 0 || one.status.IsLearner {
			if one.configured {
				bad = append(bad, one.endpoint)
			}
			continue
		}
		if id := one.status.Header.MemberId; !known[id] {
			known[id] = true
			good = append(good, one.endpoint)
		}
		if one.status.Leader == one.status.Header.MemberId && (leader == nil || one.status.RaftTerm > leader.status.RaftTerm) {
			leader = &seen[i]
		}
		size = max(size, one.status.DbSize)
		for _, alarm := range alarmNames {
			for _, text := range one.status.Errors {
				raised[alarm] = raised[alarm] || strings.Contains(text, alarm)
			}
		}
	}
	m.metrics.members.Set(float64(len(good)))
	if len(good) > 0 {
		m.metrics.dbBytes.Set(float64(size))
		m.setAlarms(ctx, raised)
	}
	members = slices.DeleteFunc(members, func(id uint64) bool { return known[id] })
	if len(good) < 2 {
		leader = nil // the other connections are to the same member
	}
	m.prefer(leader)
	changed = m.choose(good, bad) || !slices.Equal(members, m.missing)
	m.missing = members
	return len(bad) == 0 && len(members) == 0 && !slices.Contains(slices.Collect(maps.Values(raised)), true), changed
}

// candidates are the configured endpoints, those that are used, and behind them
// those the cluster lists, as far as they are secured as the configured ones
// are. members are the ids of all that vote.
func (m *monitor) candidates(ctx context.Context) (members []uint64, all []sight) {
	add := func(endpoint string, configured bool) {
		if !slices.ContainsFunc(all, func(s sight) bool { return s.endpoint == endpoint }) {
			all = append(all, sight{endpoint: endpoint, configured: configured})
		}
	}
	configured := m.members.configured()
	for _, endpoint := range configured {
		add(endpoint, true)
	}
	for _, endpoint := range m.used {
		add(endpoint, false)
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	told, err := m.members.list(ctx)
	if err != nil {
		return nil, all
	}
	for _, member := range told {
		if member.IsLearner {
			continue
		}
		members = append(members, member.ID)
		for _, endpoint := range member.ClientURLs {
			if alike(configured[0], endpoint) {
				add(endpoint, false)
			}
		}
	}
	slices.Sort(members)
	return members, all
}

// alike reports whether an endpoint that a cluster lists is secured as the
// configured one is: by TLS, or by not leaving this host.
func alike(configured, told string) bool {
	u, err := url.Parse(told)
	if err != nil {
		return false
	}
	if strings.HasPrefix(configured, "https://") {
		return u.Scheme == "https"
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && (ip != nil && ip.IsLoopback() || u.Hostname() == "localhost")
}

// ask asks all members at once.
func (m *monitor) ask(ctx context.Context, members []sight) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() {
			if s, err := m.members.status(ctx, members[i].endpoint); err == nil {
				members[i].status = s
			}
		})
	}
	wg.Wait()
}

// choose sends requests to the members that are well. While none is, it is to
// those that were last, and to all configured ones, which may all have been
// replaced.
func (m *monitor) choose(good, bad []string) (changed bool) {
	use := good
	if len(good) == 0 {
		use = slices.Clone(m.used)
		for _, endpoint := range bad {
			if !slices.Contains(use, endpoint) {
				use = append(use, endpoint)
			}
		}
	}
	if len(use) == 0 || slices.Equal(use, m.used) {
		return false
	}
	m.used = use
	m.members.use(use)
	if len(bad) > 0 {
		m.log.Warn("etcd_members_left_out", "used", use, "left_out", bad)
	} else {
		m.log.Info("etcd_members", "used", use)
	}
	return true
}

// prefer has reads of one key go to the leader, nil for none that is known.
func (m *monitor) prefer(leader *sight) {
	endpoint := ""
	if leader != nil {
		endpoint = leader.endpoint
	}
	if err := m.members.prefer(endpoint); err != nil {
		m.log.Warn("etcd_leader_not_dialled", "endpoint", endpoint, "error", err)
	}
}

// setAlarms logs the alarms that were raised and those that have ended.
func (m *monitor) setAlarms(ctx context.Context, raised map[string]bool) {
	for _, alarm := range alarmNames {
		value := 0.0
		if raised[alarm] {
			value = 1
		}
		m.metrics.alarms.WithLabelValues(alarm).Set(value)
		if raised[alarm] != m.alarms[alarm] {
			m.alarms[alarm] = raised[alarm]
			m.announce(alarm, raised[alarm])
		}
	}
	if !raised[noSpace] {
		m.full = 0
		return
	}
	// Making room is work: after the first rounds of an alarm it is tried ever
	// less often.
	if m.full++; m.full&(m.full-1) == 0 {
		if err := m.members.makeRoom(ctx); err != nil {
			m.log.Error("store_still_out_of_space", "error", err)
		}
	}
}

func (m *monitor) announce(alarm string, raised bool) {
	switch {
	case !raised:
		m.log.Info("store_alarm_ended", "alarm", alarm)
	case alarm == noSpace:
		m.log.Error("store_out_of_space", "do", "nothing is allocated or released until etcd is compacted, defragmented and its alarm disarmed: see docs/store.md")
	default:
		m.log.Error("store_corrupt", "do", "replace the member that is corrupt: see docs/store.md")
	}
}

// external is a cluster behind a client.
type external struct {
	client    *clientv3.Client
	endpoints []string
	near      *near
}

func (e external) configured() []string { return e.endpoints }

func (e external) list(ctx context.Context) ([]*pb.Member, error) {
	answer, err := e.client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Members, nil
}

func (e external) status(ctx context.Context, endpoint string) (*pb.StatusResponse, error) {
	s, err := e.client.Status(ctx, endpoint)
	return (*pb.StatusResponse)(s), err
}

func (e external) use(endpoints []string) { e.client.SetEndpoints(endpoints...) }

func (e external) prefer(endpoint string) error { return e.near.prefer(endpoint) }

// makeRoom is for the operator: others may use the cluster too.
func (external) makeRoom(context.Context) error { return nil }
