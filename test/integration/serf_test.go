package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/test/programs"
)

// serfCLI returns the stock serf program.
func serfCLI(t *testing.T) string {
	t.Helper()
	return stockProgram(t, "serf", "github.com/hashicorp/serf/cmd/serf")
}

// stockProgram returns a program that is no part of Muster: of PATH, or built from
// tools/go.mod.
func stockProgram(t *testing.T, name, of string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	root, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	command := exec.Command("go", "build", "-o", path, of)
	command.Dir = filepath.Join(root, "tools")
	if output, err := command.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s: %v\n%s", command, err, output)
		}
		t.Skipf("the stock program %s is neither on PATH nor could it be built from tools/go.mod: %v\n%s", name, err, output)
	}
	return path
}

func TestStockSerfProgramListsAndQueriesTheRing(t *testing.T) {
	t.Parallel()
	program := serfCLI(t)
	c := startCluster(t, 3)
	gossip := c.agents[1].settings["gossip"].(settings)
	rpc := "-rpc-addr=" + gossip["serfRPC"].(string)
	serf := func(args ...string) (string, int) {
		t.Helper()
		stdout, stderr, code := execute(t, nil, program, args...)
		return stdout + stderr, code
	}
	programs.Eventually(t, patience, "serf members lists all four", func() error {
		out, code := serf("members", rpc, "-rpc-auth="+clusterToken)
		if code != 0 {
			return fmt.Errorf("code %d: %s", code, out)
		}
		lines := map[string]string{}
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 0 {
				lines[fields[0]] = line
			}
		}
		want := map[string][]string{"coordinator_c1": {"alive", "role=coordinator", "addr=" + c.grpc, c.serf}}
		for _, a := range c.agents {
			want[a.name] = []string{"alive", "role=agent", "addr=" + a.settings["listen"].(string)}
		}
		for name, words := range want {
			for _, word := range words {
				if !strings.Contains(lines[name], word) {
					return fmt.Errorf("the line of %s has no %q:\n%s", name, word, out)
				}
			}
		}
		if len(lines) != len(want) {
			return fmt.Errorf("%d members, want %d:\n%s", len(lines), len(want), out)
		}
		return nil
	})
	c.submit(gang("training", 1, gpus(8)))
	c.awaitRunning("training")
	programs.Eventually(t, patience, "serf query capacity tells what is free", func() error {
		out, code := serf("query", rpc, "-rpc-auth="+clusterToken, "-timeout=1s", "capacity")
		if code != 0 {
			return fmt.Errorf("code %d: %s", code, out)
		}
		for _, a := range c.agents {
			if !strings.Contains(out, "Response from '"+a.name+"'") {
				return fmt.Errorf("no answer of %s:\n%s", a.name, out)
			}
		}
		return nil
	})
	programs.Eventually(t, patience, "serf query queue is answered", func() error {
		out, code := serf("query", rpc, "-rpc-auth="+clusterToken, "-timeout=1s", "queue")
		if code != 0 || !strings.Contains(out, "Response from 'coordinator_c1'") {
			return fmt.Errorf("code %d:\n%s", code, out)
		}
		return nil
	})
	c.submit(gang("late", 64, gpus(8)))
	coordinator := "-rpc-addr=" + c.coordinator.settings["gossip"].(settings)["serfRPC"].(string)
	programs.Eventually(t, patience, "serf query why names the shortage at the coordinator's own port", func() error {
		out, code := serf("query", coordinator, "-rpc-auth="+clusterToken, "-timeout=2s", "why", "default/late")
		if code != 0 || !strings.Contains(out, "default/late wants 64 members at once") || !strings.Contains(out, "Never on the nodes registered now") {
			return fmt.Errorf("code %d:\n%s", code, out)
		}
		if _, answer, _ := strings.Cut(out, "Response from 'coordinator_c1': "); len(answer) > 1024+100 { // and serf's own last lines
			return fmt.Errorf("the answer has %d bytes, want at most 1,024:\n%s", len(answer), out)
		}
		return nil
	})
	programs.Eventually(t, patience, "serf query why of no object is a sentence", func() error {
		out, code := serf("query", coordinator, "-rpc-auth="+clusterToken, "-timeout=2s", "why", "default/nothing")
		if code != 0 || !strings.Contains(out, "not found") {
			return fmt.Errorf("code %d:\n%s", code, out)
		}
		return nil
	})
	programs.Eventually(t, patience, "a member of the ring gets no names, and the place of the answer", func() error {
		out, code := serf("query", rpc, "-rpc-auth="+clusterToken, "-timeout=1s", "why", "default/late")
		if code != 0 || strings.Contains(out, "wants 64") || !strings.Contains(out, "answered on a coordinator's host alone") {
			return fmt.Errorf("code %d:\n%s", code, out)
		}
		return nil
	})
	for whose, auth := range map[string][]string{"a wrong token": {"-rpc-auth=0123456789abcdef-wrong"}, "no token": nil} {
		for _, verb := range [][]string{{"members", rpc}, {"query", rpc, "-timeout=1s", "capacity"}, {"leave", rpc}} {
			if out, code := serf(append(verb[:2:2], append(auth, verb[2:]...)...)...); code == 0 {
				t.Errorf("serf %s with %s is let in:\n%s", verb[0], whose, out)
			}
		}
	}
	c.awaitNodes(3) // nobody left
}
