package resource

import (
	"cmp"
	"slices"
)

// Vector is an amount per resource, in base units. A missing name is zero. The
// zero value (nil) is an empty vector that may be read.
type Vector map[Name]int64

// Names returns the names in ascending order; no other order may reach a
// result, a wire or a log.
func (v Vector) Names() []Name {
	names := make([]Name, 0, len(v))
	for n := range v {
		names = append(names, n)
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// Clone returns an independent copy; the copy of nil is nil.
func (v Vector) Clone() Vector {
	if v == nil {
		return nil
	}
	c := make(Vector, len(v))
	for n, a := range v {
		c[n] = a
	}
	return c
}

// Add adds w to v in place, saturating. v must not be nil unless w is empty.
func (v Vector) Add(w Vector) {
	for n, a := range w {
		v[n] = SaturatingAdd(v[n], a)
	}
}

// Sub subtracts w from v in place, saturating. v must not be nil unless w is
// empty.
func (v Vector) Sub(w Vector) {
	for n, a := range w {
		v[n] = SaturatingSub(v[n], a)
	}
}

// Scaled returns v times k (k >= 0), saturating.
func (v Vector) Scaled(k int64) Vector {
	s := make(Vector, len(v))
	for n, a := range v {
		s[n] = SaturatingMul(a, k)
	}
	return s
}
