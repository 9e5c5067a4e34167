package service_test

import (
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

var (
	admin  = service.Principal{Name: "root", Admin: true}
	vision = service.Principal{Name: "vera", Tenant: "vision"}
	nobody = service.Principal{Name: "nemo"} // of no tenant
)

func TestAuthorize(t *testing.T) {
	for name, c := range map[string]struct {
		who       service.Principal
		verb      service.Verb
		kind      service.Kind
		namespace string
		refusal   string // "" for none
	}{
		"an admin lists all allocations":                      {admin, service.VerbList, service.KindAllocations, "", ""},
		"an admin fences a node":                              {admin, service.VerbFence, service.KindNodes, "", ""},
		"an admin has no verb that the kind has not":          {admin, service.VerbDrain, service.KindJobs, "ml", "drain jobs: there is no such right"},
		"an admin has no kind that there is not":              {admin, service.VerbGet, "pods", "", "get pods: there is no such right"},
		"a tenant uses a namespace that its tenant owns":      {vision, service.VerbCreate, service.KindAllocations, "vision-dev", ""},
		"a tenant cancels a job there":                        {vision, service.VerbCancel, service.KindJobs, "vision-prod", ""},
		"a tenant uses the namespace of its name":             {vision, service.VerbGet, service.KindJobs, "vision", ""},
		"a tenant does not use another namespace":             {vision, service.VerbGet, service.KindJobs, "speech", `"vera" may not use namespace "speech"`},
		"a tenant does not list all namespaces":               {vision, service.VerbList, service.KindJobs, "", "only an admin"},
		"a tenant sees nodes":                                 {vision, service.VerbList, service.KindNodes, "", ""},
		"a tenant does not drain nodes":                       {vision, service.VerbDrain, service.KindNodes, "", "drain nodes: only an admin may do this, \"vera\" is none"},
		"a tenant reads its own quota":                        {vision, service.VerbGet, service.KindResourceQuotas, "vision-dev", ""},
		"a tenant does not change its own quota":              {vision, service.VerbPatch, service.KindResourceQuotas, "vision-dev", "only an admin"},
		"a tenant does not evict, even in its own namespace":  {vision, service.VerbCreate, service.KindPreemptions, "vision-dev", "only an admin"},
		"a tenant tries a consumer":                           {vision, service.VerbTry, service.KindConsumers, "", ""},
		"a tenant reads itself":                               {vision, service.VerbGet, service.KindTenants, "vision", ""},
		"a tenant does not read another tenant":               {vision, service.VerbGet, service.KindTenants, "speech", `"vera" may not read tenant "speech"`},
		"a tenant does not change itself":                     {vision, service.VerbPatch, service.KindTenants, "vision", "only an admin"},
		"a tenant lists tenants, which shows itself":          {vision, service.VerbList, service.KindTenants, "", ""},
		"a tenant reads the mode of quota":                    {vision, service.VerbGet, service.KindQuotaModes, "", ""},
		"a tenant does not change the mode of quota":          {vision, service.VerbPatch, service.KindQuotaModes, "", "only an admin"},
		"a tenant reads a namespace that it owns":             {vision, service.VerbGet, service.KindNamespaces, "vision-dev", ""},
		"a tenant does not read another namespace":            {vision, service.VerbGet, service.KindNamespaces, "speech", `may not use namespace "speech"`},
		"a tenant does not change its own namespace":          {vision, service.VerbUpdate, service.KindNamespaces, "vision-dev", "only an admin"},
		"a tenant makes no namespace":                         {vision, service.VerbCreate, service.KindNamespaces, "", "only an admin"},
		"a tenant lists namespaces, which shows its own":      {vision, service.VerbList, service.KindNamespaces, "", ""},
		"a principal of no tenant lists no namespaces":        {nobody, service.VerbList, service.KindNamespaces, "", "may not use"},
		"a principal of no tenant lists no tenants":           {nobody, service.VerbList, service.KindTenants, "", "may not read"},
		"a tenant does not read the metrics of the cluster":   {vision, service.VerbGet, service.KindMetrics, "", "only an admin"},
		"a principal of no tenant owns no namespace":          {nobody, service.VerbGet, service.KindJobs, "", "only an admin"},
		"a principal of no tenant does not use one by chance": {nobody, service.VerbGet, service.KindJobs, "ml", "may not use"},
	} {
		t.Run(name, func(t *testing.T) {
			got := configured.Authorize(c.who, c.verb, c.kind, c.namespace)
			switch {
			case c.refusal == "" && got != nil:
				t.Errorf("refused: %s", got.Message)
			case c.refusal != "" && (got == nil || got.Code != 403 || !strings.Contains(got.Message, c.refusal)):
				t.Errorf("got %+v, want a 403 with %s", got, c.refusal)
			}
		})
	}
}

func TestATenantOwnsTheNamespaceOfItsNameByDefault(t *testing.T) {
	var access service.Access
	if s := access.Authorize(vision, service.VerbGet, service.KindJobs, "vision"); s != nil {
		t.Error(s)
	}
	if s := access.Authorize(vision, service.VerbGet, service.KindJobs, "vision-dev"); s == nil {
		t.Error("a namespace of another name was open")
	}
}

// What a tenant may do, an admin may do; and no tenant reaches into a namespace
// of another one, whatever the verb and the kind.
func TestNoTenantHasMoreThanAnAdmin(t *testing.T) {
	verbs := []service.Verb{
		service.VerbCreate, service.VerbGet, service.VerbList, service.VerbWatch, service.VerbUpdate, service.VerbPatch, service.VerbDelete, service.VerbTry, service.VerbExplain,
		service.VerbCancel, service.VerbApprove, service.VerbDrain, service.VerbFence, service.VerbReconcile, service.VerbReclaim,
	}
	kinds := []service.Kind{
		service.KindAllocations, service.KindJobs, service.KindPreemptions, service.KindNodes, service.KindCoordinators, service.KindResourceQuotas,
		service.KindQuotaTrees, service.KindQuotaForests, service.KindQuotaBindings, service.KindConsumers, service.KindTokens, service.KindAuthorities,
		service.KindOperators, service.KindBans, service.KindMetrics, service.KindTenants, service.KindNamespaces, service.KindQuotaModes, "pods",
	}
	rapid.Check(t, func(t *rapid.T) {
		verb, kind := rapid.SampledFrom(verbs).Draw(t, "verb"), rapid.SampledFrom(kinds).Draw(t, "kind")
		namespace := rapid.SampledFrom([]string{"", "vision", "vision-dev", "speech"}).Draw(t, "namespace")
		tenants, admins := configured.Authorize(vision, verb, kind, namespace), configured.Authorize(admin, verb, kind, namespace)
		if tenants == nil && admins != nil {
			t.Errorf("%s %s in %q: a tenant may, an admin may not", verb, kind, namespace)
		}
		if mutates := verb != service.VerbGet && verb != service.VerbList && verb != service.VerbWatch; tenants == nil && mutates &&
			(kind == service.KindTenants || kind == service.KindNamespaces) {
			t.Errorf("%s %s in %q: a tenant may", verb, kind, namespace)
		}
		namespaced := map[service.Kind]bool{service.KindAllocations: true, service.KindJobs: true, service.KindResourceQuotas: true, service.KindQuotaBindings: true}
		if tenants == nil && namespaced[kind] && (namespace == "" || namespace == "speech") {
			t.Errorf("%s %s in %q: a tenant of another namespace may", verb, kind, namespace)
		}
	})
}
