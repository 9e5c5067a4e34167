package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
)

// inventoryFile describes the devices that the agent had last, so that a device
// which a grant holds is still named by its model and place after a restart that
// does not find it. The journal, not this file, says which grant holds it.
const inventoryFile = "inventory.json"

// maxInventoryFile bounds the file that is read, in bytes.
const maxInventoryFile = 4 << 20

// keepHeld adds to the host the devices that the ledger's grants hold and that
// the discovery has not found: they stay listed, as lost, while they are held.
// Their return is that of the same device; a card with another UUID in the same
// slot is a new device. It returns the UUIDs of the lost devices.
func (a *Agent) keepHeld(l *ledger.Ledger) ([]string, error) {
	now := a.Host().Inventory()
	missing := heldElsewhere(l.Snapshot(), now)
	if len(missing) == 0 {
		return nil, nil
	}
	known, err := readInventory(a.inventoryPath())
	if err != nil {
		a.log.Warn("inventory_file_unreadable", "error", err, "effect", "lost devices are listed without model and place")
	}
	next, lost := withLost(now, missing, known)
	for _, text := range missingNames(missing, lost) {
		a.log.Warn("lost_device_not_listed", "uuid", text)
	}
	if len(lost) == 0 {
		return nil, nil
	}
	like := a.Host()
	host, err := a.hostOf(like, next)
	if err != nil {
		return nil, fmt.Errorf("agent %s: devices that were lost while a grant holds them: %w", a.config.Node, err)
	}
	if err := l.Rehost(host); err != nil {
		return nil, fmt.Errorf("agent %s: devices that were lost while a grant holds them: %w", a.config.Node, err)
	}
	a.hardware.Store(a.hardwareOf(host))
	a.log.Warn("held_devices_lost", "uuids", lost, "effect", "they stay listed as lost while their grants hold them")
	return lost, nil
}

// missingNames are the UUIDs that could not be listed.
func missingNames(missing map[string]bool, lost []string) []string {
	var list []string
	for uuid := range missing {
		if !slices.Contains(lost, uuid) {
			list = append(list, uuid)
		}
	}
	slices.Sort(list)
	return list
}

// heldElsewhere has the UUIDs of the GPUs and MIG instances that grants hold and
// the inventory lacks; false marks an instance. A device of an
// orphan, or one of the pool that no container has, is not held by anybody.
func heldElsewhere(v *ledger.View, inv *devices.Inventory) map[string]bool {
	here := map[string]bool{}
	for _, d := range inv.Devices {
		here[d.UUID] = true
		for _, m := range d.MIG.Instances {
			here[m.UUID] = true
		}
	}
	missing := map[string]bool{}
	for _, g := range v.Grants {
		if !g.NeedsDevices() {
			continue
		}
		for _, m := range g.Members {
			for _, d := range m.Assignment.GPUs {
				if !here[d.UUID] {
					missing[d.UUID] = true
				}
			}
			for _, d := range m.Assignment.MIG {
				if !here[d.UUID] {
					missing[d.UUID] = false
				}
			}
		}
	}
	return missing
}

// withLost is the inventory with the missing devices behind all others, as known
// describes them, and the UUIDs of those. A GPU that is not known is listed by
// its UUID alone; a MIG instance needs its GPU to be known, and absent.
func withLost(inv *devices.Inventory, missing map[string]bool, known []devices.Device) (*devices.Inventory, []string) {
	next := &devices.Inventory{Driver: inv.Driver, Devices: slices.Clone(inv.Devices)}
	present := map[string]bool{}
	for _, d := range inv.Devices {
		present[d.UUID] = true
	}
	var lost []string
	add := func(d devices.Device) {
		if len(next.Devices) == devices.MaxDevices || present[d.UUID] {
			return
		}
		present[d.UUID] = true
		d.Index, d.Health = len(next.Devices), devices.Tainted
		next.Devices = append(next.Devices, d)
		lost = append(lost, d.UUID)
		for _, m := range d.MIG.Instances {
			lost = append(lost, m.UUID)
		}
	}
	for _, d := range known {
		_, held := missing[d.UUID]
		for _, m := range d.MIG.Instances {
			_, has := missing[m.UUID]
			held = held || has
		}
		if held {
			add(d)
		}
	}
	for _, uuid := range missingNames(missing, lost) {
		if missing[uuid] { // a GPU
			add(devices.Device{UUID: uuid, NUMANode: devices.UnknownNode})
		}
	}
	next.Links = make([][]devices.Link, len(next.Devices))
	for i := range next.Links {
		next.Links[i] = make([]devices.Link, len(next.Devices))
		for j := range next.Links[i] {
			switch {
			case i == j:
			case i < len(inv.Devices) && j < len(inv.Devices):
				next.Links[i][j] = inv.Links[i][j]
			default:
				next.Links[i][j] = devices.LinkSYS
			}
		}
	}
	return next, lost
}

func (a *Agent) inventoryPath() string { return filepath.Join(a.config.DataDir, inventoryFile) }

// rememberInventory replaces the file. A failure costs the description of a
// device that is lost later, and nothing else.
func (a *Agent) rememberInventory() {
	data, err := json.MarshalIndent(a.Host().Inventory().Devices, "", "  ")
	if err == nil {
		err = replaceFile(a.inventoryPath(), data)
	}
	if err != nil {
		a.log.Warn("inventory_file_not_written", "error", err)
	}
}

// replaceFile puts data in the place of the file at path in one step.
func replaceFile(path string, data []byte) error {
	fresh := path + ".new"
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// readInventory reads the devices that rememberInventory wrote, none where there
// is no file.
func readInventory(path string) ([]devices.Device, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxInventoryFile+1))
	if err != nil {
		return nil, err
	}
	return decodeInventory(data)
}

// decodeInventory checks what it reads as an inventory is checked.
func decodeInventory(data []byte) ([]devices.Device, error) {
	if len(data) > maxInventoryFile {
		return nil, fmt.Errorf("inventory: more than %d bytes", maxInventoryFile)
	}
	var list []devices.Device
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	inv := &devices.Inventory{Devices: list, Links: make([][]devices.Link, len(list))}
	for i := range list {
		list[i].Index, list[i].Health = i, devices.OK
		list[i].NUMANode = max(list[i].NUMANode, devices.UnknownNode)
		inv.Links[i] = make([]devices.Link, len(list))
		for j := range inv.Links[i] {
			if i != j {
				inv.Links[i][j] = devices.LinkSYS
			}
		}
	}
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	return list, nil
}
