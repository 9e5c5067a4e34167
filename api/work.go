package api

import (
	"cmp"
	"fmt"
	stdpath "path"
	"slices"
	"strings"
)

// EnvVar is one variable of an environment.
type EnvVar struct {
	// Name is the name of the variable: letters, digits and '_', no digit first.
	Name string `json:"name" example:"NCCL_DEBUG"`
	// Value is the value of the variable.
	Value string `json:"value,omitempty" text:"free" example:"INFO"`
}

// Mount is a folder or a file of a node that a command sees in its root file system.
type Mount struct {
	// Source is the folder or file on the node, an absolute path.
	Source string `json:"source" required:"true" example:"/srv/data"`
	// Target is the place in the root file system, an absolute path that is there, or lies in
	// /tmp. Left out, it is that of the source.
	Target string `json:"target,omitempty" example:"/mnt"`
	// ReadOnly: the command cannot change anything in the mount.
	ReadOnly bool `json:"readOnly,omitempty" default:"false" example:"true"`
}

// Place is the place of the mount in the root file system.
func (m *Mount) Place() string { return cmp.Or(m.Target, m.Source) }

// HasWork reports whether the specification has something to run: a command, or that of a
// bundle.
func (s *AllocationSpec) HasWork() bool { return len(s.Command) > 0 || s.Bundle != "" }

// WorkField is the name of the field that says what the specification runs.
func (s *AllocationSpec) WorkField() string {
	if len(s.Command) == 0 && s.Bundle != "" {
		return "bundle"
	}
	return "command"
}

// HasContainer reports whether the command runs in a root file system of its own.
func (s *AllocationSpec) HasContainer() bool { return s.Rootfs != "" || s.Bundle != "" }

// The bounds of a command with its arguments and its environment.
const (
	MaxWorkBytes   = 64 << 10
	MaxWorkEntries = 256
	MaxWorkingDir  = 4096
)

// The bounds of the mounts of a job: their number, and each path, in bytes.
const (
	MaxMounts    = 32
	MaxMountPath = 1024
)

// checkWork validates the work of a member of a job.
func checkWork(path string, s *AllocationSpec) *Status {
	var faults faults
	if !s.HasWork() {
		switch {
		case len(s.Args) > 0:
			faults.add(invalid(path+".args", "%d arguments without a command: set %s.command", len(s.Args), path))
		case len(s.Env) > 0:
			faults.add(invalid(path+".env", "%d variables without a command: set %s.command", len(s.Env), path))
		case s.WorkingDir != "":
			faults.add(invalid(path+".workingDir", "%q without a command: set %s.command", clip(s.WorkingDir), path))
		case s.Rootfs != "":
			faults.add(invalid(path+".rootfs", "%q without a command: set %s.command", clip(s.Rootfs), path))
		case len(s.Mounts) > 0:
			faults.add(invalid(path+".mounts", "%d mounts without a command: set %s.command", len(s.Mounts), path))
		case s.Stdin:
			faults.add(invalid(path+".stdin", "true without a command: set %s.command", path))
		case s.TTY:
			faults.add(invalid(path+".tty", "true without a command: set %s.command", path))
		}
		return faults.status()
	}
	faults.add(checkCommand(path, s))
	if d := s.WorkingDir; d != "" && (!strings.HasPrefix(d, "/") || len(d) > MaxWorkingDir) {
		faults.add(invalid(path+".workingDir", "%q: want an absolute path of at most %d bytes", clip(d), MaxWorkingDir))
	}
	faults.add(checkNoZero(path+".workingDir", s.WorkingDir))
	faults.add(checkPath(path+".rootfs", s.Rootfs, MaxWorkingDir))
	faults.add(checkPath(path+".bundle", s.Bundle, MaxWorkingDir))
	if s.Rootfs != "" && s.Bundle != "" {
		faults.add(invalid(path+".bundle", "%q, and rootfs is %q: a bundle has a root file system; leave one of the two out", clip(s.Bundle), clip(s.Rootfs)))
	}
	faults.add(checkMounts(path, s))
	return faults.status()
}

// checkCommand validates the command of a member with its arguments and its variables. With
// a bundle there may be no command.
func checkCommand(path string, s *AllocationSpec) *Status {
	var faults faults
	switch {
	case len(s.Command) == 0 && len(s.Args) > 0:
		faults.add(invalid(path+".args", "%d arguments without a command: set %s.command, in place of the whole command of the bundle", len(s.Args), path))
	case len(s.Command) > 0 && s.Command[0] == "":
		faults.add(invalid(path+".command[0]", "the program is empty"))
	}
	sum := 0
	for _, list := range []struct {
		field string
		texts []string
	}{{"command", s.Command}, {"args", s.Args}} {
		for i, text := range list.texts {
			sum += len(text)
			faults.add(checkNoZero(fmt.Sprintf("%s.%s[%d]", path, list.field, i), text))
		}
	}
	names := map[string]int{}
	for i, v := range s.Env {
		sum += len(v.Name) + len(v.Value)
		at := fmt.Sprintf("%s.env[%d]", path, i)
		faults.add(checkVariable(at+".name", v.Name))
		faults.add(checkNoZero(at+".value", v.Value))
		if first, twice := names[v.Name]; twice {
			faults.add(invalid(at+".name", "%q is env[%d] too: keep one", clip(v.Name), first))
		}
		names[v.Name] = i
	}
	if n := len(s.Command) + len(s.Args) + len(s.Env); n > MaxWorkEntries {
		faults.add(invalid(path+".command", "%d entries of command, args and env together, at most %d", n, MaxWorkEntries))
	}
	if sum > MaxWorkBytes {
		faults.add(invalid(path+".command", "%d bytes of command, args and env together, at most %d", sum, MaxWorkBytes))
	}
	return faults.status()
}

// ownTargets are the parts of a root file system that Muster mounts itself, and that no
// mount of a job replaces.
var ownTargets = []string{"/proc", "/dev", "/sys"}

// checkMounts validates the mounts of a job.
func checkMounts(path string, s *AllocationSpec) *Status {
	if len(s.Mounts) == 0 {
		return nil
	}
	if !s.HasContainer() {
		return invalid(path+".mounts", "%d mounts without a root file system of the command: set %s.rootfs or %s.bundle, or leave the mounts out: without them the command has all files of its node", len(s.Mounts), path, path)
	}
	if status := atMost(path+".mounts", len(s.Mounts), MaxMounts); status != nil {
		return status
	}
	var faults faults
	targets := map[string]int{}
	for i := range s.Mounts {
		m, at := &s.Mounts[i], fmt.Sprintf("%s.mounts[%d]", path, i)
		if m.Source == "" {
			faults.add(invalid(at+".source", "required: the folder on the node"))
			continue
		}
		faults.add(checkPath(at+".source", m.Source, MaxMountPath))
		faults.add(checkPath(at+".target", m.Target, MaxMountPath))
		target := m.Place()
		if own := slices.IndexFunc(ownTargets, func(own string) bool { return target == own || strings.HasPrefix(target, own+"/") }); target == "/" || own >= 0 {
			faults.add(invalid(at+".target", "%q: want another place than / and those in %s, which Muster mounts itself", clip(target), strings.Join(ownTargets, ", ")))
		}
		if first, twice := targets[target]; twice {
			faults.add(invalid(at+".target", "%q is that of mounts[%d] too: keep one", clip(target), first))
		}
		targets[target] = i
	}
	return faults.status()
}

// checkPath refuses a path that is not absolute and clean. "" is none.
func checkPath(path, value string, most int) *Status {
	switch {
	case value == "":
		return nil
	case !stdpath.IsAbs(value) || stdpath.Clean(value) != value || len(value) > most:
		return invalid(path, "%q: want an absolute path of at most %d bytes, without . and ..", clip(value), most)
	}
	return checkNoZero(path, value)
}

// checkConsole refuses a standard input and a terminal of more than one member.
func checkConsole(path string, s *AllocationSpec, members int) *Status {
	var faults faults
	if members > 1 && s.Stdin {
		faults.add(invalid(path+".stdin", "true for %d members: a job with a standard input has one", members))
	}
	if members > 1 && s.TTY {
		faults.add(invalid(path+".tty", "true for %d members: a job with a terminal has one", members))
	}
	return faults.status()
}

func checkNoZero(path, text string) *Status {
	if strings.ContainsRune(text, 0) {
		return invalid(path, "a zero byte cannot be in an argument, a variable or a path")
	}
	return nil
}

// setByMuster are variables that Muster sets itself.
var setByMuster = map[string]bool{"MASTER_ADDR": true, "MASTER_PORT": true, "CUDA_VISIBLE_DEVICES": true}

// checkVariable refuses a name that no shell takes, and a name that Muster sets.
func checkVariable(path, name string) *Status {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return invalid(path, "%q is not a name of a variable: want letters, digits and '_', no digit first", clip(name))
		}
	}
	switch {
	case name == "" || len(name) > 256:
		return invalid(path, "%d bytes, want 1..256", len(name))
	case setByMuster[name] || strings.HasPrefix(name, "MUSTER_"):
		return invalid(path, "%q is set by Muster: leave it out", clip(name))
	}
	return nil
}
