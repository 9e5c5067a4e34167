package service_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// configured is the configuration's map from namespaces to tenants: vision-dev
// and vision-prod belong to vision, each other namespace to the tenant of its
// name.
var configured = service.Access{TenantOf: func(namespace string) resource.TenantID {
	if strings.HasPrefix(namespace, "vision-") {
		return "vision"
	}
	return resource.TenantID(namespace)
}}

// holding is a caller with one grant.
func holding(role service.Role, tenant resource.TenantID, namespaces ...string) service.Principal {
	return service.Principal{Name: "vera", Grants: []service.Grant{{Role: role, Tenant: tenant, Namespaces: namespaces}}}
}

var (
	admin    = service.Principal{Name: "root", Admin: true}
	vision   = service.Principal{Name: "vera", Tenant: "vision"} // an editor of its tenant
	nobody   = service.Principal{Name: "nemo"}                   // of no tenant
	viewer   = holding(service.Viewer, "vision")
	inDev    = holding(service.Editor, "vision", "vision-dev")
	chief    = holding(service.TenantAdmin, "vision")
	operator = holding(service.Operator, "")
	auditor  = holding(service.Viewer, "") // sees the whole cluster
)

func TestAuthorize(t *testing.T) {
	for name, c := range map[string]struct {
		who       service.Principal
		verb      service.Verb
		kind      service.Kind
		namespace string
		code      int    // 0 for no refusal
		refusal   string // in the message
	}{
		"an admin lists all allocations":                     {admin, service.VerbList, service.KindAllocations, "", 0, ""},
		"an admin fences a node":                             {admin, service.VerbFence, service.KindNodes, "", 0, ""},
		"an admin has no verb that the kind has not":         {admin, service.VerbDrain, service.KindJobs, "ml", 403, "drain jobs: there is no such right"},
		"an admin has no kind that there is not":             {admin, service.VerbGet, "pods", "", 403, "get pods: there is no such right"},
		"a caller of a tenant uses its tenant's namespace":   {vision, service.VerbCreate, service.KindAllocations, "vision-dev", 0, ""},
		"and cancels a job there":                            {vision, service.VerbCancel, service.KindJobs, "vision-prod", 0, ""},
		"and uses the namespace of the tenant's name":        {vision, service.VerbGet, service.KindJobs, "vision", 0, ""},
		"another namespace is not there":                     {vision, service.VerbGet, service.KindJobs, "speech", 404, "job x not found in namespace speech"},
		"an editor does not list all namespaces":             {vision, service.VerbList, service.KindJobs, "", 403, `list jobs in all namespaces: name a namespace, or have a role in the whole cluster; "vera" has editor of tenant vision`},
		"an editor sees nodes":                               {vision, service.VerbList, service.KindNodes, "", 0, ""},
		"an editor does not drain nodes":                     {vision, service.VerbDrain, service.KindNodes, "", 403, `drain nodes: want the role operator or admin; "vera" has editor of tenant vision`},
		"an editor reads its own quota":                      {vision, service.VerbGet, service.KindResourceQuotas, "vision-dev", 0, ""},
		"an editor does not change its own quota":            {vision, service.VerbPatch, service.KindResourceQuotas, "vision-dev", 403, "want the role admin"},
		"an editor does not evict, even in its namespace":    {vision, service.VerbCreate, service.KindPreemptions, "vision-dev", 403, "want the role operator or admin"},
		"an editor tries a consumer":                         {vision, service.VerbTry, service.KindConsumers, "", 0, ""},
		"an editor reads its tenant":                         {vision, service.VerbGet, service.KindTenants, "vision", 0, ""},
		"another tenant is not there":                        {vision, service.VerbGet, service.KindTenants, "speech", 404, "tenant speech not found"},
		"an editor does not change its tenant":               {vision, service.VerbPatch, service.KindTenants, "vision", 403, "want the role admin"},
		"an editor lists tenants, which shows its own":       {vision, service.VerbList, service.KindTenants, "", 0, ""},
		"an editor reads a namespace of its tenant":          {vision, service.VerbGet, service.KindNamespaces, "vision-dev", 0, ""},
		"a namespace of another tenant is not there":         {vision, service.VerbGet, service.KindNamespaces, "speech", 404, "namespace speech not found"},
		"an editor does not change its namespace":            {vision, service.VerbUpdate, service.KindNamespaces, "vision-dev", 403, "want the role admin"},
		"an editor makes no namespace":                       {vision, service.VerbCreate, service.KindNamespaces, "", 403, "want the role admin"},
		"an editor lists namespaces, which shows its own":    {vision, service.VerbList, service.KindNamespaces, "", 0, ""},
		"an editor reads the mode of quota":                  {vision, service.VerbGet, service.KindQuotaModes, "", 0, ""},
		"an editor does not change the mode of quota":        {vision, service.VerbPatch, service.KindQuotaModes, "", 403, "want the role admin"},
		"an editor does not read the feature level":          {vision, service.VerbGet, service.KindFeatureLevels, "", 403, "want the role operator or admin"},
		"an editor does not raise the feature level":         {vision, service.VerbPatch, service.KindFeatureLevels, "", 403, "want the role admin"},
		"nobody lists no namespaces":                         {nobody, service.VerbList, service.KindNamespaces, "", 403, `"nemo" has none`},
		"nobody reads no tenant":                             {nobody, service.VerbGet, service.KindTenants, "vision", 404, "tenant vision not found"},
		"an editor does not read the cluster's metrics":      {vision, service.VerbGet, service.KindMetrics, "", 403, "want the role operator or admin"},
		"nobody owns no namespace":                           {nobody, service.VerbGet, service.KindJobs, "", 403, `"nemo" has none`},
		"nobody does not use a namespace by chance":          {nobody, service.VerbGet, service.KindJobs, "ml", 404, "job x not found"},
		"a viewer reads":                                     {viewer, service.VerbGet, service.KindJobs, "vision-dev", 0, ""},
		"a viewer asks why":                                  {viewer, service.VerbExplain, service.KindJobs, "vision-dev", 0, ""},
		"a viewer submits nothing":                           {viewer, service.VerbCreate, service.KindJobs, "vision-dev", 403, `create jobs in namespace vision-dev: want the role editor, tenant-admin or admin; "vera" has viewer of tenant vision`},
		"a viewer ends nothing":                              {viewer, service.VerbDelete, service.KindAllocations, "vision-dev", 403, "want the role editor"},
		"a role in one namespace counts there":               {inDev, service.VerbCreate, service.KindJobs, "vision-dev", 0, ""},
		"and in no other of the tenant":                      {inDev, service.VerbCreate, service.KindJobs, "vision-prod", 404, "namespace vision-prod not found"},
		"and reads the tenant":                               {inDev, service.VerbGet, service.KindTenants, "vision", 0, ""},
		"a tenant-admin makes tokens":                        {chief, service.VerbCreate, service.KindAccessTokens, "", 0, ""},
		"an editor makes no tokens":                          {vision, service.VerbCreate, service.KindAccessTokens, "", 403, "create tokens: want the role tenant-admin or admin"},
		"an operator makes no tokens":                        {operator, service.VerbCreate, service.KindAccessTokens, "", 403, "want the role tenant-admin or admin"},
		"an operator drains nodes":                           {operator, service.VerbDrain, service.KindNodes, "", 0, ""},
		"an operator sees the work of all tenants":           {operator, service.VerbList, service.KindJobs, "", 0, ""},
		"an operator ends work":                              {operator, service.VerbCancel, service.KindJobs, "speech", 0, ""},
		"an operator submits no work":                        {operator, service.VerbCreate, service.KindJobs, "speech", 403, "want the role editor, tenant-admin or admin"},
		"an operator changes no quota":                       {operator, service.VerbUpdate, service.KindQuotaTrees, "", 403, "want the role admin"},
		"a viewer of the cluster sees the work of all":       {auditor, service.VerbList, service.KindJobs, "", 0, ""},
		"a viewer of the cluster does not read its metrics":  {auditor, service.VerbGet, service.KindMetrics, "", 403, "want the role operator or admin"},
		"a list in another's namespace shows no such object": {vision, service.VerbList, service.KindJobs, "speech", 404, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			object := "x"
			if c.verb == service.VerbCreate {
				object = ""
			}
			got := configured.Authorize(c.who, c.verb, c.kind, c.namespace, object)
			switch {
			case c.code == 0 && got != nil:
				t.Errorf("refused: %s", got.Message)
			case c.code != 0 && (got == nil || got.Code != c.code || !strings.Contains(got.Message, c.refusal)):
				t.Errorf("got %+v, want a %d with %s", got, c.code, c.refusal)
			}
		})
	}
}

func TestATenantOwnsTheNamespaceOfItsNameByDefault(t *testing.T) {
	var access service.Access
	if s := access.Authorize(vision, service.VerbGet, service.KindJobs, "vision", "x"); s != nil {
		t.Error(s)
	}
	if s := access.Authorize(vision, service.VerbGet, service.KindJobs, "vision-dev", "x"); s == nil {
		t.Error("a namespace of another name was open")
	}
}

// anyPrincipal draws a caller with up to three grants.
func anyPrincipal(t *rapid.T) service.Principal {
	var p service.Principal
	for range rapid.IntRange(0, 3).Draw(t, "grants") {
		g := service.Grant{Role: rapid.SampledFrom([]service.Role{service.Viewer, service.Editor, service.TenantAdmin, service.Operator, service.Admin, service.Node}).Draw(t, "role")}
		if g.Role != service.Operator && g.Role != service.Admin {
			g.Tenant = rapid.SampledFrom([]resource.TenantID{"vision", "speech"}).Draw(t, "tenant")
			g.Namespaces = rapid.SampledFrom([][]string{nil, {"vision-dev"}, {"speech", "vision-prod"}}).Draw(t, "in")
		}
		p.Grants = append(p.Grants, g)
	}
	return p
}

// The decision is that of a sentence: one of the caller's roles is in the table's row,
// and counts at the place. A refusal is a 404 exactly where no role counts there, and
// an admin may do everything that anybody may.
func TestAuthorizeFollowsTheTable(t *testing.T) {
	rights := service.Rights()
	rapid.Check(t, func(t *rapid.T) {
		r, p := rapid.SampledFrom(rights).Draw(t, "right"), anyPrincipal(t)
		namespace := ""
		if r.Namespaced {
			namespace = rapid.SampledFrom([]string{"vision", "vision-dev", "vision-prod", "speech"}).Draw(t, "namespace")
		}
		owner := configured.TenantOf(namespace)
		if r.Kind == service.KindTenants {
			owner = resource.TenantID(namespace)
		}
		may, counts := r.Roles == service.Known, false
		for _, g := range p.Grants {
			here := g.Tenant == "" || !r.Namespaced || g.Tenant == owner && (r.Kind == service.KindTenants || len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, namespace))
			may = may || here && r.Roles.Has(g.Role)
			counts = counts || here && g.Role != service.Node
		}
		got := configured.Authorize(p, r.Verb, r.Kind, namespace, "x")
		want := 0
		switch {
		case may:
		case r.Namespaced && !counts:
			want = 404
		default:
			want = 403
		}
		code := 0
		if got != nil {
			code = got.Code
		}
		if code != want {
			t.Errorf("%s %s in %q by %s: %d, want %d", r.Verb, r.Kind, namespace, p.Roles(), code, want)
		}
		if configured.Authorize(admin, r.Verb, r.Kind, namespace, "x") != nil {
			t.Errorf("%s %s: an admin may not", r.Verb, r.Kind)
		}
		if listed := configured.Authorize(inLists(t, p), r.Verb, r.Kind, namespace, "x"); (listed == nil) != (got == nil) || got != nil && listed.Code != got.Code {
			t.Errorf("%s %s in %q by %s: %v, and %v with the roles in lists", r.Verb, r.Kind, namespace, p.Roles(), got, listed)
		}
	})
}

// inLists is the same caller with some of the grants in lists, and some of them twice.
func inLists(t *rapid.T, p service.Principal) service.Principal {
	grants := p.Grants
	p.Grants = nil
	var lists [2][]service.Grant
	for _, g := range grants {
		at := rapid.IntRange(0, 4).Draw(t, "list")
		if at == 4 {
			p.Grants = append(p.Grants, g)
			continue
		}
		lists[at%2] = append(lists[at%2], slices.Repeat([]service.Grant{g}, 1+at/2)...)
	}
	for _, l := range lists {
		if len(l) > 0 {
			p.Lists = append(p.Lists, service.ListOf(l))
		}
	}
	return p
}

// It is the same whether roles are in a list or not, for every question about a caller.
func TestRolesInLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, given := anyPrincipal(t), anyPrincipal(t)
		listed := inLists(t, p)
		for _, roles := range []service.Roles{service.Tenants, service.Editors, service.TenantAdmins, service.Operators, service.Admins} {
			if p.Everywhere(roles) != listed.Everywhere(roles) || !slices.Equal(p.Tenants(roles), listed.Tenants(roles)) {
				t.Errorf("%s: %t %v, and %t %v in lists", p.Roles(), p.Everywhere(roles), p.Tenants(roles), listed.Everywhere(roles), listed.Tenants(roles))
			}
		}
		for _, g := range given.Grants {
			if (service.MayGrant(p, g) == nil) != (service.MayGrant(listed, g) == nil) {
				t.Errorf("%s gives %s: %v, and %v in lists", p.Roles(), g, service.MayGrant(p, g), service.MayGrant(listed, g))
			}
		}
		for _, tenant := range []resource.TenantID{"", "vision", "speech", "audio"} {
			if (configured.AuthorizeTenant(context.Background(), p, tenant) == nil) != (configured.AuthorizeTenant(context.Background(), listed, tenant) == nil) {
				t.Errorf("%s in the tenant %q: lists differ", p.Roles(), tenant)
			}
		}
	})
}

// A viewer changes nothing, whatever row is added to the table.
func TestViewersOnlyRead(t *testing.T) {
	reads := []service.Verb{service.VerbGet, service.VerbList, service.VerbWatch, service.VerbExplain, service.VerbTry}
	for _, r := range service.Rights() {
		if r.Roles.Has(service.Viewer) && !slices.Contains(reads, r.Verb) {
			t.Errorf("a viewer may %s %s", r.Verb, r.Kind)
		}
	}
}

// Nobody gives more than they have: whoever may give a role could have used each right
// of the role at each place where the role counts.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	rights := service.Rights()
	rapid.Check(t, func(t *rapid.T) {
		giver, given := anyPrincipal(t), anyPrincipal(t)
		for _, g := range given.Grants {
			if service.MayGrant(giver, g) != nil {
				return
			}
		}
		r := rapid.SampledFrom(rights).Draw(t, "right")
		namespace := ""
		if r.Namespaced {
			namespace = rapid.SampledFrom([]string{"vision", "vision-dev", "vision-prod", "speech"}).Draw(t, "namespace")
		}
		if configured.Authorize(given, r.Verb, r.Kind, namespace, "x") == nil && configured.Authorize(giver, r.Verb, r.Kind, namespace, "x") != nil {
			t.Errorf("%s gives %s, and may not %s %s in %q", giver.Roles(), given.Roles(), r.Verb, r.Kind, namespace)
		}
	})
}
