package work

import (
	"fmt"
	"maps"

	"github.com/musterd/muster/coordinator/count"
)

// Census counts the objects of each namespace. The zero value has not counted yet.
//
// Invariant: once counted, the use of a namespace is the sum of counted over its units, and
// All is the sum over the namespaces.
type Census struct {
	Of  map[string]count.Use
	All count.Use
}

// Set replaces the part of a unit in the use of the unit's namespace.
func (c *Census) Set(u *Unit, use count.Use) {
	if c.Of == nil || use == u.counted {
		return
	}
	namespace, more := u.Record.Namespace, use.Minus(u.counted)
	c.All = c.All.Plus(more)
	c.Of[namespace] = c.Of[namespace].Plus(more)
	u.SetCounted(use)
	if c.Of[namespace] == (count.Use{}) {
		delete(c.Of, namespace)
	}
}

// Note counts the present state of a unit.
func (c *Census) Note(u *Unit) {
	if c.Of != nil {
		c.Set(u, CountedUse(u))
	}
}

// Begin counts all units, unless they are counted.
func (c *Census) Begin(units map[string]*Unit) {
	if c.Of != nil {
		return
	}
	c.Of = map[string]count.Use{}
	for _, u := range units {
		c.Note(u)
	}
}

// Check verifies the invariant over all units. A document being written counts already.
func (c *Census) Check(units map[string]*Unit) error {
	if c.Of == nil {
		return nil
	}
	sums := Census{Of: map[string]count.Use{}}
	for _, u := range units {
		is := CountedUse(u)
		if is.Annotations, is.Documents = u.counted.Annotations, u.counted.Documents; is != u.counted {
			return fmt.Errorf("%s is counted as %+v, is %+v", u.Path, u.counted, is)
		}
		sums.Of[u.Record.Namespace] = sums.Of[u.Record.Namespace].Plus(is)
		sums.All = sums.All.Plus(is)
	}
	if !maps.Equal(sums.Of, c.Of) || sums.All != c.All {
		return fmt.Errorf("the namespaces are counted as %+v, the units are %+v", *c, sums)
	}
	return nil
}

// CountedUse is the part of a unit in the use of the unit's namespace. A job counts with the
// first unit.
func CountedUse(u *Unit) count.Use {
	if u.Life.Gone() {
		return count.Use{}
	}
	use := count.OfUnit(&u.Record, u.Allocation)
	if u.Job != nil && u.Record.N == 0 {
		use = use.Plus(count.OfJob(&u.Job.Record, u.Job.Doc))
	}
	return use
}
