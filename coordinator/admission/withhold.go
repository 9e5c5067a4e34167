package admission

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// This file chooses the devices beyond the bounds of a node, which take no new work. A
// granted device stays granted. Other amounts are withheld as amounts, of no
// particular CPUs: see fit.Withheld.

// Device is a device of a node, as the choice needs to know the device.
type Device struct {
	Model string
	MIG   bool // the device is in MIG mode
	// Free is the free part, of instances in MIG mode.
	Free resource.Milli
	// Pooled: the kubelet of the host hands the device out. Sick: the device takes no new
	// work anyway. Withheld: an earlier choice has the device.
	Pooled, Sick, Withheld bool
}

// Withhold chooses the least devices beyond the bounds, at most 64, and returns their bits.
// All devices of a model are equal in the approval, which has no UUIDs. link is the
// bandwidth class between two devices, 0 between a device and itself. The choice is a
// function of the arguments.
//
// Used devices are chosen only where too few are free. They take no new work
// until another device becomes free, which then is chosen in their place.
func (b Bounds) Withhold(devices []Device, link func(i, j int) int) uint64 {
	most, limited := b.Amounts[resource.GPU]
	if !limited && b.Models == nil {
		return 0
	}
	c := choice{devices: devices, link: link}
	whole := 0
	for i, d := range devices {
		if c.left = append(c.left, i); !d.MIG {
			whole++
		}
	}
	over := 0 // whole devices still to be taken
	if limited {
		over = whole - int(most/int64(resource.WholeDevice))
	}
	if b.Models != nil {
		over = c.takeModels(b.Models, over)
	}
	for range over {
		c.take(false, "")
	}
	return c.chosen
}

// choice is a choice under way.
type choice struct {
	devices []Device
	link    func(i, j int) int
	left    []int // the other devices, ascending
	chosen  uint64
}

// takeModels takes the devices of which there are more than the bound of their model, and
// returns how many of over whole devices are then still to be taken. Beyond the necessary
// whole devices come further whole devices as long as these are too many anyway, then devices
// in MIG mode: so as few devices as possible are taken.
func (c *choice) takeModels(bound map[string]int, over int) int {
	models := map[string]bool{}
	for i := range c.devices {
		models[c.devices[i].Model] = true
	}
	names := slices.Sorted(maps.Keys(models))
	for _, model := range names {
		whole, _ := c.count(model)
		for range whole - bound[model] {
			c.take(false, model)
			over--
		}
	}
	for _, model := range names {
		whole, mig := c.count(model)
		for range whole + mig - bound[model] {
			if over > 0 && whole > 0 {
				c.take(false, model)
				over, whole = over-1, whole-1
			} else {
				c.take(true, model)
			}
		}
	}
	return over
}

// count counts the devices of a model among those left.
func (c *choice) count(model string) (whole, mig int) {
	for _, i := range c.left {
		switch d := &c.devices[i]; {
		case d.Model != model:
		case d.MIG:
			mig++
		default:
			whole++
		}
	}
	return whole, mig
}

// take takes the least useful device in MIG mode, or whole device, of a model, "" for any: a
// device of the kubelet's pool, which takes no new work anyway, then a sick device, then a free
// device, then the device with the greatest free part. Among sick devices, and among free
// devices, those of the earlier choice come first. Among equal devices comes the device with
// the weakest links to the other whole devices left, then the last.
func (c *choice) take(mig bool, model string) {
	rank := func(i int) int {
		d := &c.devices[i]
		switch {
		case d.Pooled:
			return 0
		case d.Sick && d.Withheld:
			return 1
		case d.Sick:
			return 2
		case d.Free == resource.WholeDevice && d.Withheld:
			return 3
		case d.Free == resource.WholeDevice:
			return 4
		}
		return 5
	}
	links := func(i int) (sum int) {
		for _, j := range c.left {
			if !c.devices[j].MIG {
				sum += c.link(i, j)
			}
		}
		return sum
	}
	of := slices.DeleteFunc(slices.Clone(c.left), func(i int) bool {
		return c.devices[i].MIG != mig || model != "" && c.devices[i].Model != model
	})
	at := slices.MinFunc(of, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(c.devices[b].Free, c.devices[a].Free), cmp.Compare(links(a), links(b)), cmp.Compare(b, a))
	})
	c.chosen |= 1 << at
	c.left = slices.DeleteFunc(c.left, func(i int) bool { return i == at })
}
