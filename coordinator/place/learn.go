package place

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/mix"
	"github.com/musterd/muster/devices"
)

// The names of the policies.
const (
	NameBalanced      = "balanced"
	NameFragmentation = "fragmentation"
	NamePacked        = "packed"
	NameSpread        = "spread"
)

var policies = [...]string{NameBalanced, NameFragmentation, NamePacked, NameSpread}

// Policies are the names of the policies, ascending. The default is NameFragmentation.
func Policies() []string { return policies[:] }

// Learner learns the mix of the work that arrives, and has the policies. The zero
// Learner has seen nothing. One goroutine owns a Learner; the policies are immutable.
//
// Invariant: policy is of table and capacity; nil without a table.
type Learner struct {
	mix      mix.Mix
	table    *mix.Table
	offered  uint64
	capacity map[string]int64
	policy   *Fragmentation
}

// Observe counts a unit that has arrived.
func (l *Learner) Observe(u *Unit) {
	if u.Sets != nil {
		parts := u.Parts()
		for i := range parts {
			l.Observe(&parts[i])
		}
		return
	}
	r := &u.Request
	l.mix.Observe(mix.Shape{
		GPUs: r.GPUs, Share: r.GPUShare, CPU: cluster.Least(r).CPU, Memory: r.Memory, Products: products(u),
	}, u.Members)
}

// Learned is the mix that the Learner has seen.
func (l *Learner) Learned() mix.State { return l.mix.State() }

// Resume has the Learner go on from a mix that another one has seen, and forget its own.
// A mix with impossible numbers is an error, and changes nothing.
func (l *Learner) Resume(s mix.State) error {
	m, err := mix.Restore(s)
	if err != nil {
		return err
	}
	*l = Learner{mix: m}
	return nil
}

// Policy returns the policy with a name, "" for the default, for the nodes of a State.
// The default is Packed until the Learner has seen enough members.
func (l *Learner) Policy(name string, state *cluster.State) Policy {
	switch name {
	case NameBalanced:
		return Balanced{}
	case NamePacked:
		return Packed{}
	case NameSpread:
		return Spread{}
	}
	table := l.mix.Table()
	if table == nil {
		return Packed{}
	}
	if table == l.table && l.offered == state.Offered() {
		return l.policy
	}
	capacity := map[string]int64{}
	for _, k := range state.Kinds() {
		if k.Full.GPU > 0 {
			capacity[k.Product] += int64(k.Full.GPU) * int64(k.Nodes())
		}
	}
	if l.offered = state.Offered(); table != l.table || !maps.Equal(capacity, l.capacity) {
		l.table, l.capacity, l.policy = table, capacity, newFragmentation(table, capacity)
	}
	return l.policy
}

// productKey is the label of a node that names the model of its devices.
const productKey = "nvidia.com/gpu.product"

// products are the models that a unit may run on, as mix.Shape has them: by the model
// of its request, its node selector and the terms of its required node affinity.
func products(u *Unit) string {
	if model := u.Request.GPUModel; model != "" {
		return devices.ProductLabel(model)
	}
	if u.Constraints == nil {
		return ""
	}
	spec := u.Constraints.Requirements()
	if product := spec.NodeSelector[productKey]; product != "" {
		return product
	}
	var list []string
	for _, term := range spec.Required {
		i := slices.IndexFunc(term, func(e constraint.Expression) bool { return e.Key == productKey && e.Operator == constraint.In })
		if i < 0 {
			return ""
		}
		list = append(list, term[i].Values...)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "|")
}
