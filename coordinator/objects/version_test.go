package objects

import (
	"encoding/json"
	"testing"

	"github.com/musterd/muster/api"
)

// The last object of a DELETED event has the revision of the deletion, whatever
// its kind: a client goes on from there.
func TestEveryKindTakesARevision(t *testing.T) {
	empty := map[Kind]any{
		Allocations: &api.Allocation{}, Jobs: &api.Job{}, Nodes: &api.Node{}, ResourceQuotas: &api.ResourceQuota{}, QuotaForests: &api.QuotaForest{},
		QuotaBindings: &api.QuotaBinding{}, Tenants: &api.Tenant{}, Namespaces: &api.Namespace{}, Resources: &api.Resource{}, Queues: &api.Queue{}, PriorityClasses: &api.PriorityClass{},
		AccessTokens: &api.AccessToken{}, RoleBindings: &api.RoleBinding{}, QuotaTrees: &api.QuotaTree{}, Events: &api.Event{},
	}
	for k := range Kind(kinds) {
		t.Run(k.String(), func(t *testing.T) {
			object := empty[k]
			if object == nil {
				t.Fatal("the kind has no object in this table: add one")
			}
			var got struct {
				Metadata api.ObjectMeta
			}
			if err := json.Unmarshal(Encode(WithVersion(object, 42)), &got); err != nil || got.Metadata.ResourceVersion != "42" {
				t.Errorf("the version is %q (%v), want 42", got.Metadata.ResourceVersion, err)
			}
		})
	}
}
