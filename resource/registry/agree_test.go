package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

func declaration(node, since string, declared ...registry.Declared) registry.Declaration {
	return registry.Declaration{Node: node, Since: since, Declared: declared}
}

func TestTheEarlierDeclarationIsRight(t *testing.T) {
	fpga := registry.Declared{Name: "example.com/fpga", Kind: registry.Count, Unit: "boards"}
	cache := registry.Declared{Name: "example.com/cache", Kind: registry.Bytes}
	counted := registry.Declared{Name: "example.com/cache", Kind: registry.Count}
	cards := registry.Declared{Name: "example.com/fpga", Kind: registry.Count, Unit: "cards"}
	unnamed := registry.Declared{Name: "example.com/fpga", Kind: registry.Count}
	for name, c := range map[string]struct {
		declarations []registry.Declaration
		created      map[resource.Name]registry.Entry
		want         map[string]string // by node and name
		nodes        map[resource.Name]int
	}{
		"two nodes agree": {
			declarations: []registry.Declaration{declaration("b", "1", fpga), declaration("a", "2", fpga)},
			nodes:        map[resource.Name]int{fpga.Name: 2},
		},
		"a node without a unit agrees with each": {
			declarations: []registry.Declaration{declaration("b", "1", fpga), declaration("a", "2", unnamed)},
			nodes:        map[resource.Name]int{fpga.Name: 2},
		},
		"another unit is a condition of the later node": {
			declarations: []registry.Declaration{declaration("a", "2", cards), declaration("b", "1", fpga)},
			want:         map[string]string{"a example.com/fpga": `the node declares unit "cards", node b declared it before with unit "boards"`},
			nodes:        map[resource.Name]int{fpga.Name: 1},
		},
		"another kind, and the rest of the later node stays": {
			declarations: []registry.Declaration{declaration("a", "1", cache), declaration("b", "1", counted, fpga)},
			want:         map[string]string{"b example.com/cache": "the node declares kind count, node a declared it before with kind bytes"},
			nodes:        map[resource.Name]int{cache.Name: 1, fpga.Name: 1},
		},
		"an operator's kind wins over every node": {
			declarations: []registry.Declaration{declaration("a", "1", counted), declaration("b", "2", cache)},
			created:      map[resource.Name]registry.Entry{cache.Name: {Name: cache.Name, Kind: registry.Bytes}},
			want:         map[string]string{"a example.com/cache": "the node declares kind count, an operator has created the resource with kind bytes"},
			nodes:        map[resource.Name]int{cache.Name: 1},
		},
		"no node has an amount of a resource of the cluster": {
			declarations: []registry.Declaration{declaration("a", "1", fpga)},
			created:      map[resource.Name]registry.Entry{fpga.Name: {Name: fpga.Name, Scope: registry.PerCluster}},
			want:         map[string]string{"a example.com/fpga": "an operator has created the resource with scope cluster, so no node has an amount of it"},
			nodes:        map[resource.Name]int{},
		},
		"an operator who gives texts alone forbids nothing": {
			declarations: []registry.Declaration{declaration("a", "1", cache)},
			created:      map[resource.Name]registry.Entry{cache.Name: {Name: cache.Name, Unit: "octets"}},
			nodes:        map[resource.Name]int{cache.Name: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := registry.Agree(c.declarations, c.created)
			got := map[string]string{}
			for node, conflicts := range a.Conflicts {
				for _, x := range conflicts {
					got[node+" "+string(x.Name)] = strings.TrimPrefix(x.Detail, string(x.Name)+": ")
				}
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			nodes := map[resource.Name]int{}
			for n, e := range a.Entries {
				nodes[n] = e.Nodes
			}
			if diff := cmp.Diff(c.nodes, nodes); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALyingNodeCannotFloodTheRegistry(t *testing.T) {
	var all []registry.Declaration
	honest := registry.Declared{Name: "example.com/fpga", Kind: registry.Count}
	all = append(all, declaration("honest", "0", honest))
	for n := range 100 {
		d := declaration(fmt.Sprint("liar", n), "1")
		for i := range resource.MaxCounts {
			d.Declared = append(d.Declared, registry.Declared{Name: resource.Name(fmt.Sprintf("lie.example/r%d-%d", n, i)), Kind: registry.Count})
		}
		all = append(all, d)
	}
	a := registry.Agree(all, nil)
	if len(a.Entries) != registry.MaxDeclared || a.Entries[honest.Name].Nodes != 1 {
		t.Errorf("%d names, the honest one of %d nodes; want %d and 1", len(a.Entries), a.Entries[honest.Name].Nodes, registry.MaxDeclared)
	}
	if len(a.Conflicts["honest"]) != 0 || len(a.Conflicts["liar99"]) != resource.MaxCounts {
		t.Errorf("conflicts of the honest node %v, of the last liar %d", a.Conflicts["honest"], len(a.Conflicts["liar99"]))
	}
}

// The order of the declarations does not matter, and a later node that is added alone
// gives the same agreement as all nodes at once.
func TestAgreementsFollowFromTheDeclarationsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []registry.Declaration
		for n := range rapid.IntRange(1, 8).Draw(t, "nodes") {
			d := declaration(fmt.Sprint("n", n), fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "since")))
			for i := range rapid.IntRange(0, 3).Draw(t, "names") {
				d.Declared = append(d.Declared, registry.Declared{
					Name: resource.Name(fmt.Sprint("example.com/r", i)), Kind: rapid.SampledFrom([]registry.Kind{registry.Count, registry.Bytes}).Draw(t, "kind"),
					Unit: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "unit"),
				})
			}
			all = append(all, d)
		}
		want := registry.Agree(all, nil)
		shuffled := rapid.Permutation(all).Draw(t, "order")
		same := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(registry.Agreement{})}
		if diff := cmp.Diff(want, registry.Agree(shuffled, nil), same); diff != "" {
			t.Fatalf("in another order: %s", diff)
		}
		grown := registry.Agree(nil, nil)
		for i, d := range shuffled {
			if !grown.Add(d, nil) {
				grown = registry.Agree(shuffled[:i+1], nil)
			}
		}
		if diff := cmp.Diff(want, grown, same); diff != "" {
			t.Fatalf("one by one: %s", diff)
		}
	})
}
