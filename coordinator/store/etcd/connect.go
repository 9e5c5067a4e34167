package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/record"
)

// Config holds the endpoints and credentials of an external cluster.
type Config struct {
	// Endpoints are "host:port" or URLs; at least one. All are https or none
	// is.
	Endpoints []string
	// TLS counts for https endpoints alone.
	TLS TLS
	// Username and Password are of etcd's own users; none if empty.
	// PasswordFile is where the password came from, for messages.
	Username, Password, PasswordFile string
	// DialTimeout bounds one attempt to connect to one member; 0 is 2 s.
	DialTimeout time.Duration
	// RequestTimeout is how long one request may go unanswered. Another member
	// is asked then. A Txn may take twice as long; its outcome is unknown then.
	// 0 is 1 s. It must be well below half the leader's lease.
	RequestTimeout time.Duration
	// Logger gets warnings; nil discards them.
	Logger *slog.Logger
	// Metrics are registered there; nil keeps them unseen.
	Metrics prometheus.Registerer
}

const (
	defaultDialTimeout    = 2 * time.Second
	defaultRequestTimeout = time.Second
	// How often an idle connection is checked: the least that gRPC allows, and
	// etcd tolerates.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 2 * time.Second
	// attempts is how many requests a first connection may take up in time.
	attempts = 5
	// The range in which a server's --max-txn-ops is looked for.
	defaultTxnOps = 128 // a server's default limit
	mostTxnOps    = 10_000
)

// reconnect is how soon a lost member is dialled again. gRPC's own limit of two
// minutes would outlast the outage by as much.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
}

func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = defaultDialTimeout
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = defaultRequestTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Connect opens a store on an external cluster and finds its limits. Until ctx
// ends it waits for a first member to answer; an error that waiting will not
// mend, such as a wrong certificate, password or role, is returned at once and
// names the configuration's field.
func Connect(ctx context.Context, c Config) (*Store, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("connect to etcd: etcdEndpoints: none given")
	}
	c = c.withDefaults()
	h := newHistory()
	m, err := newMetrics(c.Metrics, h)
	if err != nil {
		return nil, err
	}
	last := ""
	for wait := 5 * minPause; ; wait = min(2*wait, 2*maxPause) {
		s, err := connect(ctx, c, h, m)
		if err == nil {
			return s, nil
		}
		var r refusal
		if errors.As(err, &r) || ctx.Err() != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return nil, fmt.Errorf("connect to etcd: %w", err)
		}
		if err.Error() != last {
			last = err.Error()
			c.Logger.Warn("etcd_not_reachable", "error", err, "do", "waiting for it")
		}
		sleep(ctx, wait)
	}
}

// connect tries once.
func connect(ctx context.Context, c Config, h *history, m *metrics) (s *Store, err error) {
	if err := knock(ctx, c); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout+attempts*c.RequestTimeout)
	defer cancel()
	wake := make(chan struct{}, 1)
	client, err := dial(c, h, func() { wakeUp(wake) })
	if err != nil {
		return nil, c.accessError(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeClient(client))
		}
	}()
	conn := client.ActiveConnection()
	s = &Store{
		kv: pb.NewKVClient(conn), leases: pb.NewLeaseClient(conn), watches: pb.NewWatchClient(conn), conn: conn,
		stop:           func() error { return closeClient(client) },
		requestTimeout: c.RequestTimeout, log: c.Logger, metrics: m, history: h,
	}
	if err := s.mayWrite(ctx); err != nil {
		return nil, c.accessError(err)
	}
	if s.maxTxnOps, err = s.probeMaxTxnOps(ctx); err != nil {
		return nil, c.accessError(err)
	}
	s.near.dial = func(endpoint string) (*clientv3.Client, error) {
		one := c
		one.Endpoints = []string{endpoint}
		return dial(one, h, func() { wakeUp(wake) })
	}
	s.monitor = newMonitor(wake, external{client: client, endpoints: urls(c.Endpoints), near: &s.near}, min(c.RequestTimeout, time.Second), c.Logger, s.metrics)
	s.start()
	return s, nil
}

// urls writes every endpoint as a URL.
func urls(endpoints []string) []string {
	out := make([]string, len(endpoints))
	for i, e := range endpoints {
		if !strings.Contains(e, "://") {
			e = "http://" + e
		}
		out[i] = strings.TrimSuffix(e, "/")
	}
	return out
}

func closeClient(client *clientv3.Client) error {
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) { // how clientv3 reports that it was open
		return err
	}
	return nil
}

// mayWrite finds out whether a transaction would be let through, without
// writing: its compare never holds.
func (s *Store) mayWrite(ctx context.Context) error {
	_, err := s.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{
			Key: []byte(record.Root), Result: pb.Compare_GREATER, Target: pb.Compare_CREATE,
			TargetUnion: &pb.Compare_CreateRevision{CreateRevision: math.MaxInt64},
		}},
		Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(record.Root)}}},
			{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{
				Key: []byte(record.Root), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(record.Root)), Limit: 1,
			}}},
		},
	}, calls...)
	err = rpctypes.Error(err)
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return nil // the monitor logs it
	}
	return err
}

// accessError names the field that an error of the first requests is about.
func (c Config) accessError(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return refused("etcdPasswordFile: etcd does not know the user %q with the password in %s: %w", c.Username, c.PasswordFile, err)
	case errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrUserNotFound):
		return refused("etcdUsername: %q: etcd asks for a user: %w", c.Username, err)
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return refused("etcdUsername: the user %q may not read and write %s: %w: etcdctl role grant-permission ROLE --prefix=true readwrite %s",
			c.Username, record.Root, err, record.Root)
	}
	return err
}

// probeMaxTxnOps finds the greatest number of compares that the server takes
// in one transaction, up to mostTxnOps. The probes read and change nothing.
func (s *Store) probeMaxTxnOps(ctx context.Context) (int, error) {
	one := &pb.Compare{
		Key: []byte(record.Root), Result: pb.Compare_EQUAL, Target: pb.Compare_CREATE,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 0},
	}
	compares := make([]*pb.Compare, mostTxnOps)
	for i := range compares {
		compares[i] = one
	}
	takes := func(n int) (bool, error) {
		_, err := s.kv.Txn(ctx, &pb.TxnRequest{Compare: compares[:n]}, calls...)
		if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrTooManyOps) {
			return false, nil
		}
		return err == nil, err
	}
	// etcd's default first: an answer there saves the search.
	low, high := 0, mostTxnOps+1 // takes(low), !takes(high)
	for _, n := range []int{defaultTxnOps, defaultTxnOps + 1} {
		ok, err := takes(n)
		if err != nil {
			return 0, fmt.Errorf("find its --max-txn-ops: %w", err)
		}
		if ok {
			low = n
		} else {
			high = n
			break
		}
	}
	for high-low > 1 {
		n := (low + high) / 2
		ok, err := takes(n)
		if err != nil {
			return 0, fmt.Errorf("find its --max-txn-ops between %d and %d: %w", low, high, err)
		}
		if ok {
			low = n
		} else {
			high = n
		}
	}
	if low == 0 {
		return 0, errors.New("find its --max-txn-ops: it takes no transaction")
	}
	return low, nil
}
