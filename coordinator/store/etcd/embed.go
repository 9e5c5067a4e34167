package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"golang.org/x/sys/unix"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// The embedded member's settings.
const (
	// embeddedTxnOps bounds a unit at about 2,000 members.
	embeddedTxnOps = 2048
	// embeddedRequestBytes is the most that etcd's makers recommend: a record
	// of 2,000 members, each with 150 CPUs.
	embeddedRequestBytes = 10 << 20
	embeddedQuotaBytes   = 4 << 30
	// embeddedRetention is how much history stays readable at most: the leader compacts
	// earlier, unless the history in SQL is late, which the leader waits for up to 1 h.
	embeddedRetention = "70m"
	// A member alone elects itself: only its own tick delays the start.
	embeddedTickMs     = 20
	embeddedElectionMs = 100
	// The member's name for itself. Nothing listens there and nobody dials.
	embeddedName    = "muster"
	embeddedPeerURL = "http://127.0.0.1:2380"
	lockName        = "LOCK"
)

// EmbedConfig holds the folder and limits of an embedded member.
type EmbedConfig struct {
	// Dir is a folder of its own, made with mode 0700 if need be.
	Dir string
	// Logger gets the server's warnings; nil discards them.
	Logger *slog.Logger
	// Metrics are registered there; nil keeps them unseen.
	Metrics prometheus.Registerer
	// QuotaBytes bounds the database; 0 is 4 GiB.
	QuotaBytes int64
	// UnsafeNoFsync acknowledges writes that a power loss would undo. For tests
	// and for benchmarks of everything but durability.
	UnsafeNoFsync bool
}

// Embed starts a single etcd member in this process and opens a store on it.
// The server has no listener at all, neither for clients nor for peers: it can
// be reached from this process only.
//
// One process at a time owns Dir; a second is refused at once. Its owner is the
// only possible candidate for leadership, so candidacies left by a process that
// was killed are removed before Embed returns: nobody waits for their leases to
// run out.
func Embed(ctx context.Context, c EmbedConfig) (s *Store, err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := prepareDir(c.Dir); err != nil {
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("start embedded etcd: %w", err)
	}
	server, err := startServer(ctx, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start embedded etcd in %s: %w", c.Dir, err), lock.Close())
	}
	s, err = serveInside(server, c)
	if err != nil {
		server.Close()
		return nil, errors.Join(fmt.Errorf("start embedded etcd: %w", err), lock.Close())
	}
	s.stop = func() error {
		server.Close()
		return lock.Close()
	}
	s.start()
	if err := s.removeCandidates(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start embedded etcd in %s: %w", c.Dir, err), s.Close())
	}
	return s, nil
}

// serveInside makes a store that calls the server's functions.
func serveInside(server *embed.Etcd, c EmbedConfig) (*Store, error) {
	h := newHistory()
	m, err := newMetrics(c.Metrics, h)
	if err != nil {
		return nil, err
	}
	s := &Store{
		kv:        adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(server.Server)),
		leases:    adapter.LeaseServerToLeaseClient(v3rpc.NewQuotaLeaseServer(server.Server)),
		watches:   adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(server.Server)),
		maxTxnOps: embeddedTxnOps, log: c.Logger, metrics: m, history: h,
	}
	maintenance := adapter.MaintenanceServerToMaintenanceClient(v3rpc.NewMaintenanceServer(server.Server, nil))
	room := inside{kv: s.kv, maintenance: maintenance, defragment: server.Server.Defragment, quotaBytes: quota(c)}
	s.monitor = newMonitor(make(chan struct{}, 1), room, time.Second, c.Logger, m)
	return s, nil
}

// prepareDir makes sure that dir is ours and private. A folder that holds other
// things is refused: it is more likely a mistake than a store.
func prepareDir(dir string) error {
	if dir == "" {
		return errors.New("no data folder given")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read data folder: %w", err)
	}
	for _, e := range entries {
		switch e.Name() {
		case "member", lockName, "lost+found":
		default:
			return fmt.Errorf("data folder %s holds %q, which is not the store's: give it a folder of its own", dir, e.Name())
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("data folder %s has mode %v and cannot be made private: %w", dir, info.Mode().Perm(), err)
		}
	}
	return nil
}

// lockDir takes the folder for this process; the kernel gives it back however
// the process ends. The file names the owner for people.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(path)
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data folder %s is in use by process %s: stop it or use another folder", dir, strings.TrimSpace(string(owner)))
		}
		return nil, &fs.PathError{Op: "flock", Path: path, Err: err}
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, fmt.Sprintf("%d\n", os.Getpid()))); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock: %w", err), f.Close())
	}
	return f, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// startServer starts etcd and waits until it serves. etcd panics or logs a
// fatal error on data that it cannot read; both become an error here.
func startServer(ctx context.Context, c EmbedConfig) (server *embed.Etcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			server, err = nil, fmt.Errorf("etcd cannot use its data: %v: restore the folder from a backup or move it away", r)
		}
	}()
	server, err = embed.StartEtcd(serverConfig(c))
	if err != nil {
		return nil, err
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = fmt.Errorf("not ready yet: %w", context.Cause(ctx))
	}
	server.Close()
	return nil, err
}

func quota(c EmbedConfig) int64 { return cmp.Or(c.QuotaBytes, embeddedQuotaBytes) }

func serverConfig(c EmbedConfig) *embed.Config {
	peer, _ := url.Parse(embeddedPeerURL) // a constant
	cfg := embed.NewConfig()
	cfg.Name = embeddedName
	cfg.Dir = c.Dir
	cfg.ListenPeerUrls, cfg.ListenClientUrls, cfg.ListenClientHttpUrls = nil, nil, nil
	cfg.AdvertisePeerUrls, cfg.AdvertiseClientUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(embeddedName)
	cfg.EnableGRPCGateway = false
	cfg.TickMs, cfg.ElectionMs = embeddedTickMs, embeddedElectionMs
	cfg.MaxTxnOps = embeddedTxnOps
	cfg.MaxRequestBytes = embeddedRequestBytes
	cfg.QuotaBackendBytes = quota(c)
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, embeddedRetention
	cfg.WatchProgressNotifyInterval = time.Minute
	cfg.UnsafeNoFsync = c.UnsafeNoFsync
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapTo(c.Logger))
	return cfg
}

// removeCandidates ends all candidacies with their leases.
func (s *Store) removeCandidates(ctx context.Context) error {
	stale, _, err := s.Range(ctx, record.LeaderPrefix, store.RangeOptions{})
	if err != nil {
		return fmt.Errorf("remove stale leadership: %w", err)
	}
	for _, kv := range stale {
		err := s.Revoke(ctx, kv.Lease) // deletes the key
		if kv.Lease == 0 || errors.Is(err, record.ErrLeaseGone) {
			_, err = s.Txn(ctx, record.Txn{Then: []record.Op{record.Delete(kv.Key)}})
		}
		if err != nil {
			return fmt.Errorf("remove stale leadership %s: %w", kv.Key, err)
		}
	}
	return nil
}
