package place_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// partitioned has two GPUs, of which the first is divided.
const partitioned = `{
  "name": "partitioned", "driver": "550.54.15", "threadsPerCore": 2, "coresPerL3": 8,
  "nodes": [{"socket": 0, "cores": 32, "memory": "256Gi"}],
  "gpus": [
    {"model": "NVIDIA A100 80GB PCIe", "memory": "80Gi", "pciBusID": "0000:01:00.0", "numaNode": 0, "path": "rc0", "mig": {"enabled": true, "instances": [
      {"profile": "3g.40gb", "memory": "40Gi"}, {"profile": "2g.20gb", "memory": "20Gi"},
      {"profile": "1g.10gb", "memory": "10Gi"}, {"profile": "1g.10gb", "memory": "10Gi"}
    ]}},
    {"model": "NVIDIA A100 80GB PCIe", "memory": "80Gi", "pciBusID": "0000:41:00.0", "numaNode": 0, "path": "rc1"}
  ]
}`

// special returns a plain host of two GPUs, one with 4 GiB in pages of 2 MiB
// besides, and a partitioned one. All have 32 cores of two threads on one node.
func special(tb testing.TB) []*cluster.Node {
	tb.Helper()
	var nodes []*cluster.Node
	plain, err := fake.Lookup("gpu2")
	if err != nil {
		tb.Fatal(err)
	}
	divided, err := fake.ParseProfile([]byte(partitioned))
	if err != nil {
		tb.Fatal(err)
	}
	for i, profile := range []fake.Profile{plain, plain, divided} {
		topology, id := profile.Topology(), fmt.Sprintf("node-%d", i)
		if i == 1 {
			topology.Nodes[0].Hugepages = map[int]int64{2048: 2048}
		}
		nodes = append(nodes, nodeOf(tb, resource.NodeID(id), topology, profile))
	}
	return nodes
}

func nodeOf(tb testing.TB, id resource.NodeID, t *numa.Topology, p fake.Profile) *cluster.Node {
	tb.Helper()
	host, err := fit.NewHost(t, p.Inventory(string(id)), fit.Reserved{})
	if err != nil {
		tb.Fatal(err)
	}
	n := &cluster.Node{ID: id, Ready: true, Host: host, Free: host.NewFree()}
	n.Refresh()
	return n
}

// hold takes what a request gets on a node.
func hold(n *cluster.Node, r resource.Request) {
	if _, ok := place.Place(cluster.NewState(n), place.Unit{Members: 1, Request: r}); !ok {
		panic(fmt.Sprintf("%s has no room for %+v", n.ID, r))
	}
}

func TestPlaceOfCoresHugePagesAndInstances(t *testing.T) {
	nothing := func([]*cluster.Node) {}
	small := resource.Request{MIG: 1, MIGProfile: "1g.10gb"}
	pages := func(b resource.Bytes) resource.Request { return resource.Request{Hugepages: b, HugepageSize: 2 << 20} }
	for name, c := range map[string]struct {
		prepare func([]*cluster.Node)
		members int
		request resource.Request
		want    []int
	}{
		"an instance goes where its profile is":          {nothing, 1, small, []int{2}},
		"as many instances as there are":                 {nothing, 2, small, []int{2, 2}},
		"two instances for one member":                   {nothing, 1, resource.Request{MIG: 2, MIGProfile: "1g.10gb"}, []int{2}},
		"one instance more than there are":               {nothing, 3, small, nil},
		"a profile that nobody has":                      {nothing, 1, resource.Request{MIG: 1, MIGProfile: "7g.80gb"}, nil},
		"an instance of a device that takes no new work": {func(n []*cluster.Node) { n[2].Free.Unhealthy = 1; n[2].Refresh() }, 1, small, nil},
		"a partitioned GPU is not handed out whole":      {nothing, 5, resource.Request{GPUs: 1}, []int{2, 0, 0, 1, 1}},
		"a used node is filled before a fresh one":       {func(n []*cluster.Node) { hold(n[1], resource.Request{GPUs: 1}) }, 1, resource.Request{GPUs: 1}, []int{1}},
		"work without devices stays clear of instances":  {func(n []*cluster.Node) { hold(n[1], resource.Request{GPUs: 2}) }, 1, resource.Request{CPU: 1000}, []int{1}},
		"free instances count as devices":                {func(n []*cluster.Node) { hold(n[2], resource.Request{GPUs: 1}) }, 1, resource.Request{CPU: 1000}, []int{2}},
		"huge pages go where they are":                   {nothing, 2, pages(2 << 30), []int{1, 1}},
		"more huge pages than there are":                 {nothing, 1, pages(5 << 30), nil},
		"huge pages of another size":                     {nothing, 1, resource.Request{Hugepages: 1 << 30, HugepageSize: 1 << 30}, nil},
		"memory in huge pages is no ordinary memory":     {nothing, 1, resource.Request{Memory: 256 << 30, CPU: 1000}, []int{0}},
		"whole cores":                                      {nothing, 3, resource.Request{Cores: 32}, []int{0, 1, 2}},
		"more whole cores than there are":                  {nothing, 1, resource.Request{Cores: 33}, nil},
		"whole cores where one is used in part":            {func(n []*cluster.Node) { hold(n[0], resource.Request{CPU: 100}) }, 1, resource.Request{Cores: 32}, []int{1}},
		"whole cores with huge pages and a GPU":            {nothing, 1, resource.Request{Cores: 8, Hugepages: 1 << 30, HugepageSize: 2 << 20, GPUs: 1}, []int{1}},
		"whole cores next to an instance of enough memory": {nothing, 1, resource.Request{Cores: 8, MIG: 1, MIGProfile: "3g.40gb", GPUMemory: 40 << 30}, []int{2}},
		"an instance of more memory than there is":         {nothing, 1, resource.Request{MIG: 1, MIGProfile: "3g.40gb", GPUMemory: 41 << 30}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := special(t)
			c.prepare(nodes)
			before := frees(nodes)
			got := places(nodes, place.Unit{Members: c.members, Request: c.request})
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

func TestExplainTellsWhatIsShortOfCoresHugePagesAndInstances(t *testing.T) {
	for name, c := range map[string]struct {
		unit          place.Unit
		wantFit       int
		wantShortages []string
		wantCodes     []string // of the first reason of each node
	}{
		"instances": {
			place.Unit{Members: 3, Request: resource.Request{MIG: 1, MIGProfile: "1g.10gb"}},
			2,
			[]string{"Insufficient nvidia.com/mig-1g.10gb: want 3, have 2"},
			[]string{"nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb"},
		},
		"whole cores": {
			place.Unit{Members: 4, Request: resource.Request{Cores: 32}},
			3,
			[]string{"Insufficient muster.io/cores: want 128, have 96"},
			[]string{"muster.io/cores", "muster.io/cores", "muster.io/cores"},
		},
		"huge pages": {
			place.Unit{Members: 1, Request: resource.Request{CPU: 1000, Hugepages: 5 << 30, HugepageSize: 2 << 20}},
			0,
			[]string{"Insufficient hugepages-2Mi: want 5Gi, have 4Gi"},
			[]string{"hugepages-2Mi", "hugepages-2Mi", "hugepages-2Mi"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := special(t)
			before := frees(nodes)
			e := place.Explain(cluster.NewState(nodes...), c.unit)
			var shortages, first []string
			for _, r := range e.Shortages {
				shortages = append(shortages, r.String())
			}
			for _, n := range e.Nodes {
				first = append(first, string(n.Reasons[0].Resource))
			}
			if diff := cmp.Diff(c.wantShortages, shortages); e.Fit != c.wantFit || diff != "" {
				t.Errorf("%d fit, want %d; shortages (-want +got):\n%s", e.Fit, c.wantFit, diff)
			}
			if diff := cmp.Diff(c.wantCodes, first); diff != "" {
				t.Errorf("what each node is short of (-want +got):\n%s", diff)
			}
			if diff := sameFree(nodes, before); diff != "" {
				t.Errorf("Explain has changed %s", diff)
			}
		})
	}
}

func TestCPUsOnNoNodeCountToo(t *testing.T) {
	profile, err := fake.Lookup("gpu2")
	if err != nil {
		t.Fatal(err)
	}
	topology := profile.Topology()
	for i := range topology.CPUs {
		topology.CPUs[i].NUMA = numa.Unknown
		topology.Nodes[0].CPUs.Remove(topology.CPUs[i].ID)
	}
	nodes := []*cluster.Node{nodeOf(t, "n1", topology, profile)}
	if got := places(nodes, place.Unit{Members: 64, Request: resource.Request{CPU: 1000}}); len(got) != 64 {
		t.Errorf("%d members found a CPU, want 64", len(got))
	}
}
