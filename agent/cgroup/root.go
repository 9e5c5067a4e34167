// Package cgroup gives each start of a member a cgroup of the unified hierarchy, where the
// agent itself may make cgroups: as root, on a host without systemd or in a container. It
// attaches the rules about devices; the shim writes the limits. It decides no amounts.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
)

// Root is a folder of the unified hierarchy in which starts get their cgroups. Its
// methods may be called by any goroutine, and may block on the kernel.
type Root struct {
	path    string
	program string // of the shim
	has     bounds.Controllers
}

// wanted are the controllers that limit or count a member.
var wanted = []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}

// Open makes the folder at path with its controllers, as far as the host has them. The
// folder's parent must be the root of the hierarchy or have no processes: the kernel gives
// controllers to the children of no other folder. program is that of the shim.
func Open(path, program string) (*Root, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, fmt.Errorf("cgroup %q: want an absolute path", path)
	}
	parent := filepath.Dir(path)
	var stat unix.Statfs_t
	if err := unix.Statfs(parent, &stat); err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", parent, err)
	}
	if stat.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("cgroup %s: no folder of the unified hierarchy (cgroup2)", parent)
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	r := &Root{path: path, program: program}
	for _, dir := range []string{parent, path} {
		has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return nil, fmt.Errorf("cgroup: %w", err)
		}
		r.has = nil
		for _, name := range wanted {
			if !slices.Contains(strings.Fields(string(has)), name) {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0); err != nil {
				return nil, fmt.Errorf("cgroup: give controller %s to the folders below %s: %w", name, dir, err)
			}
			r.has = append(r.has, name)
		}
	}
	return r, nil
}

// Controllers are those that starts have.
func (r *Root) Controllers() bounds.Controllers { return r.has }

// Place implements [run.Launcher].
func (r *Root) Place(s run.Start) (cgroup string, limits map[string]string) {
	return filepath.Join(r.path, filepath.Base(string(s.Folder))), s.Bounds.Files(r.has)
}

// Launch implements [run.Launcher]: the shim stays a child of this process, outside the
// cgroup of its member.
func (r *Root) Launch(_ context.Context, s run.Start, lock *os.File) (pid int, begun <-chan struct{}, err error) {
	cgroup, _ := r.Place(s)
	if err := os.Mkdir(cgroup, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, nil, fmt.Errorf("cgroup: %w", err)
	}
	if s.Bounds.Devices != nil {
		if err := allowDevices(cgroup, s.Bounds.Devices); err != nil {
			return 0, nil, fmt.Errorf("cgroup %s: device rules: %w", cgroup, err)
		}
	}
	return shim.Launch(r.program, s.Folder, lock)
}
