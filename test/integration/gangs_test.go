package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// startDGX runs four DGX A100 in one process.
func startDGX(t *testing.T) *devCluster {
	t.Helper()
	return startDev(t, "--nodes", "4", "--profile", "dgx-a100")
}

func TestGangOfFourRunsOnThirtyTwoDistinctDevices(t *testing.T) {
	t.Parallel()
	d := startDGX(t)
	d.muster("submit", "-f", example(t, "gang.yaml"), "--wait")
	list := musterJSON[api.AllocationList](d.user, "get", "allocations", "-A", "-o", "json")
	if len(list.Items) != 4 {
		t.Fatalf("%d members, want 4", len(list.Items))
	}
	for _, a := range list.Items {
		if a.Status.Phase != api.Running || len(a.Status.Assignment.GPUs) != 8 {
			t.Errorf("%s is %s with %+v, want Running with 8 devices", a.Metadata.Name, a.Status.Phase, a.Status.Assignment)
		}
	}
	if devices, nodes := distinctGPUs(t, list.Items); devices != 32 || nodes != 4 {
		t.Errorf("%d devices on %d nodes, want 32 on 4", devices, nodes)
	}

	d.muster("submit", "-f", example(t, "gang-5.yaml"))
	d.wantPhase("gang-5", api.Queued)
	d.mustExplainFive(0)
	d.muster("delete", "job", "gang")
	d.awaitGone("gang")
	// With everything free the gang of five still waits, and holds nothing.
	d.awaitFreeGPUs(4, 8)
	d.wantPhase("gang-5", api.Queued)
	for _, a := range d.allocations() {
		if a.Status.Assignment != nil || a.Status.NodeID != "" {
			t.Errorf("%s waits and holds %+v on %q", a.Metadata.Name, a.Status.Assignment, a.Status.NodeID)
		}
	}
	d.mustExplainFive(4)

	// It does not block what fits, and a gang that waits starts by itself.
	d.submit(gang("second", 4, gpus(8)))
	d.awaitRunning("second")
	d.submit(gang("third", 4, gpus(8)))
	d.wantPhase("third", api.Queued)
	d.remove("second")
	d.awaitRunning("third")
	d.wantPhase("gang-5", api.Queued)
}

// mustExplainFive checks what `muster why gang-5 -n default` says while fit of the five
// members would fit.
func (d *devCluster) mustExplainFive(fit int) {
	d.t.Helper()
	// Five members ask for 40 devices; each that fits needs one node's eight.
	said := d.muster("why", "gang-5")
	for _, want := range []string{fmt.Sprintf("%d GPUs short", 8*(5-fit)), "all members together want 40 GPUs, and the 4 nodes have 32 GPUs", "4 nodes: ", "node-0, node-1"} {
		if !strings.Contains(said, want) {
			d.t.Errorf("with room for %d, why gang-5 does not say %q:\n%s", fit, want, said)
		}
	}
	why := musterJSON[api.Explanation](d.user, "why", "gang-5", "-o", "json")
	at := slices.IndexFunc(why.Shortages, func(r resource.Reason) bool { return r.Resource == resource.GPU })
	if why.Members != 5 || why.Fit != fit || len(why.Nodes) != 1 || why.Nodes[0].Count != 4 || at < 0 {
		d.t.Fatalf("why gang-5 -o json: %d of %d fit, nodes %+v, shortages %+v; want %d of 5 on 4 nodes of one reason, and short of GPUs",
			why.Fit, why.Members, why.Nodes, why.Shortages, fit)
	}
	if want := int64(8 * (5 - fit) * 1000); why.Shortages[at].Short() != want {
		d.t.Errorf("short of %d milli of GPUs, want %d: %+v", why.Shortages[at].Short(), want, why.Shortages[at])
	}
}

func TestHigherPriorityStartsFirstAndEqualsInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	d := startDGX(t)
	prioritized := func(name string, priority int32) *api.Job {
		j := gang(name, 4, gpus(8))
		j.Spec.Priority, j.Spec.Template.Spec.PreemptionPolicy = &priority, api.PreemptNever
		return j
	}
	d.submit(prioritized("running", 1))
	d.awaitRunning("running")
	for _, j := range []*api.Job{
		prioritized("low-1", 1), prioritized("low-2", 1), prioritized("high-1", 100), prioritized("low-3", 1), prioritized("high-2", 100),
	} {
		d.submit(j)
	}
	order := []string{"high-1", "high-2", "low-1", "low-2", "low-3"}
	for i, name := range order {
		if got := d.job(name).Status.QueuePosition; got != i+1 {
			t.Errorf("%s waits at position %d, want %d", name, got, i+1)
		}
	}
	previous := "running"
	for i, name := range order {
		d.remove(previous)
		d.awaitRunning(name)
		for _, later := range order[i+1:] {
			d.wantPhase(later, api.Queued)
		}
		previous = name
	}
}

func TestRandomMixNeverSharesADeviceNorSplitsAGang(t *testing.T) {
	t.Parallel()
	d := startDGX(t)
	watch, stop := context.WithCancel(t.Context())
	defer stop()
	watched := make(chan error, 1)
	snapshots := 0
	go func() { watched <- watchSnapshots(watch, d.client, &snapshots) }()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	live := map[string]bool{}
	for step := range 60 {
		if names := sorted(live); len(names) > 0 && random.IntN(3) == 0 {
			name := names[random.IntN(len(names))]
			if _, err := d.client.Jobs(namespace).Delete(soon(t), name, api.DeleteOptions{}); err != nil {
				t.Fatalf("delete %s: %v", name, err)
			}
			delete(live, name)
			continue
		}
		members, devices := 1+random.IntN(4), []int{1, 2, 4, 8}[random.IntN(4)]
		name := fmt.Sprintf("job-%d-%dx%d", step, members, devices)
		j := gang(name, members, gpus(devices))
		if priority := int32(random.IntN(3)); priority > 0 {
			j.Spec.Priority = &priority
		}
		j.Spec.Template.Spec.PreemptionPolicy = api.PreemptOwnQuota // a victim would keep devices for a grace
		d.submit(j)
		live[name] = true
	}
	d.fillAndDrain(live)
	stop()
	if err := <-watched; err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	t.Logf("%d snapshots", snapshots)
	if snapshots < 20 {
		t.Errorf("only %d snapshots were taken", snapshots)
	}
}

// fillAndDrain adds jobs of one device each until nothing is free, then
// deletes everything.
func (d *devCluster) fillAndDrain(live map[string]bool) {
	d.t.Helper()
	for i := range 32 {
		name := fmt.Sprintf("filler-%d", i)
		d.submit(gang(name, 1, gpus(1)))
		live[name] = true
	}
	d.awaitFreeGPUs(4, 0)
	// What is reserved is not free either, and not yet held.
	programs.Eventually(d.t, patience, "all 32 devices are held", func() error {
		if devices, _ := distinctGPUs(d.t, d.allocations()); devices != 32 {
			return fmt.Errorf("with nothing free %d are", devices)
		}
		return nil
	})
	for _, name := range sorted(live) {
		if _, err := d.client.Jobs(namespace).Delete(soon(d.t), name, api.DeleteOptions{}); err != nil {
			d.t.Fatalf("delete %s: %v", name, err)
		}
	}
	programs.Eventually(d.t, patience, "everything is drained", func() error {
		if left := d.allocations(); len(left) > 0 {
			return fmt.Errorf("%d are left, the first %s %s", len(left), left[0].Metadata.Name, left[0].Status.Phase)
		}
		return nil
	})
	d.awaitFreeGPUs(4, 8)
}

// watchSnapshots lists without a pause until ctx ends, and returns the first
// violation that a list shows. A list is one snapshot: no gang is torn in it.
func watchSnapshots(ctx context.Context, client *sdk.Client, taken *int) error {
	for ctx.Err() == nil {
		list, err := client.Allocations("").List(ctx, sdk.ListOptions{})
		var status *api.Status
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case errors.As(err, &status) && status.Code == http.StatusServiceUnavailable:
			continue // the coordinator has not caught up with the store: the machine is busy
		case err != nil:
			return err
		}
		if fault := checkSnapshot(list.Items); fault != nil {
			return fault
		}
		*taken++
	}
	return nil
}

func TestDevClusterIsStoppedAndKilledAndStartsAgainWithTheSameDevices(t *testing.T) {
	t.Parallel()
	d := startDGX(t)
	d.submit(gang("training", 4, gpus(7)))
	d.awaitRunning("training")
	d.submit(gang("waiting", 4, gpus(8)))
	held := d.holdings()
	for _, end := range []func(){
		func() { d.process.mustStop(t, syscall.SIGINT) },
		func() { d.process.kill(t) },
	} {
		end()
		d = startDevIn(t, d.dataDir, "--nodes", "4", "--profile", "dgx-a100")
		if diff := cmp.Diff(held, d.holdings()); diff != "" {
			t.Fatalf("what runs has changed (-before +after):\n%s", diff)
		}
		d.wantPhase("waiting", api.Queued)
	}
	d.remove("training")
	d.awaitRunning("waiting")
	if devices, nodes := distinctGPUs(t, d.allocations()); devices != 32 || nodes != 4 {
		t.Errorf("%d devices on %d nodes, want 32 on 4", devices, nodes)
	}
}
