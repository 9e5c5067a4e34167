package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// formerContext is a context file as version 0.1.0-dev wrote it, of a cluster
// that is not this one.
const formerContext = `{"addr": "http://127.0.0.1:1", "token": "of-production"}`

// startHost runs `muster dev` on this host as `make run` does, but for the
// port: without a data folder, which is then a temporary one.
func startHost(t *testing.T) (d *devCluster, temporary string) {
	t.Helper()
	temporary = t.TempDir()
	d = &devCluster{context: filepath.Join(t.TempDir(), "context.json")}
	if err := os.WriteFile(d.context, []byte(formerContext), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(t, []string{"MUSTER_CONTEXT=" + d.context, "TMPDIR=" + temporary}, nil)
	programs.Eventually(t, patience, "dev.json is written", func() error {
		found, err := filepath.Glob(filepath.Join(temporary, "*", "dev.json"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("found %v, %w", found, err)
		}
		d.dataDir = filepath.Dir(found[0])
		return nil
	})
	d.arrive(t)
	return d, temporary
}

func TestDevSaysWhatItFoundOnThisHostAndWhatToTryNext(t *testing.T) {
	t.Parallel()
	d, _ := startHost(t)
	said := d.process.stdout.String()
	for what, pattern := range map[string]string{
		"sockets, NUMA nodes, cores, CPUs, memory": `\d+ socket.*\d+ NUMA node.*\d+ cores.*\d+ CPUs.*memory`,
		"GPUs, or that there is no driver":         `no NVIDIA driver|× |no GPUs`,
		"where it listens":                         regexp.QuoteMeta(d.listed.REST),
		"where the token is":                       regexp.QuoteMeta(d.listed.TokenFile),
		"where the context is":                     regexp.QuoteMeta(d.context),
		"how to stop it":                           `Ctrl-C`,
	} {
		if !regexp.MustCompile(pattern).MatchString(said) {
			t.Errorf("it does not say %s (%s):\n%s", what, pattern, said)
		}
	}
	if strings.Contains(said, strings.TrimSpace(string(read(t, d.listed.TokenFile)))) {
		t.Error("it prints the token, for everybody who sees the terminal or its log")
	}
	for _, command := range []string{"get nodes", "submit -f examples/cpu.yaml --wait", "get allocations"} {
		if !strings.Contains(said, "muster "+command) {
			t.Errorf("it does not suggest %q:\n%s", command, said)
		}
	}
	for what, address := range d.listed.all() {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host != "127.0.0.1" || port == "0" {
			t.Errorf("dev.json: %s is at %q, want 127.0.0.1 and the port taken", what, address)
		}
	}
	for _, path := range []string{d.listed.TokenFile, d.listed.ClusterTokenFile, d.context} {
		mustBePrivate(t, path)
	}
}

func TestCPUExampleRunsOnThisHostWithExactAmounts(t *testing.T) {
	t.Parallel()
	d, _ := startHost(t)
	out := d.muster("submit", "-f", example(t, "cpu.yaml"), "--wait")
	if !strings.Contains(out, "Running") {
		t.Errorf("submit --wait does not say Running:\n%s", out)
	}
	a := musterJSON[api.Allocation](d.user, "get", "allocation", "cpu", "-o", "json")
	d.mustFitHost(a)
	for verb, words := range map[string][]string{
		"get allocations":                          {"NAME", "PHASE", "NODE", "cpu", "Running", string(a.Status.NodeID)},
		"get allocations -A":                       {"NAMESPACE", "default", "cpu", "Running"},
		"get nodes":                                {"NAME", "Ready", string(a.Status.NodeID)},
		"describe allocation cpu":                  {"cpu", "Running", string(a.Status.NodeID), a.Status.Assignment.CPUs, "256Mi"},
		"describe node " + string(a.Status.NodeID): {"default/cpu", "NUMA"},
		"get allocation cpu -o yaml":               {"kind: Allocation", "phase: Running"},
	} {
		out := d.muster(strings.Fields(verb)...)
		for _, word := range words {
			if !strings.Contains(strings.ToUpper(out), strings.ToUpper(word)) {
				t.Errorf("muster %s does not show %q:\n%s", verb, word, out)
			}
		}
	}
	all := musterJSON[api.AllocationList](d.user, "get", "allocations", "-A", "-o", "json")
	if len(all.Items) != 1 || all.Items[0].Metadata.Name != "cpu" {
		t.Errorf("get allocations -A -o json lists %d allocations, want cpu alone", len(all.Items))
	}
	d.muster("delete", "allocation", "cpu")
	programs.Eventually(t, patience, "the allocation is gone", func() error {
		if left := d.allocations(); len(left) > 0 {
			return fmt.Errorf("%s is %s", left[0].Metadata.Name, left[0].Status.Phase)
		}
		return nil
	})
	if _, stderr, code := execute(t, d.env, "muster", "get", "allocation", "cpu"); code != 1 || !strings.Contains(stderr, "cpu") {
		t.Errorf("get of a deleted allocation ends with code %d and %q, want 1 and its name", code, stderr)
	}
	programs.Eventually(t, patience, "no files are left for launchers", func() error {
		if files := folder(t, filepath.Join(d.listed.Nodes[0].DataDir, "assignments")); len(files) > 0 {
			return fmt.Errorf("there are %v", sorted(files))
		}
		return nil
	})
}

// mustFitHost checks the grant of examples/cpu.yaml against what the node says
// that it has.
func (d *devCluster) mustFitHost(a api.Allocation) {
	d.t.Helper()
	s := a.Status
	if s.Phase != api.Running || s.Assignment == nil {
		d.t.Fatalf("the allocation is %+v, want Running with an assignment", s)
	}
	if got := s.AllocatedResources; got[resource.CPU] != "500m" || got[resource.Memory] != "256Mi" {
		d.t.Errorf("allocated %v, want 500m CPU and 256Mi memory", got)
	}
	n, err := d.client.Nodes().Get(soon(d.t), string(s.NodeID))
	if err != nil {
		d.t.Fatal(err)
	}
	granted, err := bitset.Parse(s.Assignment.CPUs)
	if err != nil || granted.Len() == 0 {
		d.t.Fatalf("CPUs %q: %v; want at least one", s.Assignment.CPUs, err)
	}
	has := map[int]bitset.Set{}
	for _, numa := range n.Status.NUMANodes {
		if has[numa.ID], err = bitset.Parse(numa.CPUs); err != nil {
			d.t.Fatal(err)
		}
	}
	if len(s.Assignment.NUMANodes) == 0 {
		d.t.Fatalf("no NUMA node is named: %+v", s.Assignment)
	}
	for cpu := range granted.All() {
		home := has[s.Assignment.NUMANodes[0]]
		if !home.Has(cpu) {
			d.t.Errorf("CPU %d was granted, NUMA node %d has %s", cpu, s.Assignment.NUMANodes[0], home.String())
		}
	}
	memory := 0
	for _, m := range s.Assignment.Memory {
		if m.Bytes == "256Mi" {
			memory++
		}
	}
	if len(s.Assignment.Memory) != 1 || memory != 1 {
		d.t.Errorf("memory %+v, want 256Mi on one NUMA node", s.Assignment.Memory)
	}
}

func TestDevStopsCleanlyOnInterruptAndLeavesNothing(t *testing.T) {
	t.Parallel()
	d, temporary := startHost(t)
	d.muster("submit", "-f", example(t, "cpu.yaml"), "--wait")
	waiting := make(chan error, 1)
	go func() { // a client that waits, for longer than patience, must not hold the end up
		ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
		defer cancel()
		_, err := d.client.Jobs(namespace).Create(ctx, gang("never", 1, gpus(8)), sdk.CreateOptions{Wait: 3 * patience})
		waiting <- err
	}()
	programs.Eventually(t, patience, "the job is queued", func() error {
		_, err := d.client.Jobs(namespace).Get(soon(t), "never", sdk.GetOptions{})
		return err
	})
	pid := d.process.cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err == nil && len(children) > 0 {
		t.Errorf("muster dev has children: %s", children)
	}
	d.process.mustStop(t, syscall.SIGINT)
	<-waiting
	for what, address := range d.listed.all() {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Errorf("%s still answers at %s", what, address)
		}
	}
	left, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", filepath.Join(temporary, e.Name()))
	}
	// FAULTS U2: it replaced the context of production, and left its own.
	_, stderr, code := execute(t, d.env, "muster", "get", "nodes")
	if code != 1 || !strings.Contains(stderr, "http://127.0.0.1:1") {
		t.Errorf("once muster dev has ended, get nodes ends with code %d and %q, want 1 and the address of before", code, stderr)
	}
	if stdout, _, _ := execute(t, d.env, "muster", "config", "get-contexts", "-o", "name"); stdout != "default\n" {
		t.Errorf("contexts are left: %q, want default alone", stdout)
	}
}

func TestMusterExitsWithTheDocumentedCodes(t *testing.T) {
	t.Parallel()
	d, _ := startHost(t)
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	write(t, broken, []byte("kind: Allocation\nmetadata: {name: x}\nspec: {resources: {requests: {cpu: \"-1\"}}}\n"), 0o600)
	unknown := filepath.Join(dir, "unknown.yaml")
	write(t, unknown, []byte("kind: Allocation\nmetadata: {name: x}\nspec: {resorces: {}}\n"), 0o600)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"done":                       {[]string{"get", "nodes"}, 0, ""},
		"help":                       {[]string{"--help"}, 0, ""},
		"an unknown verb":            {[]string{"frobnicate"}, 2, "frobnicate"},
		"an unknown flag":            {[]string{"get", "nodes", "--frobnicate"}, 2, "frobnicate"},
		"an unknown kind":            {[]string{"get", "gizmos"}, 2, "gizmos"},
		"no file":                    {[]string{"submit"}, 2, "-f"},
		"a file that is not there":   {[]string{"submit", "-f", filepath.Join(dir, "absent.yaml")}, 1, "absent.yaml"},
		"a negative quantity":        {[]string{"submit", "-f", broken}, 1, "-1"},
		"an unknown field":           {[]string{"submit", "-f", unknown}, 1, "resorces"},
		"an object that is missing":  {[]string{"get", "job", "nobody"}, 1, "nobody"},
		"deleting what is missing":   {[]string{"delete", "job", "nobody"}, 1, "nobody"},
		"a wrong token":              {[]string{"get", "nodes", "--token", "0123456789abcdef-wrong"}, 1, "token"},
		"too many nodes for a host":  {[]string{"dev", "--nodes", "2"}, 2, "--nodes 2"},
		"a profile that is unknown":  {[]string{"dev", "--profile", "dgx-9000", "--listen", "127.0.0.1:0"}, 1, "dgx-9000"},
		"a port that is in use":      {[]string{"dev", "--listen", strings.TrimPrefix(d.listed.REST, "http://")}, 1, "address already in use"},
		"a data folder in use":       {[]string{"dev", "--listen", "127.0.0.1:0", "--data-dir", d.dataDir}, 1, d.dataDir},
		"a listen address elsewhere": {[]string{"dev", "--listen", "0.0.0.0:0"}, 2, "0.0.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := execute(t, append([]string{"TMPDIR=" + t.TempDir()}, d.env...), "muster", c.args...)
			if code != c.code || !strings.Contains(stderr, c.says) {
				t.Errorf("muster %q ends with code %d, want %d and %q in:\n%s%s", c.args, code, c.code, c.says, stdout, stderr)
			}
		})
	}
	if left := d.allocations(); len(left) > 0 {
		encoded, _ := json.Marshal(left)
		t.Errorf("something was made by what was refused: %s", encoded)
	}
	d.muster("get", "nodes") // the running one took no harm
}
