package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
)

func TestArraysOfARun(t *testing.T) {
	for text, want := range map[string][2]int32{
		"0": {1, 1}, "0-0": {1, 1}, "0-999%10": {1000, 10}, "0-39": {40, 40}, "0-3%9": {4, 4}, "0-4095%4096": {4096, 4096},
	} {
		members, atOnce, err := arrayOf(text)
		if got := [2]int32{members, atOnce}; err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestDependenciesOfARun(t *testing.T) {
	got, err := dependenciesOf("afterok:a:b,after:c")
	want := []api.JobDependency{{Type: "afterok", Job: "a"}, {Type: "afterok", Job: "b"}, {Type: "after", Job: "c"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// An array is a job whose members start each by itself, and a throttle.
func TestTheJobOfAnArray(t *testing.T) {
	f := runFlags{nodes: 1, array: "0-39%4", cpu: "1", memory: "1Gi", name: "sweep", dependencies: []string{"afterany:prepare"}}
	j, err := f.job([]string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	if j.Members() != 40 || j.AtOnce() != 4 || j.Spec.Template.Spec.Gang() != nil || len(j.Spec.Dependencies) != 1 {
		t.Errorf("%d members, %d at once, gang %v, dependencies %v", j.Members(), j.AtOnce(), j.Spec.Template.Spec.Gang(), j.Spec.Dependencies)
	}
	if status := j.Validate(); status != nil {
		t.Error(status)
	}
}
