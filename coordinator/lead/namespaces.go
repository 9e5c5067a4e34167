package lead

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// spaces are the tenants and the namespaces that operators keep as objects.
//
// Invariant: the tenant that a namespace names is its namesake or in tenants.
type spaces struct {
	tenants    map[string]*kept[api.Tenant]
	namespaces map[string]*kept[api.Namespace]
	// configured: the namespaces of the configuration have become objects, and
	// the configuration has no say in them any more.
	configured bool
	// paused are the submissions to a namespace whose owner is being changed, or
	// whose object is being deleted. They go on when the change has its outcome.
	paused map[string][]func()
}

func newSpaces() *spaces {
	return &spaces{tenants: map[string]*kept[api.Tenant]{}, namespaces: map[string]*kept[api.Namespace]{}, paused: map[string][]func(){}}
}

// loadSpaces takes the tenants and the namespaces of the store.
func (v *view) loadSpaces(tenants, namespaces, configured []record.KV) error {
	for _, kv := range tenants {
		k, err := readObject(kv, api.DecodeTenant, func(t *api.Tenant) *api.ObjectMeta { return &t.Metadata })
		if err != nil {
			return err
		}
		v.spaces.tenants[k.object.Metadata.Name] = k
	}
	for _, kv := range namespaces {
		k, err := readObject(kv, api.DecodeNamespace, func(n *api.Namespace) *api.ObjectMeta { return &n.Metadata })
		if err != nil {
			return err
		}
		v.spaces.namespaces[k.object.Metadata.Name] = k
	}
	v.spaces.configured = len(configured) > 0
	return nil
}

// readObject reads a tenant or a namespace from its key.
func readObject[T any](kv record.KV, decode func([]byte) (*T, *api.Status), meta func(*T) *api.ObjectMeta) (*kept[T], error) {
	object, err := ReadObject(kv, decode, meta)
	if err != nil {
		return nil, err
	}
	return &kept[T]{*object, kv.ModRev}, nil
}

// ReadObject reads the object of a key below record.TenantsPrefix or
// record.NamespacesPrefix, with the server's part of its metadata.
func ReadObject[T any](kv record.KV, decode func([]byte) (*T, *api.Status), meta func(*T) *api.ObjectMeta) (*T, error) {
	rec, err := record.Decode[record.Object](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	object, status := decode(rec.Document)
	if status != nil {
		return nil, fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	m := meta(object)
	m.Name, m.UID, m.CreationTimestamp = rec.Name, rec.UID, rec.Created
	*m = at(*m, kv.ModRev)
	return object, nil
}

// namespace returns the owner of a namespace and the rules for its work. Without an
// object the owner is the tenant of its name, and no rule is set. Until the
// namespaces of the configuration are objects, the configuration counts.
func (l *Leader) namespace(name string) Namespace {
	var n Namespace
	if k := l.spaces.namespaces[name]; k != nil {
		n = ruleOf(&k.object.Spec)
	} else if !l.spaces.configured {
		n = l.rules.Namespaces[name]
	}
	n.Tenant = cmp.Or(n.Tenant, resource.TenantID(name))
	return n
}

// isKnown reports whether a namespace has an object, or is about to get one.
func (l *Leader) isKnown(name string) bool {
	_, configured := l.rules.Namespaces[name]
	return l.spaces.namespaces[name] != nil || configured && !l.spaces.configured
}

// evictsOnLoss reports whether a unit of a namespace that holds a lost device is
// evicted. The namespace's rule wins over the configuration's.
func (l *Leader) evictsOnLoss(namespace string) bool {
	switch l.namespace(namespace).DeviceLost {
	case "evict":
		return true
	case "keep":
		return false
	}
	return l.rules.EvictOnDeviceLost
}

// judgeNamespace refuses a namespace whose tenant does not exist, and another owner
// for a namespace with work: the work was charged and shown to the owner before.
func (l *Leader) judgeNamespace(n *api.Namespace) *api.Status {
	name, tenant := n.Metadata.Name, n.Spec.Tenant
	if tenant != "" && tenant != name && l.spaces.tenants[tenant] == nil {
		return api.Errorf(422, "spec.tenant: tenant %s does not exist: create it first, or leave the field out for the tenant %s", tenant, name)
	}
	before, after := l.namespace(name).Tenant, ownerOf(n)
	if work := l.workIn(name); before != after && len(work) > 0 {
		return api.Errorf(409, "spec.tenant: namespace %s cannot go from tenant %s to tenant %s while it has %s: delete them first",
			name, before, after, listed(work)).Because(api.FailedPrecondition)
	}
	return nil
}

// workIn counts the allocations and the jobs of a namespace in words; none for an
// empty one. The members of a job count with the job.
func (l *Leader) workIn(namespace string) []string {
	allocations, jobs := 0, 0
	for _, u := range l.units {
		if u.record.Namespace == namespace && u.job == nil {
			allocations++
		}
	}
	for _, j := range l.jobs {
		if j.record.Namespace == namespace {
			jobs++
		}
	}
	return counted(nil, allocations, "allocation", jobs, "job")
}

// contentsOf counts all objects of a namespace in words.
func (l *Leader) contentsOf(namespace string) []string {
	quotas, bindings := 0, 0
	for _, q := range l.quotas.resources {
		if q.object.Metadata.Namespace == namespace {
			quotas++
		}
	}
	if l.quotas.bindings[namespace] != nil {
		bindings = 1
	}
	return counted(l.workIn(namespace), quotas, "resource quota", bindings, "quota binding")
}

// counted appends "3 jobs" and the like; nothing for a count of 0.
func counted(list []string, first int, one string, second int, other string) []string {
	for _, c := range []struct {
		n    int
		what string
	}{{first, one}, {second, other}} {
		switch {
		case c.n == 1:
			list = append(list, "1 "+c.what)
		case c.n > 1:
			list = append(list, fmt.Sprintf("%d %ss", c.n, c.what))
		}
	}
	return list
}

// listed is "a, b and c".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// namespacesOf are the namespaces with an object that a tenant owns, by name.
func (l *Leader) namespacesOf(tenant string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(l.spaces.namespaces)) {
		if l.namespace(name).Tenant == resource.TenantID(tenant) {
			names = append(names, name)
		}
	}
	return names
}

// pauseWork has submissions to a namespace wait until a change of its owner, or its
// deletion, has its outcome: no unit is charged to an owner that is about to go.
func (l *Leader) pauseWork(namespace string, w quotaWrite) quotaWrite {
	landed := w.landed
	l.spaces.paused[namespace] = []func(){}
	w.landed = func(rev resource.Revision) {
		landed(rev)
		l.resumeWork(namespace)
	}
	w.failed = func() { l.resumeWork(namespace) }
	return w
}

func (l *Leader) resumeWork(namespace string) {
	waiting := l.spaces.paused[namespace]
	delete(l.spaces.paused, namespace)
	for _, serve := range waiting {
		serve()
	}
}

// isPaused has a submission go on later, where its namespace is being changed.
func (l *Leader) isPaused(c *call, namespace string, serve func()) bool {
	waiting, paused := l.spaces.paused[namespace]
	if paused {
		l.spaces.paused[namespace] = append(waiting, func() {
			if !c.over {
				serve()
			}
		})
	}
	return paused
}
