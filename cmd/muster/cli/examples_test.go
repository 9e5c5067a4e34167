package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/resource"
)

// examples are the files a newcomer submits first; each must stay what its
// comment says.
func TestExamplesAreWellFormed(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "examples")
	cases := map[string]struct {
		members int
		gang    bool
		request resource.Request
	}{
		"cpu.yaml":       {1, false, resource.Request{CPU: 500, Memory: 256 << 20}},
		"gpu-share.yaml": {1, false, resource.Request{CPU: 2000, Memory: 4 << 30, GPUShare: 500}},
		"mig.yaml":       {1, false, resource.Request{Cores: 8, Memory: 16 << 30, MIG: 2, MIGProfile: "1g.10gb"}},
		"hugepages.yaml": {1, false, resource.Request{Cores: 4, Memory: 1 << 30, Hugepages: 2 << 30, HugepageSize: 2 << 20, NUMA: resource.NUMASingleNode}},
		"gang.yaml":      {4, true, resource.Request{CPU: 16000, Memory: 64 << 30, GPUs: 8}},
		"gang-5.yaml":    {5, true, resource.Request{CPU: 16000, Memory: 64 << 30, GPUs: 8}},
		"quota-job.yaml": {1, false, resource.Request{CPU: 4000, Memory: 16 << 30, GPUs: 4}},
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.*")) // examples/monitoring is not for muster
	if err != nil || len(files) != len(cases)+len(quotaExamples) {
		t.Fatalf("%d examples in %s, %d are tested (%v)", len(files), folder, len(cases)+len(quotaExamples), err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := (&app{namespace: "default"}).read([]string{filepath.Join(folder, name)})
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects, %v", len(objects), err)
			}
			members, gang := 1, false
			var spec api.AllocationSpec
			if j := as[api.Job](objects[0]); j != nil {
				members, _, gang = api.JobUnits(j)
				spec = j.Spec.Template.Spec
			} else {
				spec = as[api.Allocation](objects[0]).Spec
			}
			request, status := api.MemberRequest(spec)
			if status != nil || request != c.request || members != c.members || gang != c.gang {
				t.Errorf("got %d members, gang %t, %+v, %v; want %+v", members, gang, request, status, c)
			}
		})
	}
}

// quotaExamples are the examples about quotas, tenants and namespaces, with their
// objects.
var quotaExamples = map[string][]string{
	"quota-tree.json":     {"quotatree company"},
	"quota-binding.yaml":  {"quotabinding vision", "quotabinding speech"},
	"resourcequota.yaml":  {"resourcequota ml/team"},
	"quota-consumer.json": nil,
	"namespace.yaml":      {"tenant vision", "namespace vision-dev"},
	"queue.yaml":          {"queue training"},
	"priority-class.yaml": {"priorityclass release"},
	"resource.yaml":       {"resource example.com/seat"},
}

func TestQuotaExamplesAreWellFormed(t *testing.T) {
	var tree quota.TreeSpec
	var groups []string
	for name, want := range quotaExamples {
		path := filepath.Join("..", "..", "..", "examples", name)
		a := &app{namespace: "default"}
		if want == nil {
			_, doc, err := a.consumer(path)
			if err != nil {
				t.Fatal(err)
			}
			c, _, err := quotajson.Consumer(doc, quotajson.Natural)
			if err != nil || len(c.Demands) != 1 || c.Demands[0].Request[resource.GPU] != 4000 {
				t.Errorf("%s: %+v, %v", name, c, err)
			}
			groups = append(groups, c.Demands[0].Group)
			continue
		}
		objects, err := a.read([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objects {
			got = append(got, o.String())
			if as[api.QuotaTree](o) != nil {
				if tree, err = quotajson.Tree(read(t, path), quotajson.Natural); err != nil {
					t.Fatal(err)
				}
			}
			if b := as[api.QuotaBinding](o); b != nil {
				groups = append(groups, b.Spec.Groups["company"])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	m := quota.NewManager(quota.Options{})
	if shape, err := m.AddTree(tree); err != nil || shape.Root != "company" || len(shape.Dangling) > 0 {
		t.Errorf("the tree is %+v, %v", shape, err)
	}
	for _, g := range groups {
		if n, err := m.Node(tree.Name, g); err != nil || !n.Leaf {
			t.Errorf("group %q: %+v, %v", g, n, err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestStreamsAreSplitIntoDocuments(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
	}{
		"nothing":                    {"", nil},
		"comments only":              {"# a\n---\n# b\n", nil},
		"one":                        {"a: 1", []string{`{"a":1}`}},
		"several":                    {"---\na: 1\n---\n\n--- # c\nb: 2\n---\n", []string{`{"a":1}`, `{"b":2}`}},
		"Windows line ends":          {"a: 1\r\n---\r\nb: 2\r\n", []string{`{"a":1}`, `{"b":2}`}},
		"dashes within a text":       {"a: |\n  ---\n  b\n", []string{`{"a":"---\nb\n"}`}},
		"JSON":                       {" {\"a\":1}\n", []string{`{"a":1}`}},
		"several JSON":               {`{"a":1} {"b":2}`, []string{`{"a":1}`, `{"b":2}`}},
		"JSON that breaks off later": {`{"a":1} {"b":`, []string{`{"a":1}`, `{"b":`}},
		"flow YAML":                  {"{a: 1}", []string{`{"a":1}`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := split([]byte(c.text))
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("got %q, %v; want %q", got, err, c.want)
			}
			for i := range got {
				if string(got[i]) != c.want[i] {
					t.Errorf("document %d: got %q, want %q", i+1, got[i], c.want[i])
				}
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"a: 1\n---\nb: 2", `{"a":1}{"b":2}`, "{a: [", "--- # x\n&a [*a]", "a: &a [1,2]\nb: *a"} {
		f.Add([]byte(s))
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*.*"))
	if err != nil || len(examples) == 0 {
		f.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, example := range examples {
		raw, err := os.ReadFile(example)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"kind":"List","items":[{"kind":"QuotaForest","metadata":{"name":"f"},"spec":{"trees":["t"]}},null,7]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		documents, err := split(raw)
		if err != nil {
			return
		}
		for _, doc := range unlist(documents) {
			if _, err := (&app{namespace: "default"}).decode(doc); err != nil && err.Error() == "" {
				t.Fatalf("%q is refused without a word", doc)
			}
		}
	})
}
