package shim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file writes the configuration of a container (OCI runtime specification 1.0).

type ociConfig struct {
	Version     string            `json:"ociVersion"`
	Root        ociRoot           `json:"root"`
	Process     ociProcess        `json:"process"`
	Mounts      []ociMount        `json:"mounts"`
	Hooks       map[string][]Hook `json:"hooks,omitempty"`
	Linux       ociLinux          `json:"linux"`
	Annotations map[string]string `json:"annotations"`
}

type ociRoot struct {
	Path     string `json:"path"`
	Readonly bool   `json:"readonly"`
}

type ociProcess struct {
	Terminal        bool     `json:"terminal"`
	Size            *ociSize `json:"consoleSize,omitempty"`
	User            ociUser  `json:"user"`
	Args            []string `json:"args"`
	Env             []string `json:"env"`
	Dir             string   `json:"cwd"`
	NoNewPrivileges bool     `json:"noNewPrivileges"`
}

type ociSize struct {
	Height uint16 `json:"height"`
	Width  uint16 `json:"width"`
}

type ociUser struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

type ociMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

type ociLinux struct {
	Namespaces  []ociNamespace `json:"namespaces"`
	UIDMappings []ociMapping   `json:"uidMappings"`
	GIDMappings []ociMapping   `json:"gidMappings"`
	Seccomp     *ociSeccomp    `json:"seccomp,omitempty"`
}

type ociNamespace struct {
	Type string `json:"type"`
}

type ociMapping struct {
	Container uint32 `json:"containerID"`
	Host      uint32 `json:"hostID"`
	Size      uint32 `json:"size"`
}

// keepGroups has crun leave the groups of the user as they are: a user namespace has no right
// to set them, and they open the devices.
const keepGroups = "run.oci.keep_original_groups"

// user is the user of the commands, inside of the container and outside.
func (c *container) user() ociUser {
	if u := c.spec.User; u != nil {
		return ociUser{u.UID, u.GID}
	}
	return ociUser{uint32(os.Geteuid()), uint32(os.Getegid())}
}

// process is a command with a terminal of a size, nil for none.
func (c *container) process(args, env []string, terminal *Window) ociProcess {
	p := ociProcess{User: c.user(), Args: args, Env: env, Dir: c.dir, NoNewPrivileges: true, Terminal: terminal != nil}
	if terminal != nil && *terminal != (Window{}) {
		p.Size = &ociSize{terminal.Rows, terminal.Columns}
	}
	return p
}

// image is the root file system of a container, with the command that comes with it.
type image struct {
	what, root string // root has no symbolic links; what names it in errors
	bundle
}

// findImage finds the image of a container, with the rights of the thread.
func (c *Container) findImage() (image, error) {
	if c.Bundle == "" {
		what := "rootfs " + c.Rootfs
		root, err := place(what, c.Rootfs, c.Within)
		return image{what, root, bundle{readonly: true}}, err
	}
	what := "bundle " + c.Bundle
	folder, err := place(what, c.Bundle, c.Within)
	if err != nil {
		return image{}, err
	}
	b, err := readBundle(folder)
	if err != nil {
		return image{}, fmt.Errorf("%s: %w", what, err)
	}
	if !filepath.IsAbs(b.root) {
		b.root = filepath.Join(folder, b.root)
	}
	what = fmt.Sprintf("%s: root.path %.1024s", what, b.root)
	root, err := place(what, b.root, c.Within)
	return image{what, root, b}, err
}

// config is the configuration for the member's own command. It sets the environment and the
// folder of all commands.
func (c *container) config() ([]byte, error) {
	of := c.spec.Container
	i, err := of.findImage()
	if err != nil {
		return nil, err
	}
	args := c.spec.Args
	if len(args) == 0 {
		args = i.args
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("bundle %s: config.json has no process.args, and the job has no command", of.Bundle)
	}
	mounts, err := c.mounts(&i)
	if err != nil {
		return nil, err
	}
	c.dir = cmp.Or(c.dir, i.dir, "/")
	c.commandEnv = LastOfEach(slices.Concat(of.Env, i.env, c.spec.Env, []string{Marker + "=" + string(c.folder)}))
	c.args = args
	spaces, process := []ociNamespace{{"mount"}, {"user"}}, c.process(args, c.commandEnv, c.terminal())
	if of.Init != "" {
		spaces = append(spaces, ociNamespace{"pid"})
		process = c.process([]string{initPath, initCommand}, append(slices.Clone(initEnv), Marker+"="+string(c.folder)), nil)
		process.Dir = "/"
	}
	u := c.user()
	return json.Marshal(ociConfig{
		Version: "1.0.0",
		Root:    ociRoot{i.root, i.readonly},
		Process: process,
		Mounts:  mounts,
		Hooks:   of.Hooks,
		Linux: ociLinux{
			Namespaces:  spaces,
			UIDMappings: []ociMapping{{u.UID, u.UID, 1}},
			GIDMappings: []ociMapping{{u.GID, u.GID, 1}},
			Seccomp:     seccomp(),
		},
		Annotations: map[string]string{keepGroups: "1"},
	})
}

// terminal is the size of the terminal of the member's own command; nil without a terminal.
func (c *container) terminal() *Window {
	if c.spec.TTY {
		return &firstWindow
	}
	return nil
}

// LastOfEach keeps the last value of each variable, in order of the names.
func LastOfEach(env []string) []string {
	last := map[string]string{}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		last[name] = v
	}
	return slices.Sorted(maps.Values(last))
}

// mounts are those of every container, as far as the root file system has a place for them,
// those of the bundle, those of the job, and those of devices.
func (c *container) mounts(i *image) ([]ociMount, error) {
	root, err := os.OpenRoot(i.root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", i.what, err)
	}
	defer root.Close()
	for _, name := range []string{"proc", "dev"} {
		if info, err := root.Stat(name); err != nil || !info.IsDir() {
			hint := ""
			if _, err := root.Stat("config.json"); err == nil {
				hint = "; it has a config.json: a bundle is named by bundle in place of rootfs"
			}
			return nil, fmt.Errorf("%s: it has no folder /%s%s", i.what, name, hint)
		}
	}
	proc := ociMount{"/proc", "bind", "/proc", []string{"rbind"}}
	if c.spec.Container.Init != "" { // of the processes in the container alone
		proc = ociMount{"/proc", "proc", "proc", []string{"nosuid", "noexec", "nodev"}}
	}
	list := []ociMount{
		proc,
		{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{"/dev/pts", "devpts", "devpts", []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
		{"/dev/shm", "bind", "/dev/shm", []string{"rbind"}},
	}
	if info, err := root.Stat("sys"); err == nil && info.IsDir() {
		list = append(list, ociMount{"/sys", "bind", "/sys", []string{"rbind", "ro"}})
	}
	if info, err := root.Stat("tmp"); err == nil && info.IsDir() {
		list = append(list, ociMount{"/tmp", "tmpfs", "tmpfs", []string{"nosuid", "nodev", "mode=1777"}})
	}
	for _, name := range []string{"etc/resolv.conf", "etc/hosts"} {
		inside, err := root.Lstat(name)
		outside, failed := os.Stat("/" + name)
		if err == nil && failed == nil && inside.Mode().IsRegular() && outside.Mode().IsRegular() {
			list = append(list, ociMount{"/" + name, "bind", "/" + name, []string{"bind", "ro"}})
		}
	}
	list = append(list, i.mounts...)
	var places []string
	for _, m := range list {
		places = append(places, m.Destination)
	}
	data, err := c.spec.Container.data(root, places)
	if err != nil {
		return nil, err
	}
	list = append(list, data...)
	for _, m := range c.spec.Container.Mounts {
		list = append(list, ociMount{m.Destination, "bind", m.Source, m.Options})
	}
	if program := c.spec.Container.Init; program != "" {
		list = append(list, ociMount{initPath, "bind", program, []string{"bind", "ro"}})
	}
	return list, nil
}
