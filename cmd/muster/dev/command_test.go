package dev

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
)

// FAULTS S13: muster dev printed its token.
func TestTheTokenIsNamedByItsFileAndNotPrinted(t *testing.T) {
	dir := t.TempDir()
	token, file, err := tokenIn(dir, "token")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	c := Config{Nodes: 1, Profile: "dgx-a100", DataDir: dir, Version: "test"}
	found, err := hardware(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	d := &Cluster{config: c, Token: token.Secret(), Addresses: Addresses{REST: "http://127.0.0.1:1", TokenFile: file}, Discovered: found("node-0")}
	var out strings.Builder
	d.announce(&out, AddedContext{Name: "dev", File: filepath.Join(dir, "context.json")}, false, time.Second)
	if strings.Contains(out.String(), token.Secret()) || !strings.Contains(out.String(), file) || !strings.Contains(out.String(), "context.json") {
		t.Errorf("announced:\n%s", out.String())
	}
}

func TestTheFirstCommandsFitTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		profile string
		gpus    bool
		nodes   int
		work    *agent.RunConfig
		want    []string
	}{
		"root":         {"dgx-a100", true, 4, nil, []string{"get nodes", "submit -f examples/gang.yaml --wait", "get allocations"}},
		"a small one":  {"gpu2", true, 1, &agent.RunConfig{}, []string{"get nodes", "run -g 1 -- printenv CUDA_VISIBLE_DEVICES", "submit -f examples/cpu.yaml --wait", "get allocations"}},
		"without GPUs": {"gpu2", false, 1, &agent.RunConfig{}, []string{"get nodes", "run -- hostname", "submit -f examples/cpu.yaml --wait", "get allocations"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Cluster{config: Config{Nodes: c.nodes, Profile: c.profile, Work: c.work}}
			found, err := hardware(t.Context(), d.config)
			if err != nil {
				t.Fatal(err)
			}
			if d.Discovered = found("node-0"); !c.gpus {
				d.Discovered.Inventory.Devices = nil
			}
			if got := d.firstCommands(); !slices.Equal(got, c.want) {
				t.Errorf("the first commands are %q, want %q", got, c.want)
			}
		})
	}
}

func TestAHostWithoutContainersIsNamedOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	work, noContainers, err := workOf("", 1000, func(string) string { return "" })
	if err != nil || work.Containers != nil || noContainers == nil {
		t.Fatalf("containers %+v without crun, %v, %v", work.Containers, noContainers, err)
	}
	c := Config{Nodes: 1, Profile: "dgx-a100", Work: work, NoContainers: noContainers}
	found, err := hardware(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []*agent.RunConfig{work, nil} { // without work nothing runs anyway
		d := &Cluster{config: c, Discovered: found("node-0")}
		d.config.Work = of
		var out strings.Builder
		d.announce(&out, AddedContext{}, false, time.Second)
		want := 0
		if of != nil {
			want = 1
		}
		const line = "wait: this host runs no containers: no program crun in PATH: install the package crun.\n"
		if got := strings.Count(out.String(), line); got != want {
			t.Errorf("the reason stands there %d times, want %d:\n%s", got, want, out.String())
		}
	}
}
