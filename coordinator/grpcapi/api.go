package grpcapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/wire"
)

// API is the public API over gRPC (muster.api.v1): a codec over the service that
// REST serves, by the same rules.
type API struct {
	Service service.Service
	// Watches follow objects; without them watches are refused.
	Watches       service.Watches
	Authenticator service.Authenticator
	Access        service.Access
	// Credentials serves access tokens and role bindings; nil = none.
	Credentials service.Credentials
	// Audits takes refused requests, and answers with the entries of the audit; nil =
	// none.
	Audits service.Audits
	// Histories answers for the history; nil = none is kept.
	Histories service.Histories
	// Past answers about the past; nil = no history is kept.
	Past service.Past
	// Identity serves certificates, bootstrap tokens and bans; nil where the cluster runs
	// without TLS.
	Identity service.Identity
	// Roster lists the coordinators, and Ask asks another one for its state by its
	// REST address; without a Roster Coordinators is not served.
	Roster service.Roster
	Ask    func(ctx context.Context, address string) (api.Coordinator, error)
	// Relay passes a call on to the leader where the leader alone can answer; nil = the
	// refusal of this coordinator is the answer.
	Relay *Relay
	// Notices, where not nil, are the warnings that each answer has now; it must not
	// block.
	Notices func() []string
	// Ready returns the reason why the program cannot serve yet; nil = always
	// ready.
	Ready func(context.Context) error
	// Proven, where not nil, is called with the context of each call whose token is
	// good.
	Proven func(context.Context)
	// AnswerBy sets the time by which the answer of a call must be sent, by the
	// call's context: the zero time for none. nil = there is no such bound.
	AnswerBy func(context.Context, time.Time)
	// FeatureLevels is the feature level of the cluster; nil = level 0.
	FeatureLevels service.FeatureLevels
	// Store, where not nil, bounds the calls' waits for the store (service.Limit).
	Store service.StoreFaults
	// Gate limits the calls of each caller; nil = a gate without rates.
	Gate *gate.Gate
	// Logger takes a line per fault. nil discards.
	Logger *slog.Logger

	watches chan struct{} // one for each open watch
	health  *health
}

// maxPage bounds the messages of a page, in bytes. A page has at least one.
const maxPage = 1 << 20

// NewServer returns a gRPC server with the API, its reflection and
// grpc.health.v1. It is served by its ServeHTTP, beside REST.
func (a *API) NewServer() *PublicServer {
	if a.Logger == nil {
		a.Logger = slog.New(slog.DiscardHandler)
	}
	if a.Audits == nil {
		a.Audits = service.NoAudits{}
	}
	if a.Histories == nil {
		a.Histories = service.NoHistory{}
	}
	if a.FeatureLevels == nil {
		a.FeatureLevels = service.LevelZero{}
	}
	if a.Past == nil {
		a.Past = service.NoPast{}
	}
	a.Service, a.Watches = service.Sighted(service.Remembering(a.Service, a.Past, a.Access), a.Access, a.Gate), service.SightedWatches(a.Watches, a.Access)
	if a.Credentials == nil {
		a.Credentials = service.NoCredentials{}
	}
	if a.Gate == nil {
		a.Gate = gate.New(&gate.Rates{})
	}
	a.watches = make(chan struct{}, mostWatches)
	carry := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return serveHere(ctx, req, next)
	}
	if a.Relay != nil {
		carry = a.Relay.Intercept
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(api.MaxDocument), grpc.ChainUnaryInterceptor(a.guard, carry), grpc.ChainStreamInterceptor(a.guardStream))
	apiv1.RegisterAllocationsServer(server, allocations{a: a})
	apiv1.RegisterJobsServer(server, jobs{a: a})
	apiv1.RegisterNodesServer(server, nodes{a: a})
	apiv1.RegisterResourceQuotasServer(server, resourceQuotas{a: a})
	apiv1.RegisterQuotaTreesServer(server, quotaTrees{a: a})
	apiv1.RegisterQuotaForestsServer(server, quotaForests{a: a})
	apiv1.RegisterQuotaBindingsServer(server, quotaBindings{a: a})
	apiv1.RegisterTenantsServer(server, tenants{a: a})
	apiv1.RegisterNamespacesServer(server, namespaces{a: a})
	apiv1.RegisterResourcesServer(server, resources{a: a})
	apiv1.RegisterQueuesServer(server, newQueues(a))
	apiv1.RegisterPriorityClassesServer(server, newPriorityClasses(a))
	apiv1.RegisterAccessTokensServer(server, accessTokens{a: a})
	apiv1.RegisterRoleBindingsServer(server, roleBindings{a: a})
	apiv1.RegisterBootstrapTokensServer(server, bootstrapTokens{a: a})
	apiv1.RegisterAuthoritiesServer(server, authorities{a: a})
	apiv1.RegisterOperatorCertificatesServer(server, operatorCertificates{a: a})
	apiv1.RegisterNodeBansServer(server, nodeBans{a: a})
	apiv1.RegisterUsageServer(server, usage{a: a})
	apiv1.RegisterQuotaModesServer(server, quotaModes{a: a})
	apiv1.RegisterFeatureLevelsServer(server, featureLevels{a: a})
	apiv1.RegisterEventsServer(server, eventsAPI{a: a})
	apiv1.RegisterAuditServer(server, auditAPI{a: a})
	apiv1.RegisterHistoryServer(server, historyAPI{a: a})
	apiv1.RegisterWhoAmIsServer(server, whoAmIs{a: a})
	if a.Roster != nil {
		apiv1.RegisterCoordinatorsServer(server, coordinators{a: a})
	}
	a.health = newHealth(a, server.GetServiceInfo)
	grpc_health_v1.RegisterHealthServer(server, a.health)
	reflection.Register(server)
	return newPublicServer(a, server)
}

// ours is the package whose calls need a token. Health and reflection need none,
// as /healthz does not.
const ours = "/muster.api.v1."

// requestKey is the metadata of a request's id, as the header of REST.
const requestKey = "x-request-id"

func only(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// first is the first refusal, nil for none.
func first(statuses ...*api.Status) *api.Status {
	for _, s := range statuses {
		if s != nil {
			return s
		}
	}
	return nil
}

// refusal is the error of a call in the form of gRPC. An error that is no refusal is
// logged and not shown.
func (a *API) refusal(ctx context.Context, method, id string, err error) error {
	var refused *api.Status
	switch {
	case errors.As(err, &refused):
		refused = service.NameFault(refused, a.Store)
	case wire.IsRefusal(err):
		return err // of the leader
	case service.StoreRefusal(err) != nil:
		refused = service.StoreRefusal(err)
	case ctx.Err() != nil:
		refused = api.Errorf(http.StatusServiceUnavailable, "%s was given up: the client went away, or this coordinator stops; ask again", method)
	default:
		a.Logger.Error("request_failed", "method", method, "request_id", id, "error", err)
		refused = api.Errorf(http.StatusInternalServerError, "%s failed inside the coordinator; its log says why", method)
	}
	named := *refused // which may be shared
	named.RequestID = id
	return wire.ToRefusal(&named)
}

// busy is the refusal of a request for which there is no room.
func busy(format string, args ...any) *api.Status {
	status := api.Errorf(http.StatusTooManyRequests, format, args...)
	status.RetryAfterSeconds = 1
	return status
}

// caller is the authenticated caller.
func caller(ctx context.Context) service.Principal {
	p, _ := ctx.Value(principalKey{}).(service.Principal)
	return p
}

// may refuses a caller that may not use a verb on a kind, and a namespace that
// cannot be.
func (a *API) may(ctx context.Context, verb service.Verb, kind service.Kind, namespace string) *api.Status {
	return a.mayOn(ctx, verb, kind, namespace, "")
}

// unauthorized gives a refusal of Authorize to the audit, and returns it.
func (a *API) unauthorized(ctx context.Context, entry record.Audit, status *api.Status) *api.Status {
	service.Hidden(ctx) // where it is a 404
	service.NoteRefused(ctx, a.Audits, entry, status)
	return status
}

// mayOn is may of one object, "" for none.
func (a *API) mayOn(ctx context.Context, verb service.Verb, kind service.Kind, namespace, name string) *api.Status {
	if status := a.Access.Authorize(caller(ctx), verb, kind, namespace, name); status != nil {
		return a.unauthorized(ctx, service.RefusedRequest(service.CallerOf(ctx), verb, kind, namespace, name), status)
	}
	service.Begin(ctx, verb, kind, namespace, name)
	if namespace != "" {
		if status := service.CheckNamespace(namespace); status != nil {
			return status
		}
	}
	return nil
}

// all is may over all objects of a kind that is in no namespace.
func (a *API) all(ctx context.Context, verb service.Verb, kind service.Kind, namespace string) *api.Status {
	if status := a.may(ctx, verb, kind, ""); status != nil {
		return status
	}
	return inNoNamespace(namespace)
}

// on is may of one object.
func (a *API) on(ctx context.Context, verb service.Verb, kind service.Kind, namespace, name string) *api.Status {
	if status := a.mayOn(ctx, verb, kind, namespace, name); status != nil {
		return status
	}
	return service.CheckName(kind, name)
}

// in is on for a kind whose objects are in namespaces.
func (a *API) in(ctx context.Context, verb service.Verb, kind service.Kind, namespace, name string) *api.Status {
	if namespace == "" {
		return api.Errorf(http.StatusBadRequest, "namespace: required")
	}
	return a.on(ctx, verb, kind, namespace, name)
}

// answered turns the answer of a service into a message.
func answered[T any, M proto.Message](got *T, err error, m M) (M, error) {
	var none M
	if err != nil {
		return none, err
	}
	made, err := toMessage(got, m)
	if err != nil {
		return none, err
	}
	return made, nil
}

// decoded judges the document that a message holds, as REST judges its own.
func decoded[T any](m proto.Message, decode func([]byte) (T, *api.Status)) (v T, document []byte, status *api.Status) {
	document, err := documentOf(m)
	if err != nil {
		return v, nil, notADocument(err)
	}
	v, status = decode(document)
	return v, document, status
}

// notADocument refuses a message that has no form as JSON.
func notADocument(err error) *api.Status {
	return api.Errorf(http.StatusBadRequest, "the message is no document: %v", err)
}

// warn warns of fields that have no effect.
func warn(ctx context.Context, recordedOnly []string) {
	if len(recordedOnly) > 0 {
		service.Warn(ctx, "recorded but not acted on by this version: "+strings.Join(recordedOnly, ", "))
	}
}

// selection reads the parameters of a list.
func selection[T any](l service.Listed[T], r *apiv1.ListRequest) (*service.Selection, *api.Status) {
	s := new(service.Selection)
	for _, p := range []struct{ field, name, value string }{
		{"label_selector", "labelSelector", r.GetLabelSelector()}, {"field_selector", "fieldSelector", r.GetFieldSelector()}, {"continue", "continue", r.GetContinue()},
		{"resource_version", "resourceVersion", r.GetResourceVersion()},
	} {
		if len(p.value) > mostSelector {
			return nil, api.Errorf(http.StatusBadRequest, "%s: %d bytes long, the limit is %d", p.field, len(p.value), mostSelector)
		}
		if err := s.Select(p.name, p.value); err != nil {
			return nil, api.Errorf(http.StatusBadRequest, "%s=%q: %v", p.field, service.Clip(p.value), err)
		}
	}
	if r.GetLimit() < 0 {
		return nil, api.Errorf(http.StatusBadRequest, "limit=%d: want a whole number; 0 and more than %d are %d", r.GetLimit(), service.MaxPage, service.MaxPage)
	}
	s.Limit = int(min(r.GetLimit(), service.MaxPage))
	return s, l.Check(s.Fields)
}

// page makes a page of messages from the objects that list returns; more is the
// position after them, "" at the end.
func page[T any, M proto.Message](ctx context.Context, a *API, allowed *api.Status, l service.Listed[T], r *apiv1.ListRequest,
	list func(*service.Selection) (items []T, meta api.ListMeta, more string, err error), empty func() M,
) (items []M, meta *apiv1.ListMeta, err error) {
	if allowed != nil {
		return nil, nil, allowed
	}
	s, status := selection(l, r)
	if status != nil {
		return nil, nil, status
	}
	release, status := a.Gate.Hold(caller(ctx), gate.Lists, 1)
	if status != nil {
		return nil, nil, status
	}
	if in := intakeOf(ctx); in != nil {
		in.keep(release)
	} else {
		defer release()
	}
	made, ok := a.Gate.Rooms.Lists.Take(ctx, caller(ctx), 1)
	if !ok {
		return nil, nil, busy("%d lists are being made and others wait; ask again", gate.MaxLists)
	}
	defer made()
	got, of, more, err := list(s)
	if err != nil {
		return nil, nil, err
	}
	size := 0
	for i := range got {
		m, err := toMessage(&got[i], empty())
		if err != nil {
			return nil, nil, err
		}
		if size += proto.Size(m); i > 0 && size > maxPage {
			more = service.Position(l.Meta(&got[i-1]))
			break
		}
		items = append(items, m)
	}
	meta = &apiv1.ListMeta{ResourceVersion: of.ResourceVersion, Since: of.Since}
	if more != "" {
		meta.Continue = service.EncodeContinue(more, meta.ResourceVersion)
	}
	return items, meta, nil
}
