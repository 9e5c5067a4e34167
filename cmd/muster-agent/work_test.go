package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
)

func TestWhoMayStartWork(t *testing.T) {
	ada := map[string]string{"ml": "ada"}
	lookup := func(name string) (users.Account, error) {
		return users.Account{Name: name, ID: shim.User{UID: map[string]uint32{"ada": 1001}[name]}}, nil
	}
	for name, c := range map[string]struct {
		config    workConfig
		effective int
		want      string // a part of the error
		starts    bool
	}{
		"nobody":                    {workConfig{}, 0, "", false},
		"nobody, without root":      {workConfig{}, 990, "", false},
		"a user":                    {workConfig{Users: ada}, 0, "", true},
		"a user, without root":      {workConfig{Users: ada}, 990, "work.users: this agent runs as user 990, and root alone", false},
		"root":                      {workConfig{Users: map[string]string{"*": "root"}}, 0, `work.users.*: user "root" is root, and work.allowRoot is not set`, false},
		"root, and it may":          {workConfig{Users: map[string]string{"*": "root"}, AllowRoot: true}, 0, "", true},
		"root for nobody":           {workConfig{AllowRoot: true}, 0, "work.allowRoot: true, and work.users names no user", false},
		"two wrong names at once":   {workConfig{Users: map[string]string{"A": "ada", "B": "ada"}}, 0, "\nwork.users.\"B\": user \"ada\": the key is no name of a tenant", false},
		"all tenants and their own": {workConfig{Users: map[string]string{"ml": "ada", "*": "ada"}}, 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := c.config.check(c.effective, lookup)
			if (table != nil) != c.starts || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("table %v, %v; want %q", table != nil, err, c.want)
			}
			s := settings{config: defaults(), users: table}
			run := s.runConfig("/opt/muster-agent")
			if (run != nil) != c.starts {
				t.Fatalf("work is started by %+v", run)
			}
			if run != nil && (run.Users != table || run.Program != "/opt/muster-agent" || !run.Affinity) {
				t.Errorf("work is started by %+v", run)
			}
		})
	}
}

func TestSimulatedHardwareBindsNoCPUs(t *testing.T) {
	table, err := workConfig{Users: map[string]string{"*": "x"}}.check(0, func(name string) (users.Account, error) { return users.Account{ID: shim.User{UID: 7}}, nil })
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, shim.Name)
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	s := settings{config: defaults(), users: table}
	s.Discovery.SysfsRoot = dir
	if run := s.runConfig(filepath.Join(dir, "muster-agent")); run.Affinity || run.Program != own || run.NotEnforced()[0] != "cpus" {
		t.Errorf("%+v, want no affinity and the program beside the agent", run)
	}
}
