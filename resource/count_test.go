package resource_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/musterd/muster/resource"
)

func TestNamesThatNodesMayDeclare(t *testing.T) {
	for name, want := range map[resource.Name]bool{
		"example.com/fpga": true, "a.b.c/X_y.9": true, "amd.com/gpu": true, "pods": false, "fpga": false, "nvidia.com/gpu": false, "x.nvidia.com/y": false,
		"muster.io/cores": false, "kubernetes.io/x": false, "k8s.io/x": false, "example.com/": false, "/x": false, "Example.com/x": false,
		"example..com/x": false, "-a/x": false, "example.com/-x": false, "example.com/a/b": false, "example.com/a=b": false, "example.com/a,b": false, "example.com/é": false,
		resource.Name("example.com/" + strings.Repeat("x", 64)): false, resource.Name(strings.Repeat("a", 251) + ".de/x"): false,
	} {
		if got := resource.IsExtended(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

// FuzzCounts checks that a text that a request takes is exactly what CountsOf makes of
// its amounts.
func FuzzCounts(f *testing.F) {
	for _, seed := range []string{"", "example.com/fpga=2", "ephemeral-storage=1024,example.com/fpga=2", "example.com/fpga=+2", "a/b=1,a/b=1", "=", ",", "x=1=2", "pods=1", "ephemeral-storage=1,pods=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := resource.Request{CPU: 1, Counts: resource.Counts(text)}
		if r.Validate() != nil {
			return
		}
		if r.Counts.Of(resource.Pods) != 0 {
			t.Fatalf("%q is taken, and asks for pods", text)
		}
		v := r.Counts.Vector()
		if resource.CountsOf(v) != r.Counts || len(v) > resource.MaxCounts {
			t.Fatalf("%q is taken, and is %q", text, resource.CountsOf(v))
		}
		all := r.Vector()
		delete(all, resource.CPU)
		if !maps.Equal(all, v) {
			t.Fatalf("%q is charged %v, want %v", text, all, v)
		}
	})
}
