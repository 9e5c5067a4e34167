package integration

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/programs"
)

// threeNodes is a cluster of separate programs in which a gang holds all 24
// devices of three nodes.
func threeNodes(t *testing.T) *cluster {
	t.Helper()
	c := startCluster(t, 3)
	c.submit(gang("training", 3, gpus(8)))
	c.awaitRunning("training")
	if devices, nodes := distinctGPUs(t, c.allocations()); devices != 24 || nodes != 3 {
		t.Fatalf("the gang holds %d devices on %d nodes, want 24 on 3", devices, nodes)
	}
	c.awaitAssignmentFiles(3)
	return c
}

// assignmentFiles are what the agents tell launchers, by node and name; files
// that are just being written do not count.
func (c *cluster) assignmentFiles() map[string]string {
	c.t.Helper()
	all := map[string]string{}
	for _, a := range c.agents {
		for name, text := range folder(c.t, filepath.Join(a.dataDir, "assignments")) {
			if filepath.Ext(name) != ".tmp" {
				all[a.name+name] = text
			}
		}
	}
	return all
}

// awaitAssignmentFiles waits until all that runs has been handed over, which is n
// transactions on all nodes together, and nothing else is there: agents write
// and remove the files after they have answered.
func (c *cluster) awaitAssignmentFiles(n int) {
	c.t.Helper()
	programs.Eventually(c.t, patience, "assignment files are written", func() error {
		runs := map[string]bool{} // what the names of a transaction's files begin with
		for _, h := range c.holdings() {
			runs[string(h.Node)+"/"+url.PathEscape(string(h.Transaction))] = true
		}
		documents := 0
		for name := range c.assignmentFiles() {
			stem, isDocument := strings.CutSuffix(name, ".json")
			if isDocument {
				documents++
			} else {
				stem = strings.TrimSuffix(name, ".env")
			}
			if !runs[stem] {
				return fmt.Errorf("%s is of nothing that runs: %v", name, sorted(runs))
			}
		}
		if documents != n {
			return fmt.Errorf("%d documents, want %d: %v", documents, n, sorted(c.assignmentFiles()))
		}
		return nil
	})
}

// before is what a crash must not change.
type before struct {
	holdings     map[string]holding
	grants       map[string][]string // what the agents say themselves
	files        map[string]string
	incarnations map[string]resource.Incarnation
}

func (c *cluster) remember() before {
	c.t.Helper()
	b := before{c.holdings(), map[string][]string{}, c.assignmentFiles(), map[string]resource.Incarnation{}}
	for _, a := range c.agents {
		b.grants[a.name] = c.grants(a)
		b.incarnations[a.name] = c.incarnation(a.name)
	}
	return b
}

// mustBeAsBefore checks devices, files and incarnations once every node is
// heard again.
func (c *cluster) mustBeAsBefore(b before) {
	c.t.Helper()
	c.awaitNodes(len(c.agents))
	after := c.remember()
	if d := cmp.Diff(b.holdings, after.holdings); d != "" {
		c.t.Errorf("what runs has changed (-before +after):\n%s", d)
	}
	if d := cmp.Diff(b.grants, after.grants); d != "" {
		c.t.Errorf("what the agents have handed out has changed (-before +after):\n%s", d)
	}
	if changed := differing(b.files, after.files); len(changed) > 0 {
		c.t.Errorf("assignment files have changed: %v", changed)
	}
	if d := cmp.Diff(b.incarnations, after.incarnations); d != "" {
		c.t.Errorf("incarnations have changed (-before +after):\n%s", d)
	}
}

// mustTakeTurns checks that work goes on: a job waits for the running one,
// starts by itself when that is deleted, and gets the same devices.
func (c *cluster) mustTakeTurns(running, next string) {
	c.t.Helper()
	c.submit(gang(next, 3, gpus(8)))
	single := "single-" + next
	c.submit(gang(single, 1, gpus(8)))
	c.wantPhase(next, api.Queued)
	c.wantPhase(single, api.Queued)
	c.remove(single)
	c.remove(running)
	c.awaitRunning(next)
	if devices, nodes := distinctGPUs(c.t, c.allocations()); devices != 24 || nodes != 3 {
		c.t.Fatalf("%s holds %d devices on %d nodes, want 24 on 3", next, devices, nodes)
	}
	c.awaitAssignmentFiles(3)
}

func TestSeparateProgramsFindTheirGPUsThroughNVML(t *testing.T) {
	t.Parallel()
	c := threeNodes(t)
	for _, a := range c.agents {
		n, err := c.client.Nodes().Get(soon(t), a.name)
		if err != nil {
			t.Fatal(err)
		}
		if len(n.Status.Devices) != 8 {
			t.Errorf("%s shows %d devices, want 8", a.name, len(n.Status.Devices))
		}
		for _, d := range n.Status.Devices {
			if !gpuUUID.MatchString(d.UUID) || !strings.Contains(d.Model, "A100") || d.Free != 0 {
				t.Errorf("%s shows the device %+v, want an A100 with nothing free", a.name, d)
			}
		}
	}
	c.mustAgreeWithFiles()
	for _, a := range c.agents {
		a.stop()
	}
	c.coordinator.stop()
}

// mustAgreeWithFiles checks that launchers are told exactly the devices that
// the API shows.
func (c *cluster) mustAgreeWithFiles() {
	c.t.Helper()
	type document struct {
		Node    resource.NodeID `json:"node"`
		Members []struct {
			Member      int               `json:"member"`
			Environment map[string]string `json:"environment"`
		} `json:"members"`
	}
	told := map[resource.NodeID]string{}
	for name, text := range c.assignmentFiles() {
		if filepath.Ext(name) != ".json" {
			continue
		}
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		for _, m := range d.Members {
			told[d.Node] += m.Environment["CUDA_VISIBLE_DEVICES"]
		}
	}
	shown := map[resource.NodeID]string{}
	for _, h := range c.holdings() {
		var uuids []string
		for _, g := range h.Assignment.GPUs {
			uuids = append(uuids, g.UUID)
		}
		shown[h.Node] += strings.Join(uuids, ",")
	}
	if d := cmp.Diff(shown, told); d != "" {
		c.t.Errorf("launchers are told other devices than the API shows (-API +files):\n%s", d)
	}
}

func TestKilledAgentKeepsItsDevicesAndComesBackAsItself(t *testing.T) {
	t.Parallel()
	c := threeNodes(t)
	before := c.remember()
	victim := c.agents[1]
	victim.kill()
	c.awaitPhase(victim.name, "NotReady")
	c.submit(gang("hopeful", 1, gpus(8)))
	c.wantPhase("training", api.Running)
	if d := cmp.Diff(before.holdings, c.holdings()); d != "" {
		t.Errorf("with its agent dead the allocation changed (-before +after):\n%s", d)
	}
	c.wantPhase("hopeful", api.Queued)
	victim.start()
	c.awaitPhase(victim.name, "Ready")
	c.mustBeAsBefore(before)
	c.wantPhase("hopeful", api.Queued)
	c.remove("hopeful")
	c.mustTakeTurns("training", "next")
}

func TestAgentRestartedWithoutAnyCoordinatorKeepsServingItsHost(t *testing.T) {
	t.Parallel()
	c := threeNodes(t)
	before := c.remember()
	c.coordinator.kill()
	for _, a := range c.agents {
		a.kill()
		a.start()
		programs.Eventually(t, patience, a.name+" serves alone", func() error {
			return reachable(a.settings["listen"].(string))
		})
		if d := cmp.Diff(before.grants[a.name], c.grants(a)); d != "" {
			t.Errorf("%s has handed out something else (-before +after):\n%s", a.name, d)
		}
	}
	if changed := differing(before.files, c.assignmentFiles()); len(changed) > 0 {
		t.Errorf("assignment files have changed: %v", changed)
	}
	c.coordinator.start()
	c.awaitLeader()
	c.mustBeAsBefore(before)
}

// reachable reports whether something listens at an address.
func reachable(address string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

func TestJobIsDeletedWhileAnAgentIsDeadAndEndsWhenItReturns(t *testing.T) {
	t.Parallel()
	c := threeNodes(t)
	victim := c.agents[2]
	victim.kill()
	if _, err := c.client.Jobs(namespace).Delete(soon(t), "training", api.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.submit(gang("next", 3, gpus(8)))
	c.wantPhase("next", api.Queued)
	victim.start()
	c.awaitRunning("next")
	c.awaitGone("training")
	if devices, nodes := distinctGPUs(t, c.allocations()); devices != 24 || nodes != 3 {
		t.Fatalf("the next gang holds %d devices on %d nodes, want 24 on 3", devices, nodes)
	}
}

func TestKilledCoordinatorComesBackWithEverythingWhereItWas(t *testing.T) {
	t.Parallel()
	c := threeNodes(t)
	c.submit(gang("waiting", 3, gpus(8)))
	c.submit(gang("behind", 3, gpus(8)))
	before := c.remember()
	c.coordinator.kill()
	if files := c.assignmentFiles(); len(differing(before.files, files)) > 0 {
		t.Errorf("assignment files changed with the coordinator dead: %v", differing(before.files, files))
	}
	c.coordinator.start()
	c.awaitLeader()
	c.mustBeAsBefore(before)
	for position, name := range []string{"waiting", "behind"} {
		if j := c.job(name); j.Status.Phase != api.Queued || j.Status.QueuePosition != position+1 {
			t.Errorf("%s is %s at position %d, want Queued at %d", name, j.Status.Phase, j.Status.QueuePosition, position+1)
		}
	}
	c.remove("training")
	c.awaitRunning("waiting")
	c.wantPhase("behind", api.Queued)
	c.remove("behind")
	c.mustTakeTurns("waiting", "next")
}

func TestEverythingKilledAtOnceComesBackWithEverythingWhereItWas(t *testing.T) {
	t.Parallel()
	c := threeNodes(t)
	before := c.remember()
	for name, victims := range map[string][]*daemon{
		"the coordinator and an agent": {c.coordinator, c.agents[0]},
		"all programs":                 {c.agents[2], c.coordinator, c.agents[1], c.agents[0]},
	} {
		for _, d := range victims {
			d.kill()
		}
		for _, d := range victims {
			d.start()
		}
		c.awaitLeader()
		c.mustBeAsBefore(before)
		if t.Failed() {
			t.Fatalf("after kill -9 of %s", name)
		}
	}
	c.mustTakeTurns("training", "next")
}

func TestCoordinatorKilledInTheMiddleOfSubmissionsLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	const jobs = 12 // of 4 devices each: six run, six wait
	acknowledged := make(chan string, jobs)
	go func() {
		defer close(acknowledged)
		for i := range jobs {
			name := "job-" + string(rune('a'+i))
			ctx := t.Context()
			// The client repeats a create whose connection broke, under one
			// key; what it gives up on may or may not have happened.
			if err := c.tryCreate(ctx, gang(name, 1, gpus(4))); err == nil {
				acknowledged <- name
			}
		}
	}()
	first := <-acknowledged
	c.coordinator.kill()
	c.coordinator.start()
	names := []string{first}
	for name := range acknowledged {
		names = append(names, name)
	}
	c.awaitLeader()
	c.awaitNodes(3)
	for _, name := range names {
		c.job(name) // fails the test if it is unknown
	}
	programs.Eventually(t, patience, "everything that fits runs", func() error {
		list := c.allocations()
		if err := checkSnapshot(list); err != nil {
			t.Fatal(err)
		}
		running := 0
		for _, a := range list {
			if a.Status.Phase == api.Running {
				running++
			}
		}
		if want := min(len(list), 6); running != want {
			return fmt.Errorf("%d of %d run, want %d", running, len(list), want)
		}
		return nil
	})
	t.Logf("%d of %d submissions were acknowledged", len(names), jobs)
}
