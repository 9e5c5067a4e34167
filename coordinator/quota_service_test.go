package coordinator_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/test/rig"
)

func TestQuotasKeepTheContract(t *testing.T) {
	resttest.RunQuotas(t, func(t *testing.T) service.Quotas {
		c := rig.New(t, rig.Options{})
		c.StartCoordinator("c1")
		return c.Leader()
	})
}

func TestChangesThatContradictOthersAreRefusedWithWhatTheyContradict(t *testing.T) {
	o := rig.Options{Namespaces: map[string]lead.Namespace{"c": {Groups: map[string]string{"Spare": "a"}}}}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(0)
		for _, name := range []string{"Org", "Service", "Spare"} {
			plant(t, k, name, "all nil 8", "a all 8", "gone nowhere 1")
		}
		forest := func(name string, trees ...string) error {
			f := &api.QuotaForest{Kind: api.KindQuotaForest, Metadata: api.ObjectMeta{Name: name}, Spec: api.QuotaForestSpec{Trees: trees}}
			_, err := k.PutQuotaForest(t.Context(), f, false)
			return err
		}
		binding := func(forest, version string, groups map[string]string) error {
			b := &api.QuotaBinding{Kind: api.KindQuotaBinding, Metadata: api.ObjectMeta{Name: "b", ResourceVersion: version}}
			b.Spec.Forest, b.Spec.Groups = forest, groups
			_, err := k.PutQuotaBinding(t.Context(), b, false)
			return err
		}
		refused(t, forest("F", "Org", "Nowhere"), 422, "spec.trees[1]: quota tree Nowhere does not exist")
		if err := forest("F", "Org", "Service"); err != nil {
			t.Fatal(err)
		}
		refused(t, forest("G", "Service"), 409, "spec.trees[0]: quota tree Service is in forest F already")
		refused(t, binding("", "", map[string]string{"Nowhere": "a"}), 422, "spec.groups.Nowhere: quota tree Nowhere does not exist")
		refused(t, binding("", "", map[string]string{"Org": "x"}), 422, "spec.groups.Org: quota tree Org has no node x")
		refused(t, binding("G", "", map[string]string{"Org": "a"}), 422, "spec.forest: quota forest G does not exist")
		refused(t, binding("F", "", map[string]string{"Org": "a"}), 422, "spec.groups: forest F has tree Service, on which no group is named")
		refused(t, binding("", "7", nil), 409, "quota binding b does not exist any more, the update was made from resourceVersion 7")
		if err := binding("F", "", map[string]string{"Org": "all", "Service": "gone"}); err != nil { // no leaves, which may change
			t.Fatal(err)
		}
		refused(t, binding("F", "1", map[string]string{"Org": "a", "Service": "a"}), 409, "the change was made from 1; read it again")
		refused(t, forest("F", "Org", "Service", "Spare"), 409, "quota forest F: namespace b is bound to it and has no group on tree Spare")
		_, err := k.DeleteQuotaForest(t.Context(), "F", api.Preconditions{})
		refused(t, err, 409, "quota forest F is in use: namespace b is bound to it")
		_, err = k.DeleteQuotaTree(t.Context(), "Org", api.Preconditions{})
		refused(t, err, 409, "quota tree Org is in use: forest F has it")
		_, err = k.DeleteQuotaTree(t.Context(), "Spare", api.Preconditions{})
		refused(t, err, 409, "quota tree Spare is in use: namespace c is bound to its group a by the coordinators' configuration")
		_, err = k.PutQuotaTree(t.Context(), tree("namespaces"), true)
		refused(t, err, 422, "names the limits of the namespaces")
		_, err = k.PutQuotaTree(t.Context(), &api.QuotaTree{Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: "T"}, Spec: []byte(`{"nodes":`)}, true)
		refused(t, err, 400, "not JSON")
	})
}

// Of changes made from one version one wins; those that name none all land, one
// after another.
func TestChangesAreMadeOneAfterAnother(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(0)
		first := plant(t, k, "Lab", lab...)
		for _, round := range []struct{ version, want string }{{first.Metadata.ResourceVersion, "map[0:1 409:9]"}, {"", "map[0:10]"}} {
			var wg sync.WaitGroup
			codes := make([]int, 10)
			for i := range codes {
				wg.Go(func() {
					next := tree("Lab", fmt.Sprintf("all nil %d", i+1))
					next.Metadata.ResourceVersion = round.version
					_, err := k.PutQuotaTree(t.Context(), next, false)
					codes[i] = rig.Code(err)
				})
			}
			wg.Wait()
			count := map[int]int{}
			for _, code := range codes {
				count[code]++
			}
			if got := fmt.Sprint(count); got != round.want {
				t.Errorf("from version %q: %s, want %s", round.version, got, round.want)
			}
		}
	})
}
