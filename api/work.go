package api

import (
	"fmt"
	"slices"
	"strings"
)

// The bounds of a command with its arguments and its environment.
const (
	MaxWorkBytes   = 64 << 10
	MaxWorkEntries = 256
	MaxWorkingDir  = 4096
)

// checkWork validates the command of a member of a job.
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
		case s.Stdin:
			faults.add(invalid(path+".stdin", "true without a command: set %s.command", path))
		case s.TTY:
			faults.add(invalid(path+".tty", "true without a command: set %s.command", path))
		}
		return faults.status()
	}
	if s.Command[0] == "" {
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
	if d := s.WorkingDir; d != "" && (!strings.HasPrefix(d, "/") || len(d) > MaxWorkingDir) {
		faults.add(invalid(path+".workingDir", "%q: want an absolute path of at most %d bytes", clip(d), MaxWorkingDir))
	}
	faults.add(checkNoZero(path+".workingDir", s.WorkingDir))
	if r := s.Rootfs; r != "" && (!isCleanPath(r) || len(r) > MaxWorkingDir) {
		faults.add(invalid(path+".rootfs", "%q: want an absolute path of at most %d bytes, without . and ..", clip(r), MaxWorkingDir))
	}
	faults.add(checkNoZero(path+".rootfs", s.Rootfs))
	return faults.status()
}

// isCleanPath reports whether a path is absolute, has no empty part, and neither . nor ..
func isCleanPath(path string) bool {
	rest, absolute := strings.CutPrefix(path, "/")
	bad := func(part string) bool { return part == "" || part == "." || part == ".." }
	return absolute && (rest == "" || !slices.ContainsFunc(strings.Split(rest, "/"), bad))
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
