package service

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Kind names the objects of one kind, as the paths of the REST API do.
type Kind string

// The kinds of the public API.
const (
	KindAllocations     Kind = "allocations"
	KindJobs            Kind = "jobs"
	KindPreemptions     Kind = "preemptions"
	KindNodes           Kind = "nodes"
	KindEvictions       Kind = "evictions" // of a node, of all tenants
	KindCoordinators    Kind = "coordinators"
	KindResourceQuotas  Kind = "resourcequotas"
	KindQuotaTrees      Kind = "quotatrees"
	KindQuotaForests    Kind = "quotaforests"
	KindQuotaBindings   Kind = "quotabindings"
	KindConsumers       Kind = "consumers" // of quota, tried without effect
	KindTokens          Kind = "bootstraptokens"
	KindAccessTokens    Kind = "tokens" // of people and programs, for this API
	KindRoleBindings    Kind = "rolebindings"
	KindAuthorities     Kind = "authorities"
	KindOperators       Kind = "operatorcertificates"
	KindBans            Kind = "nodebans"
	KindMetrics         Kind = "metrics" // of the whole cluster, for Prometheus
	KindUsage           Kind = "usage"   // of the cluster, its queues and its tenants
	KindTenants         Kind = "tenants"
	KindNamespaces      Kind = "namespaces"
	KindResources       Kind = "resources"       // the names of resources
	KindQueues          Kind = "queues"          // rules for the work that waits
	KindPriorityClasses Kind = "priorityclasses" // names for priorities
	KindQuotaModes      Kind = "quotamodes"      // of the cluster: one
	KindFeatureLevels   Kind = "featurelevels"   // of the cluster
	KindEvents          Kind = "events"          // of objects; those of nodes are in no namespace
	KindWhoAmI          Kind = "whoami"          // of the caller
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
	VerbBoost     Verb = "boost" // raises the priority for a while
	VerbApprove   Verb = "approve"
	VerbDrain     Verb = "drain"
	VerbFence     Verb = "fence"
	VerbReconcile Verb = "reconcile"
	VerbReclaim   Verb = "reclaim"
	VerbRotate    Verb = "rotate"
	VerbLogs      Verb = "logs" // reads the output of commands
	VerbExec      Verb = "exec" // opens sessions in members of a job
)

// rights are those of one kind. The objects of a namespaced kind are in
// namespaces; a list over all of them needs a role of the whole cluster.
type rights struct {
	namespaced bool
	// ofTenants: the objects are tenants, and a caller of a tenant has the one of its
	// name.
	ofTenants bool
	// listsOwn: a list over all namespaces shows a caller of a tenant its own objects.
	listsOwn bool
	// noun is the kind in the refusal of an object that does not exist.
	noun  string
	verbs map[Verb]Roles
}

// work are the rights on allocations and jobs.
func work(noun string) rights {
	return rights{namespaced: true, noun: noun, verbs: map[Verb]Roles{
		VerbGet: Tenants, VerbList: Tenants, VerbWatch: Tenants, VerbExplain: Tenants,
		VerbCreate: Editors, VerbPatch: Editors, VerbDelete: Enders,
	}}
}

// documents are the rights on a kind that every role reads and admins write.
func documents(namespaced bool) rights {
	return rights{namespaced: namespaced, verbs: map[Verb]Roles{
		VerbGet: Tenants, VerbList: Tenants, VerbWatch: Tenants,
		VerbCreate: Admins, VerbUpdate: Admins, VerbPatch: Admins, VerbDelete: Admins,
	}}
}

// only are the rights on a kind that no other role sees.
func only(roles Roles, verbs ...Verb) rights {
	r := rights{verbs: map[Verb]Roles{}}
	for _, verb := range verbs {
		r.verbs[verb] = roles
	}
	return r
}

// table is the rights of each kind: kind × verb. Each right has a door: test/rights asks
// all of them.
func table() map[Kind]rights {
	trees := documents(false)
	trees.verbs[VerbReclaim] = Admins
	tenants, namespaces := documents(false), documents(true)
	tenants.ofTenants, tenants.listsOwn, namespaces.listsOwn = true, true, true
	tenants.noun, namespaces.noun = "tenant", "namespace"
	quotas, bindings := documents(true), documents(true)
	quotas.noun, bindings.noun = "resource quota", "quota binding"
	jobs := work("job")
	jobs.verbs[VerbCancel], jobs.verbs[VerbBoost], jobs.verbs[VerbLogs], jobs.verbs[VerbExec] = Enders, Enders, Editors, Editors
	nodes := documents(false)
	delete(nodes.verbs, VerbUpdate) // a node is patched
	// A host creates its own node, which AdmitCreation checks by the bootstrap token.
	nodes.verbs[VerbCreate] = Operators | Roles(Node)
	for _, verb := range []Verb{VerbPatch, VerbDelete, VerbApprove, VerbDrain, VerbFence, VerbReconcile} {
		nodes.verbs[verb] = Operators
	}
	names := documents(false)
	for _, verb := range []Verb{VerbCreate, VerbUpdate, VerbPatch, VerbDelete} {
		names.verbs[verb] = Operators
	}
	kept := []Verb{VerbList, VerbCreate, VerbDelete}
	return map[Kind]rights{
		KindAllocations: work("allocation"), KindJobs: jobs,
		KindPreemptions:    {namespaced: true, noun: "allocation", verbs: map[Verb]Roles{VerbCreate: Operators}},
		KindNodes:          nodes,
		KindEvictions:      only(Operators, VerbList, VerbWatch),
		KindCoordinators:   only(Tenants, VerbList),
		KindResourceQuotas: quotas, KindQuotaTrees: trees, KindQuotaForests: documents(false), KindQuotaBindings: bindings,
		KindConsumers: only(Tenants, VerbTry),
		KindTokens:    only(Operators, kept...), KindBans: only(Operators, kept...), KindMetrics: only(Operators, VerbGet),
		KindAuthorities: only(Admins, kept...), KindOperators: only(Admins, kept...),
		KindUsage:   only(Tenants, VerbGet), // of its own tenant alone: AuthorizeTenant
		KindTenants: tenants, KindNamespaces: namespaces, KindResources: names, KindQueues: names, KindPriorityClasses: names,
		KindQuotaModes:    {verbs: map[Verb]Roles{VerbGet: Tenants, VerbPatch: Admins}},
		KindFeatureLevels: {verbs: map[Verb]Roles{VerbGet: Operators, VerbPatch: Admins}},
		// Which of these a tenant-admin may see and change depends on the tenant that the
		// object names: MayGrant.
		KindAccessTokens: only(TenantAdmins, VerbGet, VerbList, VerbWatch, VerbCreate, VerbDelete, VerbRotate),
		KindRoleBindings: only(TenantAdmins, VerbGet, VerbList, VerbWatch, VerbCreate, VerbUpdate, VerbPatch, VerbDelete),
		KindWhoAmI:       only(Known, VerbGet),
		KindEvents:       {namespaced: true, noun: "event", verbs: map[Verb]Roles{VerbGet: Tenants, VerbList: Tenants, VerbWatch: Tenants}},
		// Which entries a tenant-admin sees depends on the entry: SeesAudit.
		KindAudit:    only(TenantAdmins, VerbList),
		KindHistory:  only(Operators, VerbGet, VerbUpdate),
		KindSnapshot: only(Operators, VerbGet),
		// Which rows a caller sees depends on the row: PastOf.
		KindPast: only(Tenants, VerbList),
	}
}

var rightsOf = table()

// Right is one row of the table of rights: the roles that may use a verb on a kind.
type Right struct {
	Kind  Kind
	Verb  Verb
	Roles Roles
	// Namespaced: a role counts in the namespaces that it covers.
	Namespaced bool
}

// Rights is the table of rights, by kind and verb.
func Rights() []Right {
	var all []Right
	for kind, of := range rightsOf {
		for verb, roles := range of.verbs {
			all = append(all, Right{kind, verb, roles, of.namespaced || of.ofTenants})
		}
	}
	slices.SortFunc(all, func(a, b Right) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Verb, b.Verb)) })
	return all
}

// Needs are the roles that may use a verb on a kind. Nobody means that there is no
// such verb.
func Needs(verb Verb, kind Kind) Roles { return rightsOf[kind].verbs[verb] }

// NeedsEverywhere reports whether a request over all namespaces of a kind needs a role
// of the whole cluster.
func NeedsEverywhere(kind Kind) bool { return rightsOf[kind].namespaced && !rightsOf[kind].listsOwn }

// Access decides about the rights of callers. The zero value gives each tenant the namespace
// that bears its name.
type Access struct {
	// TenantOf returns the tenant that owns a namespace, configured or not. It
	// must not block.
	TenantOf func(namespace string) resource.TenantID
}

// Authorize returns the refusal of a principal that may not use a verb on a kind,
// nil for any other principal. namespace is "" for a kind that is in none, and for
// all namespaces; of a tenant it is the name. name is the object, "" for none.
//
// Where no role of the principal counts in the namespace, the answer is the 404 of
// an object that does not exist, before anything is looked up: nobody learns
// about the objects in the namespaces of others. Where a role counts and is not enough, the
// answer is a 403 that lists the roles that are. Where Filters reports true, the
// caller of a list gets the principal's own objects alone.
func (a Access) Authorize(p Principal, verb Verb, kind Kind, namespace, name string) *api.Status {
	of := rightsOf[kind]
	roles := of.verbs[verb]
	has := func(roles Roles) bool { return p.has(roles, nil) }
	switch {
	case roles == Nobody:
		return api.Errorf(http.StatusForbidden, "%s %s: there is no such right", verb, kind)
	case roles == Anyone, roles == Known:
		return nil
	case of.listsOwn && namespace == "":
	case of.ofTenants:
		has = func(roles Roles) bool { return p.hasIn(resource.TenantID(namespace), roles, nil) }
	case of.namespaced && namespace == "":
		has = p.Everywhere
	case of.namespaced:
		has = func(roles Roles) bool { return a.countsIn(p, roles, namespace) }
	}
	if has(roles) {
		return nil
	}
	if (of.namespaced || of.ofTenants) && namespace != "" && !has(Tenants) {
		return notThere(kind, namespace, name)
	}
	where := ""
	switch {
	case of.namespaced && namespace != "":
		where = " in namespace " + Clip(namespace)
	case NeedsEverywhere(kind) && roles.Has(Viewer):
		return api.Errorf(http.StatusForbidden, "%s %s in all namespaces: name a namespace, or have a role in the whole cluster; %q has %s", verb, kind, p.Name, p.Roles())
	}
	return api.Errorf(http.StatusForbidden, "%s %s%s: want the role %s; %q has %s", verb, kind, where, orList(roles.Names()), p.Name, p.Roles())
}

// notThere is the answer where there is no such object. The implementations of the
// kinds answer with the same text; a test compares them.
func notThere(kind Kind, namespace, name string) *api.Status {
	switch noun := rightsOf[kind].noun; {
	case kind == KindTenants:
		return api.Errorf(http.StatusNotFound, "tenant %s not found", Clip(namespace))
	case kind == KindQuotaBindings:
		return api.Errorf(http.StatusNotFound, "quota binding of namespace %s not found", Clip(namespace))
	case name == "" || kind == KindNamespaces:
		return api.Errorf(http.StatusNotFound, "namespace %s not found", Clip(namespace))
	default:
		return api.Errorf(http.StatusNotFound, "%s %s not found in namespace %s", noun, Clip(name), Clip(namespace))
	}
}

// orList is "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Filters reports whether a list of a kind shows a principal its own objects alone.
func Filters(p Principal, kind Kind) bool { return rightsOf[kind].listsOwn && !p.Everywhere(Tenants) }

// MayGrant returns the refusal of a principal that may not give a role, or see and
// change an object that gives it, nil for any other principal. Nobody gives more than
// they have: an admin gives every role, a tenant-admin the roles viewer, editor and
// tenant-admin of the same tenant, in the namespaces that the tenant-admin has.
func MayGrant(p Principal, g Grant) *api.Status {
	if p.Everywhere(Admins) {
		return nil
	}
	given := Roles(Viewer | Editor | TenantAdmin)
	holds := p.hasIn(g.Tenant, TenantAdmins, func(own *Grant) bool {
		return own.Tenant == g.Tenant && (len(own.Namespaces) == 0 || len(g.Namespaces) > 0 && !slices.ContainsFunc(g.Namespaces, func(n string) bool { return !slices.Contains(own.Namespaces, n) }))
	})
	if holds && g.Tenant != "" && given.Has(g.Role) {
		return nil
	}
	return api.Errorf(http.StatusForbidden, "the role %s is not %q's to give: %q has %s", g, p.Name, p.Name, p.Roles())
}

// countsIn reports whether one of the roles of a principal counts in a namespace.
func (a Access) countsIn(p Principal, roles Roles, namespace string) bool {
	owner := a.tenantOf(namespace)
	return p.hasIn(owner, roles, func(g *Grant) bool { return g.covers(namespace, owner) })
}

func (a Access) tenantOf(namespace string) resource.TenantID {
	if a.TenantOf == nil {
		return resource.TenantID(namespace)
	}
	return a.TenantOf(namespace)
}
