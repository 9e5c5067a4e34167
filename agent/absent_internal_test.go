package agent

import (
	"encoding/json"
	"testing"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
)

// FuzzDecodeInventory: no file crashes the agent, and what is read can be added
// to any host.
func FuzzDecodeInventory(f *testing.F) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		f.Fatal(err)
	}
	whole, err := json.Marshal(profile.Inventory("n1").Devices)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(whole), "", "[]", "null", `[{"UUID":"GPU-a","NUMANode":-9}]`, `[{"UUID":"../x"}]`, `[{"UUID":"GPU-a","MIG":{"Instances":[{"UUID":"MIG-1"}]}}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		known, err := decodeInventory(data)
		if err != nil {
			return
		}
		missing := map[string]bool{"GPU-elsewhere": true}
		for _, d := range known {
			missing[d.UUID] = true
		}
		next, lost := withLost(&devices.Inventory{}, missing, known)
		if err := next.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(known) < devices.MaxDevices && len(lost) < len(known)+1 {
			t.Fatalf("%d of %d devices are listed", len(lost), len(known)+1)
		}
	})
}
