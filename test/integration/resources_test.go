package integration

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/test/programs"
)

// partitionedHost is a profile of one socket with 4 GiB in huge pages and two
// GPUs, of which the first is divided.
const partitionedHost = `{
  "name": "partitioned", "driver": "550.54.15", "threadsPerCore": 2, "coresPerL3": 8,
  "nodes": [{"socket": 0, "cores": 32, "memory": "256Gi", "hugepages": {"2048": 2048}}],
  "gpus": [
    {"model": "NVIDIA A100 80GB PCIe", "memory": "81920Mi", "pciBusID": "0000:01:00.0", "numaNode": 0, "path": "rc0", "mig": {"enabled": true, "instances": [
      {"profile": "3g.40gb", "memory": "40192Mi"}, {"profile": "2g.20gb", "memory": "19968Mi"},
      {"profile": "1g.10gb", "memory": "9728Mi"}, {"profile": "1g.10gb", "memory": "9728Mi"}
    ]}},
    {"model": "NVIDIA A100 80GB PCIe", "memory": "81920Mi", "pciBusID": "0000:41:00.0", "numaNode": 0, "path": "rc1"}
  ]
}`

// startPartitioned runs one such host.
func startPartitioned(t *testing.T) *devCluster {
	t.Helper()
	file := filepath.Join(t.TempDir(), "partitioned.json")
	write(t, file, []byte(partitionedHost), 0o600)
	return startDev(t, "--profile", file)
}

// allocate submits an allocation of the given requests through the program.
func (d *devCluster) allocate(name, requests string, args ...string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), name+".yaml")
	write(d.t, file, []byte("kind: Allocation\nmetadata: {name: "+name+"}\nspec: {resources: {requests: {"+requests+"}}}\n"), 0o600)
	d.muster(append([]string{"submit", "-f", file}, args...)...)
}

// handedOver waits for the environment that the only node's agent has written
// for an allocation.
func (d *devCluster) handedOver(a *api.Allocation) map[string]string {
	d.t.Helper()
	env := map[string]string{}
	programs.Eventually(d.t, patience, "the environment of "+a.Metadata.Name+" is written", func() error {
		files := folder(d.t, filepath.Join(d.listed.Nodes[0].DataDir, "assignments"))
		text, ok := files["/"+string(a.Status.Transaction)+".env"]
		if !ok {
			return fmt.Errorf("there are %v", sorted(files))
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[name] = value
		}
		return nil
	})
	return env
}

// available is what the only node has free of some resources.
func (d *devCluster) available(names ...resource.Name) map[resource.Name]string {
	d.t.Helper()
	n := d.node(d.listed.Nodes[0].ID)
	some := map[resource.Name]string{}
	for _, name := range names {
		some[name] = n.Status.Available[name]
	}
	return some
}

// mustBeWholeCores checks that CPUs are all threads of that many cores of a
// host whose second threads are numbered from 32.
func mustBeWholeCores(t *testing.T, list string, cores int) bitset.Set {
	t.Helper()
	cpus, err := bitset.Parse(list)
	if err != nil || cpus.Len() != 2*cores {
		t.Fatalf("CPUs %q (%v), want both threads of %d cores", list, err, cores)
	}
	for cpu := range cpus.All() {
		if sibling := (cpu + 32) % 64; !cpus.Has(sibling) {
			t.Errorf("CPU %d is granted without its sibling %d", cpu, sibling)
		}
	}
	return cpus
}

func TestInstancesAndWholeCoresFromTheManifestToTheAssignmentFile(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--profile", "mig-a100")
	const small resource.Name = "nvidia.com/mig-1g.10gb"
	before, err := strconv.Atoi(d.available(small)[small])
	if err != nil || before < 2 {
		t.Fatalf("%d free instances of 1g.10gb, %v", before, err)
	}
	d.muster("submit", "-f", example(t, "mig.yaml"), "--wait")

	list := musterJSON[api.AllocationList](d.user, "get", "allocations", "-A", "-o", "json")
	if len(list.Items) != 1 || list.Items[0].Status.Phase != api.Running {
		t.Fatalf("allocations %+v, want one that runs", list.Items)
	}
	a := &list.Items[0]
	granted := a.Status.AllocatedResources
	if granted[resource.Cores] != "8" || granted[resource.CPU] != "8" || granted[small] != "2" || granted[resource.Memory] != "16Gi" {
		t.Errorf("allocated %v, want 8 cores, a CPU for each as the quota counts, 2 instances and 16Gi", granted)
	}
	mustBeWholeCores(t, a.Status.Assignment.CPUs, 8)
	var uuids []string
	for _, g := range a.Status.Assignment.MIG {
		if !regexp.MustCompile(`^MIG-[0-9a-f-]{36}$`).MatchString(g.UUID) || g.Profile != "1g.10gb" || g.Model == "" {
			t.Errorf("instance %+v, want the UUID, 1g.10gb and the model of its parent", g)
		}
		uuids = append(uuids, g.UUID)
	}
	if len(uuids) != 2 || uuids[0] == uuids[1] || len(a.Status.Assignment.GPUs) != 0 {
		t.Fatalf("assignment %+v, want two distinct instances and no GPU", a.Status.Assignment)
	}

	env := d.handedOver(a)
	for name, want := range map[string]string{
		"CUDA_VISIBLE_DEVICES": strings.Join(uuids, ","), "MUSTER_CPUS": a.Status.Assignment.CPUs,
		"MUSTER_CDI_DEVICES": "nvidia.com/gpu=" + strings.Join(uuids, ",nvidia.com/gpu="), "MUSTER_MEMORY_BYTES": strconv.Itoa(16 << 30),
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}

	if got, want := d.available(small)[small], strconv.Itoa(before-2); got != want {
		t.Errorf("%s instances are free, want %s", got, want)
	}
	for command, words := range map[string][]string{
		"describe allocation mig": append([]string{"8 cores", "1g.10gb"}, uuids...),
		"describe node node-0":    append([]string{"MIG instances", string(small), "default/mig"}, uuids...),
		"get allocations -o wide": append([]string{"2 × 1g.10gb"}, uuids...),
		"get nodes":               {"× 1g.10gb"},
	} {
		out := d.muster(strings.Fields(command)...)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("muster %s does not show %q:\n%s", command, word, out)
			}
		}
	}
	d.muster("delete", "allocation", "mig", "--wait")
	programs.Eventually(t, patience, "the instances are free again", func() error {
		if got := d.available(small)[small]; got != strconv.Itoa(before) {
			return fmt.Errorf("%s of %d", got, before)
		}
		return nil
	})
}

func TestHugePagesAreTakenFromTheirPool(t *testing.T) {
	t.Parallel()
	d := startPartitioned(t)
	const pages resource.Name = "hugepages-2Mi"
	if diff := cmp.Diff(map[resource.Name]string{pages: "4Gi", resource.Memory: "252Gi"}, d.available(pages, resource.Memory)); diff != "" {
		t.Errorf("free at first (-want +got):\n%s", diff)
	}
	d.muster("submit", "-f", example(t, "hugepages.yaml"), "--wait")
	a := musterJSON[api.Allocation](d.user, "get", "allocation", "hugepages", "-o", "json")
	want := []api.HugepageStatus{{Node: 0, PageSize: "2Mi", Bytes: "2Gi"}}
	if diff := cmp.Diff(want, a.Status.Assignment.Hugepages); diff != "" {
		t.Errorf("huge pages (-want +got):\n%s", diff)
	}
	mustBeWholeCores(t, a.Status.Assignment.CPUs, 4)
	env := d.handedOver(&a)
	if env["MUSTER_HUGEPAGES_2Mi"] != strconv.Itoa(2<<30) || env["MUSTER_MEMORY_BYTES"] != strconv.Itoa(1<<30) || env["MUSTER_NUMA_NODES"] != "0" {
		t.Errorf("environment %v, want 2Gi in huge pages and 1Gi of memory of node 0", env)
	}
	if diff := cmp.Diff(map[resource.Name]string{pages: "2Gi", resource.Memory: "251Gi"}, d.available(pages, resource.Memory)); diff != "" {
		t.Errorf("free with one running (-want +got):\n%s", diff)
	}
}

func TestWholeCoresOfTwoMembersAreDistinct(t *testing.T) {
	t.Parallel()
	d := startPartitioned(t)
	d.allocate("shared", "cpu: 500m", "--wait")
	d.allocate("a", `muster.io/cores: "12"`, "--wait")
	d.allocate("b", `muster.io/cores: "12"`, "--wait")
	var taken bitset.Set
	for _, a := range d.allocations() {
		cpus, err := bitset.Parse(a.Status.Assignment.CPUs)
		if err != nil {
			t.Fatal(err)
		}
		if a.Metadata.Name != "shared" {
			cpus = mustBeWholeCores(t, a.Status.Assignment.CPUs, 12)
		}
		for cpu := range cpus.All() {
			if taken.Has(cpu) {
				t.Errorf("CPU %d of %s belongs to another as well", cpu, a.Metadata.Name)
			}
			taken.Add(cpu)
		}
	}
	if taken.Len() != 1+24+24 {
		t.Errorf("%d CPUs are taken, want 49", taken.Len())
	}
}

func TestWhatIsShortOfCoresHugePagesAndInstancesIsTold(t *testing.T) {
	t.Parallel()
	d := startPartitioned(t)
	for name, c := range map[string]struct {
		requests string
		resource resource.Name
		says     []string
	}{
		"instances":  {`nvidia.com/mig-1g.10gb: "3"`, "nvidia.com/mig-1g.10gb", []string{"1 nvidia.com/mig-1g.10gb short (3 wanted, 2 free)", "Never on the nodes registered now"}},
		"profile":    {`nvidia.com/mig-7g.80gb: "1"`, "nvidia.com/mig-7g.80gb", []string{"no node that may take it has 1 nvidia.com/mig-7g.80gb"}},
		"cores":      {`muster.io/cores: "33"`, "muster.io/cores", []string{"1 whole core short (33 wanted, 32 free)", "with 32 whole cores for each member in place of 33: it would start now"}},
		"pages":      {`cpu: "1", hugepages-2Mi: 5Gi`, "hugepages-2Mi", []string{"5Gi", "4Gi"}},
		"other-size": {`hugepages-1Gi: 1Gi`, "hugepages-1Gi", []string{"1Gi"}},
	} {
		d.allocate(name, c.requests)
		said := d.muster("why", "allocation/"+name)
		for _, word := range append(c.says, "node-0") {
			if !strings.Contains(said, word) {
				t.Errorf("why %s does not say %q:\n%s", name, word, said)
			}
		}
		why := musterJSON[api.Explanation](d.user, "why", "allocation/"+name, "-o", "json")
		if !slices.ContainsFunc(why.Shortages, func(r resource.Reason) bool { return r.Resource == c.resource && r.Short() > 0 }) {
			t.Errorf("why %s -o json: shortages %+v, want one of %s", name, why.Shortages, c.resource)
		}
	}
	for _, a := range d.allocations() {
		if a.Status.Phase != api.Pending || a.Status.Assignment != nil {
			t.Errorf("%s is %s with %+v, want it to wait and hold nothing", a.Metadata.Name, a.Status.Phase, a.Status.Assignment)
		}
	}
}

func TestManifestsThatContradictThemselvesAreRefused(t *testing.T) {
	t.Parallel()
	d := startPartitioned(t)
	for requests, says := range map[string]string{
		`nvidia.com/mig-1g.10gb: "1", nvidia.com/gpu: "1"`:         "exclude each other",
		`nvidia.com/mig-1g.10gb: "1", nvidia.com/mig-3g.40gb: "1"`: "one profile",
		`hugepages-2Mi: 2Mi, hugepages-1Gi: 1Gi`:                   "one size",
		`hugepages-2Mi: 1Mi`:                                       "multiple of the page size 2Mi",
		`muster.io/cores: "8", cpu: "1"`:                           "exclude each other",
		`muster.io/cores: 1500m`:                                   "not a whole number",
		`cpu: "1", rdma/hca: "1"`:                                  "unknown resource",
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		write(t, file, []byte("kind: Allocation\nmetadata: {name: x}\nspec: {resources: {requests: {"+requests+"}}}\n"), 0o600)
		if _, stderr, code := execute(t, d.env, "muster", "submit", "-f", file); code != 1 || !strings.Contains(stderr, says) {
			t.Errorf("%s: code %d and %q, want 1 and %q", requests, code, stderr, says)
		}
	}
	if left := d.allocations(); len(left) > 0 {
		t.Errorf("something was made by what was refused: %+v", left)
	}
}

func TestGrantsOfInstancesOutliveTheirCluster(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "partitioned.json")
	write(t, file, []byte(partitionedHost), 0o600)
	dataDir := filepath.Join(t.TempDir(), "dev")
	d := startDevIn(t, dataDir, "--profile", file)
	d.allocate("keeper", `muster.io/cores: "2", hugepages-2Mi: 1Gi, nvidia.com/mig-1g.10gb: "1"`, "--wait")
	before := d.holdings()
	names := []resource.Name{resource.CPU, "hugepages-2Mi", "nvidia.com/mig-1g.10gb"}
	free := d.available(names...)
	d.process.kill(t)
	d = startDevIn(t, dataDir, "--profile", file)
	programs.Eventually(t, patience, "what ran runs", func() error {
		if diff := cmp.Diff(before, d.holdings()); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		if now := d.available(names...); !maps.Equal(free, now) {
			return fmt.Errorf("free %v, before %v", now, free)
		}
		return nil
	})
}
