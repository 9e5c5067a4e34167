package fit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices/fake"
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

func TestWithheldPagesInstancesAndCountsTakeNoNewWork(t *testing.T) {
	profile, err := fake.Lookup("mig-a100")
	if err != nil {
		t.Fatal(err)
	}
	topology := profile.Topology()
	topology.Nodes[0].Hugepages = map[int]int64{1 << 20: 4}
	host, err := fit.NewHost(topology, profile.Inventory("n1"), fit.Reserved{})
	if err == nil {
		host, err = host.WithCounts(resource.Vector{"example.com/fpga": 7, resource.Pods: 4})
	}
	if err != nil {
		t.Fatal(err)
	}
	full := host.Allocatable()
	mig := resource.MIG(host.MIGProfiles()[0])
	if full["hugepages-1Gi"] != 4<<30 || full[mig] < 4 {
		t.Fatalf("the host has %v: want huge pages, and 4 instances of %s", full, mig)
	}
	for name, c := range map[string]struct {
		of   resource.Name
		most int64
		fits resource.Request
		more resource.Request // a unit more
	}{
		"huge pages":        {"hugepages-1Gi", 1 << 30, resource.Request{HugepageSize: 1 << 30, Hugepages: 1 << 30}, resource.Request{HugepageSize: 1 << 30, Hugepages: 2 << 30}},
		"instances":         {mig, 2, resource.Request{MIG: 2, MIGProfile: host.MIGProfiles()[0]}, resource.Request{MIG: 3, MIGProfile: host.MIGProfiles()[0]}},
		"counted resources": {"example.com/fpga", 3, resource.Request{CPU: 1, Counts: "example.com/fpga=3"}, resource.Request{CPU: 1, Counts: "example.com/fpga=4"}},
	} {
		t.Run(name, func(t *testing.T) {
			free, a := host.NewFree(), resource.Assignment{}
			free.Withheld = host.WithheldBeyond(resource.Vector{c.of: c.most})
			free.Withheld.Unapproved = true
			if got := host.FreeVector(free)[c.of]; got != c.most {
				t.Errorf("%d of %s are free, want %d of %d", got, c.of, c.most, full[c.of])
			}
			if host.Assign(free, c.more, &a) {
				t.Errorf("%+v has a place within %d", c.more, c.most)
			}
			want := []resource.Reason{{
				Code: resource.ReasonInsufficient, Resource: c.of, Want: c.more.Vector()[c.of], Have: c.most,
				Detail: resource.FormatAmount(c.of, full[c.of]-c.most) + " of the node are withheld until an operator approves its growth",
			}}
			if diff := cmp.Diff(want, host.Explain(free, c.more)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if !host.Assign(free, c.fits, &a) {
				t.Fatalf("%+v has no place within %d: %v", c.fits, c.most, host.Explain(free, c.fits))
			}
			held := a.Clone()
			if err := host.Take(free, held); err != nil {
				t.Fatal(err)
			}
			if got := host.FreeVector(free)[c.of]; got != 0 || host.Assign(free, c.fits, &a) {
				t.Errorf("%d of %s are still free beyond the %d that are held", got, c.of, c.most)
			}
			free.Withheld = fit.Withheld{}
			if !host.Assign(free, c.fits, &a) {
				t.Errorf("%+v has no place once nothing is withheld", c.fits)
			}
			free.Withheld = host.WithheldBeyond(resource.Vector{c.of: 0}) // below the held amount
			if err := host.Give(free, held); err != nil {
				t.Errorf("the held part is not given back: %v", err)
			}
		})
	}
	t.Run("instances on a device that takes no new work", func(t *testing.T) {
		free, a := host.NewFree(), resource.Assignment{}
		free.Unhealthy = 1
		on := host.FreeMIG(free, host.MIGProfiles()[0])
		free.Withheld = host.WithheldBeyond(resource.Vector{mig: int64(on)})
		if got := host.FreeMIG(free, host.MIGProfiles()[0]); got != on || !host.Assign(free, resource.Request{MIG: 1, MIGProfile: host.MIGProfiles()[0]}, &a) {
			t.Errorf("%d instances may be handed out, want the %d healthy ones", got, on)
		}
	})
	t.Run("pods", func(t *testing.T) {
		free, a := host.NewFree(), resource.Assignment{}
		free.Withheld = host.WithheldBeyond(resource.Vector{resource.Pods: 1})
		if !host.Assign(free, resource.Request{CPU: 1}, &a) || host.Take(free, a) != nil {
			t.Fatal("the first member has no place within 1 pod")
		}
		if host.Assign(free, resource.Request{CPU: 1}, &a) || !host.IsFull(free) {
			t.Error("a second member has a place within 1 pod")
		}
	})
}
