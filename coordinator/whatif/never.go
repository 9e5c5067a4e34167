package whatif

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Never returns the bounds that keep a unit from running for ever, the one to show
// first: see the package comment. None: it may run one day.
func (w *World) Never(u *Unit) []Bound {
	var all []Bound
	if f := w.OnNodes(u); f.Bound != nil {
		all = append(all, *f.Bound)
	}
	all = append(all, w.NeverByLimits(u)...)
	var unused *quota.Manager
	if len(u.Consumer().Demands) > 0 {
		var err error
		unused, err = w.Trees.Unused()
		must(err)
	}
	all = append(all, w.NeverByTrees(u, unused)...)
	if len(all) == 0 {
		all = w.NeverByModels(u, unused)
	}
	return all
}

// Fate is the answer of the nodes whether a unit can ever run on them.
type Fate struct {
	// Bound keeps the unit from every node for ever; nil: none is known.
	Bound *Bound
	// Unseen: the nodes whose hosts are known cannot hold the unit, and the others
	// may. Only without a Bound.
	Unseen bool
}

// OnNodes returns the first bound of the nodes, in the order in which they narrow the
// choice. Of a unit that some nodes hold it looks at no more nodes than these.
func (w *World) OnNodes(u *Unit) Fate {
	if u.Demand.Sets != nil {
		return w.setsOnNodes(u)
	}
	if w.holds(u) {
		return Fate{}
	}
	if b, never := w.neverOnNodes(u); never {
		return Fate{Bound: &b}
	}
	return Fate{Unseen: true}
}

// holds reports whether the first nodes that hold all members are few enough for one
// transaction. It may be false of a unit without a bound.
func (w *World) holds(u *Unit) bool {
	most := map[*cluster.Kind]int{}
	left, nodes, widest := u.Demand.Members, 0, w.MaxOps-sched.CommitOps
	for _, n := range w.State.Nodes() {
		k := n.Kind()
		if k == nil || !u.Demand.Constraints.Matches(n.Labels) || !u.Demand.Constraints.Allows(n.Labels) {
			continue
		}
		holds, known := most[k]
		if !known {
			holds = k.AtMost(&u.Demand.Request)
			most[k] = holds
		}
		holds = min(holds, n.Host.MostByCounts(&u.Demand.Request))
		if holds == 0 {
			continue
		}
		if nodes++; nodes > widest {
			return false
		}
		if left -= min(left, holds); left == 0 {
			return true
		}
	}
	return false
}

// neverOnNodes is the bound of OnNodes.
func (w *World) neverOnNodes(u *Unit) (Bound, bool) {
	nodes := w.State.Nodes()
	if len(nodes) == 0 {
		return Bound{Code: NoNodes}, true
	}
	matching := slices.DeleteFunc(slices.Clone(nodes), func(n *cluster.Node) bool { return !u.Demand.Constraints.Matches(n.Labels) })
	if len(matching) == 0 {
		return w.missingLabel(u), true
	}
	allowed := slices.DeleteFunc(slices.Clone(matching), func(n *cluster.Node) bool { return !u.Demand.Constraints.Allows(n.Labels) })
	if len(allowed) == 0 {
		return Bound{Code: NotTolerated, Nodes: len(matching), Taint: commonTaint(u, matching)}, true
	}
	hosts := hostsOf(allowed, &u.Demand.Request)
	b, never := hosts.neverForOne()
	if !never {
		b, never = hosts.neverForAll(u.Demand.Members, w.MaxOps)
	}
	if never {
		b.LeftOut = len(nodes) - len(allowed)
	}
	return b, never
}

// missingLabel is the bound of a unit whose labels no node has.
func (w *World) missingLabel(u *Unit) Bound {
	nodes, wanted := w.State.Nodes(), u.Demand.Constraints.Requirements().NodeSelector
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		label := constraint.Label{Key: key, Value: wanted[key]}
		if _, count := w.State.Labelled(label); count == 0 {
			return Bound{Code: NoLabel, Nodes: len(nodes), Label: label}
		}
	}
	return Bound{Code: NoMatch, Nodes: len(nodes)}
}

// commonTaint is the taint that keeps the unit off most of the nodes.
func commonTaint(u *Unit, nodes []*cluster.Node) constraint.Taint {
	count := map[constraint.Taint]int{}
	for _, n := range nodes {
		if t, refused := u.Demand.Constraints.Untolerated(n.Labels.Taints()); refused {
			count[t]++
		}
	}
	taints := slices.SortedFunc(maps.Keys(count), func(a, b constraint.Taint) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return taints[0]
}

// hosts are the nodes that a unit may go to, as they are when empty and healthy, by
// their kinds.
type hosts struct {
	request *resource.Request
	wanted  resource.Vector // of one member
	nodes   int
	kinds   []kind
	// loose are nodes of which only the registered capacity is known, or whose
	// hosts have shown less than that.
	loose []*cluster.Node
}

// kind is some nodes whose empty hosts hold the same.
type kind struct {
	*cluster.Kind
	node     *cluster.Node // one of them
	count    int
	shown    resource.Vector // all that the empty host has
	capacity resource.Vector // the part of it that serves the request
	most     int             // an upper bound of the members of one
}

func hostsOf(nodes []*cluster.Node, r *resource.Request) *hosts {
	h := &hosts{request: r, wanted: wantedOf(r), nodes: len(nodes)}
	type bounded struct { // nodes of a kind may have different amounts of counted resources
		kind *cluster.Kind
		most int
	}
	at := map[bounded]int{}
	for _, n := range nodes {
		k := n.Kind()
		by := bounded{kind: k}
		if k != nil {
			by.most = n.Host.MostByCounts(r)
		}
		i, known := at[by]
		if k != nil && !known {
			i = len(h.kinds)
			at[by] = i
			h.kinds = append(h.kinds, kind{Kind: k, node: n, shown: n.Host.Allocatable(), capacity: capacityOf(n, r), most: min(k.AtMost(r), by.most)})
		}
		if k == nil || h.isLess(h.kinds[i].shown, n.Registered) {
			h.loose = append(h.loose, n)
			continue
		}
		h.kinds[i].count++
	}
	h.kinds = slices.DeleteFunc(h.kinds, func(k kind) bool { return k.count == 0 })
	return h
}

// capacityOf is the part of the empty host of a node that serves a request.
func capacityOf(n *cluster.Node, r *resource.Request) resource.Vector {
	capacity, counts := n.Kind().Capacity(r), n.Host.Counts()
	for name := range r.Counts.All() {
		capacity[name] = counts[name]
	}
	return capacity
}

// wantedOf is what a member takes of a host. A whole core takes its threads, however
// many these are.
func wantedOf(r *resource.Request) resource.Vector {
	v := r.Vector()
	if r.Cores > 0 {
		delete(v, resource.CPU)
	}
	return v
}

// isLess reports whether a host has shown less than is registered of anything that
// the request takes.
func (h *hosts) isLess(shown, registered resource.Vector) bool {
	for name := range h.request.Vector() {
		if shown[name] < registered[name] {
			return true
		}
	}
	return false
}

// neverForOne returns the bound of a request that no node can hold one member of.
func (h *hosts) neverForOne() (Bound, bool) {
	if len(h.loose) > 0 || slices.ContainsFunc(h.kinds, func(k kind) bool { return k.most > 0 }) {
		return Bound{}, false
	}
	if b, never := h.neverByDevice(); never {
		return b, true
	}
	for _, name := range h.wanted.Names() {
		var greatest int64
		for _, k := range h.kinds {
			greatest = max(greatest, k.capacity[name])
		}
		if want := h.wanted[name]; want > greatest {
			return Bound{Code: NodeTooSmall, Nodes: h.nodes, Resource: name, Want: want, Have: greatest}, true
		}
	}
	nearest := slices.MaxFunc(h.kinds, func(a, b kind) int { return cmp.Compare(h.satisfied(a), h.satisfied(b)) })
	host := nearest.node.Host
	return Bound{Code: NoNode, Nodes: h.nodes, Reasons: host.Explain(host.NewFree(), *h.request)}, true
}

// satisfied counts the amounts of a member that a kind has.
func (h *hosts) satisfied(k kind) int {
	n := 0
	for name, want := range h.wanted {
		if k.capacity[name] >= want {
			n++
		}
	}
	return n
}

// neverByDevice returns the bound of a model or a memory that no device has.
func (h *hosts) neverByDevice() (Bound, bool) {
	r := h.request
	model, memory := r.GPUModel == "", resource.Bytes(0)
	for _, k := range h.kinds {
		for _, d := range k.node.Host.Inventory().Devices {
			if r.GPUModel != "" && d.Model != r.GPUModel {
				continue
			}
			model = true
			if r.MIG == 0 {
				memory = max(memory, d.Memory)
			}
			for _, m := range d.MIG.Instances {
				if m.Profile == r.MIGProfile {
					memory = max(memory, m.Memory)
				}
			}
		}
	}
	switch {
	case !model:
		return Bound{Code: NoModel, Nodes: h.nodes, Model: r.GPUModel}, true
	case memory < r.GPUMemory:
		return Bound{Code: NoGPUMemory, Nodes: h.nodes, Want: int64(r.GPUMemory), Have: int64(memory)}, true
	}
	return Bound{}, false
}

// neverForAll returns the bound of members that all nodes together cannot hold, or
// that no transaction can commit.
func (h *hosts) neverForAll(members, maxOps int) (Bound, bool) {
	if len(h.loose) > 0 {
		return Bound{}, false
	}
	slices.SortFunc(h.kinds, func(a, b kind) int { return cmp.Compare(b.most, a.most) })
	widest := max(0, maxOps-sched.CommitOps)
	held, needed, committed, left := 0, 0, 0, widest
	for _, k := range h.kinds {
		if k.most == 0 {
			break
		}
		needed += min(k.count, (members-held+k.most-1)/k.most)
		held = min(members, held+k.count*k.most)
		committed += min(k.count, left) * k.most
		left -= min(k.count, left)
	}
	switch {
	case held < members:
		return h.tooSmall(members, held), true
	case needed > widest:
		return Bound{Code: TooWide, Nodes: h.nodes, Want: int64(needed), Have: int64(widest), Members: min(members, committed)}, true
	}
	return Bound{}, false
}

// tooSmall is the bound of all nodes together: in a resource where one is short.
func (h *hosts) tooSmall(members, held int) Bound {
	sum := resource.Vector{}
	for _, k := range h.kinds {
		sum.Add(k.capacity.Scaled(int64(k.count)))
	}
	b := Bound{Code: NodesTooSmall, Nodes: h.nodes, Want: int64(members), Have: int64(held), Members: held}
	total := h.wanted.Scaled(int64(members))
	short := func(name resource.Name) int64 {
		return resource.SaturatingSub(total[name], sum[name]) / max(1, total[name]/1000)
	}
	for _, name := range total.Names() {
		if short(name) > 0 && (b.Resource == "" || short(name) > short(b.Resource)) {
			b.Resource, b.Want, b.Have = name, total[name], sum[name]
		}
	}
	return b
}

// NeverByLimits returns the bounds of the namespace's resource quotas that refuse the
// unit even where nothing else is charged.
func (w *World) NeverByLimits(u *Unit) []Bound {
	var all []Bound
	for _, s := range w.Limits.NeverAdmits(&u.Charge) {
		all = append(all, Bound{Code: OverLimit, Limit: s.Limit, User: s.User, Resource: s.Resource, Want: s.Requested, Have: s.Hard})
	}
	return all
}

// NeverByTrees returns the bound of the quota trees that refuse the unit even where
// nobody else is charged: unused are the same trees without consumers
// (quota.Manager.Unused), and are left so. A unit that no tree counts needs none.
func (w *World) NeverByTrees(u *Unit, unused *quota.Manager) []Bound {
	consumer := u.Consumer()
	for _, d := range consumer.Demands {
		if w.Closed[d.Tree] {
			return nil // the tree may stay
		}
		if !w.Trees.HasTree(d.Tree) {
			return []Bound{{Code: NoTree, Tree: d.Tree, Group: d.Group}}
		}
	}
	if len(consumer.Demands) == 0 {
		return nil
	}
	must(unused.AddConsumer(consumer))
	r, err := unused.AllocateForest(w.Forest, u.Key.Path)
	must(err)
	unused.DeallocateForest(w.Forest, u.Key.Path)
	must(unused.RemoveConsumer(u.Key.Path))
	if r.Refusal.Code == quota.NotRefused {
		return nil
	}
	f := r.Refusal
	return []Bound{{Code: OverTree, Tree: f.Tree, Resource: f.Resource, Want: f.Want, Have: f.Have, Refusal: f}}
}

// Consumer is the unit as the trees see it.
func (u *Unit) Consumer() quota.ConsumerSpec {
	c := quota.ConsumerSpec{ID: u.Key.Path, Owner: u.Owner}
	for _, charge := range u.Charges {
		if charge.Tree != quota.Tree {
			c.Demands = append(c.Demands, quota.Demand{
				Tree: charge.Tree, Group: charge.Group, Request: charge.Request, Priority: int(u.Key.Priority), Type: u.Kind, Unpreemptable: u.Unpreemptable,
			})
		}
	}
	return c
}

// must is for calls of the quota manager that only a broken invariant makes fail.
func must(err error) {
	if err != nil {
		panic("whatif: " + err.Error())
	}
}
