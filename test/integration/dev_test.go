package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/test/programs"
)

// devCluster is a running `muster dev`.
type devCluster struct {
	*user
	process *process
	dataDir string
	context string // the context file it wrote
	listed  devAddresses
}

// devAddresses is what dev.json lists.
type devAddresses struct {
	REST             string `json:"rest"`
	GRPC             string `json:"grpc"`
	Serf             string `json:"serf"`
	SerfRPC          string `json:"serfRPC"`
	Capacity         string `json:"capacity"`
	TokenFile        string `json:"tokenFile"`
	ClusterTokenFile string `json:"clusterTokenFile"`
	CAFile           string `json:"caFile"`
	OperatorFile     string `json:"operatorFile"`
	Nodes            []struct {
		ID       string `json:"id"`
		Agent    string `json:"agent"`
		Serf     string `json:"serf"`
		SerfRPC  string `json:"serfRPC"`
		Capacity string `json:"capacity"`
		DataDir  string `json:"dataDir"`
	} `json:"nodes"`
}

// startDev runs `muster dev` with a data folder of its own and waits until it
// has said where it is.
func startDev(t *testing.T, args ...string) *devCluster {
	t.Helper()
	return startDevIn(t, filepath.Join(t.TempDir(), "dev"), args...)
}

func startDevIn(t *testing.T, dataDir string, args ...string) *devCluster {
	t.Helper()
	d := &devCluster{dataDir: dataDir, context: filepath.Join(t.TempDir(), "context.json")}
	d.run(t, []string{"MUSTER_CONTEXT=" + d.context}, append([]string{"--data-dir", dataDir}, args...))
	d.arrive(t)
	return d
}

// run starts the program.
func (d *devCluster) run(t *testing.T, env, args []string) {
	t.Helper()
	d.process = launch(t, "muster dev", env, "muster", append([]string{"dev", "--listen", "127.0.0.1:0"}, args...)...)
}

// arrive waits for the announcement and reads what was written.
func (d *devCluster) arrive(t *testing.T) {
	t.Helper()
	programs.Eventually(t, patience, "muster dev is up", func() error {
		if !d.process.alive() {
			t.Fatalf("muster dev ended with %s", d.process.cmd.ProcessState)
		}
		if !strings.Contains(d.process.stdout.String(), "Ctrl-C") {
			return fmt.Errorf("it has said so far: %q", d.process.stdout.String())
		}
		return nil
	})
	d.listed = devAddresses{}
	decoder := json.NewDecoder(bytes.NewReader(read(t, filepath.Join(d.dataDir, "dev.json"))))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d.listed); err != nil {
		t.Fatalf("dev.json: %v", err)
	}
	token := strings.TrimSpace(string(read(t, d.listed.TokenFile)))
	d.user = newUser(t, d.listed.REST, token)
	d.env = []string{"MUSTER_CONTEXT=" + d.context} // as a person has it: nothing else
}

// addresses are all that dev.json lists, by what they are.
func (a devAddresses) all() map[string]string {
	all := map[string]string{"rest": strings.TrimPrefix(a.REST, "http://"), "grpc": a.GRPC, "serf": a.Serf, "serf RPC": a.SerfRPC, "capacity": a.Capacity}
	for _, n := range a.Nodes {
		all[n.ID+" agent"], all[n.ID+" serf"], all[n.ID+" serf RPC"], all[n.ID+" capacity"] = n.Agent, n.Serf, n.SerfRPC, n.Capacity
	}
	return all
}

// exists reports whether a path is there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
