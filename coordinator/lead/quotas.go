package lead

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// everyTree is the one forest of the quota manager: a unit is charged on all
// the trees that it names or on none, whatever forests operators have made.
const everyTree = "every"

// quotas are what bounds tenants: objects that operators set, as the store has
// them, and what is charged.
//
// Invariant: limits charge exactly the transactions in leader.attempts, trees
// exactly those of them that name a tree, by their unit's path; beside them
// trees hold a unit for the moment between its admission and its attempt.
type quotas struct {
	limits *quota.Limits
	trees  *quota.Manager
	timed  bool // the trees want to know the time

	resources   map[string]*resourceQuota // by namespace/name
	treeObjects map[string]*quotaTree
	// closed are the trees whose deletion is under way: nobody is charged to them.
	closed map[string]bool
	// mode is the mode of the trees, as the store has it.
	mode quotaMode

	// generation grows with every change of what units are charged to.
	generation uint64
	// changes wait for the first of them, which is being written.
	changes []func(done func())
	// loadedSeats are those of the store, by transaction, until the attempts have them.
	loadedSeats map[resource.TxID]map[string]string
	// outdated are keys of the version before, to be deleted.
	outdated []string
	sampled  time.Time // when utilization was noted last
}

func newQuotas(o quota.Options, now time.Time) *quotas {
	q := &quotas{
		limits: quota.New(), trees: quota.NewManager(o), timed: o.MinRunTime > 0,
		resources: map[string]*resourceQuota{}, treeObjects: map[string]*quotaTree{}, closed: map[string]bool{},
		generation: 1, sampled: now, loadedSeats: map[resource.TxID]map[string]string{},
	}
	must(q.trees.SetMode(quota.Normal))
	must(q.trees.AddForest(everyTree))
	return q
}

// must is for calls of the quota manager that only a broken invariant makes
// fail.
func must(err error) {
	if err != nil {
		panic("coordinator: " + err.Error())
	}
}

// resourceQuota is one with its limits in base units.
type resourceQuota struct {
	edit.Kept[api.ResourceQuota]
	hard, soft resource.Vector
	trend      shown.Trend
}

// takeResourceQuota takes over a resource quota that is durable. Where the users of a
// namespace are counted from now on, or no more, its units get other classes.
func (l *Leader) takeResourceQuota(object api.ResourceQuota, rev resource.Revision) {
	namespace := object.Metadata.Namespace
	before := l.quotas.limits.CountsUsers(namespace)
	l.quotas.setResourceQuota(object, rev, l.now)
	l.regroup(namespace, before)
}

// dropResourceQuota forgets a resource quota, as takeResourceQuota takes one over.
func (l *Leader) dropResourceQuota(namespace, name string) {
	before := l.quotas.limits.CountsUsers(namespace)
	l.quotas.removeResourceQuota(namespace, name)
	l.regroup(namespace, before)
}

func (l *Leader) regroup(namespace string, countedUsers bool) {
	if l.quotas.limits.CountsUsers(namespace) != countedUsers {
		l.offerAgain(namespace)
	}
}

// quotaTree is one and what became of it.
type quotaTree struct {
	edit.Kept[api.QuotaTree]
	spec  quota.TreeSpec
	shape quota.Shape
	// former are former names of nodes, each with its name of today.
	former map[string]string
	nodes  map[string]bool // those that the root reaches: true for a leaf
	// detached are the units, by path, that are charged to a group which the
	// tree does not have as a leaf.
	detached map[string]bool
}

// setResourceQuota takes over a resource quota that is valid.
func (q *quotas) setResourceQuota(object api.ResourceQuota, rev resource.Revision, now time.Time) {
	r := &resourceQuota{Kept: edit.Kept[api.ResourceQuota]{Object: object, Rev: rev}}
	r.hard, r.soft = object.Spec.Limits()
	m := object.Metadata
	if before := q.resources[m.Namespace+"/"+m.Name]; before != nil {
		r.trend = before.trend
	}
	q.resources[m.Namespace+"/"+m.Name] = r
	q.limits.SetLimit(quota.Limit{Group: m.Namespace, Name: m.Name, Hard: r.hard, Soft: r.soft, PerUser: object.Spec.UserLimits(), Scope: &r.Object.Spec})
	r.trend.Note(now, q.utilization(r))
}

func (q *quotas) removeResourceQuota(namespace, name string) {
	delete(q.resources, namespace+"/"+name)
	q.limits.RemoveLimit(namespace, name)
}

// SpecOf reads a tree's document.
func SpecOf(object api.QuotaTree) (quota.TreeSpec, *api.Status) {
	object.Kind = api.KindQuotaTree
	spec, err := quotajson.Tree(encodeDocument(object), quotajson.Natural)
	if err != nil {
		return spec, api.Errorf(422, "quota tree %s: %v", object.Metadata.Name, err)
	}
	return spec, nil
}

// setTree takes over a tree, new or changed, and returns the units that have to
// be charged to it anew: those that it lost, and those that it did not have a
// group for before.
func (q *quotas) setTree(object api.QuotaTree, rev resource.Revision, spec quota.TreeSpec, former map[string]string) (again []string, err error) {
	name := object.Metadata.Name
	t := &quotaTree{Kept: edit.Kept[api.QuotaTree]{Object: object, Rev: rev}, spec: spec, former: former, nodes: map[string]bool{}, detached: map[string]bool{}}
	before := q.treeObjects[name]
	if before == nil {
		t.shape, err = q.trees.AddTree(spec)
		if err != nil {
			return nil, err
		}
		if err := q.trees.AddTreeToForest(everyTree, name); err != nil {
			return nil, err
		}
	} else {
		result, err := q.updateTree(name, spec)
		if err != nil {
			return nil, err
		}
		t.shape = result.Shape
		for _, id := range result.Detached {
			t.detached[id] = true
		}
		again = append(slices.Sorted(maps.Keys(before.detached)), result.Lost...)
	}
	for name := range spec.Nodes {
		t.nodes[name] = true
	}
	for _, name := range t.shape.Dangling {
		delete(t.nodes, name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if parent := spec.Nodes[name].Parent; parent != "" {
			t.nodes[parent] = false
		}
	}
	q.treeObjects[name] = t
	delete(q.closed, name)
	q.generation++
	return again, nil
}

// updateTree replaces a tree's specification; its consumers move to the new tree.
func (q *quotas) updateTree(name string, spec quota.TreeSpec) (quota.UpdateResult, error) {
	cache, err := q.trees.Cache(name)
	if err != nil {
		return quota.UpdateResult{}, err
	}
	for _, node := range cache.NodeNames() {
		if _, stays := spec.Nodes[node]; !stays {
			if err := cache.DeleteNode(node); err != nil {
				return quota.UpdateResult{}, err
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(spec.Nodes)) {
		if err := cache.SetNode(node, spec.Nodes[node]); err != nil {
			return quota.UpdateResult{}, err
		}
	}
	if err := cache.SetResources(spec.Resources); err != nil {
		return quota.UpdateResult{}, err
	}
	return q.trees.UpdateTree(name)
}

// deleteTree removes a tree to which nobody is charged.
func (q *quotas) deleteTree(name string) {
	must(q.trees.DeleteTree(name))
	delete(q.treeObjects, name)
	delete(q.closed, name)
	q.generation++
}

// utilization is what is used of a quota's hard limits, in whole percent.
func (q *quotas) utilization(r *resourceQuota) map[resource.Name]int64 {
	return shown.Utilization(q.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name), r.hard)
}

// sampleQuotas notes every hour how far the resource quotas are used.
func (l *Leader) sampleQuotas() {
	if l.now.Sub(l.quotas.sampled) < time.Hour {
		return
	}
	l.quotas.sampled = l.now
	l.usage.forgetIdle(l.now)
	for _, r := range l.quotas.resources {
		r.trend.Note(l.quotas.sampled, l.quotas.utilization(r))
	}
}
