package integration

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// namespace is where the tests work unless they say otherwise.
const namespace = "default"

// user works with a cluster through the SDK and the muster program.
type user struct {
	t      *testing.T
	client *sdk.Client
	env    []string // of the muster program
}

func newUser(t *testing.T, endpoint, token string) *user {
	t.Helper()
	client, err := sdk.NewClient(sdk.Config{Endpoint: endpoint, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "context.json") // does not exist
	return &user{t: t, client: client, env: []string{"MUSTER_ADDR=" + endpoint, "MUSTER_TOKEN=" + token, "MUSTER_CONTEXT=" + none}}
}

// muster runs the muster program and expects it to succeed.
func (u *user) muster(args ...string) string {
	u.t.Helper()
	stdout, stderr, code := execute(u.t, u.env, "muster", args...)
	if code != 0 {
		u.t.Fatalf("muster %q ended with code %d:\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

// musterJSON is muster for an answer in JSON.
func musterJSON[T any](u *user, args ...string) T {
	u.t.Helper()
	var v T
	out := u.muster(args...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		u.t.Fatalf("muster %q does not print JSON: %v\n%s", args, err, out)
	}
	return v
}

// gang is a job of equal members that start together or not at all.
func gang(name string, members int, requests map[resource.Name]string) *api.Job {
	n := int32(members)
	j := &api.Job{Metadata: api.ObjectMeta{Name: name}, Spec: api.JobSpec{Parallelism: &n}}
	j.Spec.Template.Spec.Resources.Requests = requests
	j.Spec.Template.Spec.Scheduling.GangScheduling = &api.GangScheduling{MinMembers: &n}
	return j
}

// gpus is a request that fits on the smallest test machine but for its GPUs.
func gpus(n int) map[resource.Name]string {
	return map[resource.Name]string{resource.GPU: strconv.Itoa(n), resource.CPU: "100m", resource.Memory: "64Mi"}
}

// insist asks again, for as long as patience lasts, while the answer is that
// nobody leads now: a leader whose disk stands still loses its lease.
func insist[T any](u *user, what string, ask func(ctx context.Context) (T, error)) T {
	u.t.Helper()
	var got T
	programs.Eventually(u.t, patience, what, func() (err error) {
		got, err = ask(soon(u.t))
		var status *api.Status
		if err != nil && (!errors.As(err, &status) || status.Code != http.StatusServiceUnavailable) {
			u.t.Fatalf("%s: %v", what, err)
		}
		return err
	})
	return got
}

// submit creates a job and does not wait.
func (u *user) submit(j *api.Job) *api.Job {
	u.t.Helper()
	once := sdk.CreateOptions{IdempotencyKey: rand.Text()}
	return insist(u, "submit job "+j.Metadata.Name, func(ctx context.Context) (*api.Job, error) {
		return u.client.Jobs(namespace).Create(ctx, j, once)
	})
}

// tryCreate creates a job and returns what came of it.
func (u *user) tryCreate(ctx context.Context, j *api.Job) error {
	_, err := u.client.Jobs(namespace).Create(ctx, j, sdk.CreateOptions{})
	return err
}

// job reads a job.
func (u *user) job(name string) *api.Job {
	u.t.Helper()
	return insist(u, "get job "+name, func(ctx context.Context) (*api.Job, error) {
		return u.client.Jobs(namespace).Get(ctx, name, sdk.GetOptions{})
	})
}

// awaitRunning waits until a job runs.
func (u *user) awaitRunning(name string) *api.Job {
	u.t.Helper()
	// The server's answer comes before the call is given up.
	j := insist(u, "wait for job "+name, func(ctx context.Context) (*api.Job, error) {
		return u.client.Jobs(namespace).Get(ctx, name, sdk.GetOptions{Wait: patience - 5*time.Second})
	})
	if j.Status.Phase != api.Running {
		u.t.Fatalf("job %s is %s after %s, want Running: %+v", name, j.Status.Phase, patience, j.Status)
	}
	return j
}

// wantPhase checks a job's phase as it is now.
func (u *user) wantPhase(name string, want api.Phase) {
	u.t.Helper()
	if got := u.job(name).Status.Phase; got != want {
		u.t.Fatalf("job %s is %s, want %s", name, got, want)
	}
}

// remove deletes a job and waits until it is gone.
func (u *user) remove(name string) {
	u.t.Helper()
	insist(u, "delete job "+name, func(ctx context.Context) (*api.Job, error) {
		return u.client.Jobs(namespace).Delete(ctx, name, api.DeleteOptions{})
	})
	u.awaitGone(name)
}

func (u *user) awaitGone(name string) {
	u.t.Helper()
	programs.Eventually(u.t, patience, "job "+name+" is gone", func() error {
		j, err := u.client.Jobs(namespace).Get(soon(u.t), name, sdk.GetOptions{})
		var status *api.Status
		if errors.As(err, &status) && status.Code == 404 {
			return nil
		}
		return cmp.Or(err, fmt.Errorf("it is there: %+v", j))
	})
}

// allocations lists all members of all namespaces.
func (u *user) allocations() []api.Allocation {
	u.t.Helper()
	return insist(u, "list allocations", func(ctx context.Context) (*api.AllocationList, error) {
		return u.client.Allocations("").List(ctx, sdk.ListOptions{})
	}).Items
}

// awaitConfirmed waits until the agents have confirmed everything that runs.
func (u *user) awaitConfirmed() {
	u.t.Helper()
	programs.Eventually(u.t, patience, "the agents confirm what runs", func() error {
		for _, a := range u.allocations() {
			for _, c := range a.Status.Conditions {
				if c.Type == "Ready" && c.Status != "True" {
					return fmt.Errorf("%s is not ready", a.Metadata.Name)
				}
			}
		}
		return nil
	})
}

// holding is what one running member has.
type holding struct {
	Node        resource.NodeID
	Transaction resource.TxID
	Assignment  api.AssignmentStatus
}

// holdings returns what every running member has, by name.
func (u *user) holdings() map[string]holding {
	u.t.Helper()
	held := map[string]holding{}
	for _, a := range u.allocations() {
		if a.Status.Phase == api.Running {
			held[a.Metadata.Namespace+"/"+a.Metadata.Name] = holding{a.Status.NodeID, a.Status.Transaction, *a.Status.Assignment}
		}
	}
	return held
}

// freeGPUs counts the wholly free devices of each node.
func (u *user) freeGPUs() map[string]int {
	u.t.Helper()
	list := insist(u, "list nodes", func(ctx context.Context) (*api.NodeList, error) {
		return u.client.Nodes().List(ctx, sdk.ListOptions{})
	})
	free := map[string]int{}
	for _, n := range list.Items {
		free[n.Metadata.Name] = 0
		for _, d := range n.Status.Devices {
			if d.Free == resource.WholeDevice {
				free[n.Metadata.Name]++
			}
		}
	}
	return free
}

// awaitFreeGPUs waits until every node has n wholly free devices.
func (u *user) awaitFreeGPUs(nodes, n int) {
	u.t.Helper()
	programs.Eventually(u.t, patience, fmt.Sprintf("%d devices free on each of %d nodes", n, nodes), func() error {
		free := u.freeGPUs()
		for _, have := range free {
			if have != n {
				return fmt.Errorf("free: %v", free)
			}
		}
		if len(free) != nodes {
			return fmt.Errorf("nodes: %v", free)
		}
		return nil
	})
}

// node reads a node.
func (u *user) node(name string) *api.Node {
	u.t.Helper()
	return insist(u, "get node "+name, func(ctx context.Context) (*api.Node, error) { return u.client.Nodes().Get(ctx, name) })
}

// incarnation is the one under which a node registered.
func (u *user) incarnation(node string) resource.Incarnation {
	u.t.Helper()
	n := u.node(node)
	if n.Status.Incarnation == nil {
		u.t.Fatalf("node %s has no incarnation: %+v", node, n.Status)
	}
	return *n.Status.Incarnation
}

// mustBePrivate checks that a file is its owner's alone.
func mustBePrivate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %04o, want 0600", path, info.Mode().Perm())
	}
}
