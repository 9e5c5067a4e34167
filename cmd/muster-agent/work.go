package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
)

// workConfig says as which users of the host this agent starts the commands of jobs.
type workConfig struct {
	// Users has a user's name for each tenant; "*" stands for all others. None: the agent
	// starts nothing.
	Users     map[string]string `json:"users"`
	AllowRoot bool              `json:"allowRoot"`
}

// check returns the table of users, nil where the agent starts nothing. effective is the
// user id of this process. An error has one line for each wrong field.
func (c workConfig) check(effective int, lookup func(name string) (users.Account, error)) (*users.Table, error) {
	switch {
	case len(c.Users) == 0 && c.AllowRoot:
		return nil, fmt.Errorf("work.allowRoot: true, and work.users names no user; remove it, or name the users")
	case len(c.Users) == 0:
		return nil, nil
	case effective != 0:
		return nil, fmt.Errorf("work.users: this agent runs as user %d, and root alone can start processes as another user: install the drop-in work.conf (docs/work.md), or remove work.users", effective)
	}
	table, err := users.NewTable(c.Users, c.AllowRoot, lookup)
	if err != nil {
		return nil, fmt.Errorf("work.users.%s", strings.ReplaceAll(err.Error(), "\n", "\nwork.users."))
	}
	return table, nil
}

// workEnv is the environment that work begins with, beside HOME, USER and LOGNAME.
var workEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}

// runConfig says how the agent starts work, nil where it starts none. program is the path
// of this program. CPUs are bound on the hardware of this host alone.
func (s *settings) runConfig(program string) *agent.RunConfig {
	if s.users == nil {
		return nil
	}
	return &agent.RunConfig{Program: shim.Program(program), Users: s.users, Env: workEnv, Affinity: s.Discovery.SysfsRoot == "/"}
}

// withWork adds how work is started to the agent's configuration.
func withWork(c agent.Config, s *settings) (agent.Config, error) {
	program, err := os.Executable()
	if err != nil {
		return c, fmt.Errorf("find this program: %w", err)
	}
	c.Run = s.runConfig(program)
	return c, nil
}
