package ledger_test

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// thing is one thing that can be owned, named as the hardware names it.
type thing struct {
	kind byte           // 'c'pu, 'm'emory of a node, 'p'ages of a node, 'g'pu, MIG 'i'nstance
	id   int            // of the CPU or node
	size resource.Bytes // of a page
	uuid string
}

func (x thing) String() string { return fmt.Sprintf("%c%d/%d/%s", x.kind, x.id, x.size, x.uuid) }

// amounts is how much of each thing.
type amounts map[thing]int64

func (a amounts) add(what resource.Assignment) {
	for _, c := range what.CPUs {
		a[thing{kind: 'c', id: c.ID}] += int64(c.Milli)
	}
	for _, g := range what.Memory {
		a[thing{kind: 'm', id: g.Node}] += int64(g.Bytes)
	}
	for _, g := range what.Hugepages {
		a[thing{kind: 'p', id: g.Node, size: g.Size}] += int64(g.Bytes)
	}
	for _, g := range what.GPUs {
		a[thing{kind: 'g', uuid: g.UUID}] += int64(g.Milli)
	}
	for _, g := range what.MIG {
		a[thing{kind: 'i', uuid: g.UUID}]++
	}
}

func amountsOf(members []ledger.Holding) amounts {
	a := amounts{}
	for _, m := range members {
		a.add(m.Assignment)
	}
	return a
}

// capacity is all that a host hands out, read from its facts.
func capacity(host *fit.Host) amounts {
	a := amounts{}
	for _, c := range host.Topology().CPUs {
		if c.Usable() && !host.Reserved().CPUs.Has(c.ID) {
			a[thing{kind: 'c', id: c.ID}] = int64(resource.WholeCPU)
		}
	}
	for _, n := range host.Topology().Nodes {
		memory := n.Memory
		for kB, count := range n.Hugepages {
			size := resource.Bytes(kB) << 10
			a[thing{kind: 'p', id: n.ID, size: size}] = int64(size) * count
			memory -= size * resource.Bytes(count)
		}
		a[thing{kind: 'm', id: n.ID}] = int64(memory)
	}
	for _, d := range host.Inventory().Devices {
		if !d.MIG.Enabled {
			a[thing{kind: 'g', uuid: d.UUID}] = int64(resource.WholeDevice)
		}
		for _, m := range d.MIG.Instances {
			a[thing{kind: 'i', uuid: m.UUID}] = 1
		}
	}
	return a
}

// offered is the free capacity of a ledger, in two independent forms that must
// agree: fit's and the view's.
func offered(v *ledger.View) (amounts, error) {
	a, b := amounts{}, amounts{}
	sizes := v.Host.PageSizes()
	for i, c := range v.Host.Topology().CPUs {
		if c.Usable() && !v.Host.Reserved().CPUs.Has(c.ID) {
			a[thing{kind: 'c', id: c.ID}] = int64(v.Free.CPU[i])
			b[thing{kind: 'c', id: c.NUMA}] += int64(v.Free.CPU[i])
		}
	}
	for i, n := range v.Host.Topology().Nodes {
		a[thing{kind: 'm', id: n.ID}] = int64(v.Free.Memory[i])
		for k, size := range sizes {
			if x := (thing{kind: 'p', id: n.ID, size: size}); n.Hugepages[int(size>>10)] > 0 {
				a[x] = int64(v.Free.Hugepages[i*len(sizes)+k])
				b[x] = a[x]
			}
		}
	}
	for i, d := range v.Host.Inventory().Devices {
		if !d.MIG.Enabled {
			a[thing{kind: 'g', uuid: d.UUID}] = int64(v.Free.GPU[i])
		}
		for k, m := range d.MIG.Instances {
			a[thing{kind: 'i', uuid: m.UUID}] = int64(v.Free.MIG[i] >> k & 1)
		}
		if g := v.GPUs[i]; g.UUID != d.UUID || g.Milli != v.Free.GPU[i] || g.MIG != v.Free.MIG[i] {
			return nil, fmt.Errorf("GPU %d is shown as %+v, free are %d milli and instances %x", i, g, v.Free.GPU[i], v.Free.MIG[i])
		}
	}
	for _, n := range v.Nodes {
		shown := fmt.Sprint(n.Hugepages)
		for _, p := range n.Hugepages {
			x := thing{kind: 'p', id: n.ID, size: p.Size}
			if b[x] != int64(p.Bytes) {
				return nil, fmt.Errorf("node %d is shown with pages %s, free are %d", n.ID, shown, b[x])
			}
			delete(b, x)
		}
		if x := (thing{kind: 'c', id: n.ID}); b[x] != int64(n.CPU) || a[thing{kind: 'm', id: n.ID}] != int64(n.Memory) {
			return nil, fmt.Errorf("node %d is shown as %+v, free are %d millicores", n.ID, n, b[x])
		}
	}
	for x := range b {
		if x.kind == 'p' {
			return nil, fmt.Errorf("pages %s are not shown", x)
		}
	}
	return a, nil
}

// owners are the owned amounts by resource and grant, as plain maps.
type owners struct {
	of map[thing]map[resource.TxID]int64
	// waits has, for each grant that waits, the live victims.
	waits map[resource.TxID]map[resource.TxID]bool
	has   map[resource.TxID]amounts
}

func newOwners() *owners {
	return &owners{of: map[thing]map[resource.TxID]int64{}, waits: map[resource.TxID]map[resource.TxID]bool{}, has: map[resource.TxID]amounts{}}
}

// own enters a grant; with victims it waits for them.
func (o *owners) own(tx resource.TxID, members []ledger.Holding, victims []resource.TxID) {
	o.has[tx] = amountsOf(members)
	for x, n := range o.has[tx] {
		if o.of[x] == nil {
			o.of[x] = map[resource.TxID]int64{}
		}
		o.of[x][tx] = n
	}
	if len(victims) > 0 {
		o.waits[tx] = map[resource.TxID]bool{}
		for _, v := range victims {
			o.waits[tx][v] = true
		}
	}
}

// end removes a grant. It returns the grant that waited for it last, or "".
func (o *owners) end(tx resource.TxID) (woken resource.TxID) {
	for x := range o.has[tx] {
		if delete(o.of[x], tx); len(o.of[x]) == 0 {
			delete(o.of, x)
		}
	}
	delete(o.has, tx)
	delete(o.waits, tx)
	for waiting, victims := range o.waits {
		if !victims[tx] {
			continue
		}
		if delete(victims, tx); len(victims) == 0 {
			delete(o.waits, waiting)
			woken = waiting
		}
	}
	return woken
}

// used is how much of a thing is not for others: of a grant that waits and its
// victims, the greater of its amount and theirs. The victims of one, or of "",
// are taken to be gone.
func (o *owners) used(x thing, without resource.TxID) int64 {
	var sum int64
	victimOf := map[resource.TxID]resource.TxID{}
	if len(o.waits) > 0 {
		for waiting, victims := range o.waits {
			for v := range victims {
				victimOf[v] = waiting
			}
		}
	}
	var victims map[resource.TxID]int64 // by the grant that waits
	for tx, n := range o.of[x] {
		if waiting, ok := victimOf[tx]; ok {
			if victims == nil {
				victims = map[resource.TxID]int64{}
			}
			victims[waiting] += n
			continue
		}
		if _, waits := o.waits[tx]; !waits {
			sum += n
		}
	}
	for waiting := range o.waits {
		if waiting == without {
			sum += o.of[x][waiting]
		} else {
			sum += max(o.of[x][waiting], victims[waiting])
		}
	}
	return sum
}

// free is the amount that the host may offer of each resource. Of a card that
// went into MIG mode under its owner no instance is offered.
func (o *owners) free(host *fit.Host) amounts {
	a := capacity(host)
	for x, n := range a {
		a[x] = max(0, n-o.used(x, ""))
	}
	for _, d := range host.Inventory().Devices {
		if o.used(thing{kind: 'g', uuid: d.UUID}, "") > 0 {
			for _, m := range d.MIG.Instances {
				a[thing{kind: 'i', uuid: m.UUID}] = 0
			}
		}
	}
	return a
}

// overbooked names a thing of which a new grant has more than there will be
// once its victims are gone: the owned amount, the grant included, exceeds the
// host's, or it is an instance of a card that somebody owns as a whole.
func (o *owners) overbooked(tx resource.TxID, full amounts) error {
	for x := range o.has[tx] {
		if used := o.used(x, tx); used > full[x] {
			return fmt.Errorf("%d of %s are owned by %v, the host has %d", used, x, o.of[x], full[x])
		}
		if x.kind != 'i' {
			continue
		}
		for y, who := range o.of {
			if y.kind == 'g' && strings.HasPrefix(x.uuid, "MIG-"+y.uuid+"-") && full[y] == 0 && o.used(y, tx) > 0 {
				return fmt.Errorf("%s is given out and its card %s belongs to %v", x, y, who)
			}
		}
	}
	return nil
}
