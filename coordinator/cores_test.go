package coordinator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/test/rig"
)

// request submits an allocation that asks for whole cores.
func request(t *testing.T, k *rig.Coordinator, name string, cores int) (*api.Allocation, error) {
	t.Helper()
	document := fmt.Appendf(nil, `{"kind":"Allocation","metadata":{"name":%q},"spec":{"resources":{"requests":{"muster.io/cores":%d}}}}`, name, cores)
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		t.Fatal(status)
	}
	return k.CreateAllocation(t.Context(), service.Create{Namespace: rig.Namespace, Document: document, Repeated: new(bool)}, doc)
}

func TestWholeCoresAreChargedAsCoresAndAsCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		hard resource.Vector
		says string
	}{
		"a limit of cores": {resource.Vector{resource.Cores: 10}, "muster.io/cores limit 10, requested 8, used 8"},
		"a limit of CPUs":  {resource.Vector{resource.CPU: 10_000}, "cpu limit 10, requested 8, used 8"},
	} {
		t.Run(name, func(t *testing.T) {
			o := rig.Options{Namespaces: map[string]lead.Namespace{rig.Namespace: {Hard: c.hard}}}
			bubble(t, o, func(t *testing.T, cluster *rig.Cluster) {
				k := cluster.Bring(1)
				a, err := request(t, k, "first", 8)
				if err != nil {
					t.Fatal(err)
				}
				cpus := a.Status.AllocatedResources
				if cpus[resource.Cores] != "8" || cpus[resource.CPU] != "8" {
					t.Errorf("allocated %v, want 8 cores, and as many CPUs as a quota is charged", cpus)
				}
				set, err := bitset.Parse(a.Status.Assignment.CPUs)
				if err != nil || set.Len() != 16 {
					t.Errorf("CPUs %s, want 16", a.Status.Assignment.CPUs)
				}
				_, err = request(t, k, "second", 8)
				var status *api.Status
				if !errors.As(err, &status) || status.Code != 403 || !strings.Contains(status.Message, c.says) {
					t.Errorf("error %v, want 403 and %q", err, c.says)
				}
				if _, err := request(t, k, "third", 2); err != nil { // exactly the limit
					t.Error(err)
				}
				cluster.Converge()
			})
		})
	}
}
