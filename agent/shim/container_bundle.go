package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// This file reads the configuration of an OCI bundle, which is not trusted: the shim takes the
// command, its environment and its folder, the root file system, and file systems in memory.
// Whatever else Muster sets itself does not count, and a bundle that asks for more is refused.

// maxBundle bounds the config.json of a bundle, in bytes.
const maxBundle = 1 << 20

// bundle is the part of a bundle's configuration that counts.
type bundle struct {
	args, env []string // NAME=VALUE
	dir       string   // an absolute path; "" is /
	root      string   // absolute, or within the bundle
	readonly  bool
	mounts    []ociMount // file systems in memory
}

// bundleConfig is the configuration of a bundle, as far as it is read.
type bundleConfig struct {
	Version string `json:"ociVersion"`
	Root    *struct {
		Path     string `json:"path"`
		Readonly bool   `json:"readonly"`
	} `json:"root"`
	Process *struct {
		Args []string `json:"args"`
		Env  []string `json:"env"`
		Dir  string   `json:"cwd"`
	} `json:"process"`
	Mounts  []ociMount                   `json:"mounts"`
	Hooks   map[string][]json.RawMessage `json:"hooks"`
	Windows json.RawMessage              `json:"windows"`
	Solaris json.RawMessage              `json:"solaris"`
	VM      json.RawMessage              `json:"vm"`
	ZOS     json.RawMessage              `json:"zos"`
}

// readBundle reads the configuration of the bundle in a folder, with the rights of the thread.
func readBundle(folder string) (bundle, error) {
	path := filepath.Join(folder, "config.json")
	// Neither a pipe nor a device holds the shim up.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return bundle{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return bundle{}, err
	case !info.Mode().IsRegular():
		return bundle{}, fmt.Errorf("%s is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxBundle+1))
	if err != nil {
		return bundle{}, err
	}
	b, err := parseBundle(data)
	if err != nil {
		return bundle{}, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// parseBundle reads a configuration. The error names the field.
func parseBundle(data []byte) (bundle, error) {
	if len(data) > maxBundle {
		return bundle{}, fmt.Errorf("more than %d bytes", maxBundle)
	}
	var c bundleConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return bundle{}, err
	}
	for field, value := range map[string]json.RawMessage{"windows": c.Windows, "solaris": c.Solaris, "vm": c.VM, "zos": c.ZOS} {
		if len(value) > 0 && string(value) != "null" {
			return bundle{}, fmt.Errorf("%s: want a bundle for Linux alone", field)
		}
	}
	for name, hooks := range c.Hooks {
		if len(hooks) > 0 {
			return bundle{}, fmt.Errorf("hooks.%.80q: %d programs of the host; a job runs none: remove them", name, len(hooks))
		}
	}
	switch {
	case !strings.HasPrefix(c.Version, "1."):
		return bundle{}, fmt.Errorf("ociVersion: %.80q, want 1.x", c.Version)
	case c.Root == nil || c.Root.Path == "" || strings.ContainsRune(c.Root.Path, 0):
		return bundle{}, errors.New("root.path: want the folder of the root file system")
	}
	b := bundle{root: c.Root.Path, readonly: c.Root.Readonly}
	if err := b.setProcess(&c); err != nil {
		return bundle{}, err
	}
	if err := b.setMounts(c.Mounts); err != nil {
		return bundle{}, err
	}
	return b, nil
}

// setProcess takes the command, the environment and the folder.
func (b *bundle) setProcess(c *bundleConfig) error {
	if c.Process == nil {
		return nil
	}
	p := c.Process
	for field, list := range map[string][]string{"args": p.Args, "env": p.Env} {
		if i := slices.IndexFunc(list, func(text string) bool { return strings.ContainsRune(text, 0) }); i >= 0 {
			return fmt.Errorf("process.%s[%d]: it has a zero byte", field, i)
		}
	}
	for i, v := range p.Env {
		switch name, _, ok := strings.Cut(v, "="); {
		case !ok || name == "":
			return fmt.Errorf("process.env[%d]: %.80q: want NAME=VALUE", i, v)
		case !isOfMuster(name):
			b.env = append(b.env, v)
		}
	}
	switch {
	case len(p.Args) > 0 && p.Args[0] == "":
		return errors.New("process.args[0]: the program is empty")
	case p.Dir != "" && (!filepath.IsAbs(p.Dir) || strings.ContainsRune(p.Dir, 0)):
		return fmt.Errorf("process.cwd: %.80q: want an absolute path", p.Dir)
	}
	b.args, b.dir = p.Args, p.Dir
	return nil
}

// isOfMuster reports whether Muster alone sets a variable.
func isOfMuster(name string) bool {
	return strings.HasPrefix(name, "MUSTER_") || slices.Contains([]string{"MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"}, name)
}

// ownPlaces are the places of the mounts that every container has.
var ownPlaces = []string{"/proc", "/dev", "/sys", "/tmp", "/etc/hosts", "/etc/resolv.conf"}

// memoryOptions are the options without a value of a file system in memory that a bundle may
// give.
var memoryOptions = []string{"ro", "rw", "noexec", "exec", "nosuid", "nodev", "relatime", "norelatime", "noatime", "strictatime", "nodiratime"}

// isMemoryOption reports whether a bundle may give an option of a file system in memory. It is
// no regular expression: to compile one would delay the start of each member.
func isMemoryOption(option string) bool {
	name, value, given := strings.Cut(option, "=")
	switch name {
	case "mode":
		return isNumber(value, 4, "01234567")
	case "size", "nr_inodes", "nr_blocks":
		if value != "" && strings.Contains("kKmMgG%", value[len(value)-1:]) {
			value = value[:len(value)-1]
		}
		return isNumber(value, 18, "0123456789")
	}
	return !given && slices.Contains(memoryOptions, name)
}

// isOwnerOption reports whether an option names an owner, which does not count.
func isOwnerOption(option string) bool {
	name, value, _ := strings.Cut(option, "=")
	return (name == "uid" || name == "gid") && isNumber(value, 10, "0123456789")
}

// isNumber reports whether a text has 1 to most of these digits and nothing else.
func isNumber(text string, most int, digits string) bool {
	return text != "" && len(text) <= most && strings.Trim(text, digits) == ""
}

// setMounts takes the mounts of file systems in memory.
func (b *bundle) setMounts(list []ociMount) error {
	if len(list) > maxMounts {
		return fmt.Errorf("mounts: %d, want at most %d", len(list), maxMounts)
	}
	for i, m := range list {
		at := filepath.Clean(m.Destination)
		switch {
		case !filepath.IsAbs(at) || at == "/" || strings.ContainsRune(at, 0):
			return fmt.Errorf("mounts[%d]: destination %.80q: want an absolute path below /", i, m.Destination)
		case slices.ContainsFunc(ownPlaces, func(own string) bool { return isBelow(at, own) }):
			continue
		case m.Type != "tmpfs":
			return fmt.Errorf("mounts[%d]: %.80q at %.80q: a bundle mounts tmpfs alone; give folders of the node in the mounts of the job", i, m.Type, at)
		}
		options := []string{"nosuid", "nodev"}
		for _, o := range m.Options {
			switch {
			case isMemoryOption(o) && !slices.Contains(options, o):
				options = append(options, o)
			case isMemoryOption(o) || isOwnerOption(o):
			default:
				return fmt.Errorf("mounts[%d]: option %.80q of the tmpfs at %.80q is not taken", i, o, at)
			}
		}
		b.mounts = append(b.mounts, ociMount{at, "tmpfs", "tmpfs", options})
	}
	return nil
}
