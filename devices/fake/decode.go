package fake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// maxProfileBytes bounds the input of ParseProfile.
const maxProfileBytes = 1 << 20

// Machine is a profile as its JSON says it; see profiles/ for examples.
type Machine struct {
	Name           string  `json:"name"`
	Driver         string  `json:"driver"`
	ThreadsPerCore int     `json:"threadsPerCore"`
	CoresPerL3     int     `json:"coresPerL3"` // 0: one L3 group per node
	Nodes          []node  `json:"nodes"`      // numbered from 0
	Distances      [][]int `json:"distances"`  // empty: not told
	GPUs           []GPU   `json:"gpus"`       // ascending by PCI address
	NVLinks        nvlinks `json:"nvlinks"`
}

// node is one NUMA node; without cores it is a memory-only node.
type node struct {
	Socket int      `json:"socket"`
	Cores  int      `json:"cores"`
	Memory Quantity `json:"memory"`
	// Hugepages counts pages by their size in kB; they are part of Memory.
	Hugepages map[int]int64 `json:"hugepages"`
}

// GPU is one card. Path leads from its host bridge through PCIe switches to
// the bridge that it hangs on ("rc0/sw0/sw1"); "rc0" hangs on the bridge itself.
type GPU struct {
	Model    string   `json:"model"`
	Memory   Quantity `json:"memory"`
	PCIBusID string   `json:"pciBusID"`
	NUMANode int      `json:"numaNode"`
	Path     string   `json:"path"`
	Clique   string   `json:"clique"` // CLUSTER-UUID.NUMBER, "" for none
	MIG      *MIG     `json:"mig"`    // nil: a card that cannot be partitioned
}

// MIG is the mode of a card that can be partitioned, with its instances in order.
type MIG struct {
	Enabled   bool       `json:"enabled"`
	Instances []Instance `json:"instances"`
}

// Instance is one MIG instance; its profile is NVML's name, such as 1g.5gb.
type Instance struct {
	Profile string   `json:"profile"`
	Memory  Quantity `json:"memory"`
}

// nvlinks says how many links each GPU has to the NVSwitches, or which GPUs
// are wired to each other.
type nvlinks struct {
	Switched int    `json:"switched"`
	Pairs    []pair `json:"pairs"`
}

type pair struct {
	A     int `json:"a"`
	B     int `json:"b"`
	Links int `json:"links"`
}

// Quantity is an amount of memory written as a quantity, "256Gi". A text that is
// none is kept as its fault, which validation reports with the field's path.
type Quantity struct {
	Bytes resource.Bytes
	fault string
}

// UnmarshalJSON reads a quantity in quotes. It never fails.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	*q = Quantity{}
	var amount string
	if err := json.Unmarshal(text, &amount); err != nil {
		q.fault = fmt.Sprintf("%.40s is not a quantity in quotes such as \"256Gi\"", text)
		return nil //nolint:nilerr // the fault is told with its path, by whoever knows it
	}
	n, err := resource.ParseQuantity(amount, 1)
	if err != nil {
		q.fault = fmt.Sprintf("%.40q: %v", amount, err)
	}
	q.Bytes = resource.Bytes(n)
	return nil
}

// ParseProfile reads a profile from JSON, at most 1 MiB of it. An unknown
// field, a value out of range or a contradiction is an error that names the
// field and the value.
func ParseProfile(text []byte) (Profile, error) {
	if len(text) > maxProfileBytes {
		return Profile{}, fmt.Errorf("profile of %d bytes: at most %d are read", len(text), maxProfileBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var m Machine
	if err := decoder.Decode(&m); err != nil {
		var mistyped *json.UnmarshalTypeError
		if errors.As(err, &mistyped) {
			return Profile{}, fmt.Errorf("profile: %s: a JSON %.40s, want %s", pathAt(text, mistyped.Offset), mistyped.Value, mistyped.Type)
		}
		return Profile{}, fmt.Errorf("profile: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Profile{}, fmt.Errorf("profile: text after the closing brace at byte %d", decoder.InputOffset())
	}
	if err := m.validate(); err != nil {
		return Profile{}, fmt.Errorf("profile %q: %w", m.Name, err)
	}
	for i := range m.GPUs {
		m.GPUs[i].PCIBusID, _ = devices.NormalizePCIBusID(m.GPUs[i].PCIBusID)
	}
	return Profile{Machine: m, Relations: m.relate(), NVLinks: m.countNVLinks()}, nil
}
