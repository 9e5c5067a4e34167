package service_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/ceiling"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// The ceilings of a request are those of the roles that may send it: an operator boosts
// in the whole cluster, also as the editor of a tenant, and submits with the editor's
// ceiling alone.
func TestTheCeilingIsThatOfTheRolesThatMaySendTheRequest(t *testing.T) {
	t.Parallel()
	operator := service.Grant{Role: service.Operator}
	editor := service.Grant{Role: service.Editor, Tenant: "ml"}
	rules := ceiling.Rules{Namespace: "train", Owner: resource.TenantID("ml")}
	const above = ceiling.OfTenants + 1
	for name, c := range map[string]struct {
		grants         []service.Grant
		submits, boost bool // a priority above the ceiling of tenants is accepted
	}{
		"editor":                 {[]service.Grant{editor}, false, false},
		"editor and operator":    {[]service.Grant{editor, operator}, false, true},
		"operator and editor":    {[]service.Grant{operator, editor}, false, true},
		"editor and admin":       {[]service.Grant{editor, {Role: service.Admin}}, true, true},
		"editor and viewer":      {[]service.Grant{editor, {Role: service.Viewer}}, false, false},
		"operator of one tenant": {[]service.Grant{editor, {Role: service.Operator, Tenant: "ml"}}, false, false},
	} {
		ctx := service.WithCaller(t.Context(), service.Caller{Principal: service.Principal{Name: "olga", Grants: c.grants}})
		for boost, want := range map[bool]bool{false: c.submits, true: c.boost} {
			caller, _ := service.CeilingsOf(ctx, boost)
			if refusal := ceiling.Refuse(rules, caller, above); (refusal == nil) != want {
				t.Errorf("%s, boost %t: %v", name, boost, refusal)
			}
		}
	}
}
