// Package cdi finds the edits that give devices to a container, by the specifications of
// the Container Device Interface (CDI) that the vendors' tools write on a host. It neither
// makes containers nor decides which devices a member has.
package cdi

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"

	"github.com/musterd/muster/agent/shim"
)

// Folders are those of a host's specifications. A device in a later folder wins.
var Folders = []string{"/etc/cdi", "/var/run/cdi"}

// Kind is the kind of NVIDIA's GPUs and MIG instances, whose names are their UUIDs.
const Kind = "nvidia.com/gpu"

// maxFiles bounds the specifications of a host, and maxFile each of them, in bytes.
const (
	maxFiles = 256
	maxFile  = 4 << 20
)

// Edits change a container.
type Edits struct {
	Env    []string // NAME=VALUE
	Mounts []shim.Mount
	Hooks  map[string][]shim.Hook
}

// Resolve returns the edits for devices by their UUIDs, and the devices that no specification
// has. It reads the folders' files anew. An error says which specification cannot be read, or
// asks for something that no container of a user can have.
func Resolve(folders, uuids []string) (Edits, []string, error) {
	var e Edits
	if len(uuids) == 0 {
		return e, nil, nil
	}
	if err := checkFiles(folders); err != nil {
		return e, nil, err
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(folders...), cdi.WithAutoRefresh(false))
	if err != nil {
		return e, nil, fmt.Errorf("cdi: %w", err)
	}
	var missing []string
	general := map[*cdi.Spec]bool{}
	for _, uuid := range uuids {
		device := cache.GetDevice(Kind + "=" + uuid)
		if device == nil {
			missing = append(missing, uuid)
			continue
		}
		if of := device.GetSpec(); !general[of] {
			general[of] = true
			if err := e.add(&of.ContainerEdits); err != nil {
				return Edits{}, nil, fmt.Errorf("cdi: %s: %w", of.GetPath(), err)
			}
		}
		if err := e.add(&device.ContainerEdits); err != nil {
			return Edits{}, nil, fmt.Errorf("cdi: %s: %s: %w", device.GetSpec().GetPath(), uuid, err)
		}
	}
	if len(missing) > 0 {
		var errs []error
		for _, list := range cache.GetErrors() {
			errs = append(errs, list...)
		}
		if err := errors.Join(errs...); err != nil {
			return Edits{}, nil, fmt.Errorf("cdi: %w", err)
		}
	}
	return e, missing, nil
}

// checkFiles judges the sizes of all that the library will read.
func checkFiles(folders []string) error {
	count := 0
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("cdi: %w", err)
		}
		for _, entry := range entries {
			if ext := filepath.Ext(entry.Name()); ext != ".json" && ext != ".yaml" {
				continue
			}
			path := filepath.Join(folder, entry.Name())
			info, err := os.Stat(path)
			switch count++; {
			case err != nil:
				return fmt.Errorf("cdi: %w", err)
			case !info.Mode().IsRegular():
				return fmt.Errorf("cdi: %s is no regular file", path)
			case info.Size() > maxFile:
				return fmt.Errorf("cdi: %s: %d bytes, want at most %d", path, info.Size(), maxFile)
			case count > maxFiles:
				return fmt.Errorf("cdi: more than %d files in %s", maxFiles, strings.Join(folders, ", "))
			}
		}
	}
	return nil
}

// add adds edits of a specification.
func (e *Edits) add(c *specs.ContainerEdits) error {
	if len(c.NetDevices) > 0 || c.IntelRdt != nil {
		return errors.New("it has network devices or cache classes, which no user may set")
	}
	e.Env = append(e.Env, c.Env...)
	for _, d := range c.DeviceNodes {
		// A file of the host and no new one: a user may make none.
		e.Mounts = append(e.Mounts, shim.Mount{Source: cmp.Or(d.HostPath, d.Path), Destination: d.Path, Options: []string{"bind"}})
	}
	for _, m := range c.Mounts {
		if m.Type != "" && m.Type != "bind" {
			return fmt.Errorf("mount of %s: type %.80q: want bind", m.ContainerPath, m.Type)
		}
		options := m.Options
		if len(options) == 0 {
			options = []string{"rbind", "ro"}
		}
		e.Mounts = append(e.Mounts, shim.Mount{Source: m.HostPath, Destination: m.ContainerPath, Options: options})
	}
	for _, h := range c.Hooks {
		if e.Hooks == nil {
			e.Hooks = map[string][]shim.Hook{}
		}
		e.Hooks[h.HookName] = append(e.Hooks[h.HookName], shim.Hook{Path: h.Path, Args: h.Args, Env: h.Env, Timeout: h.Timeout})
	}
	return nil
}
