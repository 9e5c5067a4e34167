package place_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
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

func expressions(key, operator string, values ...string) api.NodeSelectorTerm {
	return api.NodeSelectorTerm{MatchExpressions: []api.MatchExpression{{Key: key, Operator: operator, Values: values}}}
}

// places returns the node of each member, by position; nil if there is no
// place.
func places(nodes []*cluster.Node, u place.Unit) []int {
	members, ok := place.Place(nodes, u)
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
	required := func(terms ...api.NodeSelectorTerm) place.Constraints { return place.Constraints{Required: terms} }
	taint := func(effect string) func([]*cluster.Node) {
		return func(nodes []*cluster.Node) {
			nodes[0].Taints = []api.Taint{{Key: "gpu", Value: "yes", Effect: effect}}
			nodes[1].Taints = nodes[0].Taints
		}
	}
	tolerate := func(o api.Toleration) place.Constraints { return place.Constraints{Tolerations: []api.Toleration{o}} }
	label := func(at int, key, value string) func([]*cluster.Node) {
		return func(nodes []*cluster.Node) { nodes[at].Labels = map[string]string{key: value} }
	}
	nothing := func([]*cluster.Node) {}
	cases := map[string]struct {
		prepare     func([]*cluster.Node) // three empty nodes of 8 GPUs
		constraints place.Constraints
		members     int
		request     resource.Request
		want        []int
	}{
		"equal nodes: the first":                     {nothing, place.Constraints{}, 1, oneGPU, []int{0}},
		"a used node is filled before a fresh one":   {func(n []*cluster.Node) { use(n[2], 1) }, place.Constraints{}, 1, oneGPU, []int{2}},
		"a gang packs onto as few nodes as it can":   {func(n []*cluster.Node) { use(n[1], 5) }, place.Constraints{}, 4, oneGPU, []int{1, 1, 1, 0}},
		"a gang of whole nodes takes one each":       {nothing, place.Constraints{}, 3, eightGPUs, []int{0, 1, 2}},
		"a gang that is one too large gets nothing":  {nothing, place.Constraints{}, 4, eightGPUs, nil},
		"work without GPUs goes where GPUs are gone": {func(n []*cluster.Node) { use(n[1], 8) }, place.Constraints{}, 1, resource.Request{CPU: 1000}, []int{1}},
		"a cordoned node is left out":                {func(n []*cluster.Node) { n[0].Unschedulable = true }, place.Constraints{}, 1, oneGPU, []int{1}},
		"a node that is not ready is left out":       {func(n []*cluster.Node) { n[0].Ready = false }, place.Constraints{}, 1, oneGPU, []int{1}},
		"a suspected node is the last choice, however well it fits": {
			func(n []*cluster.Node) {
				use(n[0], 6)
				n[0].Suspect, n[0].Labels = true, map[string]string{"zone": "a"}
			},
			place.Constraints{Preferred: []api.PreferredTerm{{Weight: 100, Preference: expressions("zone", "In", "a")}}},
			9,
			resource.Request{GPUs: 2, CPU: 2000},
			[]int{1, 1, 1, 1, 2, 2, 2, 2, 0},
		},
		"an unhealthy device takes no work": {
			func(n []*cluster.Node) { n[0].Free.Unhealthy = 1; n[0].Refresh() },
			place.Constraints{},
			1, eightGPUs,
			[]int{1},
		},
		"the tightest node, refused by its fit, gives way to the next": {
			func(n []*cluster.Node) { n[0].Free.Unhealthy = 0x55; n[0].Refresh() },
			place.Constraints{},
			2,
			resource.Request{GPUs: 2, CPU: 2000, NUMA: resource.NUMASingleNode},
			[]int{1, 1},
		},
		"no fit anywhere though the sums suffice": {
			nothing,
			place.Constraints{},
			1,
			resource.Request{GPUs: 4, CPU: 4000, NUMA: resource.NUMASingleNode},
			nil,
		},

		"NoSchedule keeps away":                     {taint("NoSchedule"), place.Constraints{}, 1, oneGPU, []int{2}},
		"NoExecute keeps away":                      {taint("NoExecute"), place.Constraints{}, 1, oneGPU, []int{2}},
		"PreferNoSchedule does not":                 {taint("PreferNoSchedule"), place.Constraints{}, 1, oneGPU, []int{0}},
		"a taint is tolerated by key and value":     {taint("NoSchedule"), tolerate(api.Toleration{Key: "gpu", Value: "yes"}), 1, oneGPU, []int{0}},
		"the same with another value is not":        {taint("NoSchedule"), tolerate(api.Toleration{Key: "gpu", Value: "no"}), 1, oneGPU, []int{2}},
		"Exists tolerates every value":              {taint("NoSchedule"), tolerate(api.Toleration{Key: "gpu", Operator: "Exists"}), 1, oneGPU, []int{0}},
		"Exists without a key tolerates everything": {taint("NoExecute"), tolerate(api.Toleration{Operator: "Exists"}), 1, oneGPU, []int{0}},
		"a toleration of another effect does not":   {taint("NoExecute"), tolerate(api.Toleration{Key: "gpu", Operator: "Exists", Effect: "NoSchedule"}), 1, oneGPU, []int{2}},

		"a node selector":                  {label(1, "zone", "b"), place.Constraints{NodeSelector: map[string]string{"zone": "b"}}, 1, oneGPU, []int{1}},
		"a node selector nobody satisfies": {label(1, "zone", "b"), place.Constraints{NodeSelector: map[string]string{"zone": "c"}}, 1, oneGPU, nil},
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
			place.Constraints{Preferred: []api.PreferredTerm{{Weight: 1, Preference: expressions("zone", "Exists")}}},
			1, oneGPU,
			[]int{2},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			nodes := dgx(t, 3)
			c.prepare(nodes)
			before := frees(nodes)
			got := places(nodes, place.Unit{Members: c.members, Request: c.request, Constraints: c.constraints})
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
	if _, ok := place.Place([]*cluster.Node{n}, place.Unit{Members: gpus, Request: oneGPU}); !ok {
		panic("the node is full too early")
	}
}

func TestConstraintsOfTakesEverySection(t *testing.T) {
	terms := []api.NodeSelectorTerm{expressions("zone", "Exists")}
	preferred := []api.PreferredTerm{{Weight: 3, Preference: terms[0]}}
	s := api.Scheduling{
		NodeSelector: map[string]string{"a": "b"},
		Tolerations:  []api.Toleration{{Key: "k"}},
		Affinity:     &api.Affinity{NodeAffinity: &api.NodeAffinity{Required: &api.NodeSelectorTerms{NodeSelectorTerms: terms}, Preferred: preferred}},
	}
	want := place.Constraints{NodeSelector: s.NodeSelector, Required: terms, Preferred: preferred, Tolerations: s.Tolerations}
	got := place.ConstraintsOf(s)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if empty := place.ConstraintsOf(api.Scheduling{}); !empty.IsZero() || got.IsZero() {
		t.Errorf("IsZero: %t for nothing, %t for %+v", empty.IsZero(), got.IsZero(), got)
	}
}
