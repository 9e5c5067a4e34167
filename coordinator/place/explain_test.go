package place_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

func TestExplain(t *testing.T) {
	wholeNode := resource.Request{GPUs: 8, CPU: 8000}
	cases := map[string]struct {
		prepare       func([]*cluster.Node) // four empty nodes of 8 GPUs
		unit          place.Unit
		wantFit       int
		wantPerNode   []int
		wantShortages []string
		wantCodes     []string // of the first reason of each node, "" for none
	}{
		"five whole nodes on four": {
			func([]*cluster.Node) {},
			place.Unit{Members: 5, Request: wholeNode},
			4,
			[]int{1, 1, 1, 1},
			[]string{"Insufficient nvidia.com/gpu: want 40, have 32"},
			[]string{"Insufficient", "Insufficient", "Insufficient", "Insufficient"},
		},
		"enough GPUs, but scattered": {
			func(n []*cluster.Node) { use(n[0], 1); use(n[1], 1); use(n[2], 1); use(n[3], 1) },
			place.Unit{Members: 1, Request: resource.Request{GPUs: 8}},
			0,
			[]int{0, 0, 0, 0},
			nil,
			[]string{"Insufficient", "Insufficient", "Insufficient", "Insufficient"},
		},
		"closed nodes say why and do not count": {
			func(n []*cluster.Node) {
				n[0].Ready = false
				n[1].Unschedulable = true
				mark(n[2:3], nil, constraint.Taint{Key: "k", Effect: constraint.NoSchedule})
			},
			place.Unit{Members: 2, Request: wholeNode},
			1,
			[]int{0, 0, 0, 1},
			[]string{"Insufficient nvidia.com/gpu: want 16, have 8"},
			[]string{"Unreachable", "Cordoned", "Taint", "Insufficient"},
		},
		"the shortest resource comes first": {
			func([]*cluster.Node) {},
			place.Unit{Members: 1, Request: resource.Request{GPUs: 33, CPU: resource.MaxCPU}},
			0,
			[]int{0, 0, 0, 0},
			[]string{"Insufficient cpu: want 4294967296m, have 1024", "Insufficient nvidia.com/gpu: want 33, have 32"},
			[]string{"Insufficient", "Insufficient", "Insufficient", "Insufficient"},
		},
		"a NUMA policy is the node's reason, not a shortage": {
			func([]*cluster.Node) {},
			place.Unit{Members: 1, Request: resource.Request{GPUs: 4, NUMA: resource.NUMASingleNode}},
			0,
			[]int{0, 0, 0, 0},
			nil,
			[]string{"NUMAAlignment", "NUMAAlignment", "NUMAAlignment", "NUMAAlignment"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			nodes := dgx(t, 4)
			c.prepare(nodes)
			before := frees(nodes)
			e := place.Explain(cluster.NewState(nodes...), c.unit)
			if e.Fit != c.wantFit {
				t.Errorf("%d members fit, want %d", e.Fit, c.wantFit)
			}
			var fits []int
			var codes, shortages []string
			for _, n := range e.Nodes {
				fits = append(fits, n.Fit)
				code := ""
				if len(n.Reasons) > 0 {
					code = n.Reasons[0].Code
				}
				codes = append(codes, code)
			}
			for _, s := range e.Shortages {
				shortages = append(shortages, s.String())
			}
			if diff := cmp.Diff(c.wantPerNode, fits); diff != "" {
				t.Errorf("fit per node (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantCodes, codes); diff != "" {
				t.Errorf("reasons per node (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantShortages, shortages); diff != "" {
				t.Errorf("shortages (-want +got):\n%s", diff)
			}
			if diff := sameFree(nodes, before); diff != "" {
				t.Errorf("Explain has changed %s", diff)
			}
		})
	}
}

func TestExplainCountsGPUsInThousandths(t *testing.T) {
	e := place.Explain(cluster.NewState(dgx(t, 4)...), place.Unit{Members: 5, Request: resource.Request{GPUs: 8}})
	want := []resource.Reason{{Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: 40_000, Have: 32_000}}
	if diff := cmp.Diff(want, e.Shortages); diff != "" {
		t.Errorf("shortages (-want +got):\n%s", diff)
	}
}

func ExamplePlace() {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		panic(err)
	}
	var state cluster.State
	for _, id := range []resource.NodeID{"node-1", "node-2"} {
		host, err := fit.NewHost(profile.Topology(), profile.Inventory(string(id)), fit.Reserved{})
		if err != nil {
			panic(err)
		}
		state.Insert(&cluster.Node{ID: id, Ready: true, Host: host, Free: host.NewFree()})
	}
	members, ok := place.Place(&state, place.Unit{Members: 3, Request: resource.Request{GPUs: 4}})
	for _, m := range members {
		fmt.Println(m.Index, m.Node.ID, m.Assignment.Vector()[resource.GPU])
	}
	fmt.Println(ok)
	// Output:
	// 0 node-1 4000
	// 1 node-1 4000
	// 2 node-2 4000
	// true
}
