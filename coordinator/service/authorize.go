package service

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Kind names the objects of one kind, as the paths of the REST API do.
type Kind string

// The kinds of the public API.
const (
	KindAllocations    Kind = "allocations"
	KindJobs           Kind = "jobs"
	KindPreemptions    Kind = "preemptions"
	KindNodes          Kind = "nodes"
	KindEvictions      Kind = "evictions" // of a node, of all tenants
	KindCoordinators   Kind = "coordinators"
	KindResourceQuotas Kind = "resourcequotas"
	KindQuotaTrees     Kind = "quotatrees"
	KindQuotaForests   Kind = "quotaforests"
	KindQuotaBindings  Kind = "quotabindings"
	KindConsumers      Kind = "consumers" // of quota, tried without effect
	KindTokens         Kind = "bootstraptokens"
	KindAuthorities    Kind = "authorities"
	KindOperators      Kind = "operatorcertificates"
	KindBans           Kind = "nodebans"
	KindMetrics        Kind = "metrics" // of the whole cluster, for Prometheus
	KindUsage          Kind = "usage"   // of the cluster, its queues and its tenants
	KindTenants        Kind = "tenants"
	KindNamespaces     Kind = "namespaces"
	KindQuotaModes     Kind = "quotamodes" // of the cluster: one
)

// Verb is an action on a kind.
type Verb string

// The verbs of the public API. The first seven are Kubernetes'.
const (
	VerbCreate    Verb = "create"
	VerbGet       Verb = "get"
	VerbList      Verb = "list"
	VerbWatch     Verb = "watch"
	VerbUpdate    Verb = "update"
	VerbPatch     Verb = "patch"
	VerbDelete    Verb = "delete"
	VerbTry       Verb = "try" // a dry run
	VerbExplain   Verb = "explain"
	VerbCancel    Verb = "cancel"
	VerbApprove   Verb = "approve"
	VerbDrain     Verb = "drain"
	VerbFence     Verb = "fence"
	VerbReconcile Verb = "reconcile"
	VerbReclaim   Verb = "reclaim"
)

// Role is the least role that a right needs.
type Role uint8

// The roles, from the one with the fewest rights.
const (
	Nobody  Role = iota
	Anyone       // no token is needed
	Tenants      // any valid token; within its namespaces where the kind is in one
	Admins
)

// String names the role as the reference of the API does.
func (r Role) String() string { return [...]string{"nobody", "anyone", "tenant", "admin"}[r] }

// rights are those of one kind. The objects of a namespaced kind are in
// namespaces, and only an admin lists or watches those of all namespaces.
type rights struct {
	namespaced bool
	// ofTenants: the objects are tenants, and a tenant has the one of its name.
	ofTenants bool
	// listsOwn: a list over all namespaces shows a tenant its own objects.
	listsOwn bool
	verbs    map[Verb]Role
}

// work are the rights on allocations and jobs.
func work() rights {
	return rights{namespaced: true, verbs: map[Verb]Role{
		VerbCreate: Tenants, VerbGet: Tenants, VerbList: Tenants, VerbWatch: Tenants, VerbPatch: Tenants, VerbDelete: Tenants,
		VerbExplain: Tenants, VerbCancel: Tenants,
	}}
}

// documents are the rights on a kind that tenants read and admins write.
func documents(namespaced bool) rights {
	return rights{namespaced: namespaced, verbs: map[Verb]Role{
		VerbGet: Tenants, VerbList: Tenants, VerbWatch: Tenants,
		VerbCreate: Admins, VerbUpdate: Admins, VerbPatch: Admins, VerbDelete: Admins,
	}}
}

// forAdmins are the rights on a kind that tenants do not see.
func forAdmins() rights {
	return rights{verbs: map[Verb]Role{VerbGet: Admins, VerbList: Admins, VerbCreate: Admins, VerbDelete: Admins}}
}

// table is the rights of each kind: kind × verb.
func table() map[Kind]rights {
	trees := documents(false)
	trees.verbs[VerbReclaim] = Admins
	nodes := documents(false)
	tenants, namespaces := documents(false), documents(true)
	tenants.ofTenants, tenants.listsOwn, namespaces.listsOwn = true, true, true
	for _, verb := range []Verb{VerbApprove, VerbDrain, VerbFence, VerbReconcile} {
		nodes.verbs[verb] = Admins
	}
	return map[Kind]rights{
		KindAllocations: work(), KindJobs: work(),
		KindPreemptions: {namespaced: true, verbs: map[Verb]Role{VerbCreate: Admins}},
		KindNodes:       nodes,
		KindEvictions:   {verbs: map[Verb]Role{VerbList: Admins, VerbWatch: Admins}},
		KindCoordinators: {verbs: map[Verb]Role{
			VerbGet: Tenants, VerbList: Tenants, VerbWatch: Tenants,
		}},
		KindResourceQuotas: documents(true), KindQuotaTrees: trees, KindQuotaForests: documents(false), KindQuotaBindings: documents(true),
		KindConsumers: {verbs: map[Verb]Role{VerbTry: Tenants}},
		KindTokens:    forAdmins(), KindAuthorities: forAdmins(), KindOperators: forAdmins(), KindBans: forAdmins(), KindMetrics: forAdmins(),
		KindUsage:   {verbs: map[Verb]Role{VerbGet: Tenants}}, // of its own tenant alone: AuthorizeTenant
		KindTenants: tenants, KindNamespaces: namespaces,
		KindQuotaModes: {verbs: map[Verb]Role{VerbGet: Tenants, VerbPatch: Admins}},
	}
}

var rightsOf = table()

// Needs is the least role that may use a verb on a kind, within a namespace or,
// for a namespaced kind, over all of them. Nobody means that there is no such
// verb.
func Needs(verb Verb, kind Kind, withinNamespace bool) Role {
	of := rightsOf[kind]
	role := of.verbs[verb]
	if role == Tenants && of.namespaced && !withinNamespace && !of.listsOwn {
		return Admins
	}
	return role
}

// Access decides who may do what. The zero value gives each tenant the namespace
// that bears its name.
type Access struct {
	// TenantOf returns the tenant that owns a namespace, configured or not. It
	// must not block.
	TenantOf func(namespace string) resource.TenantID
}

// Authorize returns the 403 for a principal that may not use a verb on a kind,
// nil for any other principal. namespace is "" for a kind that is in none, and
// for all namespaces; of a tenant it is the name. An admin may use each verb that a
// kind has; a tenant those that the table gives to tenants, within the namespaces
// that the tenant owns. Where Filters reports true, the caller of a list gets the
// tenant's own objects alone.
func (a Access) Authorize(p Principal, verb Verb, kind Kind, namespace string) *api.Status {
	switch role := Needs(verb, kind, namespace != ""); {
	case role == Nobody:
		return api.Errorf(http.StatusForbidden, "%s %s: there is no such right", verb, kind)
	case role == Anyone, p.Admin:
		return nil
	case role == Admins:
		return api.Errorf(http.StatusForbidden, "%s %s: only an admin may do this, %q is none", verb, kind, p.Name)
	case Filters(p, kind) && namespace == "" && p.Tenant != "":
		return nil
	case rightsOf[kind].ofTenants:
		if p.Tenant == "" || resource.TenantID(namespace) != p.Tenant {
			return api.Errorf(http.StatusForbidden, "%q may not read tenant %.120q", p.Name, namespace)
		}
	case rightsOf[kind].namespaced && !a.owns(p, namespace):
		return api.Errorf(http.StatusForbidden, "%q may not use namespace %.120q", p.Name, namespace)
	}
	return nil
}

// Filters reports whether a list of a kind shows a principal its own objects alone.
func Filters(p Principal, kind Kind) bool { return !p.Admin && rightsOf[kind].listsOwn }

// owns reports whether the principal's tenant owns a namespace.
func (a Access) owns(p Principal, namespace string) bool {
	owner := resource.TenantID(namespace)
	if a.TenantOf != nil {
		owner = a.TenantOf(namespace)
	}
	return p.Tenant != "" && owner == p.Tenant
}
