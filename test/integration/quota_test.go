package integration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// charged is a cluster of 16 devices whose namespaces vision and speech are
// charged to the tree of the examples.
func charged(t *testing.T) *cluster {
	t.Helper()
	c := startCluster(t, 2)
	c.applies("quotatree company created\nquotabinding vision created\nquotabinding speech created\n",
		"-f", example(t, "quota-tree.json"), "-f", example(t, "quota-binding.yaml"))
	return c
}

// applies runs muster quota apply and checks what it says.
func (u *user) applies(want string, args ...string) {
	u.t.Helper()
	if got := u.muster(append([]string{"quota", "apply"}, args...)...); got != want {
		u.t.Errorf("muster quota apply %q says %q, want %q", args, got, want)
	}
}

// tries runs the muster program, which need not succeed.
func (u *user) tries(args ...string) (stdout, stderr string, code int) {
	u.t.Helper()
	return execute(u.t, u.env, "muster", args...)
}

// file writes a document to a file of its own.
func (u *user) file(document string) string {
	u.t.Helper()
	path := filepath.Join(u.t.TempDir(), "document.yaml")
	write(u.t, path, []byte(document), 0o600)
	return path
}

// begin submits a job of one member.
func (u *user) begin(namespace, name string, devices int) {
	u.t.Helper()
	once := sdk.CreateOptions{IdempotencyKey: rand.Text()}
	insist(u, "submit job "+namespace+"/"+name, func(ctx context.Context) (*api.Job, error) {
		return u.client.Jobs(namespace).Create(ctx, gang(name, 1, gpus(devices)), once)
	})
}

// runs waits until a job runs.
func (u *user) runs(namespace, name string) {
	u.t.Helper()
	j := insist(u, "wait for job "+namespace+"/"+name, func(ctx context.Context) (*api.Job, error) {
		return u.client.Jobs(namespace).Get(ctx, name, sdk.GetOptions{Wait: patience - 5*time.Second})
	})
	if j.Status.Phase != api.Running {
		u.t.Fatalf("job %s/%s: %+v, want it Running", namespace, name, j)
	}
}

func (u *user) starts(namespace, name string, devices int) {
	u.t.Helper()
	u.begin(namespace, name, devices)
	u.runs(namespace, name)
}

// ends deletes a job and waits until it is gone.
func (u *user) ends(namespace, name string) {
	u.t.Helper()
	u.muster("delete", "job", name, "-n", namespace, "--wait")
}

// phases are those of all jobs, by namespace/name.
func (u *user) phases() map[string]api.Phase {
	u.t.Helper()
	list := insist(u, "list jobs", func(ctx context.Context) (*api.JobList, error) { return u.client.Jobs("").List(ctx, sdk.ListOptions{}) })
	phases := map[string]api.Phase{}
	for _, j := range list.Items {
		phases[j.Metadata.Namespace+"/"+j.Metadata.Name] = j.Status.Phase
	}
	return phases
}

// placement is the node of the tree that counts a job.
func (u *user) placement(consumer string) api.QuotaPlacement {
	u.t.Helper()
	explanation := musterJSON[api.QuotaExplanation](u, "quota", "explain", consumer, "-o", "json")
	if len(explanation.Placements) != 1 {
		u.t.Fatalf("%s has the placements %+v, want one", consumer, explanation.Placements)
	}
	return explanation.Placements[0]
}

func (u *user) wantPlacement(consumer, node string, from ...string) {
	u.t.Helper()
	if got := u.placement(consumer); got.Node != node || !cmp.Equal(got.BorrowsFrom, from) {
		u.t.Errorf("%s is counted on %q and borrows from %q, want %q and %q", consumer, got.Node, got.BorrowsFrom, node, from)
	}
}

func (u *user) tree() *api.QuotaTree {
	u.t.Helper()
	t := musterJSON[api.QuotaTree](u, "quota", "get", "tree", "company", "-o", "json")
	return &t
}

// held is what the groups at and below each node hold of GPUs, wherever it is
// counted.
func held(t *testing.T, tree *api.QuotaTree) map[string]int64 {
	t.Helper()
	sum := map[string]int64{}
	for _, n := range tree.Status.Nodes {
		for _, text := range []string{n.Allocated[resource.GPU], n.Borrowed[resource.GPU]} {
			if text == "" {
				continue
			}
			amount, err := resource.ParseAmount(resource.GPU, text)
			if err != nil {
				t.Fatal(err)
			}
			sum[n.Name] += amount / int64(resource.WholeDevice)
		}
	}
	return sum
}

// wantRefused checks that an allocation of n devices is refused with exactly
// this sentence.
func (u *user) wantRefused(namespace string, n int, sentence string) {
	u.t.Helper()
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: "too-much"}}
	a.Spec.Resources.Requests = gpus(n)
	_, err := u.client.Allocations(namespace).Create(soon(u.t), a, sdk.CreateOptions{})
	var status *api.Status
	if !errors.As(err, &status) || status.Code != 403 || status.Message != sentence {
		u.t.Errorf("%d devices in %s: %v, want 403 %q", n, namespace, err, sentence)
	}
}

// full fills the tree: vision holds 12 and borrows 8 of them, speech has 4.
func full(t *testing.T) *cluster {
	t.Helper()
	c := charged(t)
	c.starts("vision", "train", 4)
	c.wantPlacement("vision/train", "vision")
	c.starts("vision", "more", 4)
	c.wantPlacement("vision/more", "research", "speech")
	c.starts("speech", "train", 4) // claims back
	c.wantPlacement("speech/train", "speech")
	c.wantPlacement("vision/more", "company", "products")
	c.starts("vision", "third", 4)
	want := map[string]int64{"company": 16, "research": 16, "vision": 12, "speech": 4, "products": 0, "search": 0, "ads": 0}
	if diff := cmp.Diff(want, held(t, c.tree())); diff != "" {
		t.Fatalf("held (-want +got):\n%s", diff)
	}
	return c
}

func TestGroupsBorrowClaimBackAndWait(t *testing.T) {
	t.Parallel()
	c := full(t)
	c.wantRefused("speech", 1, "exceeded quota: gpu limit 16, requested 1, used 16 (node company of quota tree company)")
	c.begin("speech", "late", 4)
	out, _, _ := c.tries("why", "late", "-n", "speech")
	if want := "exceeded quota: gpu limit 16, requested 4, used 16 (node company of quota tree company)"; !strings.Contains(out, want) {
		t.Errorf("muster why says\n%s\nwithout %q", out, want)
	}
	if out := c.muster("quota", "explain", "late", "-n", "speech"); !strings.Contains(out, "not charged") || !strings.Contains(out, "requested 4, used 16") {
		t.Errorf("muster quota explain says\n%s", out)
	}
	c.ends("vision", "third")
	c.runs("speech", "late")
	if diff := cmp.Diff(map[string]api.Phase{
		"vision/train": api.Running, "vision/more": api.Running, "speech/train": api.Running, "speech/late": api.Running,
	}, c.phases()); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

func TestWhatIfHasNoEffect(t *testing.T) {
	t.Parallel()
	c := full(t)
	before := c.muster("quota", "get", "-o", "json")
	stdout, stderr, code := c.tries("quota", "what-if", "-f", example(t, "quota-consumer.json"), "-o", "json")
	var dryRun api.QuotaDryRun
	if err := json.Unmarshal([]byte(stdout), &dryRun); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	if code != 1 || len(dryRun.Victims) != 1 || !strings.HasPrefix(dryRun.Victims[0], "vision/") {
		t.Errorf("exit %d, %+v; want one victim of vision", code, dryRun)
	}
	c.ends("vision", "third")
	// What fits is admitted, and is not charged either.
	if stdout, stderr, code := c.tries("quota", "what-if", "-f", example(t, "quota-consumer.json")); code != 0 {
		t.Errorf("exit %d with room for it\n%s%s", code, stdout, stderr)
	}
	c.starts("vision", "third", 4)
	if diff := cmp.Diff(before, c.muster("quota", "get", "-o", "json")); diff != "" {
		t.Errorf("what-if left traces (-before +after):\n%s", diff)
	}
}

func TestLoweredLimitsEndNothing(t *testing.T) {
	t.Parallel()
	c := full(t)
	before := c.holdings()
	lowered := strings.ReplaceAll(string(read(t, example(t, "quota-tree.json"))), `"nvidia.com/gpu": "16"`, `"nvidia.com/gpu": "8"`)
	c.applies("quotatree company configured\n", "-f", c.file(lowered))
	c.applies("quotatree company unchanged\n", "-f", c.file(lowered))
	root := c.tree().Status.Nodes[0]
	if root.Name != "company" || !cmp.Equal(root.OverQuota, []resource.Name{resource.GPU}) {
		t.Errorf("the root is %+v, want it over quota", root)
	}
	if out := c.muster("quota", "get"); !strings.Contains(out, "OVER QUOTA by 8") {
		t.Errorf("muster quota get draws\n%s", out)
	}
	c.begin("speech", "late", 1)
	c.ends("vision", "third") // 12 of 8 are left
	if got := c.phases()["speech/late"]; got != api.Queued {
		t.Errorf("speech/late is %s, want it Queued", got)
	}
	c.applies("quotatree company configured\n", "-f", example(t, "quota-tree.json"))
	c.runs("speech", "late")
	after := c.holdings()
	for name, h := range before {
		if !strings.HasPrefix(name, "vision/third") && !cmp.Equal(h, after[name]) {
			t.Errorf("%s held %+v and holds %+v", name, h, after[name])
		}
	}
}

// quotaObjects are the bindings and resource quotas, whole.
func (u *user) quotaObjects() []any {
	u.t.Helper()
	bindings := musterJSON[api.QuotaBindingList](u, "get", "quotabindings", "-o", "json")
	limits := musterJSON[api.ResourceQuotaList](u, "get", "rq", "-A", "-o", "json")
	return []any{bindings.Items, limits.Items}
}

func TestUsageIsTheSameAfterACrashOfTheCoordinator(t *testing.T) {
	t.Parallel()
	c := full(t)
	c.begin("speech", "late", 4)
	c.applies("resourcequota ml/team created\n", "-f", example(t, "resourcequota.yaml"))
	usage, phases, holdings := held(t, c.tree()), c.phases(), c.holdings()
	objects := c.quotaObjects()
	c.coordinator.kill()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(2)
	if diff := cmp.Diff(usage, held(t, c.tree())); diff != "" {
		t.Errorf("held (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(phases, c.phases()); diff != "" {
		t.Errorf("phases (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(holdings, c.holdings()); diff != "" {
		t.Errorf("holdings (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(objects, c.quotaObjects()); diff != "" {
		t.Errorf("objects (-before +after):\n%s", diff)
	}
	c.ends("vision", "third")
	c.runs("speech", "late")
}

func TestResourceQuotasBesideTheTree(t *testing.T) {
	t.Parallel()
	c := charged(t)
	team := c.file("kind: ResourceQuota\nmetadata: {name: team, namespace: vision}\nspec: {hard: {nvidia.com/gpu: 2}, soft: {nvidia.com/gpu: 1}}\n")
	c.applies("resourcequota vision/team created\n", "-f", team)
	c.starts("vision", "two", 2)
	c.begin("vision", "more", 1)
	if got := c.phases()["vision/more"]; got != api.Queued {
		t.Errorf("vision/more is %s, want it Queued", got)
	}
	if out := c.muster("get", "rq", "-n", "vision"); !strings.Contains(out, "over soft by 1") {
		t.Errorf("muster get rq draws\n%s", out)
	}
	stale := c.file(c.muster("get", "rq", "team", "-n", "vision", "-o", "yaml"))
	c.applies("resourcequota vision/team configured\n", "-f", c.file(strings.ReplaceAll(string(read(t, team)), "gpu: 2}", "gpu: 3}")))
	c.runs("vision", "more")
	_, stderr, code := c.tries("quota", "apply", "-f", stale)
	if code != 1 || !strings.Contains(stderr, "muster get resourcequota team -o yaml -n vision") {
		t.Errorf("applying an old version: exit %d, %q", code, stderr)
	}
	_, stderr, code = c.tries("quota", "delete", "tree", "company")
	if code != 1 {
		t.Errorf("deleting a tree in use: exit %d, %q", code, stderr)
	}
	c.muster("delete", "rq", "team", "-n", "vision")
	c.starts("vision", "third", 1)
}

// console is a command of a document and what the document says it prints.
type console struct{ command, output string }

// consoles reads the blocks of a document that show a terminal, and returns
// what stands between them.
func consoles(text string) (blocks [][]console, between []string) {
	const begin, end = "```console\n", "```\n"
	for {
		before, rest, found := strings.Cut(text, begin)
		if !found {
			return blocks, append(between, before)
		}
		inside, after, _ := strings.Cut(rest, end)
		var block []console
		for line := range strings.Lines(inside) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				block = append(block, console{command: strings.TrimSpace(command)})
				continue
			}
			block[len(block)-1].output += line
		}
		blocks, between = append(blocks, block), append(between, before+begin)
		text = end + after
	}
}

// TestTheDocumentsExample runs the commands of docs/quota.md and compares what
// they print. UPDATE_GOLDEN=1 writes what they print into the document.
func TestTheDocumentsExample(t *testing.T) {
	t.Parallel()
	root, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "docs", "quota.md")
	update := os.Getenv("UPDATE_GOLDEN") != ""
	d := startDev(t, "--nodes", "2", "--profile", "dgx-a100")
	d.awaitNodes(2)
	blocks, between := consoles(string(read(t, path)))
	var text strings.Builder
	for i, block := range blocks {
		text.WriteString(between[i])
		for _, c := range block {
			got := d.shell(root, c, update)
			fmt.Fprintf(&text, "$ %s\n%s", c.command, got)
			if diff := cmp.Diff(c.output, got); diff != "" && !update {
				t.Errorf("$ %s (-document +program):\n%s", c.command, diff)
			}
		}
	}
	text.WriteString(between[len(blocks)])
	if update {
		write(t, path, []byte(text.String()), 0o644)
	}
}

// shell runs one command in a folder and returns what it prints. What only
// looks is asked until the answer is the document's, or when the document is
// being written, until all that was started runs.
func (d *devCluster) shell(folder string, c console, settled bool) string {
	d.t.Helper()
	ask := func() string {
		stdout, stderr, _ := execute(d.t, d.env, "sh", "-c", "cd \"$0\" && "+c.command, folder)
		return stdout + stderr
	}
	looks := strings.HasPrefix(c.command, "muster get")
	got := ask()
	if settled && looks {
		d.awaitConfirmed()
		return ask()
	}
	if !looks || got == c.output {
		return got
	}
	_ = programs.Poll(patience, func() error { // its caller shows the difference
		if got = ask(); got != c.output {
			return context.DeadlineExceeded
		}
		return nil
	})
	return got
}
