package grant

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/musterd/muster/resource"
)

// Count is a counted resource of a host, as its agent declares the resource.
type Count struct {
	Name   resource.Name `json:"name"`
	Amount int64         `json:"amount"` // in base units
	// Kind is "count" or "bytes", and Unit the unit of one in a quantity, for people.
	// Both are "" of the resources that Muster has built in, whose kind is known.
	Kind string `json:"kind,omitempty"`
	Unit string `json:"unit,omitempty"`
}

// The kinds of a declared resource.
const (
	KindCount = "count"
	KindBytes = "bytes"
)

// MaxCountUnit is the most bytes of a unit.
const MaxCountUnit = 63

// CheckCounts refuses a list of counted resources that is too long, is not ascending by
// name, or has an entry of which Check is an error.
func CheckCounts(counts []Count) error {
	if len(counts) > resource.MaxCounts {
		return fmt.Errorf("counts: %d counted resources, want at most %d", len(counts), resource.MaxCounts)
	}
	for i, c := range counts {
		if err := c.Check(); err != nil {
			return fmt.Errorf("counts[%d]: %w", i, err)
		}
		if i > 0 && counts[i-1].Name >= c.Name {
			return fmt.Errorf("counts[%d]: %s follows %s (entries ascend)", i, c.Name, counts[i-1].Name)
		}
	}
	return nil
}

// Check refuses a name that is not counted, an amount out of bounds, an unknown kind and a
// unit that a terminal would not print.
func (c Count) Check() error {
	if err := resource.CheckCount(c.Name, c.Amount); err != nil {
		return err
	}
	if !resource.IsExtended(c.Name) {
		if c.Kind != "" || c.Unit != "" {
			return fmt.Errorf("%s: kind %.64q and unit %.64q: the resource is built in, want neither", c.Name, c.Kind, c.Unit)
		}
		return nil
	}
	if c.Kind != KindCount && c.Kind != KindBytes {
		return fmt.Errorf("%s: kind %.64q: want %s or %s", c.Name, c.Kind, KindCount, KindBytes)
	}
	if len(c.Unit) > MaxCountUnit || strings.ContainsFunc(c.Unit, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%s: unit %.64q: want at most %d bytes that a terminal prints", c.Name, c.Unit, MaxCountUnit)
	}
	return nil
}

// AmountsOf are the amounts by name; nil for none.
func AmountsOf(counts []Count) resource.Vector {
	if len(counts) == 0 {
		return nil
	}
	v := make(resource.Vector, len(counts))
	for _, c := range counts {
		v[c.Name] = c.Amount
	}
	return v
}
