package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// kind is a kind of object by the name in the client's table.
type kind string

// The kinds that some verbs are about.
const (
	allocationKind    kind = "allocation"
	jobKind           kind = "job"
	nodeKind          kind = "node"
	eventKind         kind = "event"
	tenantKind        kind = "tenant"
	namespaceKind     kind = "namespace"
	resourceKind      kind = "resource"
	priorityClassKind kind = "priorityclass"
	queueKind         kind = "queue"
	resourceQuotaKind kind = "resourcequota"
	quotaTreeKind     kind = "quotatree"
	quotaForestKind   kind = "quotaforest"
	quotaBindingKind  kind = "quotabinding"
	roleBindingKind   kind = "rolebinding"
)

// entry is all that the command line knows of one kind. Names, namespaces and
// calls are the client's (sdk.Kinds); a new kind is one entry here and one there.
type entry struct {
	kind kind
	// quota marks the kinds of muster quota; inAll those that get all shows.
	quota, inAll bool
	// heads are the columns of its table, wide those that -o wide adds, and row
	// returns the cells of both.
	heads, wide []string
	row         func(o object, now time.Time) (cells, wide []string)
	// describe prints everything about one object.
	describe func(*app, context.Context, object) error
	// draw, where not nil, prints several objects instead of a table.
	draw func(*app, []object)
	// warn, where not nil, returns the parts of an object that have no effect.
	warn func(*app, context.Context, object) []string
	// spec returns the part of the object that a person writes, in one way of
	// writing it.
	spec func(object) any
	// isName and nameRule are the names that objects may have.
	isName   func(string) bool
	nameRule string
}

const (
	subdomainRule = "want 1..253 of a-z, 0-9, '-' and '.'"
	labelRule     = "want 1..63 of a-z, 0-9 and '-'"
	resourceRule  = "want NAME or DOMAIN/NAME, as in nvidia.com/gpu"
	treeNameRule  = "want 1..63 letters, digits, '-', '_' and '.'"
)

// entries is the table of kinds, in the order of the client's.
func entries() []entry {
	return []entry{
		{
			kind: jobKind, inAll: true, isName: api.IsSubdomain, nameRule: subdomainRule,
			heads: []string{"NAME", "PHASE", "ACTIVE", "POSITION", "AGE"}, wide: []string{"QUEUE", "PRIORITY", "MESSAGE"},
			row: func(o object, now time.Time) ([]string, []string) {
				return jobRow(as[api.Job](o), now), jobWide(as[api.Job](o))
			},
			describe: func(a *app, ctx context.Context, o object) error { return a.describeJob(ctx, as[api.Job](o)) },
			spec:     func(o object) any { return as[api.Job](o).Spec },
		},
		{
			kind: allocationKind, inAll: true, isName: api.IsSubdomain, nameRule: subdomainRule,
			heads: []string{"NAME", "PHASE", "NODE", "CPUS", "NUMA", "MEMORY", "GPUS", "AGE"}, wide: []string{"JOB", "GPU-UUIDS", "MESSAGE"},
			row: func(o object, now time.Time) ([]string, []string) {
				return allocationRow(as[api.Allocation](o), now), allocationWide(as[api.Allocation](o))
			},
			describe: func(a *app, _ context.Context, o object) error {
				a.describeAllocation(as[api.Allocation](o))
				return nil
			},
			spec: func(o object) any { return as[api.Allocation](o).Spec },
		},
		{
			kind: nodeKind, isName: api.IsSubdomain, nameRule: subdomainRule,
			heads: []string{"NAME", "PHASE", "CPUS", "NUMA", "MEMORY", "GPUS", "AGE"}, wide: []string{"MODELS", "ALLOCATIONS", "LABELS"},
			row: func(o object, now time.Time) ([]string, []string) {
				return nodeRow(as[api.Node](o), now), nodeWide(as[api.Node](o))
			},
			describe: func(a *app, _ context.Context, o object) error {
				a.describeNode(as[api.Node](o), time.Now())
				return nil
			},
			spec: func(o object) any { return as[api.Node](o).Spec },
		},
		{
			kind: eventKind, isName: api.IsSubdomain, nameRule: subdomainRule,
			heads: []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}, wide: []string{"SOURCE", "FIRST SEEN", "COUNT", "NAME"},
			row:      func(o object, now time.Time) ([]string, []string) { return eventRow(as[api.Event](o), now) },
			describe: func(a *app, _ context.Context, o object) error { a.describeEvent(as[api.Event](o)); return nil },
			spec:     func(object) any { return nil },
		},
		{
			kind: tenantKind, isName: api.IsLabel, nameRule: labelRule,
			heads: []string{"NAME", "DISPLAY NAME", "OWNER", "AGE"}, wide: []string{"CONTACTS"},
			row:      func(o object, now time.Time) ([]string, []string) { return tenantRow(as[api.Tenant](o), now) },
			describe: func(a *app, _ context.Context, o object) error { a.describeTenant(as[api.Tenant](o)); return nil },
			spec:     func(o object) any { return as[api.Tenant](o).Spec },
		},
		{
			kind: namespaceKind, isName: api.IsLabel, nameRule: labelRule,
			heads: []string{"NAME", "TENANT", "ADMISSION", "CEILING", "QUEUE", "AGE"}, wide: []string{"UNSATISFIABLE", "DEVICE LOST"},
			row: func(o object, now time.Time) ([]string, []string) { return namespaceRow(as[api.Namespace](o), now) },
			describe: func(a *app, _ context.Context, o object) error {
				a.describeNamespace(as[api.Namespace](o))
				return nil
			},
			spec: func(o object) any { return as[api.Namespace](o).Spec },
		},
		{
			kind: resourceKind, isName: api.IsResourceName, nameRule: resourceRule,
			heads: []string{"NAME", "KIND", "UNIT", "SCOPE", "SOURCES", "NODES", "AGE"}, wide: []string{"DISPLAY NAME", "RANK"},
			row:      func(o object, now time.Time) ([]string, []string) { return resourceRow(as[api.Resource](o), now) },
			describe: func(a *app, _ context.Context, o object) error { a.describeResource(as[api.Resource](o)); return nil },
			spec:     func(o object) any { return as[api.Resource](o).Spec },
		},
		{
			kind: priorityClassKind, isName: api.IsSubdomain, nameRule: subdomainRule,
			heads: []string{"NAME", "VALUE", "PREEMPTION", "DEFAULT", "AGE"}, wide: []string{"DESCRIPTION"},
			row: func(o object, now time.Time) ([]string, []string) {
				return priorityClassRow(as[api.PriorityClass](o), now)
			},
			describe: func(a *app, _ context.Context, o object) error {
				a.describePriorityClass(as[api.PriorityClass](o))
				return nil
			},
			spec: func(o object) any { return as[api.PriorityClass](o).Spec },
		},
		{
			kind: queueKind, isName: api.IsLabel, nameRule: labelRule,
			heads: []string{"NAME", "STATE", "ORDER", "RUNNING", "WAITING", "AGE"}, wide: []string{"PLACEMENT POLICY"},
			row:      func(o object, now time.Time) ([]string, []string) { return queueRow(as[api.Queue](o), now) },
			describe: func(a *app, _ context.Context, o object) error { a.describeQueue(as[api.Queue](o)); return nil },
			spec:     func(o object) any { return as[api.Queue](o).Spec },
		},
		{
			kind: roleBindingKind, isName: api.IsSubdomain, nameRule: subdomainRule,
			heads: []string{"NAME", "ROLE", "TENANT", "NAMESPACES", "SUBJECTS", "AGE"}, wide: []string{"WHO"},
			row: func(o object, now time.Time) ([]string, []string) {
				return roleBindingRow(as[api.RoleBinding](o), now)
			},
			describe: func(a *app, _ context.Context, o object) error {
				a.describeRoleBinding(as[api.RoleBinding](o))
				return nil
			},
			warn: func(a *app, ctx context.Context, o object) []string {
				if w := a.strangeTenant(ctx, as[api.RoleBinding](o).Spec.Tenant); w != "" {
					return []string{w}
				}
				return nil
			},
			spec: func(o object) any { return as[api.RoleBinding](o).Spec },
		},
		{
			kind: quotaTreeKind, quota: true, isName: api.IsTreeName, nameRule: treeNameRule,
			heads:    []string{"NAME", "ROOT", "NODES", "GROUPS", "UNITS", "OVER QUOTA", "NOT IN FORCE", "AGE"},
			row:      func(o object, now time.Time) ([]string, []string) { return treeRow(as[api.QuotaTree](o), now), nil },
			describe: func(a *app, _ context.Context, o object) error { a.describeTree(as[api.QuotaTree](o)); return nil },
			warn:     func(_ *app, _ context.Context, o object) []string { return treeWarnings(as[api.QuotaTree](o)) },
			spec:     func(o object) any { return plainJSON(as[api.QuotaTree](o).Spec) },
		},
		{
			kind: quotaForestKind, quota: true, isName: api.IsTreeName, nameRule: treeNameRule,
			heads:    []string{"NAME", "TREES", "AGE"},
			row:      func(o object, now time.Time) ([]string, []string) { return forestRow(as[api.QuotaForest](o), now), nil },
			describe: func(a *app, _ context.Context, o object) error { a.describeForest(as[api.QuotaForest](o)); return nil },
			spec:     func(o object) any { return as[api.QuotaForest](o).Spec },
		},
		{
			kind: quotaBindingKind, quota: true, isName: api.IsSubdomain, nameRule: subdomainRule,
			heads: []string{"NAMESPACE", "GROUPS", "FOREST", "ADMISSION", "AGE"},
			row: func(o object, now time.Time) ([]string, []string) {
				return bindingRow(as[api.QuotaBinding](o), now), nil
			},
			describe: func(a *app, _ context.Context, o object) error {
				a.describeBinding(as[api.QuotaBinding](o))
				return nil
			},
			warn: func(a *app, ctx context.Context, o object) []string {
				return a.groupFaults(ctx, as[api.QuotaBinding](o))
			},
			spec: func(o object) any { return as[api.QuotaBinding](o).Spec },
		},
		{
			kind: resourceQuotaKind, quota: true, isName: api.IsSubdomain, nameRule: subdomainRule,
			describe: func(a *app, _ context.Context, o object) error {
				a.describeResourceQuota(as[api.ResourceQuota](o))
				return nil
			},
			draw: (*app).drawResourceQuotas,
			warn: func(_ *app, _ context.Context, o object) []string { return quotaWarnings(as[api.ResourceQuota](o)) },
			spec: func(o object) any { return as[api.ResourceQuota](o).Spec },
		},
	}
}

// kindsWhere returns the kinds whose entries pass.
func kindsWhere(pass func(entry) bool) []kind {
	var some []kind
	for _, e := range entries() {
		if pass(e) {
			some = append(some, e.kind)
		}
	}
	return some
}

// allKinds are all kinds in the order in which they are shown, and quotaKinds
// those of muster quota.
func allKinds() []kind   { return kindsWhere(func(entry) bool { return true }) }
func quotaKinds() []kind { return kindsWhere(func(e entry) bool { return e.quota }) }

// entry returns the kind's entry.
func (k kind) entry() entry {
	all := entries()
	return all[slices.IndexFunc(all, func(e entry) bool { return e.kind == k })] // each kind has one
}

// client returns the kind in the client's table.
func (k kind) client() *sdk.Kind {
	c, _ := sdk.KindNamed(string(k)) // each kind has one
	return c
}

func (k kind) plural() string { return k.client().Plural }

// namespaced reports whether objects of the kind live in namespaces.
func (k kind) namespaced() bool { return k.client().Namespaced }

func (k kind) isQuota() bool { return k.entry().quota }

// plurals lists kinds as an error or a completion does.
func plurals(of []kind) []string {
	names := make([]string, 0, len(of))
	for _, k := range of {
		names = append(names, k.plural())
	}
	return names
}

// shorts lists the short names of all kinds.
func shorts() string {
	var some []string
	for _, k := range allKinds() {
		if short := k.client().Short; len(short) > 0 {
			some = append(some, short[0]+" for "+k.plural())
		}
	}
	return strings.Join(some, ", ")
}

// parseKind reads a kind in any of its names.
func parseKind(s string) (kind, error) {
	if k, found := sdk.KindNamed(strings.ToLower(s)); found {
		return kind(k.Name), nil
	}
	return "", usagef("unknown kind %q: want one of %s", s, strings.Join(plurals(allKinds()), ", "))
}

// checkName refuses a name that no object of the kind has.
func (k kind) checkName(name string) error {
	e := k.entry()
	if e.isName(name) {
		return nil
	}
	return usagef("%q is not the name of a %s: %s", name, k, e.nameRule)
}

// parseTargets reads "KIND [NAME…]" or "KIND/NAME…" of one kind.
func parseTargets(args []string) (kind, []string, error) {
	groups, err := parseGroups(args)
	if err != nil {
		return "", nil, err
	}
	if len(groups) > 1 {
		return "", nil, usagef("%q and %q: want one kind", groups[0].kind, groups[1].kind)
	}
	return groups[0].kind, groups[0].names, nil
}

// group is a kind and the names of some of its objects; none means all.
type group struct {
	kind  kind
	names []string
}

// parseGroups reads "KIND[,KIND…] [NAME…]" or "KIND/NAME…", in the order given.
func parseGroups(args []string) ([]group, error) {
	if len(args) == 0 {
		return nil, usagef("name a kind: one of %s", strings.Join(plurals(allKinds()), ", "))
	}
	if strings.Contains(args[0], "/") {
		return parsePaths(args)
	}
	var groups []group
	for word := range strings.SplitSeq(args[0], ",") {
		some := kindsWhere(func(e entry) bool { return e.inAll })
		if strings.ToLower(word) != "all" {
			k, err := parseKind(word)
			if err != nil {
				return nil, err
			}
			some = []kind{k}
		}
		for _, k := range some {
			if slices.ContainsFunc(groups, func(g group) bool { return g.kind == k }) {
				return nil, usagef("%q: %s are named twice", args[0], k.plural())
			}
			groups = append(groups, group{kind: k, names: args[1:]})
		}
	}
	for _, g := range groups {
		for _, name := range g.names {
			if strings.Contains(name, "/") && g.kind != resourceKind { // whose names have domains
				return nil, usagef("%q: after the kind %q want NAME, or write KIND/NAME everywhere", name, args[0])
			}
			if err := g.kind.checkName(name); err != nil {
				return nil, err
			}
		}
	}
	return groups, nil
}

// parsePaths reads KIND/NAME….
func parsePaths(args []string) ([]group, error) {
	var groups []group
	for _, arg := range args {
		word, name, both := strings.Cut(arg, "/")
		if !both {
			return nil, usagef("%q: after %q every argument is KIND/NAME", arg, args[0])
		}
		k, err := parseKind(word)
		if err == nil {
			err = k.checkName(name)
		}
		if err != nil {
			return nil, err
		}
		if last := len(groups) - 1; last >= 0 && groups[last].kind == k {
			groups[last].names = append(groups[last].names, name)
			continue
		}
		groups = append(groups, group{kind: k, names: []string{name}})
	}
	return groups, nil
}
