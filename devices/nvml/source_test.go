//go:build cgo && linux

package nvml_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
	"github.com/musterd/muster/devices/nvml"
	nvmltest "github.com/musterd/muster/test/nvml"
)

func gpu2(t *testing.T) fake.Profile {
	t.Helper()
	p, err := fake.Lookup("gpu2")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// addresses lists where the usable cards are.
func addresses(inv *devices.Inventory) []string {
	var list []string
	for _, d := range inv.Devices {
		list = append(list, d.PCIBusID)
	}
	return list
}

func TestFaultyCardsAreLeftOutWithAWarningAndTheRestIsUsable(t *testing.T) {
	libDir := nvmltest.Build(t)
	first := gpu2(t).Inventory("n1").Devices[0].UUID
	second := gpu2(t).Inventory("n1").Devices[1].UUID
	both := []string{"0000:01:00.0", "0000:02:00.0"}
	for name, c := range map[string]struct {
		old, replacement string
		want             []string
		wantWarning      []string // parts of the only warning; nil: none
	}{
		"a lost card":               {"name NVIDIA L40S\n", "name NVIDIA L40S\nlost\n", both[1:], []string{"GPU 0 at 0000:01:00.0", "lost"}},
		"a card without handle":     {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail handle 15\n", both[1:], []string{"GPU 0", "lost"}},
		"a card without address":    {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail pci 999\n", both[1:], []string{"GPU 0", "Unknown Error"}},
		"a card without UUID":       {"uuid " + first, "uuid ", both[1:], []string{"GPU 0 at 0000:01:00.0", "empty"}},
		"two cards with one UUID":   {"uuid " + second, "uuid " + first, both[:1], []string{"GPU 1 at 0000:02:00.0", first, "GPU 0 at 0000:01:00.0"}},
		"a card without memory":     {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail memory 999\n", both[1:], []string{"GPU 0 at 0000:01:00.0", "memory"}},
		"memory beyond counting":    {"memory 48305799168", "memory 18446744073709551615", both, []string{"GPU 0", "nvmlDeviceGetMemoryInfo", "18446744073709551615", "unknown"}},
		"no memory of its own":      {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail memory 3\n", both, []string{"GPU 0 at 0000:01:00.0", "nvmlDeviceGetMemoryInfo", "Not Supported", "unknown"}},
		"memory of 0 bytes":         {"memory 48305799168", "memory 0", both, []string{"GPU 0 at 0000:01:00.0", "nvmlDeviceGetMemoryInfo", "0 bytes"}},
		"a UUID that is a path":     {"uuid " + first, "uuid ../../etc/x", both[1:], []string{"GPU 0 at 0000:01:00.0", "nvmlDeviceGetUUID", `"../../etc/x"`}},
		"a model that is a command": {"name NVIDIA L40S\n", "name \x1b[31mRED\n", both, []string{"GPU 0 at 0000:01:00.0", "nvmlDeviceGetName", `"\x1b[31mRED"`, `"?[31mRED"`}},
		"a card lost amid reading":  {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail mig 15\n", both[1:], []string{"GPU 0 at 0000:01:00.0", "lost"}},
		"a card lost amid links":    {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail nvlink 15\n", both[1:], []string{"GPU 0 at 0000:01:00.0", "links", "lost"}},
		"a card that needs a reset": {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail nvlink 16\n", both[1:], []string{"GPU 0 at 0000:01:00.0", "links"}},
		"a UUID of two words":       {"uuid " + first, "uuid GPU 1", both[1:], []string{"GPU 0 at 0000:01:00.0", `"GPU 1"`}},
		"a UUID that is a list":     {"uuid " + first, "uuid GPU-1,GPU-2", both[1:], []string{"GPU 0 at 0000:01:00.0", `"GPU-1,GPU-2"`}},
		"a UUID of no characters":   {"uuid " + first, "uuid GPU-\xff\x01", both[1:], []string{"GPU 0 at 0000:01:00.0", `\xff\x01`}},
		"a card without model":      {"name NVIDIA L40S\n", "fail name 999\n", both, []string{"GPU 0 at 0000:01:00.0", "model"}},
		"a card that hides MIG":     {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail mig 999\n", both, []string{"GPU 0 at 0000:01:00.0", "MIG"}},
		"no relation of the cards":  {"name NVIDIA L40S\n", "name NVIDIA L40S\nfail ancestor 999\n", both, []string{"0000:01:00.0", "0000:02:00.0", "SYS"}},
		"an unknown relation":       {"0000:02:00.0 30", "0000:02:00.0 35", both, []string{"35", "SYS"}},
		"NVLinks to nowhere":        {"name NVIDIA L40S\n", "name NVIDIA L40S\nnvlink 0000:99:00.0 3\n", both, []string{"GPU 0 at 0000:01:00.0", "3 active"}},
		"NVLinks that one end sees": {"name NVIDIA L40S\n", "name NVIDIA L40S\nnvlink 0000:02:00.0 3\n", both, []string{"3", "0"}},
		"NVLinks that are down":     {"name NVIDIA L40S\n", "name NVIDIA L40S\nnvlink down 3\n", both, nil},
		"one card at NVSwitches":    {"name NVIDIA L40S\n", "name NVIDIA L40S\nnvlink switch 3\n", both, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			text := string(fakehost.NVMLScript(gpu2(t), "n1"))
			if !strings.Contains(text, c.old) {
				t.Fatalf("no %q in\n%s", c.old, text)
			}
			nvmltest.ReplaceScript(t, script, []byte(strings.Replace(text, c.old, c.replacement, 1)))
			child := startChild(t, libDir, script, "plain")
			child.must("open")
			got := child.must("discover")
			if diff := cmp.Diff(c.want, addresses(got.Inventory)); diff != "" {
				t.Errorf("usable cards (-want +got):\n%s", diff)
			}
			if len(got.Warnings) != min(len(c.wantWarning), 1) {
				t.Fatalf("%d warnings: %q", len(got.Warnings), got.Warnings)
			}
			for _, part := range c.wantWarning {
				if !strings.Contains(got.Warnings[0], part) {
					t.Errorf("warning %q does not hold %q", got.Warnings[0], part)
				}
			}
			if len(c.want) == 2 && got.Inventory.Link(0, 1).NVLinks() != 0 {
				t.Errorf("the cards are linked by %s", got.Inventory.Link(0, 1))
			}
		})
	}
}

func TestACardWhosePartitionsCannotBeReadIsNotOfferedWhole(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, []byte("driver 1\ngpu 0000:01:00.0\nuuid GPU-a\nfail mig 999\n"))
	c := startChild(t, nvmltest.Build(t), script, "plain")
	c.must("open")
	if got := c.must("discover").Inventory.Devices[0].MIG; !got.Enabled || len(got.Instances) != 0 {
		t.Errorf("MIG is %+v, want it on without instances", got)
	}
}

func TestNamesThatCannotBeShownAreMadeSo(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, []byte("driver 1\xfe\ngpu 0000:01:00.0\nuuid GPU-a\nname A\x1b[31m\xff\nmig on\ninstance MIG-1 1g.\xff 9728 1 1\n"))
	c := startChild(t, nvmltest.Build(t), script, "plain")
	c.must("open")
	inv := c.must("discover").Inventory
	if d := inv.Devices[0]; inv.Driver != "1?" || d.Model != "A?[31m?" || d.MIG.Instances[0].Profile != "1g.?" {
		t.Errorf("driver %q, device %+v", inv.Driver, d)
	}
}

func TestOnlyAsManyInstancesAsAreSupportedAreUsedAndNoneTwice(t *testing.T) {
	text := "driver 1\ngpu 0000:01:00.0\nuuid GPU-a\nmig on\n"
	for i := range devices.MaxMIGInstances + 2 {
		text += fmt.Sprintf("instance MIG-%d 1g.10gb 9728 1 1\n", i)
	}
	text += "gpu 0000:02:00.0\nuuid GPU-b\nmig on\ninstance MIG-3 1g.10gb 9728 1 1\ninstance MIG-x 1g.10gb 9728 1 1\n" +
		"gpu 0000:03:00.0\nuuid GPU-c\nlost\nmig on\ninstance MIG-y 1g.10gb 9728 1 1\n"
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, []byte(text))
	c := startChild(t, nvmltest.Build(t), script, "plain")
	c.must("open")
	got := c.must("discover")
	var counts []int
	for _, d := range got.Inventory.Devices {
		counts = append(counts, len(d.MIG.Instances))
	}
	if diff := cmp.Diff([]int{devices.MaxMIGInstances, 1}, counts); diff != "" {
		t.Errorf("instances of each card (-want +got):\n%s", diff)
	}
	all := strings.Join(got.Warnings, "\n")
	for _, want := range []string{"MIG-16", "MIG-17", "at most 16", "MIG-3 left out", "GPU 2 at 0000:03:00.0: left out"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning holds %q:\n%s", want, all)
		}
	}
}

func TestNUMANodeIsTheDriversElseTheLookupsElseUnknown(t *testing.T) {
	libDir := nvmltest.Build(t)
	for name, c := range map[string]struct {
		numa, mode string
		want       int
	}{
		"the driver tells it":              {"numa 70", "lookup", 70},
		"the driver does not tell it":      {"numa -1", "lookup", 1},
		"the driver names several nodes":   {"numa any", "lookup", 1},
		"the driver's call fails":          {"fail numa 999", "lookup", 1},
		"nobody tells it":                  {"numa -1", "plain", devices.UnknownNode},
		"the driver tells a large number":  {"numa 1023", "plain", 1023},
		"the driver tells the lowest node": {"numa 0", "lookup", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			nvmltest.ReplaceScript(t, script, []byte("driver 1\ngpu 0000:01:00.0\nuuid GPU-a\nname A\n"+c.numa+"\n"))
			child := startChild(t, libDir, script, c.mode)
			child.must("open")
			if got := child.must("discover").Inventory.Devices[0].NUMANode; got != c.want {
				t.Errorf("node %d, want %d", got, c.want)
			}
		})
	}
}

func TestTheCliqueIsThatOfTheFabric(t *testing.T) {
	const cluster = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
	libDirs := map[string]string{"": nvmltest.Build(t), "nvmlDeviceGetGpuFabricInfoV": nvmltest.BuildWithout(t, "nvmlDeviceGetGpuFabricInfoV")}
	for name, c := range map[string]struct {
		line    string
		without string // a function that the library lacks
		want    string
		warning string // a part of the only warning, "" for none
	}{
		"a clique":                           {"fabric " + cluster + " 7", "", cluster + ".7", ""},
		"the greatest number":                {"fabric " + cluster + " 4294967295", "", cluster + ".4294967295", ""},
		"by the older function":              {"fabric " + cluster + " 7", "nvmlDeviceGetGpuFabricInfoV", cluster + ".7", ""},
		"no fabric":                          {"numa 0", "", "", ""},
		"NVSwitches of the host alone":       {"fabric 00000000-0000-0000-0000-000000000000 0", "", "", ""},
		"the registration has not begun":     {"fabric " + cluster + " 7 1", "", "", ""},
		"the registration is in progress":    {"fabric " + cluster + " 7 2", "", "", "in progress"},
		"the registration has failed":        {"fabric " + cluster + " 7 3 999", "", "", "registration has failed"},
		"a state that NVML does not define":  {"fabric " + cluster + " 7 77", "", "", "the state 77"},
		"the driver cannot say":              {"fail fabric 999", "", "", "nvmlDeviceGetGpuFabricInfoV"},
		"the older function fails":           {"fail fabric 999", "nvmlDeviceGetGpuFabricInfoV", "", "nvmlDeviceGetGpuFabricInfo:"},
		"the driver's answer is no sentence": {"garbage fabric", "", "", "the state 255"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			nvmltest.ReplaceScript(t, script, []byte("driver 1\ngpu 0000:01:00.0\nuuid GPU-a\nname A\nmemory 1024\n"+c.line+"\n"))
			child := startChild(t, libDirs[c.without], script, "plain")
			child.must("open")
			got := child.must("discover")
			if clique := got.Inventory.Devices[0].Clique; clique != c.want {
				t.Errorf("the clique %q, want %q", clique, c.want)
			}
			var about []string
			for _, w := range got.Warnings {
				if strings.Contains(w, "fabric") || strings.Contains(w, "Fabric") {
					about = append(about, w)
				}
			}
			if len(about) != min(len(c.warning), 1) || len(about) > 0 && !strings.Contains(about[0], c.warning) {
				t.Errorf("warnings %q, want one with %q", about, c.warning)
			}
		})
	}
}

func TestCardsVanishAndAppearAndTheDriverGoesAndReturns(t *testing.T) {
	p := gpu2(t)
	script := nvmltest.WriteScript(t, t.TempDir(), p, "n1")
	c := startChild(t, nvmltest.Build(t), script, "plain")
	c.must("open")
	full := c.must("discover").Inventory
	text := string(fakehost.NVMLScript(p, "n1"))

	second := strings.Index(text, "gpu 0000:02:00.0")
	nvmltest.ReplaceScript(t, script, []byte(text[:second]))
	if diff := cmp.Diff([]string{"0000:01:00.0"}, addresses(c.must("discover").Inventory)); diff != "" {
		t.Errorf("after a card vanished (-want +got):\n%s", diff)
	}
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	if gone := c.ask("discover"); !gone.NoDriver {
		t.Errorf("with the driver gone Discover answers %+v, want ErrNoDriver", gone)
	}
	nvmltest.ReplaceScript(t, script, []byte("driver 550.54.15\n"))
	if none := c.must("discover").Inventory; len(none.Devices) != 0 || none.Driver != "550.54.15" {
		t.Errorf("a driver without cards gives %+v", none)
	}
	nvmltest.ReplaceScript(t, script, []byte(text))
	if diff := cmp.Diff(full, c.must("discover").Inventory); diff != "" {
		t.Errorf("after everything returned (-before +after):\n%s", diff)
	}
	c.must("close")
	c.must("close")
	if a := c.ask("discover"); !strings.Contains(a.Error, "closed") {
		t.Errorf("a closed source answers %+v", a)
	}
	c.must("open")
	if diff := cmp.Diff(full, c.must("discover").Inventory); diff != "" {
		t.Errorf("after opening again (-before +after):\n%s", diff)
	}
}

func TestCardsAreOrderedByPCIAddressNotByTheDriver(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, []byte(
		"driver 1\ngpu 10000:01:00.0\nuuid GPU-c\ngpu 0000:a1:00.0\nuuid GPU-b\ngpu 0000:0F:00.0\nuuid GPU-a\n"+
			"ancestor 0000:0f:00.0 10000:01:00.0 20\n"))
	c := startChild(t, nvmltest.Build(t), script, "plain")
	c.must("open")
	inv := c.must("discover").Inventory
	if diff := cmp.Diff([]string{"0000:0f:00.0", "0000:a1:00.0", "10000:01:00.0"}, addresses(inv)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if inv.Link(0, 2) != devices.LinkPXB || inv.Link(0, 1) != devices.LinkSYS {
		t.Errorf("links 0-2 and 0-1 are %s and %s, want PXB and SYS", inv.Link(0, 2), inv.Link(0, 1))
	}
}

func TestMIGProfileIsComputedWhereTheNameDoesNotTellIt(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, []byte("driver 1\ngpu 0000:01:00.0\nuuid GPU-a\nname A\nmemory 85899345920\nmig on\n"+
		"instance MIG-1 - 40192 3 3\ninstance MIG-2 - 9728 1 1\ninstance MIG-3 - 19968 2 1\ninstance MIG-4 - 81920 7 7\n"+
		"instance MIG-4 - 9728 1 1\n"))
	c := startChild(t, nvmltest.Build(t), script, "plain")
	c.must("open")
	got := c.must("discover")
	want := devices.MIG{Enabled: true, Instances: []devices.MIGInstance{
		{UUID: "MIG-1", Profile: "3g.40gb", Memory: 40192 << 20},
		{UUID: "MIG-2", Profile: "1g.10gb", Memory: 9728 << 20},
		{UUID: "MIG-3", Profile: "1c.2g.20gb", Memory: 19968 << 20},
		{UUID: "MIG-4", Profile: "7g.80gb", Memory: 81920 << 20},
	}}
	if diff := cmp.Diff(want, got.Inventory.Devices[0].MIG); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "MIG-4") {
		t.Errorf("warnings %q, want one on the UUID that is there twice", got.Warnings)
	}
}

func TestOpenSaysWhyItCannot(t *testing.T) {
	libDir := nvmltest.Build(t)
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.so")
	if err := os.WriteFile(junk, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := func(text string) string {
		path := filepath.Join(dir, "script-"+strings.Fields(text)[1])
		nvmltest.ReplaceScript(t, path, []byte(text))
		return path
	}
	for name, c := range map[string]struct {
		libDir, script, command string
		wantNoDriver            bool
		want                    string
	}{
		"no library":                          {dir, "none", "open libmuster-absent.so.1", true, "libmuster-absent.so.1"},
		"no library at the path":              {dir, "none", "open " + filepath.Join(dir, "absent.so"), true, "absent.so"},
		"a file that is none":                 {dir, "none", "open " + junk, false, "junk.so"},
		"another library":                     {dir, "none", "open libc.so.6", false, "nvmlInit_v2"},
		"no driver":                           {libDir, filepath.Join(dir, "none"), "open", true, "Driver Not Loaded"},
		"a driver upgraded below the library": {libDir, script("init 18\n"), "open", false, "reboot"},
		"a driver that fails":                 {libDir, script("init 999\n"), "open", false, "Unknown Error"},
		"a script that cannot be read":        {libDir, script("gpu somewhere\n"), "open", false, "Unknown Error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := startTalkingChild(t, c.libDir, c.script, "plain").ask(c.command)
			if got.NoDriver != c.wantNoDriver || !strings.Contains(got.Error, c.want) {
				t.Errorf("%q (no driver: %t); want %q (%t)", got.Error, got.NoDriver, c.want, c.wantNoDriver)
			}
		})
	}
}

func TestASecondLibraryInOneProcessIsRefused(t *testing.T) {
	libDir, oldDir := nvmltest.Build(t), nvmltest.BuildOld(t)
	c := startChild(t, libDir, nvmltest.WriteScript(t, t.TempDir(), gpu2(t), "n1"), "plain")
	c.must("open")
	c.must("discover")
	c.must("close")
	old := filepath.Join(oldDir, nvmltest.LibraryName)
	if a := c.ask("open " + old); !strings.Contains(a.Error, "bound to another") || !strings.Contains(a.Error, old) {
		t.Errorf("opening %s after another answers %+v", old, a)
	}
	c.must("open " + filepath.Join(libDir, nvmltest.LibraryName))
	c.must("discover")
}

func TestDiscoveriesAtTheSameTimeAgree(t *testing.T) {
	p, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	c := startChild(t, nvmltest.Build(t), nvmltest.WriteScript(t, t.TempDir(), p, "n1"), "plain")
	c.must("open")
	if diff := cmp.Diff(p.Inventory("n1"), c.must("discover-together").Inventory); diff != "" {
		t.Errorf("inventory (-profile +discovered):\n%s", diff)
	}
}

func TestOpenOnAHostWithoutTheLibraryIsErrNoDriver(t *testing.T) {
	if _, err := nvml.Open(filepath.Join(t.TempDir(), "libnvidia-ml.so.1")); !errors.Is(err, nvml.ErrNoDriver) {
		t.Errorf("Open: %v, want ErrNoDriver", err)
	}
}
