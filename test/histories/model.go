// Package histories checks what concurrent clients were told against what a
// cluster is that does one thing at a time. Judge takes a history of submits,
// reads and releases with the times of their calls and answers, and porcupine
// looks for an order of them, each between its call and its answer, that the
// sequential models allow: one of a name's life, one of a device, one of a
// namespace's quota. Recorder writes such histories on a real cluster.
//
// It judges what clients see. What the store and the agents hold is test/cluster's
// to audit.
package histories

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterd/muster/api"
)

// Verb is what a client asked for.
type Verb string

// The verbs.
const (
	Submit  Verb = "submit"
	Read    Verb = "read"
	Release Verb = "release"
	Evict   Verb = "evict"
)

// Answer is what a client was told.
type Answer string

// The answers. An Exists or NoRoom submit changed nothing; what Lost its answer
// may have happened, or may yet. No state of a name explains an Undone submit.
const (
	Shown   Answer = "shown"  // the object, in some phase
	Missing Answer = "404"    // there is none of that name
	Exists  Answer = "exists" // there is another of that name
	Idle    Answer = "idle"   // it does not run, and cannot be evicted
	NoRoom  Answer = "over quota"
	Undone  Answer = "undone by another request" // refused for neither of the reasons above
	Lost    Answer = "no answer"
)

// Op is one request. Times are since some beginning, by one monotonic clock.
type Op struct {
	Client       int
	Verb         Verb
	Namespace    string
	Name         string
	GPUs         int // asked for
	Call, Return time.Duration
	Answer       Answer
	UID          string // of what was shown
	Phase        api.Phase
	Devices      []string
}

// String tells the operation in one line.
func (o Op) String() string {
	s := fmt.Sprintf("client %d %s %s/%s [%s, %s]: %s", o.Client, o.Verb, o.Namespace, o.Name,
		o.Call.Round(time.Millisecond), o.Return.Round(time.Millisecond), o.Answer)
	if o.Answer == Shown {
		s += fmt.Sprintf(" %.8s %s %v", o.UID, o.Phase, o.Devices)
	}
	return s
}

// forever is when an operation ends that never had an answer.
const forever = int64(1) << 62

// life is the state of one name: absent, or one object in a phase. An object
// that waits may begin to run at any time, one that ends may be gone; a read
// tells which. uid is "" while nobody has seen it.
type life struct {
	present bool
	uid     string
	phase   api.Phase // Pending, Running, evicted, Preempted or Terminating
	devices string
}

// evicted is the phase of what has been given notice: it shows Terminating until
// it is Preempted, and stays until it is released.
const evicted api.Phase = "evicted"

// nameModel is the life of one name.
//
//	absent → submit → waiting → running → release → terminating → absent
//	running → evict → evicted → preempted → release → …
//
// A submit makes the object, and what its answer shows is a read: others may
// have seen the object before it was answered.
var nameModel = porcupine.Model{
	Init:  func() any { return life{} },
	Step:  func(state, input, _ any) (bool, any) { return step(state.(life), input.(Op)) },
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string {
		return input.(Op).String()
	},
}

func step(s life, o Op) (bool, life) {
	// What has been released may be gone by now.
	free := !s.present || s.phase == api.Terminating
	switch {
	case o.Verb == Submit && o.Answer == Shown:
		return free, life{present: true, uid: o.UID, phase: api.Pending}
	case o.Verb == Submit && o.Answer == Exists:
		return s.present, s
	case o.Verb == Submit && o.Answer == NoRoom:
		return true, s
	case o.Answer == Undone:
		return false, s
	case o.Verb == Submit: // Lost: it does nothing where it can do nothing
		if free {
			return true, life{present: true, phase: api.Pending}
		}
		return true, s
	case o.Answer == Missing:
		return free, life{}
	case o.Verb == Evict:
		return evict(s, o)
	case o.Verb == Release && o.Answer == Shown:
		legal := s.present && (s.uid == "" || s.uid == o.UID)
		return legal, life{present: true, uid: o.UID, phase: api.Terminating}
	case o.Verb == Release: // Lost
		if s.present {
			s.phase, s.devices = api.Terminating, ""
		}
		return true, s
	case o.Answer == Shown:
		return read(s, o)
	}
	return true, s // a read without an answer
}

// evict gives notice to what may run. What is on its way out already stays so.
func evict(s life, o Op) (bool, life) {
	runs := s.present && (s.phase == api.Pending || s.phase == api.Running)
	switch {
	case o.Answer == Idle:
		return s.present && s.phase != api.Running, s
	case runs:
		s.phase, s.devices = evicted, ""
		return true, s
	}
	return o.Answer == Lost || s.present && s.phase != api.Preempted, s
}

// running takes the phases before running together.
func running(p api.Phase) api.Phase {
	if p == api.Queued {
		return api.Pending
	}
	return p
}

// read is a read that shows an object: it can only have gone on since.
func read(s life, o Op) (bool, life) {
	phase, devices := running(o.Phase), fmt.Sprint(o.Devices)
	if !s.present || s.uid != "" && s.uid != o.UID {
		return false, s
	}
	s.uid = o.UID
	switch {
	case s.phase == api.Terminating:
		return phase == api.Terminating, s
	case s.phase == evicted && phase == api.Preempted:
		s.phase = phase
		return true, s
	case s.phase == evicted:
		return phase == api.Terminating, s
	case s.phase == api.Preempted:
		return phase == api.Preempted, s
	case phase == api.Terminating || phase == api.Preempted:
		return false, s // nobody has released or evicted it
	case s.phase == api.Running:
		return phase == api.Running && devices == s.devices, s
	}
	s.phase = phase
	if phase == api.Running {
		s.devices = devices
	}
	return true, s
}

// take is one object's coming or going at a device or a quota.
type take struct {
	uid   string
	units int // negative: given back
}

// deviceModel is one device: whoever has it has it alone.
var deviceModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		owner, t := state.(string), input.(take)
		if t.units < 0 {
			return owner == t.uid, ""
		}
		return owner == "", t.uid
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input.(take)) },
}

// quotaModel is a namespace with room for so many devices.
func quotaModel(limit int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, _ any) (bool, any) {
			used := state.(int) + input.(take).units
			return used <= limit, used
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input.(take)) },
	}
}

// byName groups operations by what they are about.
func byName(history []Op) map[string][]Op {
	groups := map[string][]Op{}
	for _, o := range history {
		name := o.Namespace + "/" + o.Name
		groups[name] = append(groups[name], o)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b Op) int { return int(a.Call - b.Call) })
	}
	return groups
}
