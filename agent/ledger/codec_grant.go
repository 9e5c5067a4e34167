package ledger

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Flags of an encoded grant.
const (
	flagIncarnation = 1 << iota // an incarnation follows; else the present one
	flagWasWaiting
	flagDisowned // since version 3
)

func appendGrant(dst []byte, g *Grant) []byte {
	var flags byte
	if !g.Incarnation.IsZero() {
		flags |= flagIncarnation
	}
	if g.WasWaiting {
		flags |= flagWasWaiting
	}
	if g.Disowned {
		flags |= flagDisowned
	}
	dst = append(dst, flags, byte(g.Origin), byte(g.State))
	dst = appendText(appendText(dst, string(g.Tx)), string(g.Unit))
	dst = appendInt(appendInt(dst, int64(g.Epoch)), int64(g.Revision))
	if flags&flagIncarnation != 0 {
		dst = appendIncarnation(dst, g.Incarnation)
	}
	dst = appendTime(appendTime(dst, g.Since), g.Deadline)
	dst = appendInt(appendInt(dst, int64(g.TTL)), int64(g.Grace))
	dst = appendText(appendText(dst, string(g.By)), g.Reason)
	dst = binary.AppendUvarint(dst, uint64(len(g.Victims)))
	for _, v := range g.Victims {
		dst = appendText(dst, string(v))
	}
	dst = binary.AppendUvarint(dst, uint64(len(g.Members)))
	for i := range g.Members {
		dst = appendMember(dst, &g.Members[i])
	}
	dst = appendText(appendText(dst, g.Name), string(g.Tenant))
	return binary.AppendUvarint(dst, uint64(g.UnitMembers))
}

func appendMember(dst []byte, m *Holding) []byte {
	dst = binary.AppendUvarint(dst, uint64(m.Index))
	if m.Request == (resource.Request{}) {
		dst = append(dst, 0)
	} else {
		dst = appendRequest(append(dst, 1), &m.Request)
	}
	return appendAssignment(dst, &m.Assignment)
}

func appendRequest(dst []byte, q *resource.Request) []byte {
	dst = appendInt(appendInt(appendInt(dst, int64(q.CPU)), int64(q.Memory)), int64(q.GPUs))
	dst = appendText(appendInt(dst, int64(q.GPUShare)), q.GPUModel)
	dst = append(appendInt(dst, int64(q.GPUMemory)), byte(q.NUMA), byte(q.Link))
	dst = appendInt(appendInt(appendInt(dst, int64(q.Cores)), int64(q.Hugepages)), int64(q.HugepageSize))
	return appendText(appendText(appendInt(dst, int64(q.MIG)), q.MIGProfile), string(q.Counts))
}

func appendAssignment(dst []byte, a *resource.Assignment) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(a.CPUs)))
	last := -1
	for _, c := range a.CPUs {
		dst = binary.AppendUvarint(dst, uint64(c.ID-last-1))
		dst = binary.AppendUvarint(dst, uint64(c.Milli))
		last = c.ID
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.Memory)))
	last = -1
	for _, g := range a.Memory {
		dst = binary.AppendUvarint(dst, uint64(g.Node-last-1))
		dst = binary.AppendUvarint(dst, uint64(g.Bytes))
		last = g.Node
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.GPUs)))
	for _, g := range a.GPUs {
		dst = binary.AppendUvarint(dst, uint64(g.Index))
		dst = binary.AppendUvarint(dst, uint64(g.Milli))
		dst = appendText(dst, g.UUID)
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.Hugepages)))
	for _, g := range a.Hugepages {
		dst = binary.AppendUvarint(dst, uint64(g.Node))
		dst = binary.AppendUvarint(dst, uint64(g.Size))
		dst = binary.AppendUvarint(dst, uint64(g.Bytes))
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.MIG)))
	for _, g := range a.MIG {
		dst = binary.AppendUvarint(dst, uint64(g.GPU))
		dst = binary.AppendUvarint(dst, uint64(g.Instance))
		dst = appendText(appendText(dst, g.UUID), g.Profile)
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.Counts)))
	for _, g := range a.Counts {
		dst = binary.AppendUvarint(appendText(dst, string(g.Name)), uint64(g.Amount))
	}
	return dst
}

func (r *reader) grant() Grant {
	flags := r.byte()
	if flags >= flagDisowned<<1 || r.version < 3 && flags&flagDisowned != 0 {
		r.fail("grant flags %#x are unknown", flags)
	}
	g := Grant{Origin: Origin(r.byte()), State: grant.State(r.byte()), WasWaiting: flags&flagWasWaiting != 0, Disowned: flags&flagDisowned != 0}
	if g.Origin > OriginOrphan || g.State == grant.None || g.State > grant.Tombstone {
		r.fail("origin %d or state %d is unknown", g.Origin, g.State)
	}
	g.Tx, g.Unit = resource.TxID(r.text()), resource.UnitUID(r.text())
	g.Epoch, g.Revision = resource.Epoch(r.int()), resource.Revision(r.int())
	if flags&flagIncarnation != 0 {
		if g.Incarnation = r.incarnation(); g.Incarnation.IsZero() {
			r.fail("the incarnation is empty")
		}
	}
	g.Since, g.Deadline = r.time(), r.time()
	g.TTL, g.Grace = time.Duration(r.int()), time.Duration(r.int())
	g.By, g.Reason = resource.TxID(r.text()), r.text()
	for n := r.atMost("victims", r.count("victims", 1), MaxVictims); n > 0 && r.err == nil; n-- {
		g.Victims = append(g.Victims, resource.TxID(r.text()))
	}
	last := -1
	for n := r.atMost("members", r.count("members", 5), MaxMembers); n > 0 && r.err == nil; n-- {
		m := r.member()
		if m.Index <= last {
			r.fail("member %d follows member %d", m.Index, last)
		}
		last = m.Index
		g.Members = append(g.Members, m)
	}
	if r.version > 2 {
		g.Name, g.Tenant = r.text(), resource.TenantID(r.text())
	}
	if r.version > 3 {
		g.UnitMembers = r.upTo("members of the unit", MaxUnitMembers)
	}
	if g.UnitMembers > 0 && last >= g.UnitMembers {
		r.fail("member %d is not one of %d", last, g.UnitMembers)
	}
	if (len(g.Members) == 0) != (g.State == grant.Tombstone) || len(g.Victims) > 0 && g.State != grant.Waiting {
		r.fail("a grant %s has %d members and %d victims", g.State, len(g.Members), len(g.Victims))
	}
	return g
}

func (r *reader) member() Holding {
	m := Holding{Index: r.upTo("member", 1<<31)}
	if r.bool() {
		m.Request = r.request()
		if err := m.Request.Validate(); err != nil && r.err == nil {
			r.err = fmt.Errorf("request of member %d: %w", m.Index, err)
		}
	}
	r.host(&m.Assignment)
	r.gpus(&m.Assignment)
	if r.version > 1 {
		r.hugepages(&m.Assignment)
		r.mig(&m.Assignment)
	}
	if r.version > 4 {
		r.counts(&m.Assignment)
	}
	return m
}

func (r *reader) request() resource.Request {
	var q resource.Request
	q.CPU, q.Memory, q.GPUs = resource.Millicores(r.int()), resource.Bytes(r.int()), int(r.int())
	q.GPUShare, q.GPUModel = resource.Milli(r.int()), r.text()
	q.GPUMemory, q.NUMA, q.Link = resource.Bytes(r.int()), resource.NUMAPolicy(r.byte()), resource.LinkRequirement(r.byte())
	if r.version > 1 {
		q.Cores, q.Hugepages, q.HugepageSize = int(r.int()), resource.Bytes(r.int()), resource.Bytes(r.int())
		q.MIG, q.MIGProfile = int(r.int()), r.text()
	}
	if r.version > 4 {
		q.Counts = resource.Counts(r.text())
	}
	return q
}

// host reads CPUs and memory.
func (r *reader) host(a *resource.Assignment) {
	last := -1
	for n := r.count("cpus", 2); n > 0 && r.err == nil; n-- {
		c := resource.CPUGrant{ID: r.index("cpu", last), Milli: resource.Millicores(r.amount("millicores", uint64(resource.WholeCPU)))}
		a.CPUs, last = append(a.CPUs, c), c.ID
	}
	last = -1
	for n := r.count("memory", 2); n > 0 && r.err == nil; n-- {
		g := resource.MemoryGrant{Node: r.index("node", last), Bytes: resource.Bytes(r.amount("bytes", uint64(resource.MaxMemory)))}
		a.Memory, last = append(a.Memory, g), g.Node
	}
}

func (r *reader) gpus(a *resource.Assignment) {
	for n := r.count("gpus", 3); n > 0 && r.err == nil; n-- {
		g := resource.GPUGrant{Index: r.upTo("gpu", bitset.MaxMember), Milli: resource.Milli(r.amount("device-milli", uint64(resource.WholeDevice))), UUID: r.text()}
		if k := len(a.GPUs); k > 0 && a.GPUs[k-1].Index >= g.Index || g.UUID == "" {
			r.fail("gpu %d (%q) is out of order, or has no UUID", g.Index, g.UUID)
		}
		a.GPUs = append(a.GPUs, g)
	}
}

func (r *reader) hugepages(a *resource.Assignment) {
	for n := r.count("huge pages", 3); n > 0 && r.err == nil; n-- {
		g := resource.HugepageGrant{
			Node: r.upTo("node", bitset.MaxMember), Size: resource.Bytes(r.amount("bytes of a page", uint64(resource.MaxHugepageSize))),
			Bytes: resource.Bytes(r.amount("bytes", uint64(resource.MaxMemory))),
		}
		if r.err == nil && g.Bytes%g.Size != 0 {
			r.fail("%d bytes of node %d are not whole pages of %d bytes", g.Bytes, g.Node, g.Size)
		}
		if k := len(a.Hugepages); k > 0 && cmp.Or(cmp.Compare(a.Hugepages[k-1].Node, g.Node), cmp.Compare(a.Hugepages[k-1].Size, g.Size)) >= 0 {
			r.fail("pages of %d bytes of node %d are out of order", g.Size, g.Node)
		}
		a.Hugepages = append(a.Hugepages, g)
	}
}

func (r *reader) mig(a *resource.Assignment) {
	for n := r.count("MIG instances", 4); n > 0 && r.err == nil; n-- {
		g := resource.MIGGrant{
			GPU: r.upTo("gpu", bitset.MaxMember), Instance: r.upTo("MIG instance", devices.MaxMIGInstances-1), UUID: r.text(), Profile: r.text(),
		}
		if k := len(a.MIG); k > 0 && cmp.Or(cmp.Compare(a.MIG[k-1].GPU, g.GPU), cmp.Compare(a.MIG[k-1].Instance, g.Instance)) >= 0 || g.UUID == "" {
			r.fail("MIG instance %d of GPU %d (%q) is out of order, or has no UUID", g.Instance, g.GPU, g.UUID)
		}
		if err := resource.ValidMIGProfile(g.Profile); err != nil && r.err == nil {
			r.err = fmt.Errorf("MIG instance %d of GPU %d: %w", g.Instance, g.GPU, err)
		}
		a.MIG = append(a.MIG, g)
	}
}

func (r *reader) counts(a *resource.Assignment) {
	for n := r.atMost("counted resources", r.count("counted resources", 2), resource.MaxCounts); n > 0 && r.err == nil; n-- {
		g := resource.CountGrant{Name: resource.Name(r.text()), Amount: r.amount("of a counted resource", resource.MaxCount)}
		if err := resource.CheckCount(g.Name, g.Amount); err != nil && r.err == nil {
			r.err = err
		}
		if k := len(a.Counts); k > 0 && a.Counts[k-1].Name >= g.Name {
			r.fail("%q is out of order", g.Name)
		}
		a.Counts = append(a.Counts, g)
	}
}
