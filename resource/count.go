package resource

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// EphemeralStorage is the file system of an agent's work folder. Its base unit is the
// byte.
const EphemeralStorage Name = "ephemeral-storage"

// Bounds of counted resources. MaxCounts is the most counted resources of one host and
// of one request, MaxCountName the most bytes of a name (a label key: 253 + "/" + 63),
// and MaxCount the greatest amount.
const (
	MaxCounts    = 16
	MaxCountName = 317
	MaxCount     = 1 << 50
)

// CountGrant is an amount of a counted resource: the host has so many of it, and no
// member needs a certain one.
type CountGrant struct {
	Name   Name  `json:"name"`
	Amount int64 `json:"amount"` // in base units
}

// Counts are amounts of counted resources as text, so that requests can be compared:
// "example.com/fpga=2,ephemeral-storage=1073741824", ascending by name, "" for none.
type Counts string

// CountsOf writes a vector. Amounts of zero are left out.
func CountsOf(v Vector) Counts {
	var b strings.Builder
	for _, name := range v.Names() {
		if v[name] == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%d", name, v[name])
	}
	return Counts(b.String())
}

// All yields the amounts, ascending by name, up to the first that is malformed.
func (c Counts) All() iter.Seq2[Name, int64] {
	return func(yield func(Name, int64) bool) {
		for rest := string(c); rest != ""; {
			var entry string
			entry, rest, _ = strings.Cut(rest, ",")
			name, text, _ := strings.Cut(entry, "=")
			amount, err := strconv.ParseInt(text, 10, 64)
			if err != nil || !yield(Name(name), amount) {
				return
			}
		}
	}
}

// Of returns the amount of one resource, 0 where it is none of the counts.
func (c Counts) Of(name Name) int64 {
	for n, amount := range c.All() {
		if n == name {
			return amount
		}
	}
	return 0
}

// Vector returns the amounts.
func (c Counts) Vector() Vector {
	v := Vector{}
	for name, amount := range c.All() {
		v[name] = amount
	}
	return v
}

// validate refuses a text that CountsOf does not write, amounts out of bounds, and pods,
// which a host counts without a request.
func (c Counts) validate() error {
	if c == "" {
		return nil
	}
	if len(c) > MaxCounts*(MaxCountName+20) {
		return fmt.Errorf("counts: %d bytes, want at most %d", len(c), MaxCounts*(MaxCountName+20))
	}
	v := Vector{}
	for name, amount := range c.All() {
		if name == Pods {
			return fmt.Errorf("counts: %s: no request asks for pods, each member takes one of its node", Pods)
		}
		if err := CheckCount(name, amount); err != nil {
			return err
		}
		v[name] = amount
	}
	if len(v) > MaxCounts {
		return fmt.Errorf("counts: %d counted resources, want at most %d", len(v), MaxCounts)
	}
	if CountsOf(v) != c {
		return fmt.Errorf("counts %q: want NAME=AMOUNT, ascending by name, with commas between", clip(string(c)))
	}
	return nil
}

// CheckCount refuses a name that cannot be counted and an amount outside 1..MaxCount.
// A counted resource is pods, ephemeral-storage, or a name with a domain that is none
// of Muster's own.
func CheckCount(name Name, amount int64) error {
	switch {
	case !IsCounted(name):
		return fmt.Errorf("%q is no counted resource: want %s, %s or DOMAIN/NAME outside the domains nvidia.com, muster.io, kubernetes.io and k8s.io", clip(string(name)), Pods, EphemeralStorage)
	case amount < 1 || amount > MaxCount:
		return fmt.Errorf("%s: %d is outside 1..%d", name, amount, int64(MaxCount))
	}
	return nil
}

// ownDomains are the domains of which Muster or Kubernetes defines the names.
var ownDomains = []string{"nvidia.com", "muster.io", "kubernetes.io", "k8s.io"}

// IsCounted reports whether a name is of a resource that hosts count and do not number:
// pods, ephemeral-storage, or one that a node may declare.
func IsCounted(name Name) bool { return name == Pods || name == EphemeralStorage || IsExtended(name) }

// IsExtended reports whether a node may declare an amount of the name: DOMAIN/NAME,
// outside the domains of Muster, NVIDIA and Kubernetes.
func IsExtended(name Name) bool {
	domain, local, found := strings.Cut(string(name), "/")
	if !found || len(name) > MaxCountName || !IsLabelName(local) || !IsSubdomain(domain) {
		return false
	}
	return !slices.ContainsFunc(ownDomains, func(own string) bool { return domain == own || strings.HasSuffix(domain, "."+own) })
}
