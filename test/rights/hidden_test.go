package rights

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// absent is a tenant and a namespace that does not exist. Its name is as long as that of
// the other tenant, so whole answers can be compared.
const absent = "nobody"

// inhabited is a house over a real cluster, in which the other tenant has work, a
// namespace, a quota and a binding.
func inhabited(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	cluster := resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 4, Memory: 8 << 30})
	h.handler = rest.NewHandler(rest.Config{Service: cluster, Watches: noWatches{}, Authenticator: h.door, Credentials: h.keeper, Identity: hosts{}})
	for _, made := range []struct{ path, body string }{
		{"/tenants", `{"kind":"Tenant","metadata":{"name":"` + other + `"},"spec":{}}`},
		{"/namespaces", `{"kind":"Namespace","metadata":{"name":"` + other + `"},"spec":{"tenant":"` + other + `"}}`},
		{"/namespaces/" + other + "/allocations", `{"metadata":{"name":"thing"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`},
		{"/namespaces/" + other + "/jobs", `{"metadata":{"name":"thing"},"spec":{"parallelism":1,"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`},
		{"/namespaces/" + other + "/resourcequotas", `{"kind":"ResourceQuota","metadata":{"name":"thing"},"spec":{"hard":{"cpu":"9"}}}`},
	} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1"+made.path, strings.NewReader(made.body))
		r.Header.Set("Content-Type", "application/json")
		if code, text := h.answer(r, "admin"); code >= 300 {
			t.Fatalf("%s: %d %s", made.path, code, text)
		}
	}
	return h
}

// answer sends a request as a role and returns the whole answer: the headers without the
// date, and the body. The request's id is given, and so the same in each answer.
func (h *house) answer(r *http.Request, role string) (int, string) {
	r.Header.Set("Authorization", "Bearer "+h.tokens[role])
	r.Header.Set("X-Request-Id", "r-1")
	answer := httptest.NewRecorder()
	h.handler.ServeHTTP(answer, r)
	var lines []string
	for name, values := range answer.Header() {
		if name != "Date" {
			lines = append(lines, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(lines)
	return answer.Code, fmt.Sprintf("%d\n%s\n\n%s", answer.Code, strings.Join(lines, "\n"), answer.Body.String())
}

// tenantRoles are the roles that are of one tenant.
var tenantRoles = []string{"none", "viewer", "editor", "tenant-admin"}

// An object of another tenant and an object that does not exist have the same answer,
// byte for byte and header for header, at each route that names a tenant.
func TestAnotherTenantsObjectsDoNotExist(t *testing.T) {
	h := inhabited(t)
	compared := 0
	for pattern, r := range routes() {
		if !namesTenant(r) || slices.Contains([]service.Kind{service.KindAccessTokens, service.KindRoleBindings}, r.Kind) {
			continue
		}
		for _, role := range tenantRoles {
			theirs := h.request(r, inOther)
			missing := h.request(r, inOther)
			missing.URL.Path = strings.ReplaceAll(missing.URL.Path, other, absent)
			code, there := h.answer(theirs, role)
			_, gone := h.answer(missing, role)
			if want := strings.ReplaceAll(gone, absent, other); there != want {
				t.Errorf("%s as %s: another tenant's object has the answer\n%s\nand no object has\n%s", pattern, role, there, want)
			}
			if code == http.StatusNotFound {
				compared++
			}
		}
	}
	if compared < 60 {
		t.Errorf("%d answers of 404 were compared, want 60 at least", compared)
	}
}

// The same over gRPC: code, message and details.
func TestAnotherTenantsObjectsDoNotExistOverGRPC(t *testing.T) {
	h := newHouse(t)
	conn, services := h.serveGRPC(t)
	for name := range services {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil || !strings.HasPrefix(name, "muster.") {
			continue
		}
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			d := methods.Get(i)
			right := rightOfCall(fmt.Sprintf("%s/%s", d.Parent().Name(), d.Name()))
			if !slices.Contains(placesOfCall(right), inOther) || givesRole(right) { // TestATenantAdminSeesTheOwnTenantAlone of grpcapi
				continue
			}
			method := fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name())
			for _, odd := range []bool{false, true} {
				var said []string
				for _, tenant := range []string{other, absent} {
					in := dynamicpb.NewMessage(d.Input())
					h.fillFor(in.ProtoReflect(), right, tenant)
					if odd {
						spoil(in.ProtoReflect())
					}
					ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+h.tokens["editor"], "x-request-id", "r-1")
					s := status.Convert(call(ctx, conn, method, d, in))
					said = append(said, strings.ReplaceAll(fmt.Sprint(s.Proto()), absent, other))
				}
				if said[0] != said[1] || !strings.Contains(said[0], "not found") {
					t.Errorf("%s (with values that no call takes: %t): another tenant's object has the answer\n%s\nand no object has\n%s", method, odd, said[0], said[1])
				}
			}
		}
	}
}

// spoil sets the parameters of a request that name no object to values that no call takes.
// The right is judged first: a caller without the right gets the same 404 with them.
func spoil(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); {
		case f.IsList() || f.IsMap() || f.Kind() != protoreflect.StringKind:
		case slices.Contains([]protoreflect.Name{"resource_version", "continue", "label_selector", "field_selector", "idempotency_key"}, f.Name()):
			m.Set(f, protoreflect.ValueOfString("\x01 no value\n"))
		}
	}
}

// A token and a binding of another tenant, and one that does not exist, have one answer,
// and the same work is done for both: the store is read as often. Everywhere else a
// refused request reads nothing at all: the house of TestEveryDoorAnswersByTheTable has
// no service behind the decision.
func TestNotYoursAndNotThereAreTheSameWork(t *testing.T) {
	h := newHouse(t)
	for pattern, r := range routes() {
		if !slices.Contains([]service.Kind{service.KindAccessTokens, service.KindRoleBindings}, r.Kind) || !strings.Contains(r.Path, "{name}") || r.Verb == service.VerbUpdate {
			continue
		}
		theirs, missing := h.request(r, inOther), h.request(r, inOther)
		name, unused := h.ids[other], "at-0000000000"
		if r.Kind == service.KindRoleBindings {
			name, unused = other+".readers", other+".nothing"
		}
		missing.URL.Path = strings.Replace(missing.URL.Path, name, unused, 1)
		before := h.store.reads.Load()
		code, there := h.answer(theirs, "tenant-admin")
		between := h.store.reads.Load()
		_, gone := h.answer(missing, "tenant-admin")
		after := h.store.reads.Load()
		if want := strings.ReplaceAll(gone, unused, name); code != http.StatusNotFound || there != want {
			t.Errorf("%s: another tenant's has the answer\n%s\nand none has\n%s", pattern, there, want)
		}
		if between-before != after-between || between == before {
			t.Errorf("%s: %d reads of the store for another tenant's object, %d for none", pattern, between-before, after-between)
		}
	}
}

// A list that names nobody else's object is the same, whatever other tenants have.
func TestListsShowTheOwnTenantAlone(t *testing.T) {
	full, empty := inhabited(t), newHouse(t)
	empty.handler = rest.NewHandler(rest.Config{Service: resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 4, Memory: 8 << 30}), Watches: noWatches{}, Authenticator: empty.door, Credentials: empty.keeper, Identity: hosts{}})
	for _, path := range []string{"/tenants", "/namespaces", "/namespaces/" + own + "/allocations", "/namespaces/" + own + "/jobs", "/namespaces/" + own + "/resourcequotas", "/namespaces/" + own + "/events"} {
		ask := func(h *house) string {
			code, text := h.answer(httptest.NewRequest(http.MethodGet, "/api/v1"+path, nil), "tenant-admin")
			if code != http.StatusOK {
				t.Fatalf("%s: %s", path, text)
			}
			return text
		}
		if text := ask(full); strings.Contains(text, other) {
			t.Errorf("%s names the other tenant: %s", path, text)
		}
		items := func(text string) string {
			_, after, _ := strings.Cut(text, `"items"`)
			return after
		}
		if a, b := items(ask(full)), items(ask(empty)); a != b {
			t.Errorf("%s: with another tenant's objects\n%s\nwithout\n%s", path, a, b)
		}
	}
}
