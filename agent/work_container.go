package agent

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/musterd/muster/agent/cdi"
	"github.com/musterd/muster/agent/crun"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// Containers are the root file systems that commands may run in.
type Containers struct {
	Tool string // the path of the host's crun
	// Folders are the folders in which the root file systems lie.
	Folders []string
	// Mounts are the folders whose contents jobs may mount in them; none: jobs mount nothing.
	Mounts []string
	Init   string   // the first process, as of shim.Container
	CDI    []string // the folders with the specifications of devices
}

// containerEnv is the environment that a command in a root file system of its own begins with:
// that of the host is for the host's files.
var containerEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/"}

// runsContainers reports whether commands may run in root file systems of their own.
func (c *RunConfig) runsContainers() bool { return c != nil && c.Containers != nil }

// mountsFolders reports whether jobs may mount folders of the host in these root file systems.
func (c *RunConfig) mountsFolders() bool { return c.runsContainers() && len(c.Containers.Mounts) > 0 }

// container is that of the members of a start, nil for the host's own file system.
func (c *RunConfig) container(s *grant.Start) *shim.Container {
	if !s.HasContainer() || c.Containers == nil {
		return nil
	}
	made := &shim.Container{
		Tool: c.Containers.Tool, Rootfs: s.Rootfs, Bundle: s.Bundle, Within: c.Containers.Folders, Env: containerEnv, DataWithin: c.Containers.Mounts, Init: c.Containers.Init,
	}
	for _, m := range s.Mounts {
		made.Data = append(made.Data, shim.Data{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return made
}

// addDevices gives the member's container its devices. A device of this host without a
// specification keeps the member from starting; one that is simulated has none.
func (c *RunConfig) addDevices(spec *shim.Spec) error {
	if spec.Container == nil {
		return nil
	}
	edits, missing, err := cdi.Resolve(c.Containers.CDI, spec.Devices)
	switch {
	case err != nil:
		return err
	case len(missing) > 0 && c.Affinity:
		return fmt.Errorf("no CDI specification in %s has the devices %s of kind %s: see docs/work.md", strings.Join(c.Containers.CDI, ", "), strings.Join(missing, ", "), cdi.Kind)
	}
	spec.Env = shim.LastOfEach(append(edits.Env, spec.Env...)) // Muster's variables win, and the client's
	spec.Container.Mounts, spec.Container.Hooks = edits.Mounts, edits.Hooks
	return c.addCommonDevices(spec.Container)
}

// mostCommonDevices bounds the files of RunConfig.Devices that a container gets.
const mostCommonDevices = 256

// addCommonDevices gives a container the device files that all members may open.
func (c *RunConfig) addCommonDevices(to *shim.Container) error {
	if c.DeviceFiles == nil {
		return nil
	}
	count := 0
	for _, pattern := range c.Devices {
		names, err := fs.Glob(c.DeviceFiles, strings.TrimPrefix(pattern, "/"))
		if err != nil {
			return fmt.Errorf("devices %q: %w", pattern, err)
		}
		if count += len(names); count > mostCommonDevices {
			return fmt.Errorf("work.devices names %d files, want at most %d", count, mostCommonDevices)
		}
		for _, name := range names {
			to.Mounts = append(to.Mounts, shim.Mount{Source: "/" + name, Destination: "/" + name, Options: []string{"bind"}})
		}
	}
	return nil
}

// FindContainers returns how this host runs commands in root file systems of the folders, in
// which jobs may mount the contents of mounts, or why it cannot. The program is of supervisors.
func FindContainers(program string, folders, mounts []string) (*Containers, error) {
	tool, err := crun.Find()
	if err != nil {
		return nil, err
	}
	return &Containers{Tool: tool, Folders: folders, Mounts: mounts, CDI: cdi.Folders, Init: crun.InitOf(program)}, nil
}
