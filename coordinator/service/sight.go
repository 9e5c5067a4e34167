package service

import (
	"context"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
)

// This file cuts objects that all tenants read, nodes and quota trees, to the part that
// a caller may see: the names of work in the namespaces of others become a count.

// Sight is the namespaces whose work a caller may see. The zero value sees none.
type Sight struct {
	all  bool
	sees func(namespace string) bool
	// user is the caller, who sees the own use of resource quotas; counts reports
	// whether the caller sees the use of all users of a namespace.
	user   string
	counts func(namespace string) bool
}

// SightOf is the sight of a caller: the namespaces in which a role of the caller counts.
func (a Access) SightOf(p Principal) Sight {
	within := func(roles Roles) func(string) bool {
		return func(namespace string) bool { return a.countsIn(p, roles, namespace) }
	}
	return Sight{all: p.Everywhere(Tenants), sees: within(Tenants), user: p.Name, counts: within(TenantAdmins | Operators)}
}

// names are the names of work that the caller may see, and the number of the others.
// Each name begins with the namespace and a slash.
func (s Sight) names(all []string) (seen []string, others int) {
	for _, name := range all {
		namespace, _, _ := strings.Cut(name, "/")
		if s.sees != nil && s.sees(namespace) {
			seen = append(seen, name)
		}
	}
	return seen, len(all) - len(seen)
}

// Node is a node as the caller sees it: n itself, or a copy. nil stays nil.
func (s Sight) Node(n *api.Node) *api.Node {
	if s.all || n == nil {
		return n
	}
	seen := *n
	seen.Status.Allocations, seen.Status.OtherAllocations = s.names(n.Status.Allocations)
	seen.Status.Kubelet = nil // names of pods, and of the work of others
	seen.Status.Conditions = slices.Clone(n.Status.Conditions)
	for i := range seen.Status.Conditions {
		if c := &seen.Status.Conditions[i]; c.Message != "" && ofOthers[c.Type] != "" {
			c.Message = "a role in the whole cluster sees " + ofOthers[c.Type]
		}
	}
	return &seen
}

// ofOthers are the conditions of a node whose messages have names of others' work, each
// with the subject of the message.
var ofOthers = map[string]string{"OrphanProcesses": "the devices and the processes", "KubeletPool": "the devices and the pods"}

// QuotaTree is as Node.
func (s Sight) QuotaTree(t *api.QuotaTree) *api.QuotaTree {
	if s.all || t == nil {
		return t
	}
	seen := *t
	seen.Status.Detached, seen.Status.OtherDetached = s.names(t.Status.Detached)
	seen.Status.Nodes = make([]api.QuotaNodeStatus, len(t.Status.Nodes))
	for i, n := range t.Status.Nodes {
		n.Consumers, n.OtherConsumers = s.names(n.Consumers)
		seen.Status.Nodes[i] = n
	}
	return &seen
}

// ResourceQuota is as Node: the use of other users is for those who run the namespace.
func (s Sight) ResourceQuota(q *api.ResourceQuota) *api.ResourceQuota {
	if q == nil || len(q.Status.Users) == 0 || s.counts != nil && s.counts(q.Metadata.Namespace) {
		return q
	}
	seen := *q
	seen.Status.Users = slices.DeleteFunc(slices.Clone(q.Status.Users), func(u api.UserUsage) bool { return u.User != s.user })
	return &seen
}

// object is an object of a watch as the caller sees it, with true where that is a copy.
func (s Sight) object(o any) (seen any, cut bool) {
	if n, is := o.(*api.Node); is && n != nil && !s.all {
		return s.Node(n), true
	}
	if t, is := o.(*api.QuotaTree); is && t != nil && !s.all {
		return s.QuotaTree(t), true
	}
	if q, is := o.(*api.ResourceQuota); is {
		seen := s.ResourceQuota(q)
		return seen, seen != q
	}
	return o, false
}

// event is an event of a watch as the caller sees it: e itself, or a copy; nil for none.
func (s Sight) event(e *objects.Event) *objects.Event {
	if e.Kind == objects.Queues {
		return s.queueEvent(e)
	}
	object, cut := s.object(e.Object)
	before, cutBefore := s.object(e.Before)
	if !cut && !cutBefore {
		return e
	}
	seen := *e
	seen.Object, seen.Before, seen.JSON = object, before, objects.Encode(object)
	return &seen
}

// Sighted is a Service that shows each caller (CallerOf) the part of nodes and quota
// trees that the caller may see. Requests that change nodes and trees are for callers
// who see everything, but for the creation of a node by its host. A Charger, which
// may be nil, charges expensive requests.
func Sighted(s Service, a Access, by Charger) Service { return sighted{s, a, by} }

type sighted struct {
	Service
	access  Access
	charger Charger
}

func (s sighted) sight(ctx context.Context) Sight { return s.access.SightOf(CallerOf(ctx).Principal) }

// GetNode implements Nodes.
func (s sighted) GetNode(ctx context.Context, name string) (*api.Node, error) {
	got, err := s.Service.GetNode(ctx, name)
	return s.sight(ctx).Node(got), err
}

// CreateNode implements Nodes.
func (s sighted) CreateNode(ctx context.Context, n *api.Node) (*api.Node, error) {
	got, err := s.Service.CreateNode(ctx, n)
	return s.sight(ctx).Node(got), err
}

// ListNodes implements Nodes.
func (s sighted) ListNodes(ctx context.Context) (*api.NodeList, error) {
	got, err := s.Service.ListNodes(ctx)
	if sight := s.sight(ctx); err == nil && !sight.all {
		for i := range got.Items {
			got.Items[i] = *sight.Node(&got.Items[i])
		}
	}
	return got, err
}

// GetResourceQuota implements Quotas.
func (s sighted) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	got, err := s.Service.GetResourceQuota(ctx, namespace, name)
	return s.sight(ctx).ResourceQuota(got), err
}

// ListResourceQuotas implements Quotas.
func (s sighted) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	got, err := s.Service.ListResourceQuotas(ctx, namespace)
	if err == nil {
		sight := s.sight(ctx)
		for i := range got.Items {
			got.Items[i] = *sight.ResourceQuota(&got.Items[i])
		}
	}
	return got, err
}

// GetQuotaTree implements Quotas.
func (s sighted) GetQuotaTree(ctx context.Context, name string) (*api.QuotaTree, error) {
	got, err := s.Service.GetQuotaTree(ctx, name)
	return s.sight(ctx).QuotaTree(got), err
}

// ListQuotaTrees implements Quotas.
func (s sighted) ListQuotaTrees(ctx context.Context) (*api.QuotaTreeList, error) {
	got, err := s.Service.ListQuotaTrees(ctx)
	if sight := s.sight(ctx); err == nil && !sight.all {
		for i := range got.Items {
			got.Items[i] = *sight.QuotaTree(&got.Items[i])
		}
	}
	return got, err
}

// SightedWatches is as Sighted, for watches. A watch shows its objects by the roles
// that the caller has at its beginning: the doors end a watch whose caller has other
// roles. nil stays nil.
func SightedWatches(w Watches, a Access) Watches {
	if w == nil {
		return nil
	}
	return sightedWatches{w, a}
}

type sightedWatches struct {
	Watches
	access Access
}

// Watch implements Watches.
func (s sightedWatches) Watch(ctx context.Context, o objects.WatchOptions) (Watch, error) {
	w, err := s.Watches.Watch(ctx, o)
	sight := s.access.SightOf(CallerOf(ctx).Principal)
	cut := o.Kind == objects.ResourceQuotas || !sight.all && (o.Kind == objects.Nodes || o.Kind == objects.QuotaTrees || o.Kind == objects.Queues)
	if err != nil || !cut {
		return w, err
	}
	return sightedWatch{w, sight}, nil
}

type sightedWatch struct {
	Watch
	sight Sight
}

// Next implements Watch.
func (w sightedWatch) Next(ctx context.Context) (objects.Changes, error) {
	changes, err := w.Watch.Next(ctx)
	var seen []*objects.Event
	for _, e := range changes.Events {
		if e = w.sight.event(e); e != nil {
			seen = append(seen, e)
		}
	}
	changes.Events = seen
	return changes, err
}
