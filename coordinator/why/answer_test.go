package why_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// A bound of the nodes that the work may use says so where there are others.
func TestABoundSaysThatNodesAreLeftOut(t *testing.T) {
	for want, b := range map[string]whatif.Bound{
		"a member wants 4 GPUs, and the only node has no more than 2 GPUs":                    {Nodes: 1},
		"a member wants 4 GPUs, and none of the 3 nodes has more than 2 GPUs":                 {Nodes: 3},
		"a member wants 4 GPUs, and the only node that it may use has no more than 2 GPUs":    {Nodes: 1, LeftOut: 1},
		"a member wants 4 GPUs, and none of the 3 nodes that it may use has more than 2 GPUs": {Nodes: 3, LeftOut: 5},
	} {
		b.Code, b.Resource, b.Want, b.Have = whatif.NodeTooSmall, resource.GPU, 4000, 2000
		if got := why.OutlookOf([]whatif.Bound{b}, false).Reason.Detail; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNodesAreGroupedWhateverTheirNumber(t *testing.T) {
	for _, n := range []int{150, 10_000} {
		nodes := on(n-2, "a100", plain(resource.ReasonNodeSelector, "label gpu-type is a100, want h100"))
		nodes = append(nodes, on(1, "h100", short(resource.ReasonInsufficient, 8000, 3000))...)
		nodes = append(nodes, on(1, "h200", short(resource.ReasonInsufficient, 8000, 0))...)
		f := waiting(nodes...)
		e := why.Answer(f, why.Viewer{Operator: true}, why.Options{})
		want := []string{"label gpu-type is a100, want h100", "0 to 3 GPUs free, a member wants 8 GPUs"}
		if len(e.Nodes) != 2 || e.Nodes[0].Count != n-2 || e.Nodes[1].Count != 2 || e.Nodes[0].Message != want[0] || e.Nodes[1].Message != want[1] {
			t.Errorf("%d nodes: groups %+v", n, e.Nodes)
		}
		if len(e.Nodes[0].Names) != 3 || e.EachNode != nil {
			t.Errorf("%d nodes: %d names, %d nodes one by one", n, len(e.Nodes[0].Names), len(e.EachNode))
		}
		if text := why.Text(e); len(text) > 2000 {
			t.Errorf("%d nodes take %d bytes", n, len(text))
		}
		if e = why.Answer(f, why.Viewer{Operator: true}, why.Options{EveryNode: true}); len(e.EachNode) != n || len(e.Nodes[0].Names) != n-2 {
			t.Errorf("%d nodes, every one: %d one by one, %d names", n, len(e.EachNode), len(e.Nodes[0].Names))
		}
	}
}

func TestGroupsAreBoundedAndCountEveryNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []api.NodeExplanation
		for i := range rapid.IntRange(0, 200).Draw(t, "nodes") {
			label := rapid.IntRange(0, 60).Draw(t, "label")
			nodes = append(nodes, on(1, fmt.Sprintf("n%d", i), plain(resource.ReasonNodeSelector, fmt.Sprintf("label x is %d, want y", label)))...)
		}
		e := why.Answer(waiting(nodes...), tenant, why.Options{})
		sum := 0
		for _, g := range e.Nodes {
			sum += g.Count
		}
		if sum != len(nodes) || len(e.Nodes) > 24 {
			t.Fatalf("%d nodes are %d in %d groups", len(nodes), sum, len(e.Nodes))
		}
	})
}

// TestATenantSeesNoNamesOfOthers puts the name of another tenant's unit wherever
// facts may have one.
func TestATenantSeesNoNamesOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`rival-[a-z0-9]{3,8}`).Draw(t, "name")
		path := fmt.Sprintf("other-%s/%s/%s/%d", name, rapid.SampledFrom([]string{"alloc", "job"}).Draw(t, "kind"), name, rapid.IntRange(0, 99).Draw(t, "n"))
		text := rapid.SampledFrom([]string{"gives way to %s", "%s is leaving already", "x, %s, y", "(%s)", "%s.", "its quota is claimed back by %s; more"}).Draw(t, "text")
		text = fmt.Sprintf(text, path)
		f := waiting(on(2, "n", short(resource.ReasonInsufficient, 1000, 0))...)
		f.Stage = rapid.SampledFrom([]why.Stage{why.Waiting, why.Resting, why.Nominated, why.Leaving, why.Ended, why.Running}).Draw(t, "stage")
		f.Ending, f.NoVictims = text, text
		f.Victims = []why.Work{{Unit: path, Namespace: "other-" + name, GPUs: 1000}}
		f.Borrowers = f.Victims
		if rapid.Bool().Draw(t, "quota") {
			f.QuotaLevel, f.Quota = rapid.SampledFrom([]string{why.QuotaInUse, why.QuotaTree}).Draw(t, "level"), []resource.Reason{plain(resource.ReasonQuota, text)}
		}
		f.Help = why.HelpOf([]whatif.Hint{{Code: whatif.WaitFor, Ends: []whatif.Victim{{Unit: path}}}, {Code: whatif.MayPreempt, Victims: []whatif.Victim{{Unit: path}}}}, tenant)
		e := why.Answer(f, tenant, why.Options{EveryNode: true})
		doc, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(doc), name) || strings.Contains(why.Text(e), name) {
			t.Fatalf("%s is named: %s", name, doc)
		}
	})
	f := waiting(on(1, "n", short(resource.ReasonInsufficient, 1000, 0))...)
	f.Stage, f.Victims = why.Nominated, victims
	if e := why.Answer(f, why.Viewer{Operator: true}, why.Options{}); !strings.Contains(e.Summary, "rival/job/secret/0") || e.Nomination.Victims[1].Unit != "rival/job/secret/0" {
		t.Errorf("an operator is shown %+v", e)
	}
	if e := why.Answer(f, tenant, why.Options{}); !strings.Contains(e.Summary, "ml/job/own/0 and 1 other unit of another tenant with 8 GPUs at priority 0") || e.Nomination.Victims[1].GPUs != "8" {
		t.Errorf("a tenant is shown %+v", e)
	}
}

func TestABoundedAnswerEndsWithAWholeLine(t *testing.T) {
	all := cases()
	rapid.Check(t, func(t *rapid.T) {
		f := all[rapid.SampledFrom([]string{"short in all", "node: Taint", "quota of a tree", "every node refuses, for different reasons"}).Draw(t, "case")]
		most := rapid.IntRange(1, 1024).Draw(t, "most")
		e := why.Answer(f, tenant, why.Options{})
		got, whole := why.Bounded(e, most), strings.TrimSuffix(why.Text(e), "\n")
		if len(got) > most {
			t.Fatalf("%d bytes, want at most %d", len(got), most)
		}
		if got != whole && len(got) > 250 && !strings.HasSuffix(got, ": muster why allocation/train -n ml") {
			t.Fatalf("cut without a word: %s", got)
		}
	})
}
