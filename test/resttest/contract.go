package resttest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// RunQuotas holds an implementation of service.Quotas, or a client that reaches
// one, to the contract. open returns one that holds nothing yet.
func RunQuotas(t *testing.T, open func(*testing.T) service.Quotas) {
	for name, test := range map[string]func(*testing.T, service.Quotas){
		"resource quotas are created, changed and deleted":  resourceQuotas,
		"a change from an old version is refused":           staleChanges,
		"what is not there is not found":                    missing,
		"a tree is put, shown and deleted":                  trees,
		"a tree that is wrong is refused by its field":      wrongTrees,
		"a tree is in one forest":                           forests,
		"a binding has a group on each tree of its forest":  bindings,
		"a dry run says what would be, and changes nothing": dryRuns,
		"nothing ends where no node is over quota":          nothingToReclaim,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// wantCode checks that err is a Status of one of the codes.
func wantCode(t *testing.T, what string, err error, codes ...int) {
	t.Helper()
	var status *api.Status
	if !errors.As(err, &status) || !slices.Contains(codes, status.Code) || status.Message == "" {
		t.Errorf("%s: got %v, want a Status of %d", what, err, codes)
	}
}

func wantDone(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// limit is a resource quota of so many CPUs.
func limit(namespace, name, cpus string) *api.ResourceQuota {
	return &api.ResourceQuota{
		APIVersion: api.APIVersion, Kind: api.KindResourceQuota, Metadata: api.ObjectMeta{Name: name, Namespace: namespace},
		Spec: api.ResourceQuotaSpec{
			Hard: map[resource.Name]string{"cpu": cpus, "services": "7"}, Soft: map[resource.Name]string{"cpu": "1"}, Scopes: []string{"NotTerminating"},
			ScopeSelector: &api.ScopeSelector{MatchExpressions: []api.ScopeExpression{{ScopeName: "PriorityClass", Operator: "In", Values: []string{"normal"}}}},
		},
	}
}

func resourceQuotas(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	made, err := q.CreateResourceQuota(ctx, limit("a", "q", "10"))
	wantDone(t, "create", err)
	if made.Metadata.ResourceVersion == "" || made.Status.Hard["cpu"] != "10" || made.Status.Used["cpu"] != "0" ||
		made.Spec.Scopes[0] != "NotTerminating" || made.Spec.ScopeSelector.MatchExpressions[0].Values[0] != "normal" || made.Spec.Hard["services"] != "7" {
		t.Errorf("created %+v", made)
	}
	_, err = q.CreateResourceQuota(ctx, limit("a", "q", "11"))
	wantCode(t, "create again", err, http.StatusConflict)
	_, err = q.CreateResourceQuota(ctx, limit("b", "q", "5"))
	wantDone(t, "the same name in another namespace", err)
	changed := limit("a", "q", "20")
	changed.Metadata.ResourceVersion = made.Metadata.ResourceVersion
	updated, err := q.UpdateResourceQuota(ctx, changed)
	wantDone(t, "update", err)
	if updated.Spec.Hard["cpu"] != "20" || updated.Metadata.ResourceVersion == made.Metadata.ResourceVersion {
		t.Errorf("updated %+v", updated)
	}
	got, err := q.GetResourceQuota(ctx, "a", "q")
	wantDone(t, "get", err)
	if got.Spec.Hard["cpu"] != "20" || got.Metadata.ResourceVersion != updated.Metadata.ResourceVersion {
		t.Errorf("got %+v, want what was updated", got)
	}
	for namespace, want := range map[string]int{"a": 1, "b": 1, "c": 0, "": 2} {
		list, err := q.ListResourceQuotas(ctx, namespace)
		wantDone(t, "list", err)
		if len(list.Items) != want {
			t.Errorf("namespace %q lists %d quotas, want %d", namespace, len(list.Items), want)
		}
	}
	gone, err := q.DeleteResourceQuota(ctx, "a", "q", api.Preconditions{})
	wantDone(t, "delete", err)
	if gone.Metadata.Name != "q" {
		t.Errorf("deleted %+v", gone)
	}
	_, err = q.GetResourceQuota(ctx, "a", "q")
	wantCode(t, "get after delete", err, http.StatusNotFound)
}

func staleChanges(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	first, err := q.CreateResourceQuota(ctx, limit("a", "q", "10"))
	wantDone(t, "create", err)
	second, err := q.UpdateResourceQuota(ctx, limit("a", "q", "11"))
	wantDone(t, "update from any version", err)
	stale := limit("a", "q", "12")
	stale.Metadata.ResourceVersion = first.Metadata.ResourceVersion
	_, err = q.UpdateResourceQuota(ctx, stale)
	wantCode(t, "update from an old version", err, http.StatusConflict)
	if got, err := q.GetResourceQuota(ctx, "a", "q"); err != nil || got.Metadata.ResourceVersion != second.Metadata.ResourceVersion {
		t.Errorf("the refused update changed %+v, %v", got, err)
	}
	tree, err := q.PutQuotaTree(ctx, lab(), true)
	wantDone(t, "create a tree", err)
	again, err := q.PutQuotaTree(ctx, tree, false)
	wantDone(t, "replace the tree from its version", err)
	if again.Metadata.ResourceVersion != tree.Metadata.ResourceVersion {
		_, err = q.PutQuotaTree(ctx, tree, false)
		wantCode(t, "replace the tree from an old version", err, http.StatusConflict)
	}
}

func missing(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	for what, call := range map[string]func() error{
		"get a quota":      func() error { _, err := q.GetResourceQuota(ctx, "a", "q"); return err },
		"update a quota":   func() error { _, err := q.UpdateResourceQuota(ctx, limit("a", "q", "1")); return err },
		"delete a quota":   func() error { _, err := q.DeleteResourceQuota(ctx, "a", "q", api.Preconditions{}); return err },
		"get a tree":       func() error { _, err := q.GetQuotaTree(ctx, "T"); return err },
		"reclaim a tree":   func() error { _, err := q.ReclaimQuota(ctx, "T", true, nil); return err },
		"delete a tree":    func() error { _, err := q.DeleteQuotaTree(ctx, "T", api.Preconditions{}); return err },
		"get a forest":     func() error { _, err := q.GetQuotaForest(ctx, "F"); return err },
		"delete a forest":  func() error { _, err := q.DeleteQuotaForest(ctx, "F", api.Preconditions{}); return err },
		"get a binding":    func() error { _, err := q.GetQuotaBinding(ctx, "a"); return err },
		"delete a binding": func() error { _, err := q.DeleteQuotaBinding(ctx, "a", api.Preconditions{}); return err },
		"explain":          func() error { _, err := q.ExplainQuota(ctx, "a", "x"); return err },
	} {
		wantCode(t, what, call(), http.StatusNotFound)
	}
}

func tree(name, spec string) *api.QuotaTree {
	return &api.QuotaTree{APIVersion: api.APIVersion, Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: name}, Spec: json.RawMessage(spec)}
}

// lab is a tree of a root of 10 CPUs and two groups, and a node of no parent.
func lab() *api.QuotaTree {
	return tree("Lab", `{"resourceNames":["cpu"],"nodes":{"all":{"parent":"nil","hard":true,"quota":{"cpu":"10"}},
		"nlp":{"parent":"all","quota":{"cpu":"4"}},"vision":{"parent":"all","hard":"true","quota":{"cpu":"6"}},"lost":{"parent":"nobody","quota":{}}}}`)
}

func trees(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	made, err := q.PutQuotaTree(ctx, lab(), true)
	wantDone(t, "create", err)
	_, err = q.PutQuotaTree(ctx, lab(), true)
	wantCode(t, "create again", err, http.StatusConflict)
	var names []string
	for _, n := range made.Status.Nodes {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"all", "nlp", "vision"}) || made.Status.Root != "all" ||
		!slices.Equal(made.Status.Orphans, []string{"lost"}) || !slices.Equal(made.Status.Dangling, []string{"lost"}) {
		t.Fatalf("status %+v", made.Status)
	}
	if n := made.Status.Nodes[2]; n.Parent != "all" || n.Depth != 1 || !n.Hard || !n.Leaf || n.Quota["cpu"] != "6" {
		t.Errorf("node %+v", n)
	}
	var spec struct {
		Nodes map[string]struct{ Hard any } `json:"nodes"`
	}
	if err := json.Unmarshal(made.Spec, &spec); err != nil || len(spec.Nodes) != 4 || spec.Nodes["vision"].Hard != "true" {
		t.Errorf("spec %s, %v: want it as it was submitted", made.Spec, err)
	}
	_, err = q.PutQuotaTree(ctx, tree("Lab", `{"nodes":{"all":{"quota":{"cpu":20}}}}`), false)
	wantDone(t, "replace", err)
	got, err := q.GetQuotaTree(ctx, "Lab")
	wantDone(t, "get", err)
	if len(got.Status.Nodes) != 1 || got.Status.Nodes[0].Quota["cpu"] != "20" || len(got.Status.Dangling) != 0 {
		t.Errorf("replaced: %+v", got.Status)
	}
	if list, err := q.ListQuotaTrees(ctx); err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != "Lab" {
		t.Errorf("list %+v, %v", list, err)
	}
	_, err = q.DeleteQuotaTree(ctx, "Lab", api.Preconditions{})
	wantDone(t, "delete", err)
	_, err = q.GetQuotaTree(ctx, "Lab")
	wantCode(t, "get after delete", err, http.StatusNotFound)
}

func wrongTrees(t *testing.T, q service.Quotas) {
	for what, spec := range map[string]string{
		"a negative quota": `{"nodes":{"A":{"quota":{"cpu":-1}}}}`,
		"an unknown field": `{"nodes":{"A":{"quota":{},"weight":1}}}`,
		"no quota":         `{"nodes":{"A":{}}}`,
	} {
		_, err := q.PutQuotaTree(t.Context(), tree("T", spec), true)
		wantCode(t, what, err, http.StatusBadRequest, http.StatusUnprocessableEntity)
	}
}

func forest(name string, trees ...string) *api.QuotaForest {
	return &api.QuotaForest{APIVersion: api.APIVersion, Kind: api.KindQuotaForest, Metadata: api.ObjectMeta{Name: name}, Spec: api.QuotaForestSpec{Trees: trees}}
}

// plant makes the trees.
func plant(t *testing.T, q service.Quotas, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := q.PutQuotaTree(t.Context(), tree(name, `{"nodes":{"all":{"quota":{"cpu":10}},"g":{"parent":"all","quota":{"cpu":4}}}}`), true)
		wantDone(t, "create tree "+name, err)
	}
}

func forests(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	plant(t, q, "Org", "Services")
	made, err := q.PutQuotaForest(ctx, forest("F", "Org", "Services"), true)
	wantDone(t, "create", err)
	if !slices.Equal(made.Spec.Trees, []string{"Org", "Services"}) || made.Metadata.ResourceVersion == "" {
		t.Errorf("created %+v", made)
	}
	_, err = q.PutQuotaForest(ctx, forest("F", "Org"), true)
	wantCode(t, "create again", err, http.StatusConflict)
	_, err = q.PutQuotaForest(ctx, forest("G", "Org"), true)
	wantCode(t, "a tree in two forests", err, http.StatusConflict, http.StatusUnprocessableEntity)
	_, err = q.PutQuotaForest(ctx, forest("H", "Nowhere"), true)
	wantCode(t, "a tree that is not there", err, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusNotFound)
	_, err = q.PutQuotaForest(ctx, forest("F", "Org"), false)
	wantDone(t, "replace", err)
	got, err := q.GetQuotaForest(ctx, "F")
	wantDone(t, "get", err)
	if !slices.Equal(got.Spec.Trees, []string{"Org"}) {
		t.Errorf("got %+v", got)
	}
	if list, err := q.ListQuotaForests(ctx); err != nil || len(list.Items) != 1 {
		t.Errorf("list %+v, %v", list, err)
	}
	_, err = q.DeleteQuotaForest(ctx, "F", api.Preconditions{})
	wantDone(t, "delete", err)
}

func binding(namespace, forest string, groups map[string]string) *api.QuotaBinding {
	return &api.QuotaBinding{
		APIVersion: api.APIVersion, Kind: api.KindQuotaBinding, Metadata: api.ObjectMeta{Name: namespace},
		Spec: api.QuotaBindingSpec{Forest: forest, Groups: groups, Admission: "queue"},
	}
}

func bindings(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	plant(t, q, "Org", "Services")
	_, err := q.PutQuotaForest(ctx, forest("F", "Org", "Services"), true)
	wantDone(t, "create the forest", err)
	_, err = q.PutQuotaBinding(ctx, binding("a", "F", map[string]string{"Org": "g"}), true)
	wantCode(t, "a tree of the forest without a group", err, http.StatusConflict, http.StatusUnprocessableEntity)
	made, err := q.PutQuotaBinding(ctx, binding("a", "F", map[string]string{"Org": "g", "Services": "g"}), true)
	wantDone(t, "create", err)
	if made.Spec.Admission != "queue" || made.Spec.Groups["Services"] != "g" || made.Spec.Forest != "F" {
		t.Errorf("created %+v", made)
	}
	_, err = q.PutQuotaBinding(ctx, binding("a", "", nil), true)
	wantCode(t, "create again", err, http.StatusConflict)
	_, err = q.DeleteQuotaTree(ctx, "Services", api.Preconditions{})
	wantCode(t, "delete a tree that a namespace is bound to", err, http.StatusConflict)
	_, err = q.PutQuotaBinding(ctx, binding("a", "", map[string]string{"Org": "g"}), false)
	wantDone(t, "replace", err)
	got, err := q.GetQuotaBinding(ctx, "a")
	wantDone(t, "get", err)
	if got.Spec.Forest != "" || len(got.Spec.Groups) != 1 {
		t.Errorf("got %+v", got)
	}
	if list, err := q.ListQuotaBindings(ctx); err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != "a" {
		t.Errorf("list %+v, %v", list, err)
	}
	_, err = q.DeleteQuotaBinding(ctx, "a", api.Preconditions{})
	wantDone(t, "delete", err)
}

func dryRuns(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	before, err := q.PutQuotaTree(ctx, lab(), true)
	wantDone(t, "create", err)
	consumer := func(group, cpus string) []byte {
		return []byte(`{"kind":"Consumer","spec":{"id":"c","trees":[{"treeName":"Lab","groupID":"` + group + `","request":{"cpu":"` + cpus + `"},"priority":3}]}}`)
	}
	for name, c := range map[string]struct {
		group, cpus string
		admitted    bool
		node        string
	}{
		"within its quota":      {"nlp", "4", true, "nlp"},
		"on what others leave":  {"nlp", "8", true, "all"},
		"more than there is":    {"nlp", "11", false, ""},
		"a hard node lends not": {"vision", "8", false, ""},
	} {
		answer, err := q.TryQuota(ctx, consumer(c.group, c.cpus), service.Principal{Admin: true})
		wantDone(t, name, err)
		if answer.Admitted != c.admitted || answer.Summary == "" || c.admitted && (len(answer.Placements) != 1 || answer.Placements[0].Node != c.node) || !c.admitted && len(answer.Reasons) == 0 {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	_, err = q.TryQuota(ctx, []byte(`{"kind":"Consumer","spec":{"id":"c","trees":[{"groupID":"nlp"}]}}`), service.Principal{Admin: true})
	wantCode(t, "a consumer without a tree", err, http.StatusBadRequest, http.StatusUnprocessableEntity)
	after, err := q.GetQuotaTree(ctx, "Lab")
	wantDone(t, "get", err)
	if after.Status.Nodes[0].Allocated["cpu"] != before.Status.Nodes[0].Allocated["cpu"] || after.Metadata.ResourceVersion != before.Metadata.ResourceVersion {
		t.Errorf("a dry run changed the tree: %+v", after.Status)
	}
}

func nothingToReclaim(t *testing.T, q service.Quotas) {
	ctx := t.Context()
	before, err := q.PutQuotaTree(ctx, lab(), true)
	wantDone(t, "create", err)
	grace, negative, days := int64(0), int64(-1), int64(api.MaxGracePeriodSeconds+1)
	for _, dryRun := range []bool{true, false} {
		for _, g := range []*int64{nil, &grace} {
			got, err := q.ReclaimQuota(ctx, "Lab", dryRun, g)
			wantDone(t, "reclaim", err)
			if got.Tree != "Lab" || got.DryRun != dryRun || len(got.Units)+len(got.Nodes)+len(got.Remaining) != 0 ||
				got.Summary != "no node of quota tree Lab is over its quota: nothing has to end" {
				t.Errorf("dry run %t: %+v", dryRun, got)
			}
		}
		for _, g := range []*int64{&negative, &days} {
			_, err = q.ReclaimQuota(ctx, "Lab", dryRun, g)
			wantCode(t, "a grace out of range", err, http.StatusBadRequest, http.StatusUnprocessableEntity)
		}
	}
	after, err := q.GetQuotaTree(ctx, "Lab")
	wantDone(t, "get", err)
	if after.Metadata.ResourceVersion != before.Metadata.ResourceVersion {
		t.Errorf("it changed the tree: %+v", after.Metadata)
	}
}
