package access

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/musterd/muster/coordinator/oidc"
	"github.com/musterd/muster/coordinator/service"
)

func TestRolesOfPeople(t *testing.T) {
	role := func(tenant string) service.Grant { return service.GrantOf("editor", tenant, nil) }
	now := &rules{
		users:  map[string][]service.Grant{"ada": {role("of-ada")}},
		groups: map[string][]service.Grant{"gpu": {role("of-gpu")}, "cpu": {role("of-cpu")}},
	}
	one, two := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))
	cases := map[string]struct {
		person oidc.Person
		want   []string
	}{
		"claims, then the user, then the groups": {
			oidc.Person{Token: one, User: "ada", Groups: []string{"gpu", "cpu"}, Grants: []service.Grant{role("claimed")}},
			[]string{"claimed", "of-ada", "of-gpu", "of-cpu"},
		},
		"another token of the same user with fewer groups":   {oidc.Person{Token: two, User: "ada", Groups: []string{"cpu"}}, []string{"of-ada", "of-cpu"}},
		"a person without a digest is not taken for another": {oidc.Person{User: "bob", Groups: []string{"cpu"}}, []string{"of-cpu"}},
		"nor that other for the person":                      {oidc.Person{User: "eve"}, nil},
		"a person without roles":                             {oidc.Person{Token: sha256.Sum256([]byte("three")), User: "eve"}, nil},
	}
	p := new(persons)
	for range 2 { // worked out, and kept
		for name, c := range cases {
			var got []string
			for _, g := range p.of(&c.person, now) {
				got = append(got, string(g.Tenant))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
	if len(p.roles) != 3 {
		t.Errorf("%d people are kept, want the 3 with a digest", len(p.roles))
	}
}

func TestRolesOfPeopleAreBounded(t *testing.T) {
	now := &rules{groups: map[string][]service.Grant{"gpu": slices.Repeat([]service.Grant{service.GrantOf("viewer", "vision", nil)}, mostRoles/10)}}
	p := new(persons)
	for i := range 25 {
		if got := p.of(&oidc.Person{Token: sha256.Sum256(fmt.Append(nil, i)), Groups: []string{"gpu"}}, now); len(got) != mostRoles/10 {
			t.Fatalf("person %d has %d roles, want %d", i, len(got), mostRoles/10)
		}
		kept := 0
		for _, roles := range p.roles {
			kept += len(roles) + 1
		}
		if kept != p.kept || kept > mostRoles {
			t.Fatalf("after person %d: %d roles are kept and %d counted, want at most %d", i, kept, p.kept, mostRoles)
		}
	}
}
