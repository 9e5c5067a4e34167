package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterd/muster/api"
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
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d examples in %s, %d are tested (%v)", len(files), folder, len(cases), err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := (&app{namespace: "default"}).read([]string{filepath.Join(folder, name)})
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects, %v", len(objects), err)
			}
			members, gang := 1, false
			var spec api.AllocationSpec
			if j := objects[0].job; j != nil {
				members, _, gang = api.JobUnits(j)
				spec = j.Spec.Template.Spec
			} else {
				spec = objects[0].allocation.Spec
			}
			request, status := api.MemberRequest(spec)
			if status != nil || request != c.request || members != c.members || gang != c.gang {
				t.Errorf("got %d members, gang %t, %+v, %v; want %+v", members, gang, request, status, c)
			}
		})
	}
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
	if raw, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "gang.yaml")); err == nil {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		documents, err := split(raw)
		if err != nil {
			return
		}
		for _, doc := range documents {
			if _, err := (&app{namespace: "default"}).decode(doc); err != nil && err.Error() == "" {
				t.Fatalf("%q is refused without a word", doc)
			}
		}
	})
}
