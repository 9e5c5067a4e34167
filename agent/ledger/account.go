package ledger

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// account counts how much of one host is owned, but not by which grants: the
// free resources, and the owned ones that the host does not have (see lost).
// Both follow from the host and the assignments taken alone, in any order of
// taking and giving back, and through any other hosts in between.
//
// Invariant: where lost has memory or pages of a pool, none of that pool is
// free; of a GPU in MIG mode that somebody owns as a whole or in shares, no
// instance is free (shut holds those that nobody owns).
type account struct {
	places *places
	free   *fit.Free
	lost   lost
	shut   []resource.MIGGrant
}

func newAccount(p *places) account { return account{places: p, free: p.host.NewFree()} }

// copyFrom makes a equal to b. It allocates nothing where nothing is lost and
// both are of the same host.
func (a *account) copyFrom(b *account) {
	if a.places != b.places {
		*a = newAccount(b.places)
	}
	a.free.CopyFrom(b.free)
	a.lost = b.lost.clone()
	a.shut = slices.Clone(b.shut)
}

// take makes an assignment owned: all of it or, with an error, nothing.
// Resources that the host lacks are owned all the same. An error is a
// contradiction: another grant owns a part. The indices of the assignment must
// be those of this host (see places.reindex).
func (a *account) take(what *resource.Assignment) error {
	err := a.places.host.Take(a.free, *what)
	if err == nil {
		return nil
	}
	part, rest := a.split(what)
	if rest.IsZero() && a.shut == nil {
		return err
	}
	if err := a.lost.refuses(rest); err != nil {
		return err
	}
	a.open()
	if err := a.places.host.Take(a.free, part); err != nil {
		a.close()
		return err
	}
	a.lost.add(rest)
	a.close()
	return nil
}

// give ends the ownership of an assignment that was taken.
func (a *account) give(what *resource.Assignment) {
	part := *what
	if !a.lost.isZero() {
		a.open()
		part = a.lost.sub(a.places, what)
		defer a.close()
	}
	if err := a.places.host.Give(a.free, part); err != nil {
		panic(fmt.Sprintf("ledger: %v", err))
	}
}

// split parts an assignment into the resources that the host has and the rest.
// Of memory and pages, the host has the free ones.
func (a *account) split(what *resource.Assignment) (part, rest resource.Assignment) {
	for _, g := range what.CPUs {
		if a.places.hasCPU(g.ID) {
			part.CPUs = append(part.CPUs, g)
		} else {
			rest.CPUs = append(rest.CPUs, g)
		}
	}
	for _, g := range what.Memory {
		got := min(g.Bytes, a.places.memory(a.free, g.Node))
		part.Memory, rest.Memory = parted(part.Memory, rest.Memory, g, got)
	}
	for _, g := range what.Hugepages {
		got := min(g.Bytes, a.places.pages(a.free, g.Node, g.Size))
		part.Hugepages, rest.Hugepages = partedPages(part.Hugepages, rest.Hugepages, g, got)
	}
	for _, g := range what.GPUs {
		if a.places.hasGPU(g.Index, g.UUID) {
			part.GPUs = append(part.GPUs, g)
		} else {
			rest.GPUs = append(rest.GPUs, g)
		}
	}
	for _, g := range what.MIG {
		if a.places.hasMIG(g.UUID) {
			part.MIG = append(part.MIG, g)
		} else {
			rest.MIG = append(rest.MIG, g)
		}
	}
	for _, g := range what.Counts {
		got := min(g.Amount, a.places.host.FreePart(a.free, g.Name))
		part.Counts, rest.Counts = partedCounts(part.Counts, rest.Counts, g, got)
	}
	return part, rest
}

// parted adds got bytes of g to part and the others to rest.
func parted(part, rest []resource.MemoryGrant, g resource.MemoryGrant, got resource.Bytes) (p, r []resource.MemoryGrant) {
	if got > 0 {
		part = append(part, resource.MemoryGrant{Node: g.Node, Bytes: got})
	}
	if got < g.Bytes {
		rest = append(rest, resource.MemoryGrant{Node: g.Node, Bytes: g.Bytes - got})
	}
	return part, rest
}

func partedPages(part, rest []resource.HugepageGrant, g resource.HugepageGrant, got resource.Bytes) (p, r []resource.HugepageGrant) {
	if got > 0 {
		part = append(part, resource.HugepageGrant{Node: g.Node, Size: g.Size, Bytes: got})
	}
	if got < g.Bytes {
		rest = append(rest, resource.HugepageGrant{Node: g.Node, Size: g.Size, Bytes: g.Bytes - got})
	}
	return part, rest
}

func partedCounts(part, rest []resource.CountGrant, g resource.CountGrant, got int64) (p, r []resource.CountGrant) {
	if got > 0 {
		part = append(part, resource.CountGrant{Name: g.Name, Amount: got})
	}
	if got < g.Amount {
		rest = append(rest, resource.CountGrant{Name: g.Name, Amount: g.Amount - got})
	}
	return part, rest
}

// open frees the instances that close took.
func (a *account) open() {
	for i := range a.shut {
		if err := a.places.host.Give(a.free, resource.Assignment{MIG: a.shut[i : i+1]}); err != nil {
			panic(fmt.Sprintf("ledger: %v", err))
		}
	}
	a.shut = nil
}

// close takes the free instances of GPUs that somebody owns as a whole or in
// shares: they went into MIG mode under their owner.
func (a *account) close() {
	for uuid := range a.lost.gpus {
		a.shut = a.places.freeInstances(a.free, uuid, a.shut)
	}
	for i := range a.shut {
		if err := a.places.host.Take(a.free, resource.Assignment{MIG: a.shut[i : i+1]}); err != nil {
			panic(fmt.Sprintf("ledger: %v", err))
		}
	}
}

// differs names the first difference to an account of the same host.
func (a *account) differs(b *account) string {
	x, y := a.free, b.free
	switch {
	case !slices.Equal(x.GPU, y.GPU):
		return fmt.Sprintf("free GPUs are %v, the grants leave %v", x.GPU, y.GPU)
	case !slices.Equal(x.CPU, y.CPU):
		return fmt.Sprintf("free CPUs are %v, the grants leave %v", x.CPU, y.CPU)
	case !slices.Equal(x.Memory, y.Memory):
		return fmt.Sprintf("free memory is %v, the grants leave %v", x.Memory, y.Memory)
	case !slices.Equal(x.Hugepages, y.Hugepages):
		return fmt.Sprintf("free huge pages are %v, the grants leave %v", x.Hugepages, y.Hugepages)
	case !slices.Equal(x.MIG, y.MIG):
		return fmt.Sprintf("free MIG instances are %x, the grants leave %x", x.MIG, y.MIG)
	case !slices.Equal(x.Counts, y.Counts):
		return fmt.Sprintf("free counted resources are %v, the grants leave %v", x.Counts, y.Counts)
	}
	return a.lost.differs(&b.lost)
}
