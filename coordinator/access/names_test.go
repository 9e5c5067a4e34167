package access_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// A name by a tenant-admin begins with the tenant, and is not the name of a user with rights
// elsewhere. An administrator gives any name.
func TestATenantNamesItsOwnPeople(t *testing.T) {
	o := newOffice(t)
	o.made(spec("root2", "admin", ""), 0)
	o.made(spec("eve", "editor", "speech"), 0)
	o.made(spec("ada", "editor", "vision"), 0)
	if _, err := o.PutRoleBinding(o.as(admin), binding("ops", "operator", "", user("olga")), true); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by         service.Principal
		user, want string // "" is refused with 422
	}{
		"an administrator's":                              {chief, "root2", ""},
		"an operator's, by a binding":                     {chief, "olga", ""},
		"that of a person of another tenant":              {chief, "eve", ""},
		"that of a person of the tenant":                  {chief, "ada", "vision/ada"},
		"a new name":                                      {chief, "bob", "vision/bob"},
		"a name with the tenant":                          {chief, "vision/bob", "vision/bob"},
		"a name with another tenant":                      {chief, "speech/bob", "vision/speech/bob"},
		"an administrator's, by another administrator":    {admin, "root2", "root2"},
		"a name with a tenant, by an administrator":       {admin, "speech/bob", "speech/bob"},
		"that of another tenant's people, by nobody else": {admin, "eve", "eve"},
	} {
		made, err := o.CreateToken(o.as(c.by), spec(c.user, "viewer", "vision"), 0)
		switch {
		case c.want == "":
			if code(err) != 422 || !strings.Contains(err.Error(), `"`+c.user+`" has rights outside of tenant vision`) {
				t.Errorf("%s: %v, want 422", name, err)
			}
		case err != nil || made.Spec.User != c.want:
			t.Errorf("%s: %+v, %v, want %s", name, made, err, c.want)
		default:
			if p, err := o.enters(made.Status.Token); err != nil || p.Name != c.want {
				t.Errorf("%s: the bearer is %q, %v", name, p.Name, err)
			}
		}
	}
}

// A tenant-admin who names a user of another tenant in a binding moves the user nowhere.
func TestABindingMovesNobodyToItsTenant(t *testing.T) {
	o := newOffice(t)
	if _, err := o.PutRoleBinding(o.as(admin), binding("zeta.dev", "editor", "zeta", user("bob")), true); err != nil {
		t.Fatal(err)
	}
	made := o.made(spec("bob", "", ""), 0)
	before, err := o.enters(made.Status.Token)
	if err != nil || before.Tenant != "zeta" {
		t.Fatalf("%+v, %v, want tenant zeta", before, err)
	}
	b := binding("vision.mine", "viewer", "vision", user("bob"))
	if _, err := o.PutRoleBinding(o.as(chief), b, true); err != nil {
		t.Fatal(err)
	}
	if after, err := o.enters(made.Status.Token); err != nil || after.Tenant == "vision" {
		t.Errorf("bob is of the tenant %q, %v", after.Tenant, err)
	}
}

// Names of other people are shown with the caller's name, except for administrators.
func TestNamesOfOthersHaveTheCaller(t *testing.T) {
	for name, c := range map[string]struct {
		by   service.Principal
		want string
	}{
		"an administrator": {admin, "root2"},
		"a tenant-admin":   {chief, "root2 (says " + chief.Name + ")"},
		"an operator":      {service.Principal{Name: "olga", Grants: []service.Grant{{Role: service.Operator}}}, "root2 (says olga)"},
		"the same person":  {service.Principal{Name: "root2", Tenant: "vision"}, "root2"},
	} {
		if got := service.Notice(api.PreemptionRequest{InitiatedBy: "root2"}, c.by).InitiatedBy; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := service.Notice(api.PreemptionRequest{}, c.by).InitiatedBy; got != c.by.Name {
			t.Errorf("%s: %q without a name", name, got)
		}
	}
}
