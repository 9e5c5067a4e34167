package coordinator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// tree is the document of a tree of GPUs: nodes as "name parent quota [hard]".
func tree(name string, nodes ...string) *api.QuotaTree {
	spec := map[string]any{}
	for _, text := range nodes {
		f := strings.Fields(text)
		spec[f[0]] = map[string]any{"parent": f[1], "hard": len(f) > 3, "quota": map[string]string{string(resource.GPU): f[2]}}
	}
	b, err := json.Marshal(map[string]any{"resourceNames": []resource.Name{resource.GPU}, "nodes": spec})
	if err != nil {
		panic(err)
	}
	return &api.QuotaTree{Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: name}, Spec: b}
}

// plant puts a tree that must be taken.
func plant(t *testing.T, k *rig.Coordinator, name string, nodes ...string) *api.QuotaTree {
	t.Helper()
	made, err := k.PutQuotaTree(t.Context(), tree(name, nodes...), false)
	if err != nil {
		t.Fatalf("tree %s: %v", name, err)
	}
	return made
}

// bind charges a namespace to groups, as "tree/group".
func bind(t *testing.T, k *rig.Coordinator, namespace, admission string, groups ...string) {
	t.Helper()
	b := &api.QuotaBinding{Kind: api.KindQuotaBinding, Metadata: api.ObjectMeta{Name: namespace}}
	b.Spec.Admission, b.Spec.Groups = admission, map[string]string{}
	for _, g := range groups {
		tree, group, _ := strings.Cut(g, "/")
		b.Spec.Groups[tree] = group
	}
	if _, err := k.PutQuotaBinding(t.Context(), b, false); err != nil {
		t.Fatalf("bind %s: %v", namespace, err)
	}
}

// lab is the tree of most tests, 16 GPUs of which two groups have half each.
var lab = []string{"all nil 16", "a all 8", "b all 8"}

// laboratory is a cluster of that many nodes with namespaces a and b.
func laboratory(t *testing.T, c *rig.Cluster, nodes int, admission string) *rig.Coordinator {
	t.Helper()
	k := c.Bring(nodes)
	plant(t, k, "Lab", lab...)
	bind(t, k, "a", admission, "Lab/a")
	bind(t, k, "b", admission, "Lab/b")
	return k
}

// seat is where a unit is counted: "node" of each tree, or why it is not.
func seat(t *testing.T, c *rig.Cluster, namespace, name string) string {
	t.Helper()
	s, err := c.Leader().ExplainQuota(t.Context(), namespace, name)
	if err != nil {
		t.Fatalf("explain %s/%s: %v", namespace, name, err)
	}
	if len(s.Reasons) > 0 {
		return s.Reasons[0].Detail
	}
	var nodes []string
	for _, seat := range s.Placements {
		nodes = append(nodes, seat.Node)
	}
	return strings.Join(nodes, " ")
}

func wantSeat(t *testing.T, c *rig.Cluster, namespace, name, want string) {
	t.Helper()
	if got := seat(t, c, namespace, name); got != want {
		t.Errorf("%s/%s: %q, want %q", namespace, name, got, want)
	}
}

// standing is the usage that a tree shows.
func standing(t *testing.T, c *rig.Cluster, name string) api.QuotaTreeStatus {
	t.Helper()
	got, err := c.Leader().GetQuotaTree(t.Context(), name)
	if err != nil {
		t.Fatalf("tree %s: %v", name, err)
	}
	return got.Status
}

func running(t *testing.T, c *rig.Cluster, namespace, name string) {
	t.Helper()
	c.Eventually(namespace+"/"+name+" runs", func() bool {
		a, err := c.Leader().GetAllocation(t.Context(), namespace, name, 0)
		return err == nil && a.Status.Phase == api.Running
	})
}

func end(t *testing.T, c *rig.Cluster, namespace, name string) {
	t.Helper()
	if _, err := c.Leader().DeleteAllocation(t.Context(), namespace, name, api.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s/%s: %v", namespace, name, err)
	}
	c.Eventually(namespace+"/"+name+" is gone", func() bool {
		_, err := c.Leader().GetAllocation(t.Context(), namespace, name, 0)
		return rig.Code(err) == 404
	})
}

func TestNamespacesBorrowAndClaimBack(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 3, "queue")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "home", GPUs: 8})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "guest", GPUs: 4})
		wantSeat(t, c, "a", "home", "a")
		wantSeat(t, c, "a", "guest", "all")
		allocate(t, k, rig.Submission{Namespace: "b", Name: "four", GPUs: 4}) // there is room for both
		wantSeat(t, c, "b", "four", "b")
		late := allocate(t, k, rig.Submission{Namespace: "b", Name: "late", GPUs: 2})
		if late.Status.Phase != api.Pending {
			t.Errorf("b/late: %+v", late.Status)
		}
		c.Eventually("the guest is told to leave", func() bool {
			guest, err := k.GetAllocation(t.Context(), "a", "guest", 0)
			return err == nil && guest.Status.Phase == api.Terminating && guest.Status.Message == "its quota is claimed back by 1 unit of another tenant with 2 GPUs at priority 0"
		})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "other", GPUs: 1}) // the remaining free quota is not given away
		running(t, c, "b", "late")
		wantSeat(t, c, "b", "late", "b")
		c.Converge()
	})
}

func TestAnAllocationThatATreeHasNoRoomForIsRefusedWithTheNode(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		plant(t, k, "Lab", "all nil 16", "a all 6 hard")
		bind(t, k, "a", "", "Lab/a")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "one", GPUs: 4})
		_, _, err := k.Allocate(t.Context(), rig.Submission{Namespace: "a", Name: "two", GPUs: 4})
		var status *api.Status
		if !errors.As(err, &status) || status.Code != 403 || status.Message != "exceeded quota: gpu limit 6, requested 4, used 4 (node a of quota tree Lab)" {
			t.Fatalf("error %+v", err)
		}
		want := []resource.Reason{{Code: resource.ReasonQuota, Resource: resource.GPU, Want: 4000, Have: 2000, Detail: status.Message}}
		if diff := cmp.Diff(want, status.Details); diff != "" {
			t.Errorf("details (-want +got):\n%s", diff)
		}
		j := submit(t, k, rig.Submission{Namespace: "a", Name: "j", GPUs: 4, Members: 1}) // jobs wait
		if j.Status.Phase != api.Queued || j.Status.Message != status.Message {
			t.Errorf("%+v", j.Status)
		}
		allocate(t, k, rig.Submission{Namespace: "a", Name: "two", GPUs: 2}) // the name is free
		c.Converge()
	})
}

func TestWhatIsNotPlacedIsNotCharged(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 1, "queue")
		refuseOnce(c)
		allocate(t, k, rig.Submission{Namespace: "a", Name: "one", GPUs: 6}) // refused by the agent, then placed
		running(t, c, "a", "one")
		allocate(t, k, rig.Submission{Namespace: "b", Name: "wide", GPUs: 8}) // no host has room
		if got := standing(t, c, "Lab").Nodes[0]; got.Allocated[resource.GPU] != "6" {
			t.Errorf("the root is charged %v", got.Allocated)
		}
		c.Converge()
		end(t, c, "a", "one")
		running(t, c, "b", "wide")
		c.Converge()
	})
}

func TestConjointTreesChargeAllOrNone(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		plant(t, k, "Org", lab...)
		plant(t, k, "Service", "all nil 6", "gold all 4 hard", "best all 6")
		bind(t, k, "a", "", "Org/a", "Service/gold")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "one", GPUs: 4})
		wantSeat(t, c, "a", "one", "a gold")
		_, _, err := k.Allocate(t.Context(), rig.Submission{Namespace: "a", Name: "two", GPUs: 1})
		refused(t, err, 403, "exceeded quota: gpu limit 4, requested 1, used 4 (node gold of quota tree Service)")
		if got := standing(t, c, "Org").Nodes[0].Allocated[resource.GPU]; got != "4" {
			t.Errorf("the other tree is charged %s", got)
		}
		own := &api.QuotaDemand{Groups: map[string]string{"Service": "best"}}
		allocate(t, k, rig.Submission{Namespace: "a", Name: "two", GPUs: 1, Quota: own})
		wantSeat(t, c, "a", "two", "a best")
		for _, r := range c.Records() {
			if len(r.Charges) != 3 || r.Charges[0].Tree != "namespaces" || r.Charges[1].Tree != "Org" || r.Charges[2].Tree != "Service" {
				t.Errorf("charges %+v", r.Charges)
			}
		}
		c.Converge()
	})
}

func TestTheNextLeaderChargesTheSame(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 3, "queue")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "a1", GPUs: 5})
		submit(t, k, rig.Submission{Namespace: "a", Name: "j", GPUs: 1, Members: 3, Gang: 3})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "a2", GPUs: 4})
		allocate(t, k, rig.Submission{Namespace: "b", Name: "b1", GPUs: 4})
		allocate(t, k, rig.Submission{Namespace: "b", Name: "b2", GPUs: 4}) // waits for a2
		c.Converge()
		before, waiting := standing(t, c, "Lab"), seat(t, c, "b", "b2")
		k.Crash()
		c.StartCoordinator("c2")
		c.AwaitReady(3)
		if diff := cmp.Diff(before, standing(t, c, "Lab")); diff != "" {
			t.Errorf("the tree (-before +after):\n%s", diff)
		}
		wantSeat(t, c, "b", "b2", waiting)
		c.Converge()
		end(t, c, "a", "a2")
		running(t, c, "b", "b2")
		c.Converge()
	})
}

// TestTheNextLeaderLeavesOwnersTheirSeats: an owner that came after a borrower
// has pushed it up, and does so again when all are charged anew; else the
// owner would borrow and its group could claim the same quota twice.
func TestTheNextLeaderLeavesOwnersTheirSeats(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		plant(t, k, "Deep", "all nil 16", "lab all 8", "x lab 2", "y lab 6")
		bind(t, k, "x", "reject", "Deep/x")
		bind(t, k, "y", "reject", "Deep/y")
		allocate(t, k, rig.Submission{Namespace: "x", Name: "guest", GPUs: 4})
		allocate(t, k, rig.Submission{Namespace: "y", Name: "home", GPUs: 6})
		wantSeat(t, c, "x", "guest", "all")
		wantSeat(t, c, "y", "home", "y")
		c.Converge() // the nodes at which units count are written a moment later
		before := standing(t, c, "Deep")
		k.Crash()
		c.StartCoordinator("c2")
		c.AwaitReady(2)
		if diff := cmp.Diff(before, standing(t, c, "Deep")); diff != "" {
			t.Errorf("the tree after the failover (-before +after):\n%s", diff)
		}
		c.Converge()
	})
}

func TestATreeChangesUnderLoad(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 3, "queue")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "one", GPUs: 8})
		allocate(t, k, rig.Submission{Namespace: "b", Name: "two", GPUs: 8})
		plant(t, k, "Lab", "all nil 12", "a all 4", "b all 8") // lowered: nothing ends
		if s := standing(t, c, "Lab"); s.Nodes[0].OverQuota == nil || s.Nodes[1].OverQuota == nil || s.Nodes[2].OverQuota != nil {
			t.Errorf("%+v", s.Nodes)
		}
		allocate(t, k, rig.Submission{Namespace: "a", Name: "late", GPUs: 2})
		wantSeat(t, c, "a", "late", "exceeded quota: gpu limit 12, requested 2, used 16 (node all of quota tree Lab)")
		c.Converge()
		plant(t, k, "Lab", "all nil 20", "a all 10", "b all 8") // raised: it runs
		running(t, c, "a", "late")
		wantSeat(t, c, "a", "late", "a")
		c.Converge()

		plant(t, k, "Lab", "all nil 20", "b all 8") // the group goes, its charges stay
		s := standing(t, c, "Lab")
		if diff := cmp.Diff([]string{"a/alloc/late/0", "a/alloc/one/0"}, s.Detached); diff != "" || s.Nodes[0].Allocated[resource.GPU] != "18" {
			t.Errorf("%+v, detached (-want +got):\n%s", s.Nodes[0], diff)
		}
		allocate(t, k, rig.Submission{Namespace: "a", Name: "lost", GPUs: 1})
		wantSeat(t, c, "a", "lost", "quota tree Lab has no group a")
		c.Converge()
		k.Crash() // to the next leader the group never was
		k = c.StartCoordinator("c2")
		c.AwaitReady(3)
		if diff := cmp.Diff(s, standing(t, c, "Lab")); diff != "" {
			t.Errorf("the tree (-before +after):\n%s", diff)
		}
		end(t, c, "a", "late")
		plant(t, k, "Lab", "all nil 20", "a all 10", "b all 8") // and comes back
		running(t, c, "a", "lost")
		c.Eventually("the group has its work back", func() bool {
			s := standing(t, c, "Lab")
			return s.Detached == nil && s.Nodes[1].Own[resource.GPU] == "9"
		})
		wantSeat(t, c, "a", "one", "a")
		c.Converge()
	})
}

func TestAnEmptyTreeForgetsNobody(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		plant(t, k, "Org", lab...)
		plant(t, k, "Service", "all nil 12", "gold all 12")
		bind(t, k, "a", "queue", "Org/a", "Service/gold")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "one", GPUs: 8})
		plant(t, k, "Org")
		if s := standing(t, c, "Org"); s.Root != "" || len(s.Nodes) != 0 || !cmp.Equal(s.Detached, []string{"a/alloc/one/0"}) {
			t.Errorf("%+v", s)
		}
		if s := standing(t, c, "Service"); s.Nodes[0].Allocated[resource.GPU] != "8" || s.Detached != nil {
			t.Errorf("the other tree: %+v", s)
		}
		_, err := k.DeleteQuotaBinding(t.Context(), "a", api.Preconditions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.DeleteQuotaTree(t.Context(), "Org", api.Preconditions{})
		refused(t, err, 409, "quota tree Org is in use: 1 units are charged to it, a/alloc/one/0 among them")
		k.Stop()
		k = c.StartCoordinator("c2")
		c.AwaitReady(2)
		plant(t, k, "Org", lab...)
		wantSeat(t, c, "a", "one", "a gold")
		c.Converge()
		end(t, c, "a", "one")
		if _, err = k.DeleteQuotaTree(t.Context(), "Org", api.Preconditions{}); err != nil {
			t.Error(err)
		}
		c.Converge()
	})
}

func TestUnitsWaitForATreeThatTheyName(t *testing.T) {
	bubble(t, limited(100, true), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		own := &api.QuotaDemand{Groups: map[string]string{"Lab": "a"}}
		allocate(t, k, rig.Submission{Name: "x", GPUs: 1, Quota: own})
		wantSeat(t, c, rig.Namespace, "x", "quota tree Lab, to whose group a it is to be charged, does not exist")
		_, _, err := k.Allocate(t.Context(), rig.Submission{Namespace: "other", Name: "x", GPUs: 1, Quota: own})
		refused(t, err, 403, "does not exist")
		plant(t, k, "Lab", "all nil 16", "a all 8", "leaf a 8")
		wantSeat(t, c, rig.Namespace, "x", "group a of quota tree Lab is not a leaf")
		plant(t, k, "Lab", lab...)
		phase(t, c, "x", api.Running)
		c.Converge()
		_, err = k.DeleteQuotaTree(t.Context(), "Lab", api.Preconditions{})
		refused(t, err, 409, "1 units are charged to it")
	})
}

func TestConfiguredGroups(t *testing.T) {
	o := rig.Options{Namespaces: map[string]lead.Namespace{"a": {Groups: map[string]string{"Lab": "a"}, Admission: "queue"}}}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		plant(t, k, "Lab", lab...)
		allocate(t, k, rig.Submission{Namespace: "a", Name: "one", GPUs: 1})
		wantSeat(t, c, "a", "one", "a")
		bind(t, k, "a", "reject", "Lab/b") // a bound group replaces it, for newcomers
		allocate(t, k, rig.Submission{Namespace: "a", Name: "two", GPUs: 1})
		wantSeat(t, c, "a", "one", "a")
		wantSeat(t, c, "a", "two", "b")
		_, _, err := k.Allocate(t.Context(), rig.Submission{Namespace: "a", Name: "x", GPUs: 8, Quota: &api.QuotaDemand{Groups: map[string]string{"Lab": "c"}}})
		refused(t, err, 403, "quota tree Lab has no group c")
		if _, err := k.DeleteQuotaBinding(t.Context(), "a", api.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		_, err = k.DeleteQuotaTree(t.Context(), "Lab", api.Preconditions{})
		refused(t, err, 409, "namespace a is bound to its group a by the coordinators' configuration")
		c.Converge()
	})
}

func TestATrialNamesVictimsAndEndsNobody(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 2, "queue")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "home", GPUs: 8})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "guest", GPUs: 8})
		before := standing(t, c, "Lab")
		reader := service.Principal{Name: "ada", Admin: true}
		trial := func(group string, gpus int) *api.QuotaDryRun {
			got, err := k.TryQuota(t.Context(), []byte(fmt.Sprintf(
				`{"kind":"Consumer","spec":{"id":"me","trees":[{"treeName":"Lab","groupID":%q,"request":{"nvidia.com/gpu":%d}}]}}`, group, gpus)), reader)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		got := trial("b", 2)
		if got.Admitted || !cmp.Equal(got.Victims, []string{"a/alloc/guest/0"}) || got.Placements[0].Node != "b" ||
			got.Summary != "me would have to wait: its quota is in use by others: 1 unit must give way first: a/alloc/guest/0" {
			t.Errorf("%+v", got)
		}
		for tenant, want := range map[resource.TenantID]string{"a": "a/alloc/guest/0", "b": "1 unit of another tenant with 8 GPUs at priority 0"} {
			reader = service.Principal{Name: "bob", Tenant: tenant}
			got := trial("b", 2)
			if !cmp.Equal(got.Victims, []string{want}) || got.Summary != "me would have to wait: its quota is in use by others: 1 unit must give way first: "+want {
				t.Errorf("to tenant %s: %+v", tenant, got)
			}
		}
		if got := trial("a", 2); got.Admitted || got.Summary != "me would be refused: exceeded quota: gpu limit 16, requested 2, used 16 (node all of quota tree Lab)" {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff(before, standing(t, c, "Lab")); diff != "" {
			t.Errorf("a trial changed the tree (-before +after):\n%s", diff)
		}
		end(t, c, "a", "guest")
		if got := trial("a", 4); !got.Admitted || got.Summary != "me would be admitted: on tree Lab belongs to group a and borrows from b at node all" {
			t.Errorf("%+v", got)
		}
		c.Converge()
	})
}

// TestATreeIsWrittenOnceWhateverTheStoreAnswers loses answers to each of the
// writes about a tree.
func TestATreeIsWrittenOnceWhateverTheStoreAnswers(t *testing.T) {
	for fault, name := range map[rig.Fault]string{rig.Lost: "lost", rig.AnswerLost: "answer lost", rig.Late: "late"} {
		for at := range 3 {
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
					k := c.Bring(1)
					n := 0
					k.Gate.OnTxn(func(x record.Txn) rig.Fault {
						if !rig.Touches(x, record.QuotaPrefix) {
							return rig.None
						}
						if n++; n == at+1 {
							return fault
						}
						return rig.None
					})
					made := plant(t, k, "Lab", lab...)
					changed := plant(t, k, "Lab", "all nil 4", "a all 4")
					if made.Metadata.UID != changed.Metadata.UID || made.Metadata.ResourceVersion == changed.Metadata.ResourceVersion {
						t.Errorf("%+v became %+v", made.Metadata, changed.Metadata)
					}
					if _, err := k.DeleteQuotaTree(t.Context(), "Lab", api.Preconditions{}); err != nil {
						t.Error(err)
					}
					pass(rig.Patience) // a late write has landed, or never will
					kvs, _, err := c.Store.Range(t.Context(), record.QuotaPrefix, store.RangeOptions{})
					if err != nil || len(kvs) != 0 {
						t.Errorf("left are %v, %v", kvs, err)
					}
					c.Converge()
				})
			})
		}
	}
}

// TestAnExplanationNamesAGroupByItsNewName: a record keeps the name of its commit, and the
// renamed group is no node above it.
func TestAnExplanationNamesAGroupByItsNewName(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 1, "queue")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "old", GPUs: 1})
		running(t, c, "a", "old")
		if _, err := k.RenameQuotaNode(t.Context(), "Lab", api.QuotaRename{From: "a", To: "alpha"}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Leader().ExplainQuota(t.Context(), "a", "old")
		const want = "a/old on tree Lab is charged to its own group alpha"
		if err != nil || got.Summary != want || got.Placements[0].Group != "alpha" {
			t.Errorf("got %+v, %v; want %q", got, err, want)
		}
	})
}
