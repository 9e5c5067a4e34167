package fit_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// countingHost has counted resources beside eight CPUs.
func countingHost(tb interface{ Fatal(...any) }, counts resource.Vector) *fit.Host {
	s := shape{nodes: 1, cores: 4, threads: 2, memory: 64 << 30}
	host, err := fit.NewHost(s.topology(), s.inventory(), fit.Reserved{})
	if err == nil {
		host, err = host.WithCounts(counts)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return host
}

func TestCountedResourcesAreGranted(t *testing.T) {
	host := countingHost(t, resource.Vector{"pods": 3, "example.com/fpga": 2, "zone.example/x": 9, "ephemeral-storage": 1000})
	for name, c := range map[string]struct {
		counts resource.Counts
		want   []resource.CountGrant
		short  resource.Name
	}{
		"a member without any takes a pod":     {"", []resource.CountGrant{{Name: "pods", Amount: 1}}, ""},
		"the pod is listed in order":           {"example.com/fpga=2,zone.example/x=1", []resource.CountGrant{{Name: "example.com/fpga", Amount: 2}, {Name: "pods", Amount: 1}, {Name: "zone.example/x", Amount: 1}}, ""},
		"storage comes first":                  {"ephemeral-storage=1000", []resource.CountGrant{{Name: "ephemeral-storage", Amount: 1000}, {Name: "pods", Amount: 1}}, ""},
		"more than there is":                   {"example.com/fpga=3", nil, "example.com/fpga"},
		"a name that the host does not have":   {"example.com/tpu=1", nil, "example.com/tpu"},
		"one of two names is short":            {"example.com/fpga=1,zone.example/x=10", nil, "zone.example/x"},
		"a name that cannot be counted":        {"nvidia.com/gpu=1", nil, "InvalidRequest"},
		"a text in another order than written": {"zone.example/x=1,example.com/fpga=1", nil, "InvalidRequest"},
		"an amount of zero":                    {"example.com/fpga=0", nil, "InvalidRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			free, req := host.NewFree(), resource.Request{CPU: 1000, Counts: c.counts}
			var a resource.Assignment
			ok := host.Assign(free, req, &a)
			if ok != (c.short == "") {
				t.Fatalf("assigned: %t", ok)
			}
			reasons := host.Explain(free, req)
			if !ok {
				if len(reasons) != 1 || reasons[0].Resource != c.short && resource.Name(reasons[0].Code) != c.short {
					t.Fatalf("reasons %v, want one about %s", reasons, c.short)
				}
				return
			}
			if diff := cmp.Diff(c.want, a.Counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if err := host.Satisfies(req, a); err != nil || len(reasons) != 0 {
				t.Errorf("the host's own assignment: %v; reasons %v", err, reasons)
			}
			a.Counts[0].Amount++
			if host.Satisfies(req, a) == nil {
				t.Error("an assignment of more than the request is accepted")
			}
		})
	}
}

func TestAHostTakesAsManyMembersAsItHasPods(t *testing.T) {
	host := countingHost(t, resource.Vector{"pods": 2})
	free := host.NewFree()
	var a resource.Assignment
	for n := range 2 {
		if !host.Assign(free, resource.Request{CPU: 100}, &a) {
			t.Fatalf("member %d has no place", n)
		}
		if err := host.Take(free, a); err != nil {
			t.Fatal(err)
		}
	}
	if host.Assign(free, resource.Request{CPU: 100}, &a) {
		t.Error("a third member has a place")
	}
	want := []resource.Reason{{Code: "Insufficient", Resource: "pods", Want: 1, Detail: "the node has 2 members, the most that it takes"}}
	if diff := cmp.Diff(want, host.Explain(free, resource.Request{CPU: 100})); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestAClosedResourceTakesNoNewWork(t *testing.T) {
	host := countingHost(t, resource.Vector{"example.com/fpga": 2, "pods": 5})
	free, req := host.NewFree(), resource.Request{CPU: 1000, Counts: "example.com/fpga=1"}
	var a resource.Assignment
	if !host.Assign(free, req, &a) {
		t.Fatal("no room")
	}
	a = a.Clone()
	free.ClosedCounts = host.ClosedBits([]resource.Name{"example.com/fpga", "never.example/x"})
	var b resource.Assignment
	if host.Assign(free, req, &b) || host.FreeVector(free)["example.com/fpga"] != 0 || host.FreeCount(free, "example.com/fpga") != 0 {
		t.Error("a closed resource is handed out")
	}
	if !host.Assign(free, resource.Request{CPU: 1000}, &b) {
		t.Error("a member that does not ask for the resource has no place")
	}
	if err := host.Take(free, a); err != nil {
		t.Errorf("what runs already cannot be counted: %v", err)
	}
}

func TestHostsRefuseCountsThatCannotBe(t *testing.T) {
	many := resource.Vector{}
	for i := range resource.MaxCounts + 1 {
		many[resource.Name(fmt.Sprint("example.com/r", i))] = 1
	}
	for name, counts := range map[string]resource.Vector{
		"a device":         {"nvidia.com/gpu": 1},
		"a name of nobody": {"fpga": 1},
		"nothing":          {"example.com/fpga": 0},
		"too much":         {"example.com/fpga": resource.MaxCount + 1},
		"too many":         many,
	} {
		if _, err := countingHost(t, nil).WithCounts(counts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Whatever is taken and given, the free amounts are those of the model, and Assign and
// Explain agree.
func TestCountsAgreeWithAModel(t *testing.T) {
	full := resource.Vector{"pods": 4, "example.com/fpga": 3, "ephemeral-storage": 100}
	host := countingHost(t, full)
	rapid.Check(t, func(t *rapid.T) {
		free, left := host.NewFree(), full.Clone()
		var held []resource.Assignment
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				want := resource.Vector{"example.com/fpga": rapid.Int64Range(0, 4).Draw(t, "boards"), "ephemeral-storage": rapid.Int64Range(0, 120).Draw(t, "bytes")}
				req := resource.Request{CPU: 10, Counts: resource.CountsOf(want)}
				fits := left["pods"] > 0 && want["example.com/fpga"] <= left["example.com/fpga"] && want["ephemeral-storage"] <= left["ephemeral-storage"]
				var a resource.Assignment
				if ok := host.Assign(free, req, &a); ok != fits || ok != (len(host.Explain(free, req)) == 0) || ok != host.HasRoomForCounts(free, &req) {
					t.Fatalf("of %v %v: assigned %t, want %t", left, want, ok, fits)
				}
				if !fits {
					return
				}
				if err := host.Take(free, a); err != nil {
					t.Fatal(err)
				}
				held = append(held, a.Clone())
				want["pods"] = 1
				left.Sub(want)
			},
			"give": func(t *rapid.T) {
				if len(held) == 0 {
					return
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "held")
				if err := host.Give(free, held[i]); err != nil {
					t.Fatal(err)
				}
				for _, g := range held[i].Counts {
					left[g.Name] += g.Amount
				}
				held = append(held[:i], held[i+1:]...)
			},
			"": func(t *rapid.T) {
				if err := host.Check(free); err != nil {
					t.Fatal(err)
				}
				for name, amount := range left {
					if host.FreePart(free, name) != amount {
						t.Fatalf("%s: %d free, want %d", name, host.FreePart(free, name), amount)
					}
				}
			},
		})
	})
}
