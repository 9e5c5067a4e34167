package quotajson_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/resource"
)

// The sample of spec/quota-manager.txt, without its trailing comma.
const sampleTree = `{
  "kind": "QuotaTree",
  "metadata": {"name": "TestTree"},
  "spec": {
    "resourceNames": ["cpu", "memory"],
    "nodes": {
      "A": {"parent": "nil", "hard": "true", "quota": {"cpu": "10", "memory": "256"}},
      "B": {"parent": "A", "hard": "true", "quota": {"cpu": "2", "memory": "64"}},
      "C": {"parent": "A", "hard": "false", "quota": {"cpu": "6", "memory": "64"}}
    }
  }
}`

func TestTheSampleTree(t *testing.T) {
	got, err := quotajson.Tree([]byte(sampleTree), quotajson.BaseUnits)
	want := quota.TreeSpec{Name: "TestTree", Resources: []resource.Name{"cpu", "memory"}, Nodes: map[string]quota.NodeSpec{
		"A": {Hard: true, Quota: resource.Vector{"cpu": 10, "memory": 256}},
		"B": {Parent: "A", Hard: true, Quota: resource.Vector{"cpu": 2, "memory": 64}},
		"C": {Parent: "A", Quota: resource.Vector{"cpu": 6, "memory": 64}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, tree (-want +got):\n%s", err, diff)
	}
}

func TestTheSampleConsumer(t *testing.T) {
	doc := `{"kind": "Consumer", "metadata": {"name": "consumer-data"}, "spec": {"id": "consumer-1", "trees:": [
	  {"treeName": "ExampleTree", "groupID": "C", "request": {"cpu": 4, "memory": 16}, "priority": 0, "type": 0, "unPreemptable": true}]}}`
	want := quota.ConsumerSpec{ID: "consumer-1", Demands: []quota.Demand{
		{Tree: "ExampleTree", Group: "C", Request: resource.Vector{"cpu": 4, "memory": 16}, Unpreemptable: true},
	}}
	got, warnings, err := quotajson.Consumer([]byte(doc), quotajson.BaseUnits)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, consumer (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"spec.trees:: read as trees"}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	got, warnings, err = quotajson.Consumer([]byte(strings.Replace(doc, `trees:`, `trees`, 1)), quotajson.BaseUnits)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || warnings != nil {
		t.Errorf("%v, %v, consumer (-want +got):\n%s", err, warnings, diff)
	}
}

// node is a tree of one node with the given fields.
func node(fields string) string {
	return `{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"nodes":{"A":{` + fields + `}}}}`
}

func TestNodes(t *testing.T) {
	for name, c := range map[string]struct {
		fields string
		units  quotajson.Units
		want   quota.NodeSpec
	}{
		"a number for a quota":         {`"quota":{"x":4}`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{"x": 4}}},
		"a binary unit":                {`"quota":{"memory":"32Gi"}`, quotajson.Natural, quota.NodeSpec{Quota: resource.Vector{"memory": 32 << 30}}},
		"thousandths of a CPU":         {`"quota":{"cpu":"8000m"}`, quotajson.Natural, quota.NodeSpec{Quota: resource.Vector{"cpu": 8000}}},
		"a CPU and a half":             {`"quota":{"cpu":"1.5"}`, quotajson.Natural, quota.NodeSpec{Quota: resource.Vector{"cpu": 1500}}},
		"thousandths that come out":    {`"quota":{"x":"8000m"}`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{"x": 8}}},
		"no limit":                     {`"quota":{"x":"unlimited"}`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{"x": quota.Unlimited}}},
		"the largest amount":           {`"quota":{"x":"9223372036854775807"}`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{"x": math.MaxInt64}}},
		"an empty quota":               {`"quota":{}`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{}}},
		"hard as a word":               {`"quota":{},"hard":"T"`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{}, Hard: true}},
		"hard as a bool":               {`"quota":{},"hard":true`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{}, Hard: true}},
		"hard as null":                 {`"quota":{},"hard":null`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{}}},
		"the root's parent as null":    {`"quota":{},"parent":null`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{}}},
		"the root's parent as nothing": {`"quota":{},"parent":""`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{}}},
		"the root's parent as nil":     {`"quota":{},"parent":"nil"`, quotajson.BaseUnits, quota.NodeSpec{Quota: resource.Vector{}}},
		"limits": {
			`"quota":{"x":2},"borrowingLimit":{"x":1},"lendingLimit":{"x":0},"cap":{"x":3},"perOwner":{"x":1}`, quotajson.BaseUnits,
			quota.NodeSpec{
				Quota: resource.Vector{"x": 2}, Borrowing: resource.Vector{"x": 1}, Lending: resource.Vector{"x": 0},
				Cap: resource.Vector{"x": 3}, PerOwner: resource.Vector{"x": 1},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := quotajson.Tree([]byte(node(c.fields)), c.units)
			if diff := cmp.Diff(c.want, got.Nodes["A"]); diff != "" || err != nil {
				t.Errorf("%v, node (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestATreeThatIsRefusedNamesTheField(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"nothing":                 {``, "byte 0: the document ends here"},
		"no JSON":                 {`{"kind":}`, "kind: byte 8: invalid character '}' looking for beginning of value"},
		"a cut document":          {`{"kind":"QuotaTree"`, "byte 19: the document ends here"},
		"text behind it":          {`{"kind":"QuotaTree","spec":{}} x`, "byte 31: text behind the document"},
		"a list":                  {`[]`, "want an object, found an array"},
		"another kind":            {`{"kind":"Consumer","spec":{}}`, `kind: want QuotaTree, found "Consumer"`},
		"no kind":                 {`{"spec":{}}`, "kind: missing, want QuotaTree"},
		"no spec":                 {`{"kind":"QuotaTree"}`, "spec: missing"},
		"no name":                 {`{"kind":"QuotaTree","metadata":{},"spec":{}}`, "metadata.name: missing"},
		"no metadata":             {`{"kind":"QuotaTree","spec":{}}`, "metadata.name: missing"},
		"a name that is none":     {`{"kind":"QuotaTree","metadata":{"name":3},"spec":{}}`, "metadata.name: want a string, found 3"},
		"an unknown field":        {`{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"node":{}}}`, "spec.node: unknown field"},
		"a field twice":           {node(`"quota":{},"quota":{}`), `spec.nodes.A: the key "quota" appears twice`},
		"no quota":                {node(`"parent":"nil"`), "spec.nodes.A.quota: missing, {} is none"},
		"a null quota":            {node(`"quota":null`), "spec.nodes.A.quota: missing, {} is none"},
		"a fraction":              {node(`"quota":{"x":"1.5"}`), `spec.nodes.A.quota.x: "1.5": a fraction of the base unit`},
		"a fraction by its unit":  {node(`"quota":{"x":"1500m"}`), `spec.nodes.A.quota.x: "1500m": a fraction of the base unit`},
		"a number with fraction":  {node(`"quota":{"x":1.5}`), "spec.nodes.A.quota.x: 1.5: a fraction of the base unit"},
		"a negative amount":       {node(`"quota":{"x":"-1"}`), `spec.nodes.A.quota.x: "-1": negative`},
		"an unknown unit":         {node(`"quota":{"x":"4Gb"}`), `spec.nodes.A.quota.x: "4Gb": unknown unit "Gb" (want m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei)`},
		"too much":                {node(`"quota":{"x":"99999999999999999999"}`), `spec.nodes.A.quota.x: "99999999999999999999": larger than 9223372036854775807`},
		"nothing for an amount":   {node(`"quota":{"x":""}`), `spec.nodes.A.quota.x: "": not an amount`},
		"an exponent":             {node(`"quota":{"x":1e3}`), "spec.nodes.A.quota.x: 1e3: not an amount"},
		"a bool for an amount":    {node(`"quota":{"x":true}`), "spec.nodes.A.quota.x: want an amount, found true"},
		"a null amount":           {node(`"quota":{"x":null}`), "spec.nodes.A.quota.x: want an amount, found null"},
		"a resource without name": {node(`"quota":{"":1}`), "spec.nodes.A.quota.: a resource without a name"},
		"a word for hard":         {node(`"quota":{},"hard":"yes"`), `spec.nodes.A.hard: want true or false, found "yes"`},
		"a number for hard":       {node(`"quota":{},"hard":1`), "spec.nodes.A.hard: want true or false, found 1"},
		"a number for a parent":   {node(`"quota":{},"parent":1`), "spec.nodes.A.parent: want a string, found 1"},
		"a list of nodes":         {`{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"nodes":[]}}`, "spec.nodes: want an object, found an array"},
		"resources as a string":   {`{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"resourceNames":"cpu"}}`, `spec.resourceNames: want an array, found "cpu"`},
		"a nameless resource":     {`{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"resourceNames":["cpu",""]}}`, "spec.resourceNames[1]: a resource without a name"},
		"too deep":                {strings.Repeat(`[`, 100), strings.Repeat("[0]", 33) + ": nested deeper than 32"},
		"not UTF-8":               {"\xff", "not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := quotajson.Tree([]byte(c.doc), quotajson.BaseUnits)
			var field *quotajson.FieldError
			if !errors.As(err, &field) || err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

func TestAConsumerThatIsRefusedNamesTheField(t *testing.T) {
	doc := func(spec string) string { return `{"kind":"Consumer","spec":{` + spec + `}}` }
	demand := func(fields string) string { return doc(`"id":"c","trees":[{` + fields + `}]`) }
	for name, c := range map[string]struct{ doc, want string }{
		"no id":               {doc(`"trees":[]`), "spec.id: missing"},
		"trees twice":         {doc(`"id":"c","trees":[],"trees:":[]`), "spec.trees:: the trees are given twice"},
		"no tree":             {demand(`"groupID":"g"`), "spec.trees[0].treeName: missing"},
		"no group":            {demand(`"treeName":"T"`), "spec.trees[0].groupID: missing"},
		"a negative request":  {demand(`"treeName":"T","groupID":"g","request":{"cpu":-1}`), "spec.trees[0].request.cpu: -1: negative"},
		"a word for priority": {demand(`"treeName":"T","groupID":"g","priority":"high"`), `spec.trees[0].priority: want an integer, found "high"`},
		"a broken priority":   {demand(`"treeName":"T","groupID":"g","priority":1.5`), "spec.trees[0].priority: want an integer, found 1.5"},
		"an unknown field":    {demand(`"treeName":"T","groupID":"g","preemptable":true`), "spec.trees[0].preemptable: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := quotajson.Consumer([]byte(c.doc), quotajson.BaseUnits)
			if err == nil || err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

func ExampleTree() {
	spec, err := quotajson.Tree([]byte(`{"kind": "QuotaTree", "metadata": {"name": "lab"}, "spec": {
	  "resourceNames": ["cpu", "memory"],
	  "nodes": {
	    "all":  {"parent": "nil", "quota": {"cpu": 64, "memory": "256Gi"}},
	    "nlp":  {"parent": "all", "quota": {"cpu": "8000m", "memory": "32Gi"}, "hard": true},
	    "lost": {"parent": "nobody", "quota": {}}
	  }}}`), quotajson.Natural)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Nodes["nlp"].Quota["cpu"], spec.Nodes["nlp"].Quota["memory"])
	shape, err := quota.NewManager(quota.Options{}).AddTree(spec)
	fmt.Println(shape.Root, shape.Dangling, err)
	// Output:
	// 8000 34359738368
	// all [lost] <nil>
}

func FuzzTree(f *testing.F) {
	f.Add([]byte(sampleTree))
	f.Add([]byte(node(`"quota":{"x":"1.5Gi","y":2},"hard":true,"parent":null,"cap":{"x":"unlimited"}`)))
	f.Add([]byte(`{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"nodes":{"A":{"parent":"B","quota":{}},"B":{"parent":"A","quota":{}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := quotajson.Tree(data, quotajson.Natural)
		if err != nil {
			return
		}
		m := quota.NewManager(quota.Options{})
		if _, err := m.AddTree(spec); err != nil {
			t.Errorf("a tree that decodes is refused: %v", err)
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzConsumer(f *testing.F) {
	f.Add([]byte(`{"kind":"Consumer","spec":{"id":"c","owner":"o","trees:":[{"treeName":"T","groupID":"g","request":{"cpu":"4"},"priority":-1,"type":2,"unPreemptable":"true"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, _, err := quotajson.Consumer(data, quotajson.BaseUnits)
		if err != nil {
			return
		}
		if spec.ID == "" {
			t.Error("a consumer without ID decodes")
		}
		for _, d := range spec.Demands {
			for name, amount := range d.Request {
				if amount < 0 || name == "" {
					t.Errorf("%q: %d decodes", name, amount)
				}
			}
		}
	})
}
