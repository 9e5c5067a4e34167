package shim

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// number is a pointer to a number.
func number(n int64) *int64 { return &n }

func TestTheSumsOfACgroup(t *testing.T) {
	full := map[string]string{
		"cpu.stat": "usage_usec 7250000\nuser_usec 7000000\nsystem_usec 250000\n", "memory.current": "4096\n", "memory.peak": "8192\n",
		"memory.events": "low 0\nhigh 1\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n",
	}
	for name, c := range map[string]struct {
		change map[string]string // "" removes a file
		want   Use
		ok     bool
	}{
		"all files":                   {nil, Use{Version: 1, CPUMillis: 7250, MemoryBytes: 4096, PeakMemoryBytes: 8192, OOMKills: number(2)}, true},
		"a kernel without peaks":      {map[string]string{"memory.peak": ""}, Use{Version: 1, CPUMillis: 7250, MemoryBytes: 4096, PeakMemoryBytes: 4096, OOMKills: number(2)}, true},
		"no memory controller":        {map[string]string{"memory.current": "", "memory.events": ""}, Use{}, false},
		"no processor time":           {map[string]string{"cpu.stat": "nr_periods 0\n"}, Use{}, false},
		"a number that is none":       {map[string]string{"memory.current": "max\n"}, Use{}, false},
		"a number below zero":         {map[string]string{"memory.current": "-1\n"}, Use{}, false},
		"a kernel that counts no end": {map[string]string{"memory.events": "oom 3\n"}, Use{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range full {
				if changed, ok := c.change[file]; ok {
					text = changed
				}
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, ok := cgroupUse(dir); ok != c.ok || !reflect.DeepEqual(got, c.want) {
				t.Errorf("use %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
	if _, ok := cgroupUse(""); ok {
		t.Error("no cgroup has sums")
	}
}

// TestTheUseOnRecordNeverFalls: whatever of both files is there.
func TestTheUseOnRecordNeverFalls(t *testing.T) {
	agent := Use{Version: 1, CPUMillis: 900, MemoryBytes: 70, PeakMemoryBytes: 80, Devices: []DeviceUse{{UUID: "GPU-a", BusyMillis: 5}}}
	end := Use{Version: 1, CPUMillis: 1000, PeakMemoryBytes: 60, OOMKills: number(1)}
	for name, c := range map[string]struct {
		agent, shim *Use
		want        Use
		ok          bool
	}{
		"nothing":            {nil, nil, Use{}, false},
		"samples alone":      {&agent, nil, agent, true},
		"the end alone":      {nil, &end, end, true},
		"samples and an end": {&agent, &end, Use{Version: 1, CPUMillis: 1000, PeakMemoryBytes: 80, OOMKills: number(1), Devices: agent.Devices}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := Folder(t.TempDir())
			if c.agent != nil {
				if err := f.WriteMeasured(*c.agent); err != nil {
					t.Fatal(err)
				}
			}
			if c.shim != nil {
				if err := f.write(useFile, *c.shim); err != nil {
					t.Fatal(err)
				}
			}
			if got, ok := f.Measured(); ok != c.ok || !reflect.DeepEqual(got, c.want) {
				t.Errorf("use %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestProcessesBelowAProcess(t *testing.T) {
	s := Sample{children: map[int][]int{1: {2, 9}, 2: {3, 4}, 4: {5}, 7: {8}, 8: {7}}}
	for name, c := range map[string]struct {
		of   int
		want []int
	}{"a tree": {2, []int{3, 4, 5}}, "a leaf": {5, nil}, "a circle of two looks": {7, []int{8}}, "nobody": {99, nil}} {
		t.Run(name, func(t *testing.T) {
			if got := s.Below(c.of); !reflect.DeepEqual(got, c.want) {
				t.Errorf("processes %v, want %v", got, c.want)
			}
		})
	}
}

// TestAUseOfAllDevicesIsReadBack: the bounds of the file and of its entries fit together.
func TestAUseOfAllDevicesIsReadBack(t *testing.T) {
	most := Use{Version: 1, CPUMillis: math.MaxInt64, MemoryBytes: math.MaxInt64, PeakMemoryBytes: math.MaxInt64, OOMKills: number(math.MaxInt64)}
	for i := range maxDevices {
		most.Devices = append(most.Devices, DeviceUse{fmt.Sprintf("GPU-%0252d", i), math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64})
	}
	f := Folder(t.TempDir())
	if err := f.WriteMeasured(most); err != nil {
		t.Fatal(err)
	}
	if got, ok := f.Measured(); !ok || !reflect.DeepEqual(got, most) {
		t.Errorf("%d devices are read back (%v), want %d", len(got.Devices), ok, maxDevices)
	}
	more := most
	more.Devices = append(slices.Clone(most.Devices), DeviceUse{UUID: "GPU-x"})
	if err := f.WriteMeasured(more); err == nil {
		t.Error("more devices than can be read are written")
	}
}

// TestAWriteThatFailsKeepsTheEarlierUse: half a file takes the place of no whole one.
func TestAWriteThatFailsKeepsTheEarlierUse(t *testing.T) {
	f := Folder(t.TempDir())
	first := Use{Version: 1, CPUMillis: 7}
	if err := f.WriteMeasured(first); err != nil {
		t.Fatal(err)
	}
	// As on a full disk: the temporary file is there, and takes no byte.
	if err := os.Symlink("/dev/full", f.path(measuredFile+".tmp")); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteMeasured(Use{Version: 1, CPUMillis: 8}); err == nil {
		t.Fatal("a full disk takes a file")
	}
	if got, ok := f.Measured(); !ok || !reflect.DeepEqual(got, first) {
		t.Errorf("use %+v, %v after a failed write, want %+v", got, ok, first)
	}
}
