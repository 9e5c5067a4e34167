package fit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// profileHost is a host of a built-in profile.
func profileHost(t *testing.T, name string) *fit.Host {
	t.Helper()
	p, err := fake.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := fit.NewHost(p.Topology(), p.Inventory("n"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSmallRequestsLeaveWholeIslandsForLargeOnes plays a day on two real
// machines: whatever is small goes where something is broken already, so that
// what is large still fits at the end.
func TestSmallRequestsLeaveWholeIslandsForLargeOnes(t *testing.T) {
	share := func(milli resource.Milli) resource.Request { return resource.Request{GPUShare: milli, CPU: 2000} }
	whole := func(n int) resource.Request {
		return resource.Request{GPUs: n, Cores: 2 * n, NUMA: resource.NUMASingleNode}
	}
	tests := map[string]struct {
		profile string
		held    []int // devices
		steps   []resource.Request
		want    []string // the devices of each step; "" is refused
	}{
		"a DGX keeps four GPUs of one node": {
			profile: "dgx-h100",
			steps:   []resource.Request{share(300), share(500), whole(1), share(400), share(200), whole(1), whole(4), whole(1), share(700)},
			want:    []string{"0", "0", "1", "2", "0", "3", "4-7", "", ""},
		},
		"a DGX fills the node that is broken": {
			profile: "dgx-h100", held: []int{5},
			steps: []resource.Request{whole(1), whole(2), whole(4)},
			want:  []string{"4", "6-7", "0-3"},
		},
		"3/1/3/1 gives single GPUs from the single nodes": {
			profile: "asym-3131",
			steps:   []resource.Request{share(500), whole(1), whole(3), share(500), whole(3), whole(1)},
			want:    []string{"3", "7", "0-2", "3", "4-6", ""},
		},
		"3/1/3/1 breaks no second three": {
			profile: "asym-3131", held: []int{3, 7},
			steps: []resource.Request{whole(1), share(100), whole(1), whole(3)},
			want:  []string{"0", "1", "2", "4-6"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := profileHost(t, test.profile)
			f := h.NewFree()
			for _, g := range test.held {
				take(t, h, f, gpu(h, g, 1000))
			}
			var got []string
			for _, req := range test.steps {
				var a resource.Assignment
				h.Assign(f, req, &a)
				take(t, h, f, a)
				got = append(got, gpuSet(a).String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("devices of each request (-want +got):\n%s", diff)
			}
		})
	}
}
