// Package daemon puts one coordinator process together: store, election, REST,
// gRPC and both gossip rings. It decides the order in which they start and
// stop, and nothing else. cmd/muster-coordinator and dev mode run it.
package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/gossip"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// Config is a coordinator process. Addresses are "host:port" on loopback; port
// 0 takes a free one.
type Config struct {
	ID      string
	Cluster string
	// DataDir holds the embedded etcd; made with mode 0700 if need be.
	DataDir string
	// EtcdEndpoints name an external cluster; none means the embedded one.
	EtcdEndpoints []string
	RESTListen    string
	GRPCListen    string
	SerfBind      string
	CapacityBind  string
	Join          []string // serf addresses
	// ClusterToken is what agents and coordinators prove to each other;
	// AdminToken is the operators' and tenants' bearer token, over REST and for
	// muster.v1.Quotas.
	ClusterToken rpcauth.Token
	AdminToken   rpcauth.Token
	Namespaces   map[string]coordinator.Namespace
	Quota        quota.Options
	LeaseTTL     time.Duration
	Profile      gossip.Profile
	Version      string
	Logger       *slog.Logger
}

// Daemon is a started coordinator. Run serves until its context ends.
type Daemon struct {
	config      Config
	log         *slog.Logger
	store       store.Store
	coordinator *coordinator.Coordinator
	callers     rest.Authenticator // who may use the public API, over REST and gRPC
	restLis     net.Listener
	grpcLis     net.Listener
	rest        *http.Server
	grpc        *grpc.Server
	rings       *gossip.Rings
}

// New binds every port, opens the store and joins the rings. What has been
// started is stopped again when a later step fails.
func New(ctx context.Context, c Config) (d *Daemon, err error) {
	d = &Daemon{config: c, log: c.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.closeAll())
			d = nil
		}
	}()
	if d.restLis, err = listen("restListen", c.RESTListen); err != nil {
		return d, err
	}
	if d.grpcLis, err = listen("grpcListen", c.GRPCListen); err != nil {
		return d, err
	}
	if d.store, err = open(ctx, c); err != nil {
		return d, err
	}
	d.callers = rest.StaticToken(c.AdminToken.Secret())
	registry := prometheus.NewRegistry()
	d.coordinator, err = coordinator.New(coordinator.Config{
		ID: c.ID, Cluster: c.Cluster, Namespaces: c.Namespaces, Quota: c.Quota, LeaseTTL: c.LeaseTTL, Logger: c.Logger,
		Address: store.LeaderAddress{ID: c.ID, GRPC: d.GRPCAddr(), REST: d.RESTAddr()},
		DialAgents: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(rpcauth.Credentials(c.ClusterToken)),
		},
	}, d.store, registry)
	if err != nil {
		return d, err
	}
	d.serveREST(registry)
	d.serveGRPC()
	d.rings, err = gossip.Start(gossip.Config{
		Cluster: c.Cluster, SerfBind: c.SerfBind, CapacityBind: c.CapacityBind, Join: c.Join, Profile: c.Profile, Logger: c.Logger,
		Tags:     gossip.Tags{Role: gossip.RoleCoordinator, ID: c.ID, Addr: d.GRPCAddr(), API: "v1"},
		OnMember: d.member, Queries: d.coordinator.Queries(),
	})
	return d, err
}

// listen binds a loopback address and names the field that holds it.
func listen(field, address string) (net.Listener, error) {
	if err := rpcauth.CheckLoopback(field, address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", field, address, err)
	}
	return l, nil
}

// open opens the embedded or the external store.
func open(ctx context.Context, c Config) (store.Store, error) {
	s, err := openEtcd(ctx, c)
	if err != nil {
		return nil, err // not a nil *etcd.Store in an interface that is not nil
	}
	return s, nil
}

func openEtcd(ctx context.Context, c Config) (*etcd.Store, error) {
	if len(c.EtcdEndpoints) > 0 {
		return etcd.Connect(ctx, etcd.Config{Endpoints: c.EtcdEndpoints, TLS: tlsFor(c.EtcdEndpoints), Logger: c.Logger})
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("dataDir: %w", err)
	}
	return etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(c.DataDir, "etcd"), Logger: c.Logger})
}

// tlsFor is the system's trust for https endpoints, nil for plain ones.
func tlsFor(endpoints []string) *tls.Config {
	if strings.HasPrefix(endpoints[0], "https://") {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

func (d *Daemon) serveREST(registry *prometheus.Registry) {
	handler := rest.NewHandler(rest.Config{
		Service: d.coordinator, Authenticator: d.callers, Logger: d.log, Metrics: registry,
		Version: d.config.Version,
		Ready: func(context.Context) error {
			if !d.coordinator.Leading() {
				return errors.New("this coordinator does not lead")
			}
			return nil
		},
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", handler)
	d.rest = rest.NewServer(mux, d.log)
}

func (d *Daemon) serveGRPC() {
	d.grpc = grpc.NewServer(append(rpcauth.ServerOptions(d.config.ClusterToken, grpcapi.Guard(d.callers)), grpc.MaxRecvMsgSize(16<<20),
		// Agents ping every 15 s while nothing else comes; gRPC's default takes
		// that for an attack and closes the connection.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))...)
	musterv1.RegisterCoordinatorServer(d.grpc, &rpc.Server{
		Cluster: d.config.Cluster, Store: d.store, Logger: d.log, Registered: d.coordinator.NodeRegistered,
	})
	schedulerv1.RegisterNodeAgentServer(d.grpc, &rpc.Heartbeats{
		CoordinatorID: d.config.ID, Store: d.store, Logger: d.log, Heard: d.coordinator.NodeHeard,
	})
	musterv1.RegisterQuotasServer(d.grpc, &grpcapi.Server{Quotas: d.coordinator, Logger: d.log})
}

// member takes a serf member's change: agents are where streams are opened to.
// A member that leaves or fails keeps its target: gossip frees nothing.
func (d *Daemon) member(m gossip.Member) {
	if m.Status == gossip.Alive && m.Tags.Role == gossip.RoleAgent && m.Tags.Addr != "" {
		if err := rpcauth.CheckLoopback("addr", m.Tags.Addr); err != nil {
			d.log.Warn("agent_address_refused", "node", m.Tags.ID, "error", err)
			return
		}
		d.coordinator.AgentSeen(resource.NodeID(m.Tags.ID), m.Tags.Addr)
	}
}

// RESTAddr, GRPCAddr, SerfAddr and CapacityAddr are the addresses bound.
func (d *Daemon) RESTAddr() string { return d.restLis.Addr().String() }

// GRPCAddr is where agents reach this coordinator.
func (d *Daemon) GRPCAddr() string { return d.grpcLis.Addr().String() }

// SerfAddr is what others join.
func (d *Daemon) SerfAddr() string { return d.rings.Serf.Addr() }

// CapacityAddr is this coordinator's address in the capacity ring.
func (d *Daemon) CapacityAddr() string { return d.rings.Capacity.Addr() }

// Alive reports whether the coordinator's loop answers within ctx.
func (d *Daemon) Alive(ctx context.Context) error { return d.coordinator.Alive(ctx) }

// Run serves until ctx ends or a server fails, then stops in order: clients
// first, the store last.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	fail := func(what string, err error) {
		if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
			cancel(fmt.Errorf("%s: %w", what, err))
		}
	}
	wg.Go(func() { fail("REST", d.rest.Serve(d.restLis)) })
	wg.Go(func() { fail("gRPC", d.grpc.Serve(d.grpcLis)) })
	lead, stopLeading := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLeading()
	wg.Go(func() { fail("coordinator", d.coordinator.Run(lead)) })
	<-ctx.Done()
	drain, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	if err := d.rest.Shutdown(drain); err != nil {
		d.rest.Close() // waits of clients are cut off
	}
	stopLeading()
	d.grpc.Stop()
	wg.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, d.closeAll())
}

// closeAll frees whatever New has opened.
func (d *Daemon) closeAll() error {
	var errs []error
	if d.rings != nil {
		errs = append(errs, d.rings.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	for _, l := range []net.Listener{d.restLis, d.grpcLis} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
