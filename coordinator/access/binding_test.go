package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
)

func binding(name, role, tenant string, subjects ...api.Subject) *api.RoleBinding {
	return &api.RoleBinding{Kind: api.KindRoleBinding, Metadata: api.ObjectMeta{Name: name}, Spec: api.RoleBindingSpec{Role: role, Tenant: tenant, Subjects: subjects}}
}

func user(name string) api.Subject { return api.Subject{Kind: api.SubjectUser, Name: name} }

func TestBindingsGiveRoles(t *testing.T) {
	o := newOffice(t)
	acting := o.made(spec("ada", "", ""), 0)            // acts with the rights of its user
	fixed := o.made(spec("ada", "viewer", "speech"), 0) // has its own role alone
	roles := func(step string, token *api.AccessToken, want string) {
		t.Helper()
		if p, err := o.enters(token.Status.Token); err != nil || p.Roles() != want {
			t.Errorf("%s: %q, %v, want %q", step, p.Roles(), err, want)
		}
	}
	roles("before", acting, "none")
	put := func(b *api.RoleBinding, create bool) *api.RoleBinding {
		t.Helper()
		got, err := o.PutRoleBinding(o.as(admin), b, create)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := put(binding("vision.editors", "editor", "vision", user("ada"), user("bob")), true)
	roles("bound by name", acting, "editor of tenant vision")
	roles("a token with a role of its own", fixed, "viewer of tenant speech")
	put(binding("more", "viewer", "vision", api.Subject{Kind: api.SubjectToken, Name: fixed.Metadata.Name}), true)
	roles("bound by id", fixed, "viewer of tenant speech; viewer of tenant vision")
	if _, err := o.PutRoleBinding(o.as(admin), binding("vision.editors", "viewer", "vision", user("ada")), true); code(err) != 409 {
		t.Errorf("made twice: %v", err)
	}
	changed := binding("vision.editors", "viewer", "vision", user("ada"))
	changed.Metadata.ResourceVersion = first.Metadata.ResourceVersion
	second := put(changed, false)
	if second.Metadata.UID != first.Metadata.UID || second.Metadata.ResourceVersion == first.Metadata.ResourceVersion {
		t.Errorf("changed from %+v to %+v", first.Metadata, second.Metadata)
	}
	roles("changed", acting, "viewer of tenant vision")
	if _, err := o.PutRoleBinding(o.as(admin), changed, false); code(err) != 409 {
		t.Errorf("changed from an old version: %v", err)
	}
	if _, err := o.DeleteRoleBinding(o.as(admin), "vision.editors", api.Preconditions{ResourceVersion: first.Metadata.ResourceVersion}); code(err) != 409 {
		t.Errorf("deleted by an old version: %v", err)
	}
	if _, err := o.DeleteRoleBinding(o.as(admin), "vision.editors", api.Preconditions{UID: first.Metadata.UID}); err != nil {
		t.Fatal(err)
	}
	roles("deleted", acting, "none")
}

// persons is an identity provider that knows its tokens by heart.
type persons map[string]oidc.Person

func (p persons) Identify(_ context.Context, token string) (oidc.Person, bool, error) {
	found, is := p[token]
	return found, is, nil
}

// A person of the identity provider has the roles of the claims, and those of the bindings
// of the user and of the groups. Without a role the person has no right, in the tenant of
// the claim either.
func TestPeopleOfTheProviderHaveTheRolesOfBindings(t *testing.T) {
	o := newOffice(t)
	o.door.Persons = persons{
		"ada": {User: "oidc:ada", Groups: []string{"oidc:gpu", "oidc:ops"}, Tenant: "vision"},
		"bob": {User: "oidc:bob", Grants: []service.Grant{{Role: service.Viewer, Tenant: "speech"}}, Tenant: "speech"},
	}
	roles := func(step, token, want string) {
		t.Helper()
		p, err := o.enters(token)
		if err != nil || p.Roles() != want || p.Proof != api.ProofOIDC {
			t.Errorf("%s: %s has %q, %v, want %q", step, token, p.Roles(), err, want)
		}
	}
	roles("before", "ada", "none")
	roles("before", "bob", "viewer of tenant speech")
	put := func(b *api.RoleBinding) {
		t.Helper()
		if _, err := o.PutRoleBinding(o.as(admin), b, true); err != nil {
			t.Fatal(err)
		}
	}
	put(binding("a", "editor", "vision", api.Subject{Kind: api.SubjectGroup, Name: "oidc:gpu"}))
	put(binding("b", "viewer", "speech", user("oidc:ada")))
	put(binding("c", "operator", "", user("ada"), user("oidc:ops"), api.Subject{Kind: api.SubjectGroup, Name: "oidc:ada"})) // of others: no prefix, and the kinds exchanged
	roles("bound", "ada", "viewer of tenant speech; editor of tenant vision")
	if p, err := o.enters("file"); err != nil || p.Proof != api.ProofAdminToken {
		t.Errorf("the token file proves %+v, %v", p, err)
	}
	changed := o.door.Changed()
	if _, err := o.DeleteRoleBinding(o.as(admin), "a", api.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	o.woken(changed)
	roles("after", "ada", "viewer of tenant speech")
	changed = o.door.Changed()
	o.table.Judge() // the keys of the provider have changed
	o.woken(changed)
	roles("judged again", "ada", "viewer of tenant speech")
}

func TestATenantAdminBindsWithinTheTenant(t *testing.T) {
	o := newOffice(t)
	if _, err := o.PutRoleBinding(o.as(admin), binding("speech.all", "editor", "speech", user("eve")), true); err != nil {
		t.Fatal(err)
	}
	ctx := o.as(chief)
	put := func(b *api.RoleBinding) error { _, err := o.PutRoleBinding(ctx, b, true); return err }
	_, read := o.GetRoleBinding(ctx, "speech.all")
	_, gone := o.DeleteRoleBinding(ctx, "speech.all", api.Preconditions{})
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"in the own tenant":              {put(binding("vision.readers", "viewer", "vision", user("dan"))), 0},
		"under a name of nobody":         {put(binding("readers", "viewer", "vision", user("dan"))), 403},
		"in another tenant":              {put(binding("speech.x", "viewer", "speech", user("dan"))), 403},
		"in the cluster":                 {put(binding("vision.x", "viewer", "", user("dan"))), 403},
		"the operators":                  {put(binding("vision.o", "operator", "", user("dan"))), 403},
		"another tenant's binding":       {read, 404},
		"another tenant's binding, gone": {gone, 404},
	} {
		if code(c.err) != c.code {
			t.Errorf("%s: %v, want %d", name, c.err, c.code)
		}
	}
	list, err := o.ListRoleBindings(ctx)
	if err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != "vision.readers" {
		t.Errorf("the list has %+v, %v", list, err)
	}
}

// A tenant-admin takes the room of the own tenant alone: with 500 bindings in one tenant
// the next is refused there, and another tenant's is made.
func TestATenantHasABoundedNumberOfBindings(t *testing.T) {
	o := newOffice(t)
	for i := range access.MaxTenantBindings {
		b := binding(fmt.Sprintf("vision.b-%d", i), "viewer", "vision", user("bob"))
		document, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		rec := record.Object{Name: b.Metadata.Name, UID: "rolebinding-" + strconv.Itoa(i), Created: "2026-01-02T03:04:05Z", Document: document}
		if _, err := o.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.RoleBindingKey(rec.Name), record.MustEncode(rec))}}); err != nil {
			t.Fatal(err)
		}
	}
	o.follow()
	ada := service.Principal{Name: "ada", Grants: []service.Grant{{Role: service.TenantAdmin, Tenant: "vision"}}}
	_, err := o.PutRoleBinding(o.as(ada), binding("vision.more", "viewer", "vision", user("bob")), true)
	var status *api.Status
	if !errors.As(err, &status) || status.Code != 429 || status.Reason != api.TooManyObjects || !strings.Contains(status.Message, "tenant vision has 500 role bindings, which is the limit of a tenant") {
		t.Errorf("one more of the tenant: %v", err)
	}
	if _, err := o.PutRoleBinding(o.as(ada), binding("vision.b-7", "editor", "vision", user("bob")), false); err != nil {
		t.Errorf("a change of a binding at the limit: %v", err)
	}
	for tenant, by := range map[string]service.Principal{
		"speech": {Name: "eve", Grants: []service.Grant{{Role: service.TenantAdmin, Tenant: "speech"}}}, "": {Name: "root", Admin: true},
	} {
		name := tenant + ".readers"
		if tenant == "" {
			name = "readers"
		}
		if _, err := o.PutRoleBinding(o.as(by), binding(name, "viewer", tenant, user("bob")), true); err != nil {
			t.Errorf("a binding beside the full tenant, in %q: %v", tenant, err)
		}
	}
}
