package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/cgroup"
	"github.com/musterd/muster/agent/launch"
	"github.com/musterd/muster/agent/script"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/cmd/configfile"
)

// workConfig says as which users of the host this agent starts the commands of jobs.
type workConfig struct {
	// Users has a user's name for each tenant; "*" stands for all others. None: the agent
	// starts nothing.
	Users     map[string]string `json:"users"`
	AllowRoot bool              `json:"allowRoot"`
	// Helper is the socket of muster-launch, which has systemd start the commands; "": the
	// agent starts them itself, as root.
	Helper string `json:"helper"`
	// Cgroup is a folder of the unified hierarchy that the agent makes for the cgroups of
	// the members that it starts itself; "": they have none.
	Cgroup string `json:"cgroup"`
	// Tasks bounds the processes and threads of a member; 0: no bound.
	Tasks int `json:"tasks"`
	// Prolog and Epilog are programs of the host that run before the first start of a
	// member and after its end; "": none. ScriptTimeout bounds each run.
	Prolog        string              `json:"prolog"`
	Epilog        string              `json:"epilog"`
	ScriptTimeout configfile.Duration `json:"scriptTimeout"`
	// Images are the folders in which the root file systems of commands may lie; none: commands
	// run in the file system of the host alone.
	Images []string `json:"images"`
	// Mounts are the folders whose contents jobs may mount in these root file systems.
	Mounts []string `json:"mounts"`
	// Devices are patterns of device files that all members may open.
	Devices []string `json:"devices"`
}

// mostDevicePatterns bounds workConfig.Devices, mostTasks workConfig.Tasks: Linux has no
// more.
const (
	mostDevicePatterns = 64
	mostTasks          = 1 << 22
	mostFolders        = 64
)

// checkBounds judges how commands are started, and what binds them.
func (c *workConfig) checkBounds() error {
	var errs []error
	for _, f := range []struct{ key, path string }{{"helper", c.Helper}, {"cgroup", c.Cgroup}, {"prolog", c.Prolog}, {"epilog", c.Epilog}} {
		if f.path != "" && (!filepath.IsAbs(f.path) || filepath.Clean(f.path) != f.path) {
			errs = append(errs, fmt.Errorf("work.%s: %.80q is no absolute path", f.key, f.path))
		}
	}
	if _, err := c.ScriptTimeout.Check("work.scriptTimeout", time.Second, launch.MaxScript); err != nil {
		errs = append(errs, err)
	}
	if c.Helper != "" && c.Cgroup != "" {
		errs = append(errs, fmt.Errorf("work.cgroup: systemd makes the cgroups where work.helper is given; remove one of both"))
	}
	if c.Tasks < 0 || c.Tasks > mostTasks {
		errs = append(errs, fmt.Errorf("work.tasks: %d is outside 0..%d", c.Tasks, mostTasks))
	}
	if len(c.Devices) > mostDevicePatterns {
		errs = append(errs, fmt.Errorf("work.devices: %d patterns, want at most %d", len(c.Devices), mostDevicePatterns))
	}
	for _, f := range []struct {
		key     string
		folders []string
	}{{"images", c.Images}, {"mounts", c.Mounts}} {
		if len(f.folders) > mostFolders {
			errs = append(errs, fmt.Errorf("work.%s: %d folders, want at most %d", f.key, len(f.folders), mostFolders))
		}
		for i, folder := range f.folders {
			if !filepath.IsAbs(folder) || filepath.Clean(folder) != folder {
				errs = append(errs, fmt.Errorf("work.%s[%d]: %.80q is no absolute path", f.key, i, folder))
			}
		}
	}
	if len(c.Mounts) > 0 && len(c.Images) == 0 {
		errs = append(errs, fmt.Errorf("work.mounts: %.80q: mounts are those of root file systems, and work.images names no folder for these; name one, or remove work.mounts", c.Mounts))
	}
	for i, pattern := range c.Devices {
		if _, err := path.Match(pattern, ""); err != nil || !strings.HasPrefix(pattern, "/dev/") || path.Clean(pattern) != pattern {
			errs = append(errs, fmt.Errorf("work.devices[%d]: %.80q is no pattern of files below /dev", i, pattern))
		}
	}
	return errors.Join(errs...)
}

// check returns the table of users, nil where the agent starts nothing. effective is the
// user id of this process. An error has one line for each wrong field.
func (c workConfig) check(effective int, lookup func(name string) (users.Account, error)) (*users.Table, error) {
	switch {
	case len(c.Users) == 0 && c.AllowRoot:
		return nil, fmt.Errorf("work.allowRoot: true, and work.users names no user; remove it, or name the users")
	case len(c.Users) == 0:
		return nil, nil
	case effective != 0 && c.Helper == "":
		return nil, fmt.Errorf("work.users: this agent runs as user %d, and root alone can start processes as another user: name the helper of systemd in work.helper, or install the drop-in work.conf (docs/work.md), or remove work.users", effective)
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
// of this program. CPUs and devices are bound on the hardware of this host alone.
func (s *settings) runConfig(program string) *agent.RunConfig {
	if s.users == nil {
		return nil
	}
	return &agent.RunConfig{
		Program: shim.Program(program), Users: s.users, Env: workEnv, Affinity: s.Discovery.SysfsRoot == "/",
		Tasks: int64(s.Work.Tasks), Devices: s.Work.Devices,
	}
}

// withWork adds how work is started to the agent's configuration. It asks the helper, or
// makes the folder of the cgroups.
func withWork(ctx context.Context, c agent.Config, s *settings) (agent.Config, error) {
	program, err := os.Executable()
	if err != nil {
		return c, fmt.Errorf("find this program: %w", err)
	}
	if c.Run = s.runConfig(program); c.Run == nil && c.Attach == nil {
		return c, nil
	}
	var helper *launch.Client
	if s.Work.Helper != "" {
		if helper, err = launch.Dial(ctx, s.Work.Helper); err != nil {
			return c, fmt.Errorf("work.helper: %w; is muster-launch.socket active?", err)
		}
		if c.Attach != nil {
			c.Attach.Signal = helper.Signal
		}
	}
	switch {
	case c.Run == nil:
		return c, nil
	case helper != nil:
		c.Run.Launcher, c.Run.Controllers = helper, helper.Controllers()
		scripts(&s.Work, c.Run, helper.Run)
	case s.Work.Cgroup != "":
		root, err := cgroup.Open(s.Work.Cgroup, c.Run.Program)
		if err != nil {
			return c, fmt.Errorf("work.cgroup: %w", err)
		}
		c.Run.Launcher, c.Run.Controllers = root, root.Controllers()
	}
	if s.Work.Helper == "" {
		scripts(&s.Work, c.Run, func(ctx context.Context, name string, _ shim.Folder, env []string, limit time.Duration) error {
			return script.Run(ctx, map[string]string{launch.Prolog: s.Work.Prolog, launch.Epilog: s.Work.Epilog}[name], env, limit)
		})
	}
	if c.Run.Launcher != nil && c.Run.Affinity {
		c.Run.DeviceFiles = os.DirFS("/")
	}
	return c, nil
}

// scripts sets the scripts of the host that the configuration names. run runs one of them.
func scripts(c *workConfig, r *agent.RunConfig, run func(ctx context.Context, name string, f shim.Folder, env []string, limit time.Duration) error) {
	of := func(name string) func(context.Context, shim.Folder, []string) error {
		return func(ctx context.Context, f shim.Folder, env []string) error {
			return run(ctx, name, f, env, c.ScriptTimeout.Value)
		}
	}
	if c.Prolog != "" {
		r.Prolog = of(launch.Prolog)
	}
	if c.Epilog != "" {
		r.Epilog = of(launch.Epilog)
	}
}
