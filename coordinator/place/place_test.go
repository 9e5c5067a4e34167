package place_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// frees copies what is free on each node.
func frees(nodes []*cluster.Node) []*fit.Free {
	copies := make([]*fit.Free, len(nodes))
	for i, n := range nodes {
		copies[i] = n.Free.Clone()
	}
	return copies
}

// sameFree reports whether nothing was taken since copies was made.
func sameFree(nodes []*cluster.Node, copies []*fit.Free) string {
	type amounts struct {
		CPU       []resource.Millicores
		Memory    []resource.Bytes
		Hugepages []resource.Bytes
		GPU       []resource.Milli
		MIG       []uint16
	}
	of := func(f *fit.Free) amounts { return amounts{f.CPU, f.Memory, f.Hugepages, f.GPU, f.MIG} }
	for i, n := range nodes {
		if diff := cmp.Diff(of(copies[i]), of(n.Free)); diff != "" {
			return string(n.ID) + ":\n" + diff
		}
	}
	return ""
}

func expressions(key, operator string, values ...string) constraint.Term {
	return constraint.Term{{Key: key, Operator: constraint.ParseOperator(operator), Values: values}}
}

// mark gives the nodes one set of labels and taints.
func mark(nodes []*cluster.Node, labels map[string]string, taints ...constraint.Taint) {
	l := new(constraint.Table).Intern(labels, taints)
	for _, n := range nodes {
		n.Labels = l
	}
}

// places returns the node of each member, by position; nil if there is no
// place.
func places(nodes []*cluster.Node, u place.Unit) []int {
	members, ok := place.Place(cluster.NewState(nodes...), u)
	if !ok {
		return nil
	}
	at := make([]int, len(members))
	for i, m := range members {
		for j, n := range nodes {
			if n == m.Node {
				at[i] = j
			}
		}
	}
	return at
}

func TestPlace(t *testing.T) {
	required := func(terms ...constraint.Term) constraint.Spec { return constraint.Spec{Required: terms} }
	taint := func(effect constraint.Effect) func([]*cluster.Node) {
		return func(nodes []*cluster.Node) {
			mark(nodes[:2], nil, constraint.Taint{Key: "gpu", Value: "yes", Effect: effect})
		}
	}
	tolerate := func(o constraint.Toleration) constraint.Spec {
		return constraint.Spec{Tolerations: []constraint.Toleration{o}}
	}
	label := func(at int, key, value string) func([]*cluster.Node) {
		return func(nodes []*cluster.Node) { mark(nodes[at:at+1], map[string]string{key: value}) }
	}
	nothing := func([]*cluster.Node) {}
	cases := map[string]struct {
		prepare     func([]*cluster.Node) // three empty nodes of 8 GPUs
		constraints constraint.Spec
		members     int
		request     resource.Request
		want        []int
	}{
		"equal nodes: the first":                     {nothing, constraint.Spec{}, 1, oneGPU, []int{0}},
		"a used node is filled before a fresh one":   {func(n []*cluster.Node) { use(n[2], 1) }, constraint.Spec{}, 1, oneGPU, []int{2}},
		"a gang packs onto as few nodes as it can":   {func(n []*cluster.Node) { use(n[1], 5) }, constraint.Spec{}, 4, oneGPU, []int{1, 1, 1, 0}},
		"a gang of whole nodes takes one each":       {nothing, constraint.Spec{}, 3, eightGPUs, []int{0, 1, 2}},
		"a gang that is one too large gets nothing":  {nothing, constraint.Spec{}, 4, eightGPUs, nil},
		"work without GPUs goes where GPUs are gone": {func(n []*cluster.Node) { use(n[1], 8) }, constraint.Spec{}, 1, resource.Request{CPU: 1000}, []int{1}},
		"a cordoned node is left out":                {func(n []*cluster.Node) { n[0].Unschedulable = true }, constraint.Spec{}, 1, oneGPU, []int{1}},
		"a node that is not ready is left out":       {func(n []*cluster.Node) { n[0].Ready = false }, constraint.Spec{}, 1, oneGPU, []int{1}},
		"a suspected node is the last choice, however well it fits": {
			func(n []*cluster.Node) {
				use(n[0], 6)
				n[0].Suspect = true
				label(0, "zone", "a")(n)
			},
			constraint.Spec{Preferred: []constraint.Preference{{Weight: 100, Term: expressions("zone", "In", "a")}}},
			9,
			resource.Request{GPUs: 2, CPU: 2000},
			[]int{1, 1, 1, 1, 2, 2, 2, 2, 0},
		},
		"an unhealthy device takes no work": {
			func(n []*cluster.Node) { n[0].Free.Unhealthy = 1; n[0].Refresh() },
			constraint.Spec{},
			1, eightGPUs,
			[]int{1},
		},
		"the tightest node, refused by its fit, gives way to the next": {
			func(n []*cluster.Node) { n[0].Free.Unhealthy = 0x55; n[0].Refresh() },
			constraint.Spec{},
			2,
			resource.Request{GPUs: 2, CPU: 2000, NUMA: resource.NUMASingleNode},
			[]int{1, 1},
		},
		"no fit anywhere though the sums suffice": {
			nothing,
			constraint.Spec{},
			1,
			resource.Request{GPUs: 4, CPU: 4000, NUMA: resource.NUMASingleNode},
			nil,
		},

		"NoSchedule keeps away":                     {taint("NoSchedule"), constraint.Spec{}, 1, oneGPU, []int{2}},
		"NoExecute keeps away":                      {taint("NoExecute"), constraint.Spec{}, 1, oneGPU, []int{2}},
		"PreferNoSchedule has others come first":    {taint("PreferNoSchedule"), constraint.Spec{}, 1, oneGPU, []int{2}},
		"PreferNoSchedule is tolerated":             {taint("PreferNoSchedule"), tolerate(constraint.Toleration{Key: "gpu", AnyValue: true, Effect: "PreferNoSchedule"}), 1, oneGPU, []int{0}},
		"a taint is tolerated by key and value":     {taint("NoSchedule"), tolerate(constraint.Toleration{Key: "gpu", Value: "yes"}), 1, oneGPU, []int{0}},
		"the same with another value is not":        {taint("NoSchedule"), tolerate(constraint.Toleration{Key: "gpu", Value: "no"}), 1, oneGPU, []int{2}},
		"Exists tolerates every value":              {taint("NoSchedule"), tolerate(constraint.Toleration{Key: "gpu", AnyValue: true}), 1, oneGPU, []int{0}},
		"Exists without a key tolerates everything": {taint("NoExecute"), tolerate(constraint.Toleration{AnyValue: true}), 1, oneGPU, []int{0}},
		"a toleration of another effect does not":   {taint("NoExecute"), tolerate(constraint.Toleration{Key: "gpu", AnyValue: true, Effect: "NoSchedule"}), 1, oneGPU, []int{2}},

		"a node selector":                  {label(1, "zone", "b"), constraint.Spec{NodeSelector: map[string]string{"zone": "b"}}, 1, oneGPU, []int{1}},
		"a node selector nobody satisfies": {label(1, "zone", "b"), constraint.Spec{NodeSelector: map[string]string{"zone": "c"}}, 1, oneGPU, nil},
		"In":                               {label(1, "zone", "b"), required(expressions("zone", "In", "a", "b")), 1, oneGPU, []int{1}},
		"NotIn holds for a node without the label": {label(0, "zone", "b"), required(expressions("zone", "NotIn", "b")), 1, oneGPU, []int{1}},
		"Exists":                     {label(2, "zone", "b"), required(expressions("zone", "Exists")), 1, oneGPU, []int{2}},
		"DoesNotExist":               {label(0, "zone", "b"), required(expressions("zone", "DoesNotExist")), 1, oneGPU, []int{1}},
		"Gt compares integers":       {label(1, "gen", "10"), required(expressions("gen", "Gt", "9")), 1, oneGPU, []int{1}},
		"Gt refuses an equal one":    {label(1, "gen", "9"), required(expressions("gen", "Gt", "9")), 1, oneGPU, nil},
		"Gte takes an equal one":     {label(1, "gen", "9"), required(expressions("gen", "Gte", "9")), 1, oneGPU, []int{1}},
		"Lt":                         {label(1, "gen", "8"), required(expressions("gen", "Lt", "9")), 1, oneGPU, []int{1}},
		"Lte does not compare words": {label(1, "gen", "old"), required(expressions("gen", "Lte", "9")), 1, oneGPU, nil},
		"the second of two terms suffices": {
			label(1, "zone", "b"), required(expressions("zone", "In", "a"), expressions("zone", "In", "b")),
			1, oneGPU,
			[]int{1},
		},
		"the least preference outweighs any packing": {
			func(n []*cluster.Node) { use(n[0], 7); label(2, "zone", "b")(n) },
			constraint.Spec{Preferred: []constraint.Preference{{Weight: 1, Term: expressions("zone", "Exists")}}},
			1, oneGPU,
			[]int{2},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			nodes := dgx(t, 3)
			c.prepare(nodes)
			before := frees(nodes)
			got := places(nodes, place.Unit{Members: c.members, Request: c.request, Constraints: constraint.Compile(c.constraints)})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("nodes of the members (-want +got):\n%s", diff)
			}
			if c.want == nil {
				if diff := sameFree(nodes, before); diff != "" {
					t.Errorf("a failed placement has changed %s", diff)
				}
			}
		})
	}
}

// use takes single GPUs of a node.
func use(n *cluster.Node, gpus int) {
	if _, ok := place.Place(cluster.NewState(n), place.Unit{Members: gpus, Request: oneGPU}); !ok {
		panic("the node is full too early")
	}
}
