package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// Config configures a handler.
type Config struct {
	Service       service.Service
	Authenticator service.Authenticator
	// Access decides about the rights of an authenticated caller.
	Access service.Access
	// Logger takes one line per refused server error and per panic, and one
	// per request at level debug. nil discards.
	Logger *slog.Logger
	// Metrics, where not nil, gets the counters and latencies of requests.
	Metrics prometheus.Registerer
	// Ready returns the reason why the program cannot serve yet; nil = always
	// ready. It must not block.
	Ready func(context.Context) error
	// Version is the program's version.
	Version string
	// Login is the identity provider that people log in at; nil = none.
	Login *api.LoginMethod
	// Credentials serves access tokens and role bindings; nil = none.
	Credentials service.Credentials
	// Audits takes refused requests, and answers with the entries of the audit; nil =
	// none.
	Audits service.Audits
	// Histories answers for the history; nil = none is kept.
	Histories service.Histories
	// FeatureLevels is the feature level of the cluster; nil = level 0.
	FeatureLevels service.FeatureLevels
	// Past answers about the past; nil = no history is kept.
	Past service.Past
	// Identity serves certificates, bootstrap tokens and bans; nil where the cluster runs
	// without TLS.
	Identity service.Identity
	// BodyTimeout bounds how long a request's body may take to arrive; 0 = 10 s.
	BodyTimeout time.Duration

	// Forward gives the leading coordinator the requests that the Service refuses
	// with api.NotLeader or api.LeaderLost; nil = such refusals are the answer.
	Forward *service.Forward
	// PeerTLS is for connections to other coordinators' REST API, where that is
	// by TLS.
	PeerTLS *tls.Config
	// DialPeer opens those connections; nil = TCP.
	DialPeer func(ctx context.Context, network, address string) (net.Conn, error)
	// Store, where not nil, bounds the requests' waits for the store (service.Limit), and
	// /readyz names the fault.
	Store Store
	// Roster, where not nil, is served under /api/v1/coordinators and /readyz.
	Roster service.Roster
	// Revision, where not nil, is a revision that is not older than anything
	// that the Service has answered; it must not block.
	Revision func() int64
	// Notices, where not nil, are the warnings that each answer has now; it must not
	// block.
	Notices func() []string
	// Watches, where not nil, serves ?watch=true.
	Watches service.Watches
	// Gate limits the requests of each caller; nil = a gate without rates.
	Gate *gate.Gate
}

// handler is the routing table with the fields that the endpoints share. It is
// immutable.
type handler struct {
	Config
	mux     *http.ServeMux
	routes  map[string]access // by pattern, for Routes
	metrics *metrics
	peers   *http.Client
	room    *room
	watches chan struct{} // one for each open watch
}

// NewHandler builds the API. It serves /api/v1/… with authentication and
// /healthz, /readyz and /version without; everything else is a 404 Status. It
// panics if Service or Authenticator is missing.
func NewHandler(c Config) http.Handler {
	if c.Service == nil || c.Authenticator == nil {
		panic("rest: NewHandler needs a Service and an Authenticator")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Credentials == nil {
		c.Credentials = service.NoCredentials{}
	}
	if c.Audits == nil {
		c.Audits = service.NoAudits{}
	}
	if c.Histories == nil {
		c.Histories = service.NoHistory{}
	}
	if c.FeatureLevels == nil {
		c.FeatureLevels = service.LevelZero{}
	}
	if c.Past == nil {
		c.Past = service.NoPast{}
	}
	if c.Gate == nil {
		c.Gate = gate.New(&gate.Rates{})
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = bodyTimeout
	}
	if c.DialPeer == nil {
		c.DialPeer = peerDialer().DialContext
	}
	c.Service, c.Watches = service.Sighted(service.Remembering(c.Service, c.Past, c.Access), c.Access, c.Gate), service.SightedWatches(c.Watches, c.Access)
	h := &handler{
		Config: c, mux: http.NewServeMux(), routes: map[string]access{}, metrics: newMetrics(c.Metrics), peers: newPeerClient(c),
		watches: make(chan struct{}, mostWatches),
	}
	h.room = newRoom(h.metrics)
	const v1 = "/api/v1"
	h.route("POST "+v1+"/namespaces/{namespace}/allocations", to(service.VerbCreate, service.KindAllocations), h.createAllocation)
	h.route("GET "+v1+"/namespaces/{namespace}/allocations", to(service.VerbList, service.KindAllocations), h.listAllocations)
	h.route("GET "+v1+"/allocations", to(service.VerbList, service.KindAllocations), h.listAllocations)
	h.route("GET "+v1+"/namespaces/{namespace}/allocations/{name}", to(service.VerbGet, service.KindAllocations), h.getAllocation)
	h.route("PATCH "+v1+"/namespaces/{namespace}/allocations/{name}", to(service.VerbPatch, service.KindAllocations), h.patchAllocation)
	h.route("DELETE "+v1+"/namespaces/{namespace}/allocations/{name}", to(service.VerbDelete, service.KindAllocations), h.deleteAllocation)
	h.route("GET "+v1+"/namespaces/{namespace}/allocations/{name}/explain", to(service.VerbExplain, service.KindAllocations), h.explainAllocation)

	h.route("POST "+v1+"/namespaces/{namespace}/jobs", to(service.VerbCreate, service.KindJobs), h.createJob)
	h.route("GET "+v1+"/namespaces/{namespace}/jobs", to(service.VerbList, service.KindJobs), h.listJobs)
	h.route("GET "+v1+"/jobs", to(service.VerbList, service.KindJobs), h.listJobs)
	h.route("GET "+v1+"/namespaces/{namespace}/jobs/{name}", to(service.VerbGet, service.KindJobs), h.getJob)
	h.route("GET "+v1+"/namespaces/{namespace}/jobs/{name}/status", to(service.VerbGet, service.KindJobs), h.getJobStatus)
	h.route("POST "+v1+"/namespaces/{namespace}/jobs/{name}/cancel", to(service.VerbCancel, service.KindJobs), h.cancelJob)
	h.route("POST "+v1+"/namespaces/{namespace}/jobs/{name}/boost", to(service.VerbBoost, service.KindJobs), h.boostJob)
	h.route("PATCH "+v1+"/namespaces/{namespace}/jobs/{name}", to(service.VerbPatch, service.KindJobs), h.patchJob)
	h.route("DELETE "+v1+"/namespaces/{namespace}/jobs/{name}", to(service.VerbDelete, service.KindJobs), h.deleteJob)
	h.route("GET "+v1+"/namespaces/{namespace}/jobs/{name}/logs", to(service.VerbLogs, service.KindJobs), h.jobLogs)
	h.route("GET "+v1+"/namespaces/{namespace}/jobs/{name}/exec", to(service.VerbExec, service.KindJobs), h.jobExec)
	h.route("GET "+v1+"/namespaces/{namespace}/jobs/{name}/explain", to(service.VerbExplain, service.KindJobs), h.explainJob)

	h.route("GET "+v1+"/nodes", to(service.VerbList, service.KindNodes), h.listNodes)
	h.route("GET "+v1+"/nodes/{name}", to(service.VerbGet, service.KindNodes), h.getNode)
	h.route("POST "+v1+"/nodes", to(service.VerbCreate, service.KindNodes), h.createNode)
	h.route("PATCH "+v1+"/nodes/{name}/status", to(service.VerbPatch, service.KindNodes), h.patchNodeStatus)
	h.route("PATCH "+v1+"/nodes/{name}", to(service.VerbPatch, service.KindNodes), h.patchNode)
	h.route("DELETE "+v1+"/nodes/{name}", to(service.VerbDelete, service.KindNodes), h.deleteNode)
	h.route("POST "+v1+"/nodes/{name}/approve", to(service.VerbApprove, service.KindNodes), h.approveNode)
	h.route("POST "+v1+"/nodes/{name}/fence", to(service.VerbFence, service.KindNodes), h.fenceNode)
	h.route("POST "+v1+"/nodes/{name}/reconcile", to(service.VerbReconcile, service.KindNodes), h.reconcileNode)

	h.routeReleases(v1)
	h.routeEvictions(v1)
	h.routeUsage(v1)
	h.routeQuotas(v1)
	h.routeQuotaMode(v1)
	routeFeatureLevel(h, v1)
	h.routeSpaces(v1)
	h.routeResources(v1)
	h.routeWritten(v1)
	h.routeEvents(v1)
	h.routeIdentity(v1)
	h.routeCredentials(v1)
	h.routeAudit(v1)
	h.routeHistory(v1)
	h.routeSnapshot(v1)
	h.routePast(v1)
	h.routeCallers(v1)

	if c.Roster != nil {
		h.route("GET "+v1+"/coordinators", to(service.VerbList, service.KindCoordinators), h.listCoordinators)
	}

	h.route("GET /healthz", anyone, func(*call) (answer, error) { return ok("ok"), nil })
	h.route("GET /readyz", anyone, h.ready)
	h.route("GET /version", anyone, func(*call) (answer, error) {
		return ok(api.Version{Version: c.Version, GoVersion: runtime.Version(), APIVersion: api.APIVersion}), nil
	})
	h.routeDescription()
	h.route("/", anyone, h.nothingHere)
	return h
}

// access is the right that an endpoint asks for. The zero value lets in anyone,
// without a token.
type access struct {
	verb service.Verb
	kind service.Kind
}

// anyone needs no token.
var anyone access

// to is the right to use a verb on a kind.
func to(verb service.Verb, kind service.Kind) access { return access{verb, kind} }

// needs are the roles that a route asks for.
func (a access) needs() service.Roles {
	if a == anyone {
		return service.Anyone
	}
	return service.Needs(a.verb, a.kind)
}

// everywhere reports whether a role has to count in the whole cluster: the route is
// over all namespaces.
func (a access) everywhere(pattern string) bool {
	return a != anyone && service.NeedsEverywhere(a.kind) && !strings.Contains(pattern, "{namespace}")
}

// endpoint serves one pattern. An error that is no *api.Status is answered
// with 500 and logged.
type endpoint func(*call) (answer, error)

// requestIDHeader names a request in logs, refusals and the answer.
const requestIDHeader = "X-Request-Id"

// ServeHTTP routes one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// route registers an endpoint with the checks and counters that surround every
// endpoint.
func (h *handler) route(pattern string, who access, serve endpoint) {
	if who.needs() == service.Nobody {
		panic(fmt.Sprintf("rest: %s: the table of rights has no %s of %s", pattern, who.verb, who.kind))
	}
	h.routes[pattern] = who
	observe := h.metrics.observer(pattern)
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := service.RequestID(r.Header.Get(requestIDHeader))
		r.Header.Set(requestIDHeader, id) // which a request that is passed on keeps
		w.Header().Set(requestIDHeader, id)
		code := h.serve(w, r, who, serve)
		took := time.Since(start)
		observe(code, took)
		if h.Logger.Enabled(r.Context(), slog.LevelDebug) {
			h.Logger.Debug("request", "method", r.Method, "path", r.URL.Path, "request_id", id, "code", code, "took", took)
		}
	})
}

// serve runs one endpoint and writes its answer; it returns the status code.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, who access, serve endpoint) (code int) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			h.Logger.Error("panic_while_serving",
				"method", r.Method, "path", r.URL.Path, "request_id", r.Header.Get(requestIDHeader), "panic", p, "stack", string(debug.Stack()))
			code = h.refuse(w, api.Errorf(http.StatusInternalServerError,
				"%s %s failed inside the coordinator; its log says why", r.Method, r.URL.Path))
		}
	}()
	kind, status := accept(r.Header)
	w.Header().Set("Content-Type", kind)
	if status != nil {
		return h.refuse(w, status)
	}
	c, status := h.admit(w, r, who)
	if status != nil {
		h.noteRefused(c, who, status)
		return h.refuse(w, status)
	}
	defer h.free(c)
	defer c.release()
	if who != anyone {
		h.showNotices(w.Header())
	}
	defer h.hold(c, who)()
	defer limit(c, who, h.Store)()
	warned := c.collectWarnings()
	defer func() { c.turn.End() }() // after a panic
	if status := h.begin(c, who); status != nil {
		return h.refuse(w, status)
	}
	a, err := serve(c)
	c.turn.End()
	if status := service.Elsewhere(err); status != nil && h.Forward != nil {
		return h.passOn(c, serve, status)
	}
	addWarnings(w.Header(), warned())
	if err != nil {
		status := h.statusOf(c.r, err)
		h.noteRefused(c, who, status)
		return h.refuse(w, status)
	}
	return h.reply(c, a)
}

// clip shortens a value for a message.
func clip(s string) string { return service.Clip(s) }
