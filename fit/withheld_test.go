package fit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

func TestTheWithheldPartTakesNoNewWork(t *testing.T) {
	host := countingHost(t, nil)
	full := host.Allocatable()
	free := host.NewFree()
	most := resource.Vector{resource.CPU: 1500, resource.Memory: full[resource.Memory] - 3, resource.GPU: 0}
	free.Withheld = host.WithheldBeyond(most)
	if want := (fit.Withheld{CPU: resource.Millicores(full[resource.CPU] - 1500), Memory: 3}); free.Withheld != want {
		t.Fatalf("withheld is %+v, want %+v", free.Withheld, want)
	}
	if got := host.FreeVector(free); got[resource.CPU] != 1500 || got[resource.Memory] != full[resource.Memory]-3 {
		t.Errorf("free are %v, want the amounts of %v", got, most)
	}
	var a, b resource.Assignment
	if !host.Assign(free, resource.Request{CPU: 1000}, &a) {
		t.Fatal("no room for 1 CPU of 1.5")
	}
	a = a.Clone()
	if err := host.Take(free, a); err != nil {
		t.Fatal(err)
	}
	req := resource.Request{CPU: 600}
	want := []resource.Reason{{Code: resource.ReasonInsufficient, Resource: resource.CPU, Want: 600, Have: 500, Detail: "an operator withholds " + resource.FormatAmount(resource.CPU, full[resource.CPU]-1500) + " of the node"}}
	if host.Assign(free, req, &b) {
		t.Error("600 millicores beside 1000 have a place within 1500")
	}
	if diff := cmp.Diff(want, host.Explain(free, req)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if !host.Assign(free, resource.Request{CPU: 500}, &b) {
		t.Error("500 millicores beside 1000 have no place within 1500")
	}
	// A limit below the amounts in use touches nothing that is held.
	free.Withheld = host.WithheldBeyond(resource.Vector{resource.CPU: 0})
	if got := free.OpenCPU(); got != 0 || host.Assign(free, resource.Request{CPU: 1}, &b) {
		t.Errorf("%d millicores are open beyond the limit", got)
	}
	if err := host.Give(free, a); err != nil {
		t.Error(err)
	}
	if w := host.WithheldBeyond(nil); w != (fit.Withheld{}) {
		t.Errorf("%+v is withheld without a limit", w)
	}
}
