package ceiling_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/ceiling"
)

func n(v int32) *int32 { return &v }

// as is a caller with roles in the tenant vision.
func as(roles ...string) ceiling.Caller {
	var c ceiling.Caller
	for _, r := range roles {
		c.Grants = append(c.Grants, ceiling.Grant{Role: r, Tenant: "vision"})
	}
	return c
}

func TestRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		rules    ceiling.Rules
		caller   ceiling.Caller
		priority int32
		want     string
	}{
		"no ceiling, a role in the whole cluster": {ceiling.Rules{}, ceiling.Caller{Grants: []ceiling.Grant{{Role: "editor", Tenant: "vision"}, {Role: "admin"}}}, api.MaxPriority, ""},
		"no ceiling, a part of the cluster":       {ceiling.Rules{}, ceiling.Caller{}, api.MaxPriority, ""},
		"no ceiling, at that of tenants":          {ceiling.Rules{}, as(api.RoleEditor), 1000, ""},
		"no ceiling, above that of tenants":       {ceiling.Rules{}, as(api.RoleTenantAdmin), 1001, "403 spec.priority: 1001 is above the priority ceiling 1000 of tenants in namespace ml, which sets none: ask for 1000 or less, or ask an admin to set spec.priorityCeiling of the namespace"},
		"the namespace takes more than tenants'":  {ceiling.Rules{All: n(5000)}, as(api.RoleEditor), 5000, ""},
		"a role's ceiling above that of tenants":  {ceiling.Rules{Roles: map[string]int32{"editor": 3000}}, as(api.RoleEditor), 3000, ""},
		"a role without one beside a role's":      {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, as(api.RoleEditor, api.RoleTenantAdmin), 1001, "ceiling 1000 of tenants"},
		"at the ceiling of the namespace":         {ceiling.Rules{All: n(100)}, ceiling.Caller{}, 100, ""},
		"above the ceiling of the namespace":      {ceiling.Rules{All: n(100)}, as(api.RoleAdmin), 101, "403 spec.priority: 101 is above the priority ceiling 100 of namespace ml: ask for 100 or less, or ask an admin to raise spec.priorityCeiling"},
		"at the ceiling of the role":              {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, as(api.RoleEditor), 10, ""},
		"above the ceiling of the role":           {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, as(api.RoleEditor), 11, "403 spec.priority: 11 is above the priority ceiling 10 of the role editor in namespace ml: ask for 10 or less, or ask an admin to raise spec.roleCeilings.editor"},
		"another role of the caller may do more":  {ceiling.Rules{Roles: map[string]int32{"editor": 10, "tenant-admin": 20}}, as(api.RoleEditor, api.RoleTenantAdmin), 20, ""},
		"another role of the caller has none":     {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, as(api.RoleAdmin, api.RoleEditor), 1000, ""},
		"both roles have ceilings":                {ceiling.Rules{Roles: map[string]int32{"editor": 10, "tenant-admin": 20}}, as(api.RoleTenantAdmin, api.RoleEditor), 21, "ceiling 20 of the role tenant-admin"},
		"the ceiling of another role":             {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, as(api.RoleTenantAdmin), 11, ""},
		"a part of the cluster has no role":       {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, ceiling.Caller{}, 11, ""},
		"the token's ceiling":                     {ceiling.Rules{All: n(100)}, ceiling.Caller{Token: n(5)}, 6, "403 spec.priority: 6 is above the priority ceiling 5 of the token"},
		"a role of another tenant does not count": {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, ceiling.Caller{Grants: []ceiling.Grant{{Role: "editor", Tenant: "vision"}, {Role: "admin", Tenant: "speech"}}}, 11, "of the role editor"},
		"nor does one of another namespace":       {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, ceiling.Caller{Grants: []ceiling.Grant{{Role: "editor", Tenant: "vision"}, {Role: "tenant-admin", Tenant: "vision", Namespaces: []string{"other"}}}}, 11, "of the role editor"},
		"a role in the whole cluster does":        {ceiling.Rules{Roles: map[string]int32{"editor": 10}}, ceiling.Caller{Grants: []ceiling.Grant{{Role: "editor", Tenant: "vision"}, {Role: "admin"}}}, 11, ""},
		"a ceiling of 0":                          {ceiling.Rules{Roles: map[string]int32{"editor": 0}}, as(api.RoleEditor), 1, "ceiling 0 of the role editor"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			c.rules.Namespace, c.rules.Owner = "ml", "vision"
			if status := ceiling.Refuse(c.rules, c.caller, c.priority); status != nil {
				got = "403 " + status.Message
				if status.Code != 403 {
					t.Errorf("code %d", status.Code)
				}
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A further role never lowers the greatest priority, and a lower priority is never
// refused where a greater one is not.
func TestRefuseIsMonotonic(t *testing.T) {
	roles := []string{api.RoleEditor, api.RoleTenantAdmin, api.RoleAdmin}
	number := rapid.Int32Range(0, 4)
	maybe := rapid.OneOf(rapid.Just[*int32](nil), rapid.Map(number, n))
	rapid.Check(t, func(t *rapid.T) {
		r := ceiling.Rules{Namespace: "ml", Owner: "vision", All: maybe.Draw(t, "all"), Roles: rapid.MapOf(rapid.SampledFrom(roles), number).Draw(t, "ceilings")}
		c := as(rapid.SliceOfNDistinct(rapid.SampledFrom(roles), 1, 2, rapid.ID[string]).Draw(t, "roles")...)
		c.Token = maybe.Draw(t, "token")
		priority := number.Draw(t, "priority")
		accepted := ceiling.Refuse(r, c, priority) == nil
		if accepted && priority > 0 && ceiling.Refuse(r, c, priority-1) != nil {
			t.Fatal("a lower priority is refused")
		}
		c.Grants = as(roles...).Grants
		if accepted && ceiling.Refuse(r, c, priority) != nil {
			t.Fatal("further roles refuse more")
		}
	})
}
