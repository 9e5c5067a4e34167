package access

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
)

// subjectOf is a subject with bindings in tenants.
func subjectOf(tenants ...string) *subject {
	s := new(subject)
	for _, tenant := range tenants {
		s.grants = append(s.grants, service.GrantOf("editor", tenant, nil))
	}
	if len(s.grants) >= manyRoles {
		s.shared = service.ListOf(slices.Clone(s.grants))
	}
	return s
}

func tenantNames(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("t-%03d", n-i))
	}
	return all
}

func TestRolesOfPeople(t *testing.T) {
	role := func(tenant string) service.Grant { return service.GrantOf("editor", tenant, nil) }
	now := &rules{
		users:   map[string]*subject{"ada": subjectOf("of-ada")},
		groups:  map[string]*subject{"gpu": subjectOf("of-gpu"), "cpu": subjectOf("of-cpu"), "all": subjectOf(tenantNames(manyRoles)...)},
		holders: new(holders),
	}
	of := func(claims string) [sha256.Size]byte { return sha256.Sum256([]byte(claims)) }
	cases := map[string]struct {
		person oidc.Person
		home   string
		want   []string
	}{
		"claims, the user and the groups": {
			oidc.Person{Claims: of("gpu cpu, claimed"), User: "ada", Groups: []string{"gpu", "cpu"}, Grants: []service.Grant{role("claimed")}},
			"claimed", []string{"claimed", "of-ada", "of-cpu", "of-gpu"},
		},
		"the same user with fewer groups":                    {oidc.Person{Claims: of("cpu"), User: "ada", Groups: []string{"cpu"}}, "", []string{"of-ada", "of-cpu"}},
		"another user with the same groups":                  {oidc.Person{Claims: of("cpu"), User: "eve", Groups: []string{"cpu"}}, "of-cpu", []string{"of-cpu"}},
		"one more user with the same groups":                 {oidc.Person{Claims: of("cpu"), User: "bob", Groups: []string{"cpu"}}, "of-cpu", []string{"of-cpu"}},
		"a user without groups":                              {oidc.Person{User: "ada"}, "of-ada", []string{"of-ada"}},
		"a person without roles":                             {oidc.Person{User: "eve"}, "", nil},
		"a group that no binding names":                      {oidc.Person{Claims: of("wiki"), User: "eve", Groups: []string{"wiki"}}, "", nil},
		"a person without a digest is not taken for another": {oidc.Person{User: "bob", Groups: []string{"gpu"}}, "of-gpu", []string{"of-gpu"}},
		"a group with many roles":                            {oidc.Person{Claims: of("all"), User: "eve", Groups: []string{"all"}}, "", tenantNames(manyRoles)},
		"a group with many roles, and one with a single":     {oidc.Person{Claims: of("all cpu"), User: "eve", Groups: []string{"all", "cpu"}}, "", append(tenantNames(manyRoles), "of-cpu")},
	}
	for range 2 { // worked out, and kept
		for name, c := range cases {
			p := now.person(c.person)
			slices.Sort(c.want)
			if got := p.Tenants(service.Tenants); !slices.Equal(got, c.want) || string(p.Tenant) != c.home {
				t.Errorf("%s: %v at home in %q, want %v in %q", name, got, p.Tenant, c.want, c.home)
			}
		}
	}
	if len(now.holders.known) != 8 { // eve and bob with the group cpu are one holder
		t.Errorf("%d holders are kept, want 8", len(now.holders.known))
	}
}

func TestRolesOfTokens(t *testing.T) {
	now := &rules{
		users:   map[string]*subject{"ada": subjectOf("of-ada", "a-second")},
		bound:   map[string]*subject{"at-1": subjectOf("of-the-token"), "at-3": subjectOf("of-the-token"), "at-4": subjectOf("of-the-token")},
		holders: new(holders),
	}
	for name, c := range map[string]struct {
		record record.AccessToken
		want   string
		home   string
	}{
		"a role of its own":                           {record.AccessToken{ID: "at-2", User: "ada", Role: "viewer", Tenant: "vision"}, "viewer of tenant vision", "vision"},
		"a role of its own, and a binding":            {record.AccessToken{ID: "at-1", User: "ada", Role: "viewer", Tenant: "vision"}, "editor of tenant of-the-token; viewer of tenant vision", "vision"},
		"the roles of its user":                       {record.AccessToken{ID: "at-2", User: "ada"}, "editor of tenant a-second; editor of tenant of-ada", ""},
		"the roles of its user, and a binding":        {record.AccessToken{ID: "at-4", User: "ada"}, "editor of tenant a-second; editor of tenant of-ada; editor of tenant of-the-token", ""},
		"a user whom no binding names":                {record.AccessToken{ID: "at-2", User: "eve"}, "none", ""},
		"a user whom no binding names, but the token": {record.AccessToken{ID: "at-3", User: "eve"}, "editor of tenant of-the-token", "of-the-token"},
	} {
		for range 2 {
			if p := now.principal(newToken(c.record), &secret{}); p.Roles() != c.want || string(p.Tenant) != c.home {
				t.Errorf("%s: %s at home in %q, want %s in %q", name, p.Roles(), p.Tenant, c.want, c.home)
			}
		}
	}
}

func TestRolesThatAreKeptAreBounded(t *testing.T) {
	few := subjectOf("vision")
	few.grants = slices.Repeat(few.grants, mostRoles/10)
	few.grants = slices.Clone(few.grants)
	for i := range few.grants {
		few.grants[i].Tenant += "-x"
		few.grants[i].Namespaces = []string{fmt.Sprint(i)} // no two are equal
	}
	now := &rules{groups: map[string]*subject{"gpu": few}, holders: new(holders)}
	h := now.holders
	for i := range 25 {
		p := now.person(oidc.Person{Claims: sha256.Sum256(fmt.Append(nil, i)), Groups: []string{"gpu"}})
		if got := strings.Count(p.Roles(), ";") + 1; got != mostRoles/10 {
			t.Fatalf("person %d has %d roles, want %d", i, got, mostRoles/10)
		}
		kept := 0
		for _, r := range h.known {
			kept += r.cost
		}
		if kept != h.kept || kept > mostRoles || i >= 8 && len(h.known) != 9 {
			t.Fatalf("after person %d: %d holders with a cost of %d are kept and %d counted, want at most %d", i, len(h.known), kept, h.kept, mostRoles)
		}
	}
}
