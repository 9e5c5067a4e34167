package decisions

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// classes are the classes that the log has described since the last State.
//
// Invariant: byTraits and byID have the same classes; sizes and profiles count, of
// those with units, what they ask for.
type classes struct {
	byTraits map[sched.Traits]*tracked
	byID     map[int]*tracked
	last     int // ID
	empty    int // classes without units
	sizes    map[resource.Bytes]int
	profiles map[string]int
	counted  int // classes that ask for counted resources
}

// tracked is one class of the leader's room.
type tracked struct {
	id         int
	traits     sched.Traits
	definition Class
	units      int
	now        *sched.Class // of the room, as it was last joined
	last       *Sleep       // in full; nil where the class has not failed
}

// keptClasses bounds the classes without units that keep their descriptions: a unit
// that comes back to one needs no line for it.
const keptClasses = 256

func newClasses() classes {
	return classes{byTraits: map[sched.Traits]*tracked{}, byID: map[int]*tracked{}, sizes: map[resource.Bytes]int{}, profiles: map[string]int{}}
}

// join counts a unit of a class, and reports whether the class is new to the log. A class
// without units is described anew for another group: units of several groups may have equal
// traits, and events are compared with the group of the description.
func (s *classes) join(c *sched.Class) (known *tracked, added bool) {
	if known = s.byTraits[c.Traits]; known != nil && known.units == 0 && known.definition.isOfAnotherGroup(c) {
		delete(s.byID, known.id)
		s.empty--
		known = nil
	}
	if known == nil {
		added = true
		s.last++
		known = &tracked{id: s.last, traits: c.Traits, definition: classOf(s.last, c)}
		s.byTraits[c.Traits], s.byID[known.id] = known, known
		s.empty++
	}
	if known.now = c; known.units == 0 {
		s.empty--
		known.last = nil
		s.count(known, 1)
	}
	known.units++
	return known, added
}

// isOfAnotherGroup reports whether the description has another group than the class of the
// room.
func (c *Class) isOfAnotherGroup(now *sched.Class) bool {
	return c.Subject != nil && c.Subject.Group != now.Demand().Subject.Group
}

// leave counts a unit that leaves its class.
func (s *classes) leave(id int) {
	c := s.byID[id]
	if c.units--; c.units > 0 {
		return
	}
	s.count(c, -1)
	if s.empty++; s.empty > keptClasses {
		s.forget()
	}
}

// forget drops all classes without units.
func (s *classes) forget() {
	maps.DeleteFunc(s.byID, func(_ int, c *tracked) bool { return c.units == 0 })
	maps.DeleteFunc(s.byTraits, func(_ sched.Traits, c *tracked) bool { return c.units == 0 })
	s.empty = 0
}

// count counts what a class asks for of which there are many kinds.
func (s *classes) count(c *tracked, by int) {
	r := &c.definition.Request
	if r.Hugepages > 0 {
		change(s.sizes, r.HugepageSize, by)
	}
	if r.MIG > 0 {
		change(s.profiles, r.MIGProfile, by)
	}
	if r.Counts != "" {
		s.counted += by
	}
}

// change adds to a count, which is gone where it is zero.
func change[K comparable](counts map[K]int, key K, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}

// state lists the classes that have units, and forgets the others.
func (s *classes) state() []StateClass {
	s.forget()
	list := make([]StateClass, 0, len(s.byID))
	for _, c := range s.byID {
		listed := StateClass{Class: c.definition}
		if c.now.Evidence() != nil {
			listed.Sleep = c.last
		}
		list = append(list, listed)
	}
	slices.SortFunc(list, func(a, b StateClass) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// free is what a node has to give, as far as a class asks for it.
func (s *classes) free(f *sched.Facts) Free {
	n := f.Node
	free := Free{
		Node: n.ID, Closed: !n.Ready || n.Unschedulable || n.Host == nil || n.Free == nil,
		CPU: n.FreeCPU, Cores: n.FreeCores, Memory: n.FreeMemory, GPU: n.FreeGPU, GPUs: n.WholeGPUs, Share: n.LargestGPU,
	}
	if free.Closed {
		return free
	}
	for _, size := range slices.Sorted(maps.Keys(s.sizes)) {
		free.Hugepages = append(free.Hugepages, FreePages{size, n.Host.FreeHugepages(n.Free, size)})
	}
	for _, profile := range slices.Sorted(maps.Keys(s.profiles)) {
		free.MIG = append(free.MIG, FreeMIG{profile, n.Host.FreeMIG(n.Free, profile)})
	}
	if free.Full, free.Counted = n.Full, s.counted > 0; free.Counted {
		counts := n.Host.Counts()
		for _, name := range counts.Names() {
			if amount := n.Host.FreeCount(n.Free, name); amount > 0 {
				free.Counts = append(free.Counts, resource.CountGrant{Name: name, Amount: amount})
			}
		}
	}
	for _, h := range f.Held {
		held := Held{CPU: h.CPU, Memory: h.Memory, GPU: h.GPU}
		if held.Any = h.Below == sched.AnyPriority; !held.Any {
			held.Below = int32(h.Below)
		}
		free.Held = append(free.Held, held)
	}
	return free
}

// sleepOf says why a class has failed.
func (t *Tracker) sleepOf(c *tracked, e *sched.Evidence) *Sleep {
	s := &Sleep{Class: c.id, Code: codes[e.Code]}
	s.Borrows = e.Borrows
	if s.Quota = e.ByModel; e.Code == sched.OverTree || e.Code == sched.Claim || e.ByModel || e.Borrows {
		s.Trees = e.Trees
	}
	subject, detail := t.words.Asleep(c.now, e)
	if s.Subject = subject; c.last == nil || c.last.Code != s.Code || c.last.Subject != subject || c.last.Borrows != s.Borrows || !slices.Equal(c.last.Trees, s.Trees) {
		s.Detail = detail()
	}
	return s
}
