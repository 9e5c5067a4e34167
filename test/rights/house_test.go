package rights

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// The tenants. Each has the namespace of its name. The callers are of the first one.
const (
	own   = "vision"
	other = "speech"
)

// house is a coordinator's REST door with tokens of every role. Behind the decision
// there is no service at all: a request that is refused and reaches a service all the
// same ends as a fault of the coordinator, and never as a refusal.
type house struct {
	url     string
	handler http.Handler
	door    access.Authenticator
	keeper  *access.Keeper
	store   *counted
	audits  *refusals
	tokens  map[string]string // by role
	ids     map[string]string // of an access token, by tenant

	mu   sync.Mutex
	seen []answered
	// stored is the answer to each read of one object that reaches the service, which has
	// nothing: a client that reads before it writes goes on. nil leaves the error.
	stored func(r *http.Request) (code int, body []byte)
}

// answered is one request that the door has answered.
type answered struct {
	pattern, path string
	watch         bool
	code          int
}

// refusals are the refusals that the audit has got.
type refusals struct {
	service.NoAudits
	mu  sync.Mutex
	got []record.Audit
}

// Refused implements service.Audits.
func (r *refusals) Refused(a record.Audit, _ *api.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, a)
}

// check reports where the refusals since the last call are not one for each refused
// answer.
func (r *refusals) check(t *testing.T, what string, answers ...string) {
	t.Helper()
	r.mu.Lock()
	got := r.got
	r.got = nil
	r.mu.Unlock()
	want := 0
	for _, a := range answers {
		if a != yes {
			want++
		}
	}
	if len(got) != want {
		t.Errorf("%s: the audit has %d refusals, want %d: %+v", what, len(got), want, got)
	}
}

// hostToken is the bootstrap token of the host that is about to join.
const hostToken = api.BootstrapTokenPrefix + "abcdef.0123456789abcdef"

// hosts admits that host, and nobody else.
type hosts struct{ service.Identity }

func (hosts) AdmitCreation(_ context.Context, token, _, _ string) (string, error) {
	if token == hostToken {
		return "abcdef", nil
	}
	return "", api.Errorf(http.StatusUnauthorized, "the bootstrap token is not valid here")
}

// noWatches ends each watch at once, by an error that no refusal of a right has.
type noWatches struct{}

func (noWatches) Watch(context.Context, objects.WatchOptions) (service.Watch, error) {
	return nil, api.Errorf(http.StatusTeapot, "reached")
}

// counted is a store that counts its reads and, once it is frozen, refuses writes.
type counted struct {
	store.Store
	reads  atomic.Int64
	frozen atomic.Bool
}

func (c *counted) Get(ctx context.Context, key string) (record.KV, bool, resource.Revision, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counted) Range(ctx context.Context, prefix string, o store.RangeOptions) ([]record.KV, resource.Revision, error) {
	c.reads.Add(1)
	return c.Store.Range(ctx, prefix, o)
}

var errFrozen = errors.New("reached the store")

func (c *counted) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if c.frozen.Load() {
		return record.TxnResult{}, errFrozen
	}
	return c.Store.Txn(ctx, t)
}

// credentials are tokens and bindings over a store, and the table that follows them.
func credentials(t testing.TB) (*access.Keeper, *counted, *access.Table) {
	back := &counted{Store: mem.Open(mem.Options{})}
	t.Cleanup(func() { _ = back.Close() })
	rights := access.NewTable(nil)
	k := &access.Keeper{Store: back, Table: rights, Logger: slog.New(slog.DiscardHandler)}
	k.Settle = func(context.Context, resource.Revision) []string {
		kvs, _, err := back.Store.Range(t.Context(), record.Root, store.RangeOptions{})
		if err != nil {
			t.Error(err)
		}
		rights.Reset()
		for _, kv := range kvs {
			rights.Note(kv.Key, &kv)
		}
		rights.Publish()
		return nil
	}
	return k, back, rights
}

// grants are the roles of the callers: the role, and its tenant.
var grants = map[string]string{"none": "", "viewer": own, "editor": own, "tenant-admin": own, "operator": "", "admin": ""}

func newHouse(t *testing.T) *house {
	t.Helper()
	keeper, back, rights := credentials(t)
	h := &house{keeper: keeper, store: back, audits: new(refusals), tokens: map[string]string{"node": hostToken}, ids: map[string]string{}}
	boss := service.WithCaller(t.Context(), service.Caller{Principal: service.Principal{Name: "root", Admin: true}})
	made := func(spec api.AccessTokenSpec) *api.AccessToken {
		got, err := keeper.CreateToken(boss, &api.AccessToken{Spec: spec}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for role, tenant := range grants {
		spec := api.AccessTokenSpec{User: role, Role: role, Tenant: tenant}
		if role == "none" {
			spec.Role = ""
		}
		h.tokens[role] = made(spec).Status.Token
	}
	for _, tenant := range []string{own, other} {
		h.ids[tenant] = made(api.AccessTokenSpec{User: "ada", Role: "viewer", Tenant: tenant}).Metadata.Name
		b := &api.RoleBinding{Kind: api.KindRoleBinding, Metadata: api.ObjectMeta{Name: tenant + ".readers"}, Spec: api.RoleBindingSpec{Role: "viewer", Tenant: tenant, Subjects: []api.Subject{{Kind: api.SubjectUser, Name: "ada"}}}}
		if _, err := keeper.PutRoleBinding(boss, b, true); err != nil {
			t.Fatal(err)
		}
	}
	back.frozen.Store(true)
	h.door = access.Authenticator{Table: rights, Other: service.StaticToken("the file of the administrator")}
	h.handler = rest.NewHandler(rest.Config{
		Service: struct{ service.Service }{}, Watches: noWatches{}, Audits: h.audits, Authenticator: h.door, Credentials: keeper, Identity: hosts{}, Roster: struct{ service.Roster }{}, Histories: struct{ service.Histories }{}, Past: resttest.EmptyPast{},
	})
	server := httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	h.url = server.URL
	return h
}

// serve answers a request and keeps the answer, before the client has it.
func (h *house) serve(w http.ResponseWriter, r *http.Request) {
	kept := &kept{ResponseWriter: w, begins: func(code int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.seen = append(h.seen, answered{r.Pattern, r.URL.Path, strings.Contains(r.URL.RawQuery, "watch=true"), code})
	}}
	h.mu.Lock()
	stored := h.stored
	h.mu.Unlock()
	if stored != nil && r.Method == http.MethodGet {
		kept.ResponseWriter = httptest.NewRecorder()
		h.handler.ServeHTTP(kept, r)
		pretend(w, r, kept.ResponseWriter.(*httptest.ResponseRecorder), stored)
	} else {
		h.handler.ServeHTTP(kept, r)
	}
}

// pretend sends an answer, or in place of one that reached the service what is stored.
func pretend(w http.ResponseWriter, r *http.Request, got *httptest.ResponseRecorder, stored func(*http.Request) (int, []byte)) {
	code, body := got.Code, got.Body.Bytes()
	if code == http.StatusInternalServerError {
		code, body = stored(r)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// pretends sets the stored objects.
func (h *house) pretends(stored func(*http.Request) (int, []byte)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = stored
}

// kept reports the status code of an answer when the answer begins.
type kept struct {
	http.ResponseWriter
	begins func(code int)
	begun  bool
}

func (k *kept) WriteHeader(code int) {
	if !k.begun {
		k.begun = true
		k.begins(code)
	}
	k.ResponseWriter.WriteHeader(code)
}

func (k *kept) Write(p []byte) (int, error) {
	if !k.begun {
		k.WriteHeader(http.StatusOK)
	}
	return k.ResponseWriter.Write(p)
}

// Unwrap serves http.ResponseController.
func (k *kept) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// take returns the answers since the last call.
func (h *house) take() []answered {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.seen
	h.seen = nil
	return all
}

// wasAsked reports whether a request has come since the last call of take.
func (h *house) wasAsked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seen) > 0
}

// answerOf words a status code as the file does.
func answerOf(code int) string {
	switch code {
	case http.StatusUnauthorized:
		return unknown
	case http.StatusForbidden:
		return forbidden
	case http.StatusNotFound:
		return doesNotExist
	}
	return yes
}
