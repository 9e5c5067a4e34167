package coordinator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// refusal is the code and the message of a refused allocation, "" for an accepted one.
func refusal(t *testing.T, k *rig.Coordinator, s rig.Submission) string {
	t.Helper()
	_, _, err := k.Allocate(t.Context(), s)
	var status *api.Status
	if !errors.As(err, &status) {
		if err != nil {
			t.Fatal(err)
		}
		return ""
	}
	return fmt.Sprint(status.Code, " ", status.Message)
}

// The namespaces of the configuration become objects at the first start. From then
// on the objects count: at the leader, at followers, and under a leader whose
// configuration says otherwise.
func TestNamespacesOfTheConfigurationBecomeObjects(t *testing.T) {
	o := rig.Options{Namespaces: map[string]lead.Namespace{"vision-dev": {Tenant: "vision", Admission: "queue"}, "speech": {}}}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
		for name, at := range map[string]*rig.Coordinator{"the leader": k, "a follower": f} {
			list, err := at.ListNamespaces(t.Context())
			if err != nil || len(list.Items) != 2 || list.Items[1].Spec.Tenant != "vision" || list.Items[1].Spec.Admission != "queue" {
				t.Errorf("%s lists %+v, %v", name, list, err)
			}
			tenants, err := at.ListTenants(t.Context())
			if err != nil || len(tenants.Items) != 1 || tenants.Items[0].Metadata.Name != "vision" {
				t.Errorf("%s lists %+v, %v", name, tenants, err)
			}
			for namespace, want := range map[string]resource.TenantID{"vision-dev": "vision", "speech": "speech", "unlisted": "unlisted"} {
				if got := at.TenantOf(namespace); got != want {
					t.Errorf("%s: %s is %s's, want %s's", name, namespace, got, want)
				}
			}
		}

		ceiling := int32(10)
		n := &api.Namespace{Metadata: api.ObjectMeta{Name: "vision-dev"}, Spec: api.NamespaceSpec{PriorityCeiling: &ceiling}}
		if _, err := k.PutNamespace(t.Context(), n, false); err != nil {
			t.Fatal(err)
		}
		if got := k.TenantOf("vision-dev"); got != "vision-dev" { // at once
			t.Errorf("the leader has %s's", got)
		}
		c.Eventually("the follower has the new owner", func() bool { return f.TenantOf("vision-dev") == "vision-dev" })
		work := rig.Submission{Namespace: "vision-dev", Name: "a", GPUs: 1, Priority: 11}
		const want = "403 spec.priority: 11 is above the priority ceiling 10"
		if got := refusal(t, k, work); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, err := k.DeleteNamespace(t.Context(), "speech", api.Preconditions{}); err != nil {
			t.Fatal(err)
		}

		k.Kill()
		c.Eventually("the follower leads", func() bool { return c.Leader() == f })
		if got := refusal(t, f, work); !strings.HasPrefix(got, want) {
			t.Errorf("after the failover: got %q, want %q", got, want)
		}
		list, err := f.ListNamespaces(t.Context())
		if err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != "vision-dev" {
			t.Errorf("after the failover: %+v, %v", list, err) // speech did not come back
		}
		work.Priority = 10
		if got := refusal(t, f, work); got != "" {
			t.Error(got)
		}
		c.Converge()
	})
}
