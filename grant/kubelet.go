package grant

import (
	"fmt"
	"slices"
)

const (
	// MaxKubeletPool is the most devices of each list of a KubeletPool, and of the pool in
	// an agent's configuration.
	MaxKubeletPool = 512
	// MaxKubeletContainers is the most containers that one report of a host names.
	MaxKubeletContainers = 512
)

// KubeletPool is the operators' part of the pool of devices that the kubelet of a host
// hands out, by the UUIDs of GPUs and MIG instances. It wins over the agent's
// configuration device by device. The zero value leaves the configuration alone.
//
// Invariant: no device is in both lists, and none is twice in one of them.
type KubeletPool struct{ Add, Remove []string }

func (KubeletPool) command() {}

// LedgerCommand marks a command that an agent's ledger decides.
func (KubeletPool) LedgerCommand() {}

// Check verifies the invariant and the bounds of both lists. The error names the device.
func (p KubeletPool) Check() error {
	if max(len(p.Add), len(p.Remove)) > MaxKubeletPool {
		return fmt.Errorf("kubelet pool: %d devices to add and %d to remove, want at most %d each", len(p.Add), len(p.Remove), MaxKubeletPool)
	}
	named := map[string]bool{}
	for _, uuid := range slices.Concat(p.Add, p.Remove) {
		if named[uuid] {
			return fmt.Errorf("kubelet pool: device %.64q is named twice, want each device once in add or in remove", uuid)
		}
		named[uuid] = true
	}
	return nil
}

// IsZero reports whether the operators have named no device.
func (p KubeletPool) IsZero() bool { return len(p.Add)+len(p.Remove) == 0 }

// Equal reports whether two pools name the same devices, in the same order.
func (p KubeletPool) Equal(o KubeletPool) bool {
	return slices.Equal(p.Add, o.Add) && slices.Equal(p.Remove, o.Remove)
}

// Clone is a copy that shares nothing.
func (p KubeletPool) Clone() KubeletPool {
	return KubeletPool{Add: slices.Clone(p.Add), Remove: slices.Clone(p.Remove)}
}

// Over is the pool of an agent whose configuration lists some devices: each once, the
// configured ones first.
func (p KubeletPool) Over(configured []string) []string {
	var pool []string
	for _, uuid := range slices.Concat(configured, p.Add) {
		if !slices.Contains(p.Remove, uuid) && !slices.Contains(pool, uuid) {
			pool = append(pool, uuid)
		}
	}
	return pool
}
