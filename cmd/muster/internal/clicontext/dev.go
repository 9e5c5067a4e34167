package clicontext

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// devName is the name that muster dev takes, unless another has it.
const devName = "dev"

// Dev says which muster dev a context is of.
type Dev struct {
	PID int `json:"pid"`
	// Former is the context that was current before, "" for none.
	Former string `json:"former,omitempty"`
}

// Lease is the context of a running muster dev.
type Lease struct {
	Name string
	path string
	own  Context
}

// AddDev adds the context of a muster dev with a process id and makes it the
// current one. It takes the name dev, or dev-2 and so on where a context of that
// name is a person's own or of a muster dev that runs. A context that was left behind
// by a muster dev that is gone is replaced.
func AddDev(path string, pid int, c Context) (*Lease, error) {
	l := &Lease{path: path}
	err := Update(path, func(f *File) error {
		former := f.Current
		if l.Name = f.devName(); l.Name == "" {
			return fmt.Errorf("%d contexts of muster dev are in use: muster config delete-context dev-2 removes one", maxContexts)
		}
		if before, left := f.Contexts[l.Name]; left && former == l.Name {
			former = before.Dev.Former
		}
		c.Dev = &Dev{PID: pid, Former: former}
		l.own = c
		f.Contexts[l.Name], f.Current = c, l.Name
		return nil
	})
	return l, err
}

// devName is the first name that a muster dev may take, or "".
func (f *File) devName() string {
	for n := 1; n <= maxContexts; n++ {
		name := devName
		if n > 1 {
			name = fmt.Sprintf("%s-%d", devName, n)
		}
		if c, taken := f.Contexts[name]; !taken || c.Dev != nil && !runs(c.Dev.PID) {
			return name
		}
	}
	return ""
}

// runs reports whether there is a process with an id.
func runs(pid int) bool { return pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// End removes the context, and makes the former one current again unless a
// person has chosen another meanwhile. A context that a person has changed
// stays.
func (l *Lease) End() error {
	return Update(l.path, func(f *File) error {
		c, found := f.Contexts[l.Name]
		if !found || c.Dev == nil || c.Dev.PID != l.own.Dev.PID || c.Token != l.own.Token {
			return nil
		}
		delete(f.Contexts, l.Name)
		for name, other := range f.Contexts { // a later muster dev came back to this one
			if other.Dev != nil && other.Dev.Former == l.Name {
				later := *other.Dev
				later.Former = c.Dev.Former
				other.Dev = &later
				f.Contexts[name] = other
			}
		}
		if f.Current == l.Name {
			f.Current = ""
			if _, there := f.Contexts[c.Dev.Former]; there {
				f.Current = c.Dev.Former
			}
		}
		return nil
	})
}
