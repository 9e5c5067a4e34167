package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/musterd/muster/coordinator/store"
)

// Config says where an external cluster is.
type Config struct {
	// Endpoints are "host:port" or URLs; at least one.
	Endpoints []string
	// TLS is used for every connection; nil is plain text.
	TLS *tls.Config
	// Logger gets the client's warnings; nil discards them.
	Logger *slog.Logger
}

// The range in which a server's --max-txn-ops is looked for, and how often the
// client checks an idle connection.
const (
	defaultTxnOps    = 128 // what a server takes unless told
	mostTxnOps       = 10_000
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// Connect opens a store on an external cluster and finds its limits. It waits
// for the first member to answer until ctx ends.
func Connect(ctx context.Context, c Config) (*Store, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("connect to etcd: no endpoints")
	}
	where := strings.Join(c.Endpoints, ", ")
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            c.Endpoints,
		TLS:                  c.TLS,
		Logger:               zapTo(c.Logger),
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		DialOptions:          []grpc.DialOption{grpc.WithUserAgent("muster")},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", where, err)
	}
	limit, err := probeMaxTxnOps(ctx, client)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to etcd at %s: %w: check --etcd-endpoints and TLS", where, err), client.Close())
	}
	return newStore(client, clientv3.RetryKVClient(client), limit, nil), nil
}

// probeMaxTxnOps finds the greatest number of compares that the server takes
// in one transaction, up to mostTxnOps. The probes read and change nothing.
func probeMaxTxnOps(ctx context.Context, client *clientv3.Client) (int, error) {
	cmps := make([]clientv3.Cmp, mostTxnOps)
	for i := range cmps {
		cmps[i] = clientv3.Compare(clientv3.CreateRevision(store.Root), "=", 0)
	}
	takes := func(n int) (bool, error) {
		_, err := client.Txn(ctx).If(cmps[:n]...).Commit()
		if errors.Is(err, rpctypes.ErrTooManyOps) {
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
