package grpcapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/mem"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/wire"
)

// doorway is a coordinator whose callers come by tokens of a store, with both codecs on
// one port. The administrator has the token "admin".
type doorway struct {
	t    *testing.T
	web  string
	conn *grpc.ClientConn
	kept *access.Keeper

	cluster *endless
}

func newGate(t *testing.T) doorway {
	t.Helper()
	back, rights, quiet := mem.Open(mem.Options{}), access.NewTable(nil), slog.New(slog.DiscardHandler)
	f := follow.New(follow.Options{
		Store: back, Log: quiet, Check: time.Second, Leads: func() bool { return false }, Rights: rights,
		Moved: func(resource.Revision) {}, Registered: func(follow.News) {}, Forget: func(context.Context, *record.WentBackError) {},
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { f.Run(ctx); done <- struct{}{} }()
	settle := func(ctx context.Context, at resource.Revision) []string {
		if err := f.Reach(ctx, at); err != nil {
			t.Error(err)
		}
		return nil
	}
	callers := access.Authenticator{Table: rights, Other: service.StaticToken("admin")}
	kept := &access.Keeper{Store: back, Table: rights, Settle: settle, Logger: quiet}
	cluster := &endless{resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4}), make(chan struct{}, 1)}
	public := (&API{Service: cluster, Watches: followed{f}, Authenticator: callers, Credentials: kept, Identity: resttest.Identities{}, AnswerBy: rest.AnswerBy}).NewServer()
	server := rest.NewServer(rest.WithGRPC(public, rest.NewHandler(rest.Config{
		Service: cluster, Watches: followed{f}, Authenticator: callers, Credentials: kept, Identity: resttest.Identities{},
	})), quiet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener); done <- struct{}{} }()
	t.Cleanup(func() {
		public.Stop()
		_ = server.Close()
		stop()
		<-done
		<-done
		_ = back.Close()
	})
	return doorway{t, "http://" + listener.Addr().String() + "/api/v1", connect(t, listener.Addr().String()), kept, cluster}
}

// as is the context of a call of a token's bearer.
func (g doorway) as(token string) context.Context {
	return metadata.AppendToOutgoingContext(g.t.Context(), "authorization", "Bearer "+token)
}

// overREST sends a step and returns the code and the body.
func (g doorway) overREST(s step) (int, []byte) {
	g.t.Helper()
	return s.overREST(g.t, strings.TrimSuffix(strings.TrimPrefix(g.web, "http://"), "/api/v1"))
}

// token makes a token as the administrator.
func (g doorway) token(spec *apiv1.AccessTokenSpec) *apiv1.AccessToken {
	g.t.Helper()
	made, err := apiv1.NewAccessTokensClient(g.conn).Create(g.as("admin"), &apiv1.AccessToken{Spec: spec})
	if err != nil {
		g.t.Fatal(err)
	}
	return made
}

// A token of gRPC is a token of REST: it lets its bearer in by both doors, and both
// doors show the same object.
func TestATokenIsMadeRotatedAndRevoked(t *testing.T) {
	g := newGate(t)
	tokens := apiv1.NewAccessTokensClient(g.conn)
	made := g.token(&apiv1.AccessTokenSpec{User: "ada", Role: "editor", Tenant: "ml", PriorityCeiling: proto.Int32(0), Ttl: "1h"})
	id, first := made.GetMetadata().GetName(), made.GetStatus().GetToken()
	bearer := func(token string) codes.Code {
		_, err := apiv1.NewAllocationsClient(g.conn).List(g.as(token), &apiv1.ListRequest{Namespace: "ml"})
		code, body := g.overREST(step{token: token, method: "GET", path: "/namespaces/ml/allocations"})
		if (code == http.StatusOK) != (err == nil) {
			t.Errorf("gRPC answers %v, REST %d %s", err, code, body)
		}
		return status.Code(err)
	}
	if bearer(first) != codes.OK {
		t.Error("the bearer of the new token is refused")
	}
	got, err := tokens.Get(g.as("admin"), &apiv1.GetRequest{Name: id})
	if err != nil || got.GetStatus().GetToken() != "" || got.GetSpec().PriorityCeiling == nil || got.GetMetadata().GetResourceVersion() == "" {
		t.Fatalf("shown as %v, %v", got, err)
	}
	code, body := g.overREST(step{method: "GET", path: "/tokens/" + id})
	if want := asMessage(string(body), new(apiv1.AccessToken)); code != http.StatusOK || !proto.Equal(want, got) {
		t.Errorf("REST shows %d\n%v\ngRPC\n%v", code, want, got)
	}
	rotated, err := tokens.Rotate(g.as("admin"), &apiv1.RotateRequest{Name: id, Options: &apiv1.RotateOptions{Overlap: "0s"}})
	if err != nil {
		t.Fatal(err)
	}
	second := rotated.GetStatus().GetToken()
	if bearer(first) != codes.Unauthenticated || bearer(second) != codes.OK {
		t.Error("after a rotation without overlap the new secret alone is valid")
	}
	stale := &apiv1.RemoveRequest{Name: id, Preconditions: &apiv1.Preconditions{ResourceVersion: got.GetMetadata().GetResourceVersion()}}
	if _, err := tokens.Delete(g.as("admin"), stale); status.Code(err) != codes.Aborted {
		t.Errorf("a revocation from before the rotation: %v", err)
	}
	if _, err := tokens.Delete(g.as("admin"), &apiv1.RemoveRequest{Name: id, Preconditions: &apiv1.Preconditions{Uid: id}}); err != nil {
		t.Error(err)
	}
	if bearer(second) != codes.Unauthenticated {
		t.Error("a revoked token lets its bearer in")
	}
}

// A tenant-admin sees and watches the tokens and the bindings of the own tenant, and
// no others: in lists, by name and in watches.
func TestATenantAdminSeesTheOwnTenantAlone(t *testing.T) {
	g := newGate(t)
	tokens, bindings := apiv1.NewAccessTokensClient(g.conn), apiv1.NewRoleBindingsClient(g.conn)
	chief := g.token(&apiv1.AccessTokenSpec{User: "carla", Role: "tenant-admin", Tenant: "ml"}).GetStatus().GetToken()
	foreign := g.token(&apiv1.AccessTokenSpec{User: "bob", Role: "editor", Tenant: "speech"}).GetMetadata().GetName()
	bind := func(name, tenant, user string) {
		t.Helper()
		b := &apiv1.RoleBinding{
			Kind: "RoleBinding", Metadata: &apiv1.ObjectMeta{Name: name},
			Spec: &apiv1.RoleBindingSpec{Role: "viewer", Tenant: tenant, Subjects: []*apiv1.Subject{{Kind: "User", Name: user}}},
		}
		if _, err := bindings.Update(g.as("admin"), b); err != nil {
			t.Fatal(err)
		}
	}
	bind("speech.viewers", "speech", "bob")
	bind("ml.viewers", "ml", "ada")

	list, err := tokens.List(g.as(chief), &apiv1.ListRequest{})
	if err != nil || len(list.GetItems()) != 1 || list.GetItems()[0].GetSpec().GetUser() != "carla" {
		t.Errorf("the tenant-admin lists %v, %v", list, err)
	}
	if _, err := tokens.Get(g.as(chief), &apiv1.GetRequest{Name: foreign}); status.Code(err) != codes.NotFound {
		t.Errorf("another tenant's token: %v", err)
	}
	if _, err := bindings.Delete(g.as(chief), &apiv1.RemoveRequest{Name: "speech.viewers"}); status.Code(err) != codes.NotFound {
		t.Errorf("another tenant's binding: %v", err)
	}

	stream, err := bindings.Watch(g.as(chief), &apiv1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(of apiv1.WatchEventType, name, user string) {
		t.Helper()
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		subject := ""
		if s := e.GetObject().GetSpec().GetSubjects(); len(s) > 0 {
			subject = s[0].GetName()
		}
		if e.GetType() != of || e.GetObject().GetMetadata().GetName() != name || subject != user {
			t.Fatalf("got %v, want %s of %q for %q", e, of, name, user)
		}
	}
	next(apiv1.WatchEventType_ADDED, "ml.viewers", "ada")
	next(apiv1.WatchEventType_BOOKMARK, "", "")
	bind("speech.viewers", "speech", "eve")
	bind("ml.viewers", "ml", "eve")
	next(apiv1.WatchEventType_MODIFIED, "ml.viewers", "eve")
	bind("ml.viewers", "speech", "eve") // leaves the tenant, and the selection
	next(apiv1.WatchEventType_DELETED, "ml.viewers", "eve")

	lines := strings.Split(readWatch(t, g, chief, "/rolebindings?watch=true&resourceVersion=0"), "\n")
	if strings.Contains(strings.Join(lines, ""), "speech") {
		t.Errorf("REST shows another tenant's binding: %q", lines)
	}
	if got := readWatch(t, g, chief, "/tokens?watch=true"); !strings.Contains(got, "carla") || strings.Contains(got, "bob") {
		t.Errorf("the tenant-admin watches %s", got)
	}
}

// readWatch reads a watch over REST up to its first bookmark.
func readWatch(t *testing.T, g doorway, token, path string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.web+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var all []string
	for lines := json.NewDecoder(answer.Body); ; {
		var line json.RawMessage
		if err := lines.Decode(&line); err != nil {
			t.Fatalf("%v after %q", err, all)
		}
		all = append(all, string(line))
		if strings.Contains(string(line), `"BOOKMARK"`) {
			return strings.Join(all, "\n")
		}
	}
}

const banned, ticket = `{"spec":{"reason":"stolen disk"}}`, `{"spec":{"nodes":"gpu-*","uses":16,"labels":{"pool":"batch"}}}`

// The calls about identities are answered as REST answers, also where the caller may
// not, the name is none and the document is bad.
func TestIdentitiesAreAnsweredAsOverREST(t *testing.T) {
	g := newGate(t)
	operator := g.token(&apiv1.AccessTokenSpec{User: "otto", Role: "operator"}).GetStatus().GetToken()
	editor := g.token(&apiv1.AccessTokenSpec{User: "ada", Role: "editor", Tenant: "ml"}).GetStatus().GetToken()
	const older, present = `{"preconditions":{"resourceVersion":"6"}}`, `{"preconditions":{"resourceVersion":"7"}}`
	ban := func(name, document string) *apiv1.NodeBan {
		m := asMessage(document, new(apiv1.NodeBan))
		m.Metadata = &apiv1.ObjectMeta{Name: name}
		return m
	}
	for name, s := range map[string]step{
		"a bootstrap token is made": {method: "POST", path: "/bootstraptokens", body: ticket, code: 201, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewBootstrapTokensClient(c).Create(ctx, asMessage(ticket, new(apiv1.BootstrapToken)))
		}},
		"a bootstrap token for no host": {method: "POST", path: "/bootstraptokens", body: `{"spec":{"nodes":"gpu-*","uses":0}}`, code: 422, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewBootstrapTokensClient(c).Create(ctx, &apiv1.BootstrapToken{Spec: &apiv1.BootstrapTokenSpec{Nodes: "gpu-*", Uses: proto.Int64(0)}})
		}},
		"bootstrap tokens are listed": {method: "GET", path: "/bootstraptokens", code: 200, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewBootstrapTokensClient(c).List(ctx, new(apiv1.ListBootstrapTokensRequest))
		}},
		"bootstrap tokens are listed by an editor": {method: "GET", path: "/bootstraptokens", code: 403, token: editor, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewBootstrapTokensClient(c).List(ctx, new(apiv1.ListBootstrapTokensRequest))
		}},
		"a bootstrap token ends": {method: "DELETE", path: "/bootstraptokens/k3v9x2", code: 200, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewBootstrapTokensClient(c).Delete(ctx, &apiv1.NameRequest{Name: "k3v9x2"})
		}},
		"a node is banned": {method: "POST", path: "/nodes/gpu-1/ban", body: banned, code: 200, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodeBansClient(c).Create(ctx, ban("gpu-1", banned))
		}},
		"a ban of no node": {method: "POST", path: "/nodes/A_B/ban", code: 400, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodeBansClient(c).Create(ctx, ban("A_B", `{}`))
		}},
		"a ban by an editor": {method: "POST", path: "/nodes/gpu-1/ban", code: 403, token: editor, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodeBansClient(c).Create(ctx, ban("gpu-1", `{}`))
		}},
		"bans are listed": {method: "GET", path: "/nodebans", code: 200, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodeBansClient(c).List(ctx, new(apiv1.ListNodeBansRequest))
		}},
		"a ban ends": {method: "DELETE", path: "/nodes/gpu-1/ban", code: 200, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodeBansClient(c).Delete(ctx, &apiv1.NameRequest{Name: "gpu-1"})
		}},
		"authorities are listed": {method: "GET", path: "/authorities", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAuthoritiesClient(c).List(ctx, new(apiv1.ListAuthoritiesRequest))
		}},
		"authorities are listed by an operator": {method: "GET", path: "/authorities", code: 403, token: operator, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAuthoritiesClient(c).List(ctx, new(apiv1.ListAuthoritiesRequest))
		}},
		"an authority is made": {method: "POST", path: "/authorities", code: 201, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAuthoritiesClient(c).Create(ctx, new(apiv1.CreateAuthorityRequest))
		}},
		"the trust in an authority ends": {method: "DELETE", path: "/authorities/9f86d081?force=true", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAuthoritiesClient(c).Delete(ctx, &apiv1.DeleteAuthorityRequest{Name: "9f86d081", Force: true})
		}},
		"an operator is certified without a request": {method: "POST", path: "/operatorcertificates", body: `{"metadata":{"name":"ada"}}`, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewOperatorCertificatesClient(c).Create(ctx, &apiv1.OperatorCertificate{Metadata: &apiv1.ObjectMeta{Name: "ada"}})
		}},
		"operators are listed": {method: "GET", path: "/operatorcertificates", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewOperatorCertificatesClient(c).List(ctx, new(apiv1.ListOperatorCertificatesRequest))
		}},
		"a bootstrap token of another version ends": {method: "DELETE", path: "/bootstraptokens/k3v9x2", body: older, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewBootstrapTokensClient(c).Delete(ctx, &apiv1.NameRequest{Name: "k3v9x2", Preconditions: &apiv1.Preconditions{ResourceVersion: "6"}})
		}},
		"a bootstrap token of the required version ends": {method: "DELETE", path: "/bootstraptokens/k3v9x2", body: present, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewBootstrapTokensClient(c).Delete(ctx, &apiv1.NameRequest{Name: "k3v9x2", Preconditions: &apiv1.Preconditions{ResourceVersion: "7"}})
		}},
		"a ban of another version ends": {method: "DELETE", path: "/nodes/gpu-1/ban", body: older, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodeBansClient(c).Delete(ctx, &apiv1.NameRequest{Name: "gpu-1", Preconditions: &apiv1.Preconditions{ResourceVersion: "6"}})
		}},
		"a ban of the required version ends": {method: "DELETE", path: "/nodes/gpu-1/ban", body: present, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodeBansClient(c).Delete(ctx, &apiv1.NameRequest{Name: "gpu-1", Preconditions: &apiv1.Preconditions{ResourceVersion: "7"}})
		}},
		"an authority of another version ends": {method: "DELETE", path: "/authorities/9f86d081", body: older, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAuthoritiesClient(c).Delete(ctx, &apiv1.DeleteAuthorityRequest{Name: "9f86d081", Preconditions: &apiv1.Preconditions{ResourceVersion: "6"}})
		}},
		"an authority of the required version ends": {method: "DELETE", path: "/authorities/9f86d081", body: present, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAuthoritiesClient(c).Delete(ctx, &apiv1.DeleteAuthorityRequest{Name: "9f86d081", Preconditions: &apiv1.Preconditions{ResourceVersion: "7"}})
		}},
		"an operator of another version ends": {method: "DELETE", path: "/operatorcertificates/ada", body: older, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewOperatorCertificatesClient(c).Delete(ctx, &apiv1.NameRequest{Name: "ada", Preconditions: &apiv1.Preconditions{ResourceVersion: "6"}})
		}},
		"an operator of the required version ends": {method: "DELETE", path: "/operatorcertificates/ada", body: present, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewOperatorCertificatesClient(c).Delete(ctx, &apiv1.NameRequest{Name: "ada", Preconditions: &apiv1.Preconditions{ResourceVersion: "7"}})
		}},
		"an operator is revoked": {method: "DELETE", path: "/operatorcertificates/ada", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewOperatorCertificatesClient(c).Delete(ctx, &apiv1.NameRequest{Name: "ada"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := g.overREST(s)
			got, err := s.call(g.as(s.bearer()), g.conn)
			if code != s.code {
				t.Fatalf("REST answers %d %s, want %d", code, body, s.code)
			}
			if code > 299 {
				sameRefusal(t, body, err)
				return
			}
			if err != nil {
				t.Fatalf("gRPC refuses: %v; REST answers %s", err, body)
			}
			if want := asMessage(string(body), got.ProtoReflect().New().Interface()); !proto.Equal(want, got) {
				t.Errorf("REST answers\n%v\ngRPC answers\n%v", want, got)
			}
		})
	}
}

// Without TLS there are no identities, and both doors say so.
func TestIdentitiesNeedTLS(t *testing.T) {
	conn := connect(t, door(t, resttest.New(time.Now), nil))
	_, err := apiv1.NewNodeBansClient(conn).List(bearing(t, "admin"), new(apiv1.ListNodeBansRequest))
	if s := wire.FromRefusal(err); s == nil || s.Code != http.StatusNotImplemented || status.Code(err) != codes.Unimplemented || s.Message != service.ErrNoIdentity.Message {
		t.Errorf("got %v", err)
	}
	_, err = apiv1.NewAccessTokensClient(conn).List(bearing(t, "admin"), new(apiv1.ListRequest))
	if s := wire.FromRefusal(err); s == nil || s.Code != http.StatusNotImplemented {
		t.Errorf("got %v", err)
	}
}

// A watch over gRPC ends when its token is revoked and when the roles of its caller
// change, with the reason.
func TestAStreamEndsWithItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(g doorway, id string) error
		want codes.Code
	}{
		"the token is revoked": {func(g doorway, id string) error {
			_, err := apiv1.NewAccessTokensClient(g.conn).Delete(g.as("admin"), &apiv1.RemoveRequest{Name: id})
			return err
		}, codes.Unauthenticated},
		"the roles of the caller change": {func(g doorway, id string) error {
			_, err := apiv1.NewRoleBindingsClient(g.conn).Create(g.as("admin"), &apiv1.RoleBinding{
				Kind: "RoleBinding", Metadata: &apiv1.ObjectMeta{Name: "more"}, Spec: &apiv1.RoleBindingSpec{Role: "viewer", Subjects: []*apiv1.Subject{{Kind: "Token", Name: id}}},
			})
			return err
		}, codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			made := g.token(&apiv1.AccessTokenSpec{User: "ada", Role: "viewer", Tenant: "ml"})
			ctx, cancel := context.WithTimeout(g.as(made.GetStatus().GetToken()), 20*time.Second) // the client of a watch without an end goes away
			defer cancel()
			stream, err := apiv1.NewAllocationsClient(g.conn).Watch(ctx, &apiv1.WatchRequest{Namespace: "ml"})
			if err == nil {
				_, err = stream.Recv() // the first bookmark: the watch is open
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.end(g, made.GetMetadata().GetName()); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if status.Code(err) != c.want {
				t.Errorf("the watch ends with %v, want %s", err, c.want)
			}
		})
	}
}
