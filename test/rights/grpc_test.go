package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/wire"
)

// rightsOfCalls are the rights of calls whose names do not say them, without the
// package. Every other call is its verb, and its service is the kind.
var rightsOfCalls = map[string]asked{
	"Allocations/Try":             {kind: service.KindAllocations, verb: service.VerbCreate},
	"Allocations/BulkRelease":     {kind: service.KindAllocations, verb: service.VerbDelete},
	"Allocations/ExplainQuota":    {kind: service.KindAllocations, verb: service.VerbExplain},
	"Allocations/Preempt":         {kind: service.KindPreemptions, verb: service.VerbCreate},
	"Jobs/Try":                    {kind: service.KindJobs, verb: service.VerbCreate},
	"Jobs/ExplainQuota":           {kind: service.KindJobs, verb: service.VerbExplain},
	"Nodes/PatchStatus":           {kind: service.KindNodes, verb: service.VerbPatch},
	"Nodes/Cordon":                {kind: service.KindNodes, verb: service.VerbPatch},
	"Nodes/Uncordon":              {kind: service.KindNodes, verb: service.VerbPatch},
	"Nodes/ListEvictions":         {kind: service.KindEvictions, verb: service.VerbList},
	"Nodes/WatchEvictions":        {kind: service.KindEvictions, verb: service.VerbWatch},
	"QuotaTrees/Rename":           {kind: service.KindQuotaTrees, verb: service.VerbUpdate},
	"QuotaTrees/TryConsumer":      {kind: service.KindConsumers, verb: service.VerbTry},
	"Usage/GetClusterUtilization": {kind: service.KindUsage, verb: service.VerbGet, place: inNone},
	"Usage/GetQueues":             {kind: service.KindUsage, verb: service.VerbGet, place: inNone},
	"Usage/GetTenantUsage":        {kind: service.KindUsage, verb: service.VerbGet},
	"History/ListAllocations":     {kind: service.KindPast, verb: service.VerbList, place: inNone},
	"History/ListPreemptions":     {kind: service.KindPast, verb: service.VerbList, place: inNone},
	"History/ListEvents":          {kind: service.KindPast, verb: service.VerbList, place: inNone},
	"History/GetStatus":           {kind: service.KindHistory, verb: service.VerbGet},
	"History/Verify":              {kind: service.KindHistory, verb: service.VerbGet},
	"History/Rebuild":             {kind: service.KindHistory, verb: service.VerbUpdate},
	"History/Prune":               {kind: service.KindHistory, verb: service.VerbUpdate},
	"Tenants/Create":              {kind: service.KindTenants, verb: service.VerbCreate, place: inAll},
	"Namespaces/Create":           {kind: service.KindNamespaces, verb: service.VerbCreate, place: inAll},
	"QuotaBindings/Create":        {kind: service.KindQuotaBindings, verb: service.VerbCreate, place: inAll},
	"WhoAmIs/Get":                 {kind: service.KindWhoAmI, verb: service.VerbGet},
	"Coordinators/List":           {kind: service.KindCoordinators, verb: service.VerbList},
	"Tenants/List":                {kind: service.KindTenants, verb: service.VerbList, place: inAll},
	"Tenants/Watch":               {kind: service.KindTenants, verb: service.VerbWatch, place: inAll},
	"Namespaces/List":             {kind: service.KindNamespaces, verb: service.VerbList, place: inAll},
	"Namespaces/Watch":            {kind: service.KindNamespaces, verb: service.VerbWatch, place: inAll},
	"QuotaBindings/List":          {kind: service.KindQuotaBindings, verb: service.VerbList, place: inAll},
	"QuotaBindings/Watch":         {kind: service.KindQuotaBindings, verb: service.VerbWatch, place: inAll},
}

// rightOfCall is the right that a call asks for.
func rightOfCall(method string) asked {
	if a, exceptional := rightsOfCalls[method]; exceptional {
		return a
	}
	of, call, _ := strings.Cut(method, "/")
	a := asked{kind: service.Kind(strings.ToLower(of)), verb: service.Verb(strings.ToLower(call))}
	if of == "AccessTokens" {
		a.kind = service.KindAccessTokens
	}
	return a
}

// placesOfCall are the places that a call is about.
func placesOfCall(a asked) []place {
	if a.place != "" {
		return []place{a.place}
	}
	for _, r := range service.Rights() {
		if r.Kind != a.kind || r.Verb != a.verb {
			continue
		}
		at := places(r)
		if r.Namespaced && (r.Verb == service.VerbList || r.Verb == service.VerbWatch) {
			at = append(at, inAll)
		}
		return at
	}
	return []place{inNone}
}

// givesRole reports whether a request is about an object that gives a role.
func givesRole(a asked) bool {
	return a.kind == service.KindAccessTokens || a.kind == service.KindRoleBindings
}

// fill sets the fields of a request that name its object at a place.
func (h *house) fill(m protoreflect.Message, a asked, p place) {
	tenant := tenantAt(p)
	if p != inOwn && p != inOther {
		tenant = ""
	}
	h.fillFor(m, a, tenant)
}

// fillFor sets the fields of a request that name its object, at all depths; tenant is ""
// for a request over all namespaces.
func (h *house) fillFor(m protoreflect.Message, a asked, tenant string) {
	ofItself := a.kind == service.KindTenants || a.kind == service.KindNamespaces || a.kind == service.KindQuotaBindings
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		text := ""
		switch name := f.Name(); {
		case a.kind == service.KindAccessTokens && a.verb == service.VerbCreate && name == "metadata": // the server draws the name
		case givesRole(a) && name == "subjects":
			subject := m.Mutable(f).List().AppendMutable().Message()
			subject.Set(subject.Descriptor().Fields().ByName("kind"), protoreflect.ValueOfString("User"))
			subject.Set(subject.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString("bob"))
		case f.IsList() || f.IsMap():
		case givesRole(a) && (name == "spec" || name == "patch"):
			h.fillFor(m.Mutable(f).Message(), a, tenant)
		case givesRole(a) && name == "role":
			text = "viewer"
		case givesRole(a) && name == "user":
			text = "bob"
		case a.kind == service.KindRoleBindings && isNew(service.Right{Verb: a.verb}) && name == "kind":
			text = "RoleBinding"
		case name == "metadata" || name == "allocation" || name == "job" || name == "binding" || name == "open":
			h.fillFor(m.Mutable(f).Message(), a, tenant)
		case f.Kind() != protoreflect.StringKind:
		case name == "namespace" && !ofItself && !givesRole(a) || name == "tenant":
			text = tenant
		case name == "name" || name == "tree":
			text = h.nameIn(a.kind, cmp.Or(tenant, own))
		}
		if text != "" {
			m.Set(f, protoreflect.ValueOfString(text))
		}
	}
}

// serveGRPC serves the public API over the house's tokens.
func (h *house) serveGRPC(t *testing.T) (conn *grpc.ClientConn, services map[string]grpc.ServiceInfo) {
	public := (&grpcapi.API{Service: struct{ service.Service }{}, Watches: noWatches{}, Audits: h.audits, Authenticator: h.door, Credentials: h.keeper, Identity: hosts{}, Roster: struct{ service.Roster }{}, Histories: struct{ service.Histories }{}, Past: resttest.EmptyPast{}}).NewServer()
	pipe := bufconn.Listen(1 << 20)
	go func() { _ = public.Serve(pipe) }()
	t.Cleanup(public.Stop)
	conn, err := grpc.NewClient("passthrough:///public", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, public.GetServiceInfo()
}

// codeOf is the answer of a call as REST has it.
func codeOf(err error) int {
	if err == nil {
		return 200
	}
	if wire.IsRefusal(err) {
		return wire.FromRefusal(err).Code
	}
	switch status.Code(err) {
	case codes.Unauthenticated:
		return 401
	case codes.PermissionDenied:
		return 403
	case codes.NotFound:
		return 404
	}
	return 500
}

// call calls a method with a message, to its end.
func call(ctx context.Context, c *grpc.ClientConn, method string, d protoreflect.MethodDescriptor, in proto.Message) error {
	out := dynamicpb.NewMessage(d.Output())
	if !d.IsStreamingServer() {
		return c.Invoke(ctx, method, in, out)
	}
	s, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := errors.Join(s.SendMsg(in), s.CloseSend()); err != nil {
		return err
	}
	for {
		if err := s.RecvMsg(out); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// askGRPC asks every call as every role.
func askGRPC(t *testing.T, h *house, see func(door, asked) answers) {
	conn, services := h.serveGRPC(t)
	for name := range services {
		if !strings.HasPrefix(name, "muster.") {
			continue // health and reflection
		}
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			t.Fatal(err)
		}
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for j := range methods.Len() {
			h.askCall(t, conn, methods.Get(j), see)
		}
	}
}

func (h *house) askCall(t *testing.T, conn *grpc.ClientConn, d protoreflect.MethodDescriptor, see func(door, asked) answers) {
	method := fmt.Sprintf("%s/%s", d.Parent().Name(), d.Name())
	right := rightOfCall(method)
	for _, p := range placesOfCall(right) {
		right.place = p
		for i, want := range see(overGRPC, right) {
			if who[i] == "node" {
				want = unknown // hosts create their nodes over REST alone
			}
			in := dynamicpb.NewMessage(d.Input())
			h.fill(in.ProtoReflect(), right, p)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+h.tokens[who[i]])
			err := call(ctx, conn, fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name()), d, in)
			if got := answerOf(codeOf(err)); got != want {
				t.Errorf("%s (%s) as %s: %v, want %s", method, right, who[i], err, want)
			}
			h.audits.check(t, fmt.Sprintf("%s (%s) as %s", method, right, who[i]), want)
		}
	}
}
