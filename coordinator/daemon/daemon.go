// Package daemon puts one coordinator process together: store, election, REST,
// gRPC and both gossip rings. It decides the order in which they start and
// stop, and nothing else. cmd/muster-coordinator and dev mode run it.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/audit"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/decisions/logfile"
	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/history/redis"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/monitor"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/condition"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/level"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire/limits"
)

// Config is a coordinator process. Addresses are "host:port", without TLS on
// loopback; port 0 takes a free one.
type Config struct {
	ID      string
	Cluster string
	// DataDir holds the embedded etcd; made with mode 0700 if need be.
	DataDir string
	// Etcd is an external cluster; without endpoints it is the embedded one.
	Etcd       etcd.Config
	RESTListen string
	GRPCListen string
	// MetricsListen serves /metrics and /metrics/cluster; "" is RESTListen.
	MetricsListen string
	// EnrollListen takes enrolments of hosts, with TLS; "" is GRPCListen.
	EnrollListen string
	SerfBind     string
	CapacityBind string
	Join         []string // serf addresses
	// SerfRPC is where the stock serf command line reaches this coordinator on
	// its host, and where it changes the gossip keys; zero for nowhere.
	SerfRPC gossip.RPC
	// TLS is how agents and coordinators prove themselves to each other; nil is
	// by ClusterToken, on loopback.
	TLS *TLSConfig
	// Advertise is the IP address that others reach this host at; "" is the one
	// that is bound.
	Advertise string
	// ClusterToken is unused with TLS. AdminToken is the operators' bearer token of the public API, over REST and
	// gRPC.
	ClusterToken rpcauth.Token
	AdminToken   rpcauth.Token
	// MetricsToken reads the metrics and nothing else; where it is set, /metrics
	// needs a token too. Zero: none.
	MetricsToken rpcauth.Token
	// OIDC is the identity provider of people; nil = none.
	OIDC       *oidc.Config
	Namespaces map[string]lead.Namespace
	// RequireNamespaces is coordinator.Config's.
	RequireNamespaces bool
	Quota             quota.Options
	// NamespaceAllocations is coordinator.Config's.
	NamespaceAllocations int
	// Documents is coordinator.Config's.
	Documents count.Share
	// RequestsPerMinute is gate.Rates.Requests.
	RequestsPerMinute int
	// ApproveGrowth: nodes that register more than before wait for an operator.
	ApproveGrowth bool
	// EvictOnDeviceLost is coordinator.Config's.
	EvictOnDeviceLost bool
	// RejectUnsatisfiable is coordinator.Config's.
	RejectUnsatisfiable bool
	// PlacementPolicy is coordinator.Config's.
	PlacementPolicy string
	// PreemptionPolicy is coordinator.Config's.
	PreemptionPolicy string
	// StartsWork is coordinator.Config's.
	StartsWork bool
	// Ports is coordinator.Config's.
	Ports     rendezvous.Range
	LeaseTTL  time.Duration
	Decisions Decisions
	Audit     Audit
	History   History
	Profile   gossip.Profile
	// EndsTogether says that all members of the rings end at one time, so that nobody
	// takes leave; see agent.GossipConfig.
	EndsTogether bool
	Version      string
	Logger       *slog.Logger
}

// Daemon is a started coordinator. Run serves until its context ends.
type Daemon struct {
	config      Config
	log         *slog.Logger
	condition   *condition.Store
	store       *store.Guarded // over condition
	era         *era.Keeper
	security    security
	coordinator *coordinator.Coordinator
	callers     service.Authenticator // who may use the public API, over REST and gRPC
	persons     *oidc.Verifier        // nil where there is no identity provider
	gate        *gate.Gate            // of their requests
	listen      listeners
	rest        *http.Server
	metrics     *http.Server       // nil where REST serves the metrics
	endWaits    context.CancelFunc // of the requests that REST still serves
	grpc        *grpc.Server
	enrolment   *grpc.Server          // nil where grpc serves it
	forward     *service.Forward      // of requests that the leader answers
	relay       *grpcapi.Relay        // of those that come by the agents' gRPC
	api         *grpcapi.PublicServer // the public API over gRPC, beside REST
	apiRelay    *grpcapi.Relay        // of its calls
	rings       *gossip.Rings
	decisions   *logfile.Log // nil for none
	audit       *audit.Book
	history     *historian  // nil where no history is kept
	redis       *redis.Sink // nil where Redis gets no heartbeats
	refusals    *refusals
	registry    *prometheus.Registry // of /metrics
	cluster     *prometheus.Registry // of /metrics/cluster
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
	registry := prometheus.NewRegistry()
	d.registry = registry
	if err = d.bindAll(registry); err != nil {
		return d, err
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	opened, err := openStore(ctx, c, registry)
	if err != nil {
		return d, err
	}
	d.condition = condition.Observe(opened, c.Logger)
	d.store = store.Guard(d.condition, level.Newest, c.Logger)
	if err = d.comparePast(ctx); err != nil {
		return d, err
	}
	if err = d.claimStore(ctx); err != nil {
		return d, err
	}
	if err = d.openSecurity(ctx, registry); err != nil {
		return d, err
	}
	if err = d.openAudit(registry); err != nil {
		return d, err
	}
	d.coordinator, err = coordinator.New(coordinator.Config{
		ID: c.ID, Cluster: c.Cluster, Namespaces: c.Namespaces, RequireNamespaces: c.RequireNamespaces, Quota: c.Quota, NamespaceAllocations: c.NamespaceAllocations, Documents: c.Documents, LeaseTTL: c.LeaseTTL, Logger: c.Logger,
		Address:    d.address(),
		DialAgents: d.security.member.DialOptions(rpcauth.NamedNode()),
		CheckAgent: func(addr string) error { return d.security.member.CheckAddress("agentAddr", addr) },
		Decisions:  d.openDecisions(),

		EvictOnDeviceLost: c.EvictOnDeviceLost, RejectUnsatisfiable: c.RejectUnsatisfiable, PlacementPolicy: c.PlacementPolicy, PreemptionPolicy: c.PreemptionPolicy, StartsWork: c.StartsWork, Ports: c.Ports,
		Era: d.era, Noted: d.audit.Followed, Note: audit.NoteIn(d.store),
	}, d.store, registry)
	if err != nil {
		return d, err
	}
	d.openHistory(registry)
	if err = d.openRedis(registry); err != nil {
		return d, err
	}
	d.audit.Fresh, d.audit.TenantOf = d.coordinator.CatchUp, d.coordinator.TenantOf
	if err = d.openCallers(registry); err != nil {
		return d, err
	}
	d.forward = service.NewForward(c.ID, d.coordinator, d.coordinator.Patience(), d.log).ProveBy(c.AdminToken.Secret())
	d.gate = gate.New(&gate.Rates{Requests: c.RequestsPerMinute, Of: d.coordinator.RequestsPerMinute, Live: d.coordinator.Live})
	d.gate.Readers = gate.NewReaders(registry, d.log)
	d.cluster = prometheus.NewRegistry()
	d.cluster.MustRegister(monitor.New(d.coordinator, time.Now))
	d.serveREST(registry)
	d.serveGRPC(registry)
	d.rings, err = gossip.Start(gossip.Config{
		Cluster: c.Cluster, SerfBind: c.SerfBind, CapacityBind: c.CapacityBind, Join: c.Join, Profile: c.Profile, Logger: c.Logger,
		Tags:     gossip.Tags{Role: gossip.RoleCoordinator, ID: gossip.CoordinatorName(c.ID), Addr: d.GRPCAddr(), API: "v1"},
		OnMember: d.member, Queries: d.coordinator.Queries(), Local: d.coordinator.LocalQueries(), RPC: c.SerfRPC,
		Keyring: d.security.keyring, Keys: d.security.keyChanger(), Advertise: c.Advertise,
	})
	if err != nil {
		return d, err
	}
	return d, registry.Register(d.rings.Collector(nil))
}

func (d *Daemon) serveREST(registry *prometheus.Registry) {
	handler := rest.NewHandler(rest.Config{
		Service: d.coordinator, Watches: d.coordinator, Authenticator: d.callers, Access: d.rights(), Logger: d.log, Metrics: registry,
		Version: d.config.Version, Notices: d.coordinator.Notices,
		Forward: d.forward, Roster: d.coordinator, Revision: d.coordinator.Revision, Ready: d.coordinator.Ready, Store: d.condition,
		PeerTLS:  d.security.peer,
		Identity: d.security.documents(), Credentials: d.credentials(), Audits: d.audit, Gate: d.gate, Login: d.login(), Histories: d.histories(), Past: d.past(), FeatureLevels: d.levels(),
	})
	mux := http.NewServeMux()
	d.serveMetrics(mux, registry)
	mux.Handle("/", d.serveAPI(handler))
	d.rest = rest.NewServer(mux, d.log)
	requests, end := context.WithCancel(context.Background())
	d.rest.BaseContext = func(net.Listener) context.Context { return requests }
	d.endWaits = end
}

// rights decide which requests a caller may make.
func (d *Daemon) rights() service.Access { return service.Access{TenantOf: d.coordinator.TenantOf} }

// serveAPI serves the public API over gRPC on the connections of REST, and hands
// all other requests to web.
func (d *Daemon) serveAPI(web http.Handler) http.Handler {
	dial := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if d.security.peer != nil {
		dial = []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(d.security.peer))}
	}
	d.apiRelay = &grpcapi.Relay{
		Forward: d.forward, Revision: d.coordinator.Revision, Dial: dial,
		At: func(l service.Leader) string { return strings.TrimPrefix(l.Address, "https://") },
	}
	public := &grpcapi.API{
		Service: d.coordinator, Watches: d.coordinator, Authenticator: d.callers, Identity: d.security.documents(), Credentials: d.credentials(), Access: d.rights(), Audits: d.audit,
		Roster: d.coordinator, Notices: d.coordinator.Notices, Ask: rest.Asker(d.security.peer), Relay: d.apiRelay, Ready: d.coordinator.Ready, Store: d.condition, Proven: rest.ProveConnection, AnswerBy: rest.AnswerBy, Gate: d.gate, Logger: d.log, Past: d.past(), Histories: d.histories(), FeatureLevels: d.levels(),
	}
	d.api = public.NewServer()
	return rest.WithGRPC(d.api, web)
}

func (d *Daemon) serveGRPC(registry prometheus.Registerer) {
	d.refusals = newRefusals(d.log, registry)
	dial := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if d.security.enroll != nil {
		dial = d.security.member.DialOptions(rpcauth.AnyCoordinator())
	}
	dial = append(dial, limits.DialOptions()...)
	d.relay = &grpcapi.Relay{Forward: d.forward, Revision: d.coordinator.Revision, Dial: dial}
	// The caller is judged first, then the message, and only then a call is passed
	// on.
	rules := rpcauth.CoordinatorRules()
	if d.listen.enroll != nil {
		rules = rpcauth.PeerRules()
	}
	options := append(d.security.serverOptions(rules), limits.ServerOptions(d.refusals.message)...)
	options = append(options, grpc.ChainUnaryInterceptor(d.limitEnrolment, d.relay.Intercept))
	d.grpc = grpc.NewServer(append(options, rpcauth.Limits()...)...)
	services := rpcauth.Register(d.grpc)
	musterv1.RegisterCoordinatorServer(services, &rpc.Server{
		Cluster: d.config.Cluster, Store: d.store, Logger: d.log, Registered: d.coordinator.NodeRegistered, Evictor: d.coordinator.EvictFor, Era: d.era,
		ApproveGrowth: d.config.ApproveGrowth, OverBudget: d.refusals.overBudget,
	})
	schedulerv1.RegisterNodeAgentServer(services, &rpc.Heartbeats{
		CoordinatorID: d.config.ID, Store: d.store, Logger: d.log,
		Fingerprint: d.security.fingerprint(), Changed: d.security.changed(),
		OverBudget: d.refusals.overBudget, Heard: d.heard(),
	})
	if d.security.enroll != nil {
		musterv1.RegisterEnrollmentServer(services, d.security.enroll)
	}
	d.serveEnrolment()
	d.refusals.know(d.grpc, d.enrolment)
}

// member takes a serf member's change, as a hint: streams are opened to where
// agents have registered. A member that leaves or fails keeps its stream.
func (d *Daemon) member(m gossip.Member) {
	if m.Tags.Role != gossip.RoleAgent {
		return
	}
	if m.Name != m.Tags.ID { // a member names itself by its id (gossip.Start)
		d.coordinator.GossipIgnored("other_name")
		return
	}
	d.coordinator.AgentSuspected(resource.NodeID(m.Tags.ID), m.Status != gossip.Alive)
	if m.Status == gossip.Alive && m.Tags.Addr != "" {
		d.coordinator.AgentSeen(resource.NodeID(m.Tags.ID), m.Tags.Addr)
	}
}

// address is what others are told of this coordinator.
func (d *Daemon) address() record.LeaderAddress {
	a := record.LeaderAddress{ID: d.config.ID, GRPC: d.GRPCAddr(), REST: d.RESTAddr()}
	if d.security.web != nil {
		a.REST = "https://" + a.REST
	}
	return a
}

// RESTAddr is where clients reach this coordinator, by https if RESTSecure.
func (d *Daemon) RESTAddr() string { return d.reachable(d.listen.rest) }

// GRPCAddr is where agents reach this coordinator.
func (d *Daemon) GRPCAddr() string { return d.reachable(d.listen.grpc) }

// SerfAddr is what others join.
func (d *Daemon) SerfAddr() string { return d.rings.Serf.Addr() }

// SerfRPCAddr is where the stock serf command line reaches this coordinator, ""
// for nowhere.
func (d *Daemon) SerfRPCAddr() string { return d.rings.Serf.RPCAddr() }

// CapacityAddr is this coordinator's address in the capacity ring.
func (d *Daemon) CapacityAddr() string { return d.rings.Capacity.Addr() }

// Alive reports whether the coordinator's loop answers within ctx.
func (d *Daemon) Alive(ctx context.Context) error { return d.coordinator.Alive(ctx) }

// Registries have everything that /metrics and /metrics/cluster show. The latter
// names tenants' namespaces and is for administrators alone.
func (d *Daemon) Registries() (own, cluster *prometheus.Registry) { return d.registry, d.cluster }

// Status says in one line what the coordinator does.
func (d *Daemon) Status() string { return d.coordinator.Summary() }

// Run serves until ctx ends or a server fails, then stops in order: leadership,
// clients, the store last.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	fail := func(what string, err error) {
		if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
			cancel(fmt.Errorf("%s: %w", what, err))
		}
	}
	if d.security.enroll != nil {
		wg.Go(func() { d.security.enroll.Run(ctx) })
	}
	if d.persons != nil {
		wg.Go(func() { d.persons.Run(ctx) })
	}
	wg.Go(func() { fail("REST", d.rest.Serve(d.secured(d.listen.rest))) })
	wg.Go(func() { fail("gRPC", d.grpc.Serve(d.listen.grpc)) })
	if d.metrics != nil {
		wg.Go(func() { fail("metrics", d.metrics.Serve(d.secured(d.listen.metrics))) })
	}
	if d.enrolment != nil {
		wg.Go(func() { fail("enrolment", d.enrolment.Serve(d.listen.enroll)) })
	}
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	wg.Go(func() { fail("coordinator", d.coordinator.Run(work)) })
	if d.history != nil {
		wg.Go(func() {
			if err := d.history.run(work, d.config.History, d.log); err != nil { // the coordinator goes on without
				d.log.Error("history_ended", "error", err)
			}
		})
	}
	if d.redis != nil {
		wg.Go(func() {
			if err := d.redis.Run(work); err != nil {
				d.log.Warn("redis_not_closed", "error", err)
			}
		})
	}
	<-ctx.Done()
	d.handOver()
	stopWork()
	d.grpc.Stop()
	d.api.Stop()
	if d.enrolment != nil {
		d.enrolment.Stop()
	}
	if d.metrics != nil {
		_ = d.metrics.Close() // a scrape may be repeated
	}
	wg.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, d.closeAll())
}

// How long a stop may take before clients are cut off.
const (
	// waitsEnd is when waits that are open are answered, unsettled.
	waitsEnd = 1500 * time.Millisecond
	drained  = 2 * time.Second
)

// handOver lets the next coordinator lead at once. What clients wait for goes on
// there, asked by this one, until they have to be told to ask again.
func (d *Daemon) handOver() {
	drain, done := context.WithTimeout(context.Background(), drained)
	defer done()
	d.coordinator.Retire(drain)
	others := func(c api.Coordinator) bool { return c.ID != d.config.ID }
	if !slices.ContainsFunc(d.coordinator.Candidates(), others) { // nobody is there to go on
		d.endWaits()
	}
	defer time.AfterFunc(waitsEnd, d.endWaits).Stop()
	if err := d.rest.Shutdown(drain); err != nil {
		d.rest.Close() // what is still served is cut off
	}
	d.endWaits()
}

// Close frees a Daemon that Run was not called for.
func (d *Daemon) Close() error { return d.closeAll() }

// closeAll frees whatever New has opened.
func (d *Daemon) closeAll() error {
	var errs []error
	if d.relay != nil {
		errs = append(errs, d.relay.Close())
	}
	if d.apiRelay != nil {
		errs = append(errs, d.apiRelay.Close())
	}
	if d.rings != nil {
		leave := d.rings.Close
		if d.config.EndsTogether {
			leave = d.rings.Abandon
		}
		errs = append(errs, leave())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.audit != nil {
		errs = append(errs, d.audit.Close())
	}
	if d.decisions != nil {
		errs = append(errs, d.decisions.Close())
	}
	for _, l := range d.listen.bound() {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
