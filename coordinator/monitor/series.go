package monitor

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
)

// series are the descriptions of everything that is shown.
type series struct {
	nodes, info, ready, condition                *prometheus.Desc
	capacity, allocatable, free, allocated       *prometheus.Desc
	gpus, gpusUnhealthy, gpusFree, gpusAllocated *prometheus.Desc
	gpusPooled                                   *prometheus.Desc
	units, namespaceAllocated, waiting           *prometheus.Desc
	quotaLimit, quotaUsed, treeLimit, treeUsed   *prometheus.Desc
}

func newSeries() series {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return series{
		nodes:              d("muster_nodes", "Nodes that are registered."),
		info:               d("muster_node_info", "1 for each node, with its agent's version.", "node", "version"),
		ready:              d("muster_node_ready", "1 while the node takes new work, else 0.", "node"),
		condition:          d("muster_node_condition", "1 for each condition that holds: Cordoned, Banned, Fenced, Isolated, Unapproved, Disconnected, Unregistered, Quarantined, DiskFull, Suspect.", "node", "condition"),
		capacity:           d("muster_node_capacity", "Registered amount of a resource on a node.", "node", "resource", "unit"),
		allocatable:        d("muster_node_allocatable", "Amount of a resource that the node can hand out, without the pool of its kubelet.", "node", "resource", "unit"),
		free:               d("muster_node_free", "Amount that is reserved for nobody, on healthy devices; absent until the node's agent has been connected.", "node", "resource", "unit"),
		allocated:          d("muster_node_allocated", "Amount that is reserved or held; absent until the node's agent has been connected.", "node", "resource", "unit"),
		gpus:               d("muster_gpus", "GPUs of connected nodes, by model.", "model"),
		gpusUnhealthy:      d("muster_gpus_unhealthy", "GPUs that take no new work, by model.", "model"),
		gpusFree:           d("muster_gpus_free", "Unused parts of GPUs in whole devices, by model; unhealthy devices are counted too.", "model"),
		gpusAllocated:      d("muster_gpus_allocated", "Used parts of GPUs in whole devices, by model; the pools of kubelets are not counted.", "model"),
		gpusPooled:         d("muster_gpus_kubelet", "GPUs in the pools of kubelets in whole devices, by model: not allocatable, neither free nor used.", "model"),
		units:              d("muster_units", "Units that are stored, by phase.", "namespace", "phase"),
		namespaceAllocated: d("muster_namespace_allocated", "Amount that a namespace's units hold.", "namespace", "resource", "unit"),
		waiting:            d("muster_queue_waiting_units", "Units that wait for a place, by queue.", "queue"),
		quotaLimit:         d("muster_quota_limit", "Hard limit of a resource quota.", "namespace", "quota", "resource", "unit"),
		quotaUsed:          d("muster_quota_used", "Amount that counts against a resource quota's hard limit.", "namespace", "quota", "resource", "unit"),
		treeLimit:          d("muster_quota_tree_limit", "Quota of a node of a quota tree.", "tree", "group", "resource", "unit"),
		treeUsed:           d("muster_quota_tree_used", "Amount that is charged to a node of a quota tree and below it.", "tree", "group", "resource", "unit"),
	}
}

func (s *series) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		s.nodes, s.info, s.ready, s.condition, s.capacity, s.allocatable, s.free, s.allocated, s.gpus, s.gpusUnhealthy, s.gpusFree, s.gpusAllocated, s.gpusPooled,
		s.units, s.namespaceAllocated, s.waiting, s.quotaLimit, s.quotaUsed, s.treeLimit, s.treeUsed,
	}
}

// sums adds up the values that share a series, by description and labels.
type sums struct {
	order  []key
	values map[key]float64
}

// key is a series: a description and its labels, at most four.
type key struct {
	desc   *prometheus.Desc
	count  int
	labels [4]string
}

func (s *sums) add(d *prometheus.Desc, value float64, labels ...string) {
	k := key{desc: d, count: len(labels)}
	copy(k.labels[:], labels)
	if _, known := s.values[k]; !known {
		s.order = append(s.order, k)
	}
	s.values[k] += value
}

// metrics are the sums as Prometheus has them.
func (s *sums) metrics() []prometheus.Metric {
	all := make([]prometheus.Metric, 0, len(s.order))
	for i := range s.order {
		k := &s.order[i]
		all = append(all, prometheus.MustNewConstMetric(k.desc, prometheus.GaugeValue, s.values[*k], k.labels[:k.count]...))
	}
	return all
}

// of are the metrics of figures.
func (s *series) of(f *lead.Figures, b bounds) []prometheus.Metric {
	b.begin()
	out := &sums{values: make(map[key]float64, 16*len(f.Nodes))}
	out.add(s.nodes, float64(len(f.Nodes)))
	for i := range f.Nodes {
		s.node(out, &f.Nodes[i], b.nodes.label(string(f.Nodes[i].ID)))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Models)) {
		s.model(out, f.Models[name], b.models.label(name))
	}
	for _, k := range slices.SortedFunc(maps.Keys(f.Units), func(a, b lead.UnitKind) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Phase, b.Phase))
	}) {
		out.add(s.units, float64(f.Units[k]), b.namespaces.label(k.Namespace), string(k.Phase))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Allocated)) {
		label, a := b.namespaces.label(name), f.Allocated[name]
		for _, r := range measured {
			amount := map[resource.Name]int64{resource.CPU: int64(a.CPU), resource.Memory: int64(a.Memory), resource.GPU: int64(a.GPU)}[r]
			out.add(s.namespaceAllocated, r.Measure(amount), label, string(r), r.Unit())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Waiting)) {
		out.add(s.waiting, float64(f.Waiting[name]), b.queues.label(name))
	}
	s.quotas(out, f, b)
	return out.metrics()
}

// measured are the resources of which free amounts are kept as sums.
var measured = []resource.Name{resource.CPU, resource.Memory, resource.GPU}

func (s *series) node(out *sums, n *lead.NodeFigures, label string) {
	version := n.Version
	if label == Other {
		version = Other
	}
	out.add(s.info, 1, label, version)
	out.add(s.ready, asNumber(n.Conditions.Ready), label)
	c := &n.Conditions
	for _, one := range []struct {
		name  string
		holds bool
	}{
		{"Cordoned", c.Cordoned}, {"Banned", c.Banned}, {"Fenced", c.Fenced}, {"Isolated", c.Isolated}, {"Unapproved", c.Unapproved},
		{"Disconnected", c.Disconnected}, {"Unregistered", c.Unregistered}, {"Quarantined", c.Quarantined}, {"DiskFull", c.DiskFull}, {"Suspect", c.Suspect},
	} {
		if one.holds {
			out.add(s.condition, 1, label, one.name)
		}
	}
	for _, r := range measured {
		out.add(s.capacity, r.Measure(n.Capacity[r]), label, string(r), r.Unit())
		out.add(s.allocatable, r.Measure(n.Allocatable[r]), label, string(r), r.Unit())
	}
	if !n.Known {
		return
	}
	amount := func(r resource.Name, free, allocated int64) {
		out.add(s.free, r.Measure(free), label, string(r), r.Unit())
		out.add(s.allocated, r.Measure(max(0, allocated)), label, string(r), r.Unit())
	}
	amount(resource.CPU, int64(n.Free.CPU), n.Allocatable[resource.CPU]-int64(n.Free.CPU))
	amount(resource.Memory, int64(n.Free.Memory), n.Allocatable[resource.Memory]-int64(n.Free.Memory))
	amount(resource.GPU, int64(n.Free.GPU), int64(n.GPUs.Devices)*int64(resource.WholeDevice)-int64(n.GPUs.Pooled)-int64(n.GPUs.Free))
}

func (s *series) model(out *sums, g lead.GPUFigures, label string) {
	out.add(s.gpus, float64(g.Devices), label)
	out.add(s.gpusUnhealthy, float64(g.Unhealthy), label)
	free := resource.GPU.Measure(int64(g.Free))
	out.add(s.gpusFree, free, label)
	pooled := resource.GPU.Measure(int64(g.Pooled))
	out.add(s.gpusPooled, pooled, label)
	out.add(s.gpusAllocated, float64(g.Devices)-pooled-free, label)
}

func (s *series) quotas(out *sums, f *lead.Figures, b bounds) {
	slices.SortFunc(f.Quotas, func(a, b lead.QuotaFigures) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Resource, b.Resource))
	})
	for _, q := range f.Quotas {
		namespace, quota := b.namespaces.label(q.Namespace), q.Quota
		if b.quotas.label(q.Namespace+"/"+q.Quota) == Other {
			namespace, quota = Other, Other
		}
		out.add(s.quotaLimit, q.Resource.Measure(q.Hard), namespace, quota, string(q.Resource), q.Resource.Unit())
		out.add(s.quotaUsed, q.Resource.Measure(q.Used), namespace, quota, string(q.Resource), q.Resource.Unit())
	}
	slices.SortStableFunc(f.Trees, func(a, b lead.TreeFigures) int { return cmp.Compare(a.Tree, b.Tree) })
	for _, t := range f.Trees {
		tree, group := t.Tree, t.Node
		if b.treeNodes.label(t.Tree+"/"+t.Node) == Other {
			tree, group = Other, Other
		}
		out.add(s.treeLimit, t.Resource.Measure(t.Quota), tree, group, string(t.Resource), t.Resource.Unit())
		out.add(s.treeUsed, t.Resource.Measure(t.Allocated), tree, group, string(t.Resource), t.Resource.Unit())
	}
}

func asNumber(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
