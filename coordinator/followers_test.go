package coordinator_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// shows is everything that every coordinator answers, without the leader's own
// knowledge.
func shows(t *testing.T, k *rig.Coordinator) map[string]any {
	t.Helper()
	all := map[string]any{}
	note := func(what string, got any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s of %s: %v", what, k.ID, err)
		}
		all[what] = got
	}
	allocations, err := k.ListAllocations(t.Context(), "", service.Page[api.Allocation]{})
	note("allocations", allocations, err)
	for i := range allocations.Items {
		s := &allocations.Items[i].Status
		s.QueuePosition = 0 // the leader counts nobody whose end is under way
	}
	jobs, err := k.ListJobs(t.Context(), "", service.Page[api.Job]{})
	note("jobs", jobs, err)
	for i := range jobs.Items {
		s := &jobs.Items[i].Status
		s.QueuePosition = 0
	}
	quotas, err := k.ListResourceQuotas(t.Context(), "")
	note("resource quotas", quotas, err)
	forests, err := k.ListQuotaForests(t.Context())
	note("forests", forests, err)
	bindings, err := k.ListQuotaBindings(t.Context())
	note("bindings", bindings, err)
	trees, err := k.ListQuotaTrees(t.Context())
	note("trees", trees, err)
	nodes, err := k.ListNodes(t.Context())
	note("nodes", nodes, err)
	// Lists of different coordinators need not be of the same revision.
	trees.Metadata, nodes.Metadata = api.ListMeta{}, api.ListMeta{}
	allocations.Metadata, jobs.Metadata, quotas.Metadata, forests.Metadata, bindings.Metadata = api.ListMeta{}, api.ListMeta{}, api.ListMeta{}, api.ListMeta{}, api.ListMeta{}
	return all
}

func TestAFollowerShowsWhatTheLeaderShows(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			limit := map[string]lead.Namespace{rig.Namespace: {Hard: resource.Vector{resource.GPU: 20_000}, Admission: "queue"}}
			bubble(t, rig.Options{Namespaces: limit}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(2)
				f := c.StartCoordinator("c2")
				c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
				plant(t, k, "Lab", lab...)
				bind(t, k, rig.Namespace, "queue", "Lab/a")
				random := rand.New(rand.NewPCG(seed, 1))
				for step := range 40 {
					name := fmt.Sprint("x", random.IntN(6))
					switch random.IntN(10) {
					case 0, 1:
						_, _, _ = k.Allocate(t.Context(), rig.Submission{Name: name, GPUs: 1 + random.IntN(4)})
					case 2:
						_, _, _ = k.Job(t.Context(), rig.Submission{Name: "j" + name, GPUs: 1 + random.IntN(3), Members: 1 + random.IntN(3)})
					case 3:
						_, _ = k.DeleteAllocation(t.Context(), rig.Namespace, name, api.DeleteOptions{})
					case 4:
						_, _ = k.DeleteJob(t.Context(), rig.Namespace, "j"+name, api.DeleteOptions{})
					case 5:
						_, _ = k.CancelJob(t.Context(), rig.Namespace, "j"+name, api.DeleteOptions{})
					case 6:
						grace := int64(random.IntN(3))
						_, _, _ = k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: name, GraceSeconds: &grace, Reason: "drill"})
					case 7:
						plant(t, k, "Lab", "all nil 16", fmt.Sprint("a all ", random.IntN(9)), fmt.Sprint("b all ", random.IntN(9)))
					case 8:
						cordoned := random.IntN(2) == 0
						_, _ = k.PatchNode(t.Context(), fmt.Sprint("n", 1+random.IntN(2)), api.NodePatch{Unschedulable: &cordoned})
					case 9:
						modes := []string{api.ModeNormal, api.ModeMaintenance}
						_, _ = k.PatchQuotaMode(t.Context(), api.QuotaModePatch{Mode: modes[random.IntN(2)], Reason: "drill"}, "ada")
					}
					first, second := k, f // the second must show all that the first shows
					if random.IntN(2) == 0 {
						first, second = f, k
					}
					synctest.Wait() // nothing more lands at this instant
					if diff := cmp.Diff(shows(t, first), shows(t, second)); diff != "" {
						t.Fatalf("step %d (-leader +follower):\n%s", step, diff)
					}
					if random.IntN(3) == 0 {
						<-time.NewTimer(time.Duration(random.IntN(3000)) * time.Millisecond).C
					}
				}
			})
		})
	}
}

func TestAFollowersNodesAreWhatTheStoreTells(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 3})
		var n *api.Node
		c.Eventually("the agent's heartbeat is in the store", func() (heard bool) {
			var err error
			n, err = f.GetNode(t.Context(), string(a.Status.NodeID))
			return err == nil && n.Status.Phase == "Ready" && n.Status.LastHeartbeatTime != ""
		})
		led, err := k.GetNode(t.Context(), n.Metadata.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(led, n); diff != "" {
			t.Errorf("the node (-leader +follower):\n%s", diff)
		}
		free := 0
		for _, d := range n.Status.Devices {
			free += int(d.Free)
		}
		if n.Status.Available[resource.GPU] != "5" || free != 5000 || len(n.Status.Allocations) != 1 || len(n.Status.NUMANodes) == 0 {
			t.Errorf("%+v, want 5 of 8 GPUs free", n.Status)
		}
	})
}

func TestAWaitAtAFollowerGoesOnOverAFailover(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f, g := c.StartCoordinator("c2"), c.StartCoordinator("c3")
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		allocate(t, k, rig.Submission{Name: "b", GPUs: 8})
		type answer struct {
			a   *api.Allocation
			err error
		}
		answers := make(chan answer, 2)
		for _, at := range []*rig.Coordinator{f, g} { // one of them will lead
			go func() {
				a, err := at.GetAllocation(t.Context(), rig.Namespace, "b", time.Hour)
				answers <- answer{a, err}
			}()
		}
		<-time.NewTimer(time.Second).C
		k.Crash()
		next := c.Leader()
		c.AwaitReady(1)
		remove(t, next, "a")
		for range 2 {
			if got := <-answers; got.err != nil || got.a.Status.Phase != api.Running {
				t.Errorf("%v, %+v", got.err, got.a)
			}
		}
		c.Converge()
	})
}

// A leader that was stopped for a minute, as by SIGSTOP, wakes to a cluster that
// has another: it shows nothing that is old and takes nothing in.
func TestALeaderThatWakesAfterAMinuteActsAsNone(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		k.Pause(time.Minute)
		c.Eventually("the other one leads", f.Leading)
		c.Eventually("the node is ready there", func() bool {
			n, err := f.GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Ready"
		})
		remove(t, f, "a")
		c.Eventually("a is gone", func() bool {
			_, err := f.GetAllocation(t.Context(), rig.Namespace, "a", 0)
			return rig.Code(err) == 404
		})
		if k.Leading() {
			t.Error("it takes itself for the leader")
		}
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "b", GPUs: 1})
		refused(t, err, 503, "coordinator c1 does not lead")
		if a, err := k.GetAllocation(t.Context(), rig.Namespace, "a", 0); rig.Code(err) != 404 && rig.Code(err) != 503 {
			t.Errorf("it shows what was deleted: %v, %+v", err, a)
		}
		<-time.NewTimer(time.Minute).C
		if a, err := k.GetAllocation(t.Context(), rig.Namespace, "a", 0); rig.Code(err) != 404 {
			t.Errorf("awake it shows what was deleted: %v, %+v", err, a)
		}
		c.Converge()
	})
}

func TestTheQueueIsTheSameAtEveryCoordinator(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		follower := c.StartCoordinator("c2")
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		for i := range 12 {
			allocate(t, k, rig.Submission{Name: fmt.Sprintf("w%d", i), GPUs: 8, Priority: int32(i)})
		}
		want := string(k.LocalQueries()["queue"](nil))
		if got := string(follower.LocalQueries()["queue"](nil)); got != want || !strings.HasPrefix(want, `{"waiting":12,"head":[{"pos":1,"name":"default/w11","prio":11,"members":1},`) {
			t.Errorf("the follower says\n%s\nand the leader\n%s", got, want)
		}
		if why := string(follower.LocalQueries()["why"]([]byte("w3"))); !strings.Contains(why, "coordinator c2 does not lead; ask c1 at ") {
			t.Errorf("why at the follower: %s", why)
		}
		// Ring members get the number of waiting units, and no name.
		if got := string(follower.Queries()["queue"](nil)); got != `{"waiting":12}` {
			t.Errorf("the ring is told %s", got)
		}
		if why := string(k.Queries()["why"]([]byte("w3"))); strings.Contains(why, "w3") || !strings.Contains(why, "coordinator's host") {
			t.Errorf("the ring is told why: %s", why)
		}
	})
}
