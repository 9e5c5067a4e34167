package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Data is a folder or a file of the host at a place in the root file system of a container.
type Data struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// maxData bounds Container.Data.
const maxData = 64

// checkData judges the mounts of the job.
func (c *Container) checkData() error {
	switch {
	case len(c.Data) > maxData:
		return fmt.Errorf("spec: container.data: %d, want at most %d", len(c.Data), maxData)
	case len(c.DataWithin) > maxWithin || len(c.Data) > 0 && len(c.DataWithin) == 0:
		return fmt.Errorf("spec: container.dataWithin: %d folders, want 1..%d", len(c.DataWithin), maxWithin)
	}
	for i, d := range c.Data {
		for _, path := range []string{d.Source, d.Target} {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
				return fmt.Errorf("spec: container.data[%d]: %.80q: want an absolute path without dots", i, path)
			}
		}
		if d.Target == "/" {
			return fmt.Errorf("spec: container.data[%d]: the target /: want a place below it", i)
		}
	}
	return nil
}

// data are the mounts of the job, a folder before those in it. others are the places where
// something else is mounted. A target in the root file system itself has to be there: the
// container tool would make it, in the image of all.
func (c *Container) data(root *os.Root, others []string) ([]ociMount, error) {
	list := slices.Clone(c.Data)
	slices.SortStableFunc(list, func(a, b Data) int { return cmp.Compare(a.Target, b.Target) })
	var mounts []ociMount
	for _, d := range list {
		source, err := place("the mount of "+d.Source, d.Source, c.DataWithin)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(others, func(other string) bool { return d.Target != other && isBelow(d.Target, other) }) {
			if _, err := root.Stat(strings.TrimPrefix(d.Target, "/")); errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("the mount of %s: the root file system has no %s; make it there, or mount at a place in /tmp", d.Source, d.Target)
			}
		}
		options := []string{"rbind"}
		if d.ReadOnly {
			options = append(options, "rro") // with all that is mounted below
		}
		mounts = append(mounts, ociMount{d.Target, "bind", source, options})
		others = append(others, d.Target)
	}
	return mounts, nil
}

// place is a path without symbolic links, which lies in one of the permitted folders.
func place(what, path string, within []string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	for _, folder := range within {
		if folder, err := filepath.EvalSymlinks(folder); err == nil && isBelow(real, folder) {
			return real, nil
		}
	}
	return "", fmt.Errorf("%s: it lies in none of the folders that this host permits: %s", what, strings.Join(within, ", "))
}
