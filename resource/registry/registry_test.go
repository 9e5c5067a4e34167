package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

func known() *registry.Registry {
	return registry.New(
		resource.Vector{resource.CPU: 64000, resource.Memory: 1 << 40, resource.GPU: 8000, "hugepages-2Mi": 1 << 30},
		resource.Vector{resource.CPU: 64000, "nvidia.com/mig-1g.10gb": 7, "hugepages-1Gi": 0},
	)
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		resource resource.Name
		want     registry.Code
		near     resource.Name
	}{
		"a built-in name":                         {"cpu", registry.Known, ""},
		"the members of units":                    {"pods", registry.Known, ""},
		"a name that a node declares":             {"hugepages-2Mi", registry.Known, ""},
		"a name that a node has nothing of":       {"hugepages-1Gi", registry.NotHandedOut, ""},
		"a profile that no node has":              {"nvidia.com/mig-3g.40gb", registry.NotHandedOut, ""},
		"a family's name that is none":            {"hugepages-2M", registry.Malformed, ""},
		"a profile that is none":                  {"nvidia.com/mig-1g10gb", registry.Malformed, ""},
		"a model that no node has":                {"nvidia.com/gpu.h100", registry.NotHandedOut, ""},
		"the label of a model":                    {"nvidia.com/gpu.product", registry.Malformed, ""},
		"the plural of a device":                  {"nvidia.com/gpus", registry.Misspelt, "nvidia.com/gpu"},
		"the plural of the CPU":                   {"cpus", registry.Misspelt, "cpu"},
		"two letters in the wrong order":          {"memroy", registry.Misspelt, "memory"},
		"a capital":                               {"Cpu", registry.Misspelt, "cpu"},
		"a device without its domain, not a CPU":  {"gpu", registry.Misspelt, "nvidia.com/gpu"},
		"cores without their domain":              {"cores", registry.Misspelt, "muster.io/cores"},
		"the specification's disk":                {"disk", registry.Unknown, ""},
		"the specification's services":            {"services", registry.Unknown, ""},
		"the specification's claims":              {"persistentvolumeclaims", registry.Unknown, ""},
		"a device of another vendor":              {"amd.com/gpu", registry.Unknown, ""},
		"a name that is longer than any resource": {resource.Name(strings.Repeat("c", 5000)), registry.Unknown, ""},
		"no name": {"", registry.Unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := known().Judge(c.resource)
			if got.Code != c.want || got.Near != c.near {
				t.Fatalf("%q is judged %+v, want %d and %q", c.resource, got, c.want, c.near)
			}
			refused := c.want == registry.Misspelt || c.want == registry.Malformed
			if err := got.Refusal(c.resource); (err != nil) != refused {
				t.Errorf("refusal: %v", err)
			} else if c.near != "" && !strings.Contains(err.Error(), fmt.Sprintf("%q", c.near)) {
				t.Errorf("the refusal %q does not name %q", err, c.near)
			}
			if warned := got.Warning() != ""; warned == (c.want == registry.Known || c.want == registry.Malformed) {
				t.Errorf("warning: %q", got.Warning())
			}
		})
	}
}

func TestTheNearestOfARequestMayBeFurtherAway(t *testing.T) {
	for name, c := range map[string]struct{ resource, want resource.Name }{
		"one edit":             {"cpus", "cpu"},
		"two edits":            {"memorey2", "memory"},
		"the domain is wrong":  {"nvidia.org/gpu", "nvidia.com/gpu"},
		"far from every name":  {"disk", ""},
		"longer than any name": {resource.Name(strings.Repeat("cpu", 5000)), ""},
	} {
		if got := known().Nearest(c.resource); got != c.want {
			t.Errorf("%s: the nearest to %q is %q, want %q", name, c.resource, got, c.want)
		}
	}
}

func TestEntriesAreInTheOrderOfTheirRanks(t *testing.T) {
	var names []string
	for _, e := range known().Entries() {
		names = append(names, fmt.Sprintf("%s %s %s %s %d", e.Name, e.Kind, e.Scope, e.Unit, e.Nodes))
	}
	want := []string{
		"cpu count node logical CPUs 2", "muster.io/cores count node cores 2", "memory bytes node bytes 1", "nvidia.com/gpu count node devices 1",
		"ephemeral-storage bytes node bytes 0", "pods count node members 0", "hugepages-2Mi bytes node bytes 1", "nvidia.com/mig-1g.10gb count node instances 1",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// A name that a node declares is never refused and never warned of, and a verdict
// never names a resource that is not known.
func TestPropertyDeclaredNamesAreKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.SampledFrom([]resource.Name{
			"cpu", "memory", "hugepages-2Mi", "hugepages-1Gi", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.20gb", "example.com/fpga",
		})).Draw(t, "declared")
		capacity := resource.Vector{}
		for _, n := range names {
			capacity[n] = 1
		}
		r := registry.New(capacity)
		r.AddDeclared(registry.Agree([]registry.Declaration{{Node: "n", Declared: []registry.Declared{{Name: "example.com/fpga", Kind: registry.Count}}}}, nil))
		for _, n := range names {
			if v := r.Judge(n); v.Code != registry.Known {
				t.Fatalf("%q is declared and judged %+v", n, v)
			}
		}
		word := resource.Name(rapid.StringMatching(`[a-z./-]{0,20}`).Draw(t, "word"))
		for _, near := range []resource.Name{r.Judge(word).Near, r.Nearest(word)} {
			if near != "" && r.Judge(near).Code != registry.Known {
				t.Fatalf("%q is said to mean %q, which is not known", word, near)
			}
		}
	})
}

func Example() {
	r := registry.New(resource.Vector{resource.CPU: 64000, resource.GPU: 8000})
	for _, name := range []resource.Name{"nvidia.com/gpus", "disk"} {
		v := r.Judge(name)
		fmt.Println(name, v.Refusal(name), v.Warning())
	}
	// Output:
	// nvidia.com/gpus no resource is named "nvidia.com/gpus"; is "nvidia.com/gpu" meant? (the query allowUnknownResources=true, or muster apply --allow-unknown-resources, keeps the name) no node hands it out, so the amount in use is always 0; is "nvidia.com/gpu" meant?
	// disk <nil> no node hands it out, so the amount in use is always 0
}

func BenchmarkJudge(b *testing.B) {
	r := known()
	for b.Loop() {
		if r.Judge("nvidia.com/gpus").Code != registry.Misspelt {
			b.Fatal("not misspelt")
		}
	}
}
