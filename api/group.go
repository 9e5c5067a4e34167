package api

import (
	"cmp"
	"strconv"
	"time"
)

// Annotations of an allocation that mean fields of its gangScheduling, under the
// prefix of the specification's examples and under Muster's own: the number of
// members that start together, and the time that they wait at most.
const (
	gangSizeAnnotation = "gang-size"
	maxWaitAnnotation  = "max-wait"
)

var gangPrefixes = [...]string{"scheduler.example.com", "muster.io"}

// Group is the gang that an allocation joins: allocations of one namespace with the
// same groupId.
type Group struct {
	ID string // "" for none
	// MinMembers start together or not at all; 1 where none is given.
	MinMembers int
	// MaxWait is the most time between the arrival of the first member and the start;
	// 0 has no end.
	MaxWait time.Duration
	// Levels are the levels of domains as text, "none" for none.
	Levels string
}

// IsGang reports whether members wait for each other.
func (g Group) IsGang() bool { return g.ID != "" && g.MinMembers > 1 }

// Group is the group of a valid allocation.
func (a *Allocation) Group() Group {
	g := Group{MinMembers: 1, MaxWait: a.Spec.maxWait(), Levels: levelsText(nil)}
	if gang := a.Spec.Gang(); gang != nil {
		g.Levels = levelsText(gang.Topology)
		g.ID = gang.GroupID
		if gang.MinMembers != nil {
			g.MinMembers = int(*gang.MinMembers)
		}
	}
	if n, err := strconv.Atoi(a.gangAnnotation(gangSizeAnnotation)); err == nil {
		g.MinMembers = n
	}
	if d, err := time.ParseDuration(a.gangAnnotation(maxWaitAnnotation)); err == nil {
		g.MaxWait = d
	}
	return g
}

// MaxWait is the most time between the submission of a valid job and the start of
// its first members; 0 has no end.
func (j *Job) MaxWait() time.Duration { return j.Spec.Template.Spec.maxWait() }

func (s *AllocationSpec) maxWait() time.Duration {
	if g := s.Gang(); g != nil {
		if d, err := time.ParseDuration(g.Timeout); err == nil {
			return d
		}
	}
	return 0
}

// gangAnnotation is the value of an annotation about the gang, "" for none.
func (a *Allocation) gangAnnotation(name string) string {
	var value string
	for _, prefix := range gangPrefixes {
		value = cmp.Or(value, a.Metadata.Annotations[prefix+"/"+name])
	}
	return value
}

// checkGroup validates the group of an allocation: its annotations, and whether they
// contradict the specification.
func (a *Allocation) checkGroup() *Status {
	var faults faults
	g := a.Spec.Gang()
	for _, prefix := range gangPrefixes {
		for _, name := range [...]string{gangSizeAnnotation, maxWaitAnnotation} {
			annotation := prefix + "/" + name
			value, given := a.Metadata.Annotations[annotation]
			if !given {
				continue
			}
			path := "metadata.annotations[" + annotation + "]"
			if other := a.gangAnnotation(name); other != value {
				faults.add(invalid(path, "%q: another annotation says %q", clip(value), clip(other)))
			} else if name == gangSizeAnnotation {
				faults.add(a.checkGangSize(path, value, g))
			} else {
				faults.add(a.checkMaxWait(path, value, g))
			}
		}
	}
	if members := a.Group().MinMembers; members > 1 && (g == nil || g.GroupID == "") {
		path := "spec.gangScheduling.groupId"
		if g != nil {
			path = gangPath("spec", &a.Spec) + ".groupId"
		}
		faults.add(invalid(path, "required: minMembers %d are the Allocations that name the same group; name one, or submit a Job with spec.parallelism %d", members, members))
	}
	return faults.status()
}

func (a *Allocation) checkGangSize(path, value string, g *GangScheduling) *Status {
	n, err := strconv.ParseInt(value, 10, 32)
	switch {
	case err != nil || n < 1:
		return invalid(path, "%q is not a number of members, from 1 on", clip(value))
	case g != nil && g.MinMembers != nil && int64(*g.MinMembers) != n:
		return invalid(path, "%d: %s.minMembers is %d; keep one, or make both equal", n, gangPath("spec", &a.Spec), *g.MinMembers)
	}
	return nil
}

func (a *Allocation) checkMaxWait(path, value string, g *GangScheduling) *Status {
	if value == "" {
		return invalid(path, `"" is not a duration: want e.g. 300s, 10m or 2h`)
	}
	if status := checkDuration(path, value); status != nil {
		return status
	}
	if g == nil || g.Timeout == "" {
		return nil
	}
	wait, err := time.ParseDuration(value)
	if timeout, other := time.ParseDuration(g.Timeout); err == nil && other == nil && timeout != wait {
		return invalid(path, "%q: %s.timeout is %q; keep one, or make both equal", clip(value), gangPath("spec", &a.Spec), clip(g.Timeout))
	}
	return nil
}

// DiffersFrom names the first property in which two members of one group differ that
// all have to share, with both values; "" where there is none.
func (g Group) DiffersFrom(o Group) (field, own, other string) {
	wait := func(d time.Duration) string {
		if d == 0 {
			return "none"
		}
		return d.String()
	}
	switch {
	case g.MinMembers != o.MinMembers:
		return "minMembers", strconv.Itoa(g.MinMembers), strconv.Itoa(o.MinMembers)
	case g.MaxWait != o.MaxWait:
		return "timeout", wait(g.MaxWait), wait(o.MaxWait)
	case g.Levels != o.Levels:
		return "topology", g.Levels, o.Levels
	}
	return "", "", ""
}
