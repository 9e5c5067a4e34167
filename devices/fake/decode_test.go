package fake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
)

// small is a machine of two partitioned cards that are wired to each other.
const small = `{
  "name": "small", "driver": "550.1", "threadsPerCore": 1, "coresPerL3": 0,
  "nodes": [{"socket": 0, "cores": 4, "memory": "8Gi", "hugepages": {"2048": 512, "1048576": 7}}, {"socket": 0, "cores": 0, "memory": "1Gi"}],
  "distances": [[10, 20], [20, 10]],
  "gpus": [
    {"model": "A", "memory": "1Gi", "pciBusID": "00000000:01:00.0", "numaNode": 0, "path": "rc0/sw0/sw1",
     "mig": {"enabled": true, "instances": [{"profile": "1c.2g.20gb+me", "memory": "512Mi"}]}},
    {"model": "A", "memory": "1Gi", "pciBusID": "0000:02:00.0", "numaNode": 0, "path": "rc0/sw0/sw2"}
  ],
  "nvlinks": {"pairs": [{"a": 0, "b": 1, "links": 4}]}
}`

func TestParseProfileReadsEverything(t *testing.T) {
	p, err := fake.ParseProfile([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	inv, topology := p.Inventory("n1"), p.Topology()
	if got := inv.Link(0, 1).String(); got != "NV4" {
		t.Errorf("link 0-1 is %s, want NV4", got)
	}
	if got := inv.Devices[0].PCIBusID; got != "0000:01:00.0" {
		t.Errorf("GPU 0 is at %s, want 0000:01:00.0", got)
	}
	if got := inv.Devices[0].MIG.Instances[0].Profile; got != "1c.2g.20gb+me" {
		t.Errorf("the instance is a %s, want 1c.2g.20gb+me", got)
	}
	if !topology.Nodes[1].MemoryOnly || topology.Nodes[0].MemoryOnly || topology.Memory() != 8<<30 {
		t.Errorf("nodes are %+v, want only node 1 to be memory-only", topology.Nodes)
	}
	if diff := cmp.Diff(map[int]int64{2048: 512, 1 << 20: 7}, topology.Nodes[0].Hugepages); diff != "" || topology.Nodes[1].Hugepages != nil {
		t.Errorf("huge pages (-want +got):\n%s", diff)
	}
	want := "  instance " + inv.Devices[0].MIG.Instances[0].UUID + " 1c.2g.20gb+me 512 2 1\n"
	if script := string(fakehost.NVMLScript(p, "n1")); !strings.Contains(script, want) ||
		!strings.Contains(script, "ancestor 0000:01:00.0 0000:02:00.0 20\n") {
		t.Errorf("script lacks %q or the relation 20 of the cards:\n%s", want, script)
	}
}

func TestParseProfileRefusesWithFieldAndValue(t *testing.T) {
	for name, c := range map[string]struct {
		old, replacement string // in small
		want             []string
	}{
		"an unknown field":                {`"driver":`, `"drivers":`, []string{`"drivers"`}},
		"an unknown field of a GPU":       {`"model": "A", "memory"`, `"bogus": "A", "memory"`, []string{`"bogus"`}},
		"text behind the profile":         {`"links": 4}]}` + "\n}", `"links": 4}]}` + "\n} x", []string{"closing brace"}},
		"an empty name":                   {`"small"`, `""`, []string{"name", `""`}},
		"a driver of two lines":           {`"550.1"`, `"550\ninit 9"`, []string{"driver", `'\n'`}},
		"no thread":                       {`"threadsPerCore": 1`, `"threadsPerCore": 0`, []string{"threadsPerCore", "0", "1..8"}},
		"cores below zero":                {`"cores": 4`, `"cores": -4`, []string{"nodes[0].cores", "-4"}},
		"no core at all":                  {`"cores": 4`, `"cores": 0`, []string{"nodes", "cores"}},
		"a negative amount of memory":     {`"8Gi"`, `"-8Gi"`, []string{"nodes[0].memory", "-8Gi"}},
		"memory that is no quantity":      {`"8Gi"`, `"much"`, []string{"nodes[0].memory", "much"}},
		"memory that overflows":           {`"8Gi"`, `"9000Pi"`, []string{"nodes[0].memory", "9000Pi"}},
		"memory beyond any machine":       {`"8Gi"`, `"2Pi"`, []string{"nodes[0].memory"}},
		"huge pages beyond the memory":    {`"2048": 512`, `"2048": 4096`, []string{"nodes[0].hugepages[1048576]", "7", "0..0"}},
		"fewer huge pages than none":      {`"2048": 512`, `"2048": -1`, []string{"nodes[0].hugepages[2048]", "-1"}},
		"huge pages of no size":           {`"2048": 512`, `"0": 512`, []string{"nodes[0].hugepages[0]", "1..16777216"}},
		"memory as a number":              {`"8Gi"`, `8`, []string{"nodes[0].memory", "8", "quotes"}},
		"a number as a text":              {`"cores": 4`, `"cores": "4"`, []string{"nodes[0].cores", "string", "int"}},
		"an object as a number":           {`{"model": "A", "memory": "1Gi", "pciBusID": "0000:02:00.0"`, `{"numaNode": {}, "model": "A", "memory": "1Gi", "pciBusID": "0000:02:00.0"`, []string{"gpus[1].numaNode", "object"}},
		"a list as an object":             {`"mig": {"enabled": true, "instances": [{"profile": "1c.2g.20gb+me", "memory": "512Mi"}]}`, `"mig": {"instances": [[]]}`, []string{"gpus[0].mig.instances[0]", "array"}},
		"a fraction in a matrix":          {`[20, 10]]`, `[20, 1.5]]`, []string{"distances[1][1]", "1.5"}},
		"an instance with no amount":      {`"512Mi"`, `"lots"`, []string{"gpus[0].mig.instances[0].memory", "lots"}},
		"too few rows of distances":       {`[[10, 20], [20, 10]]`, `[[10, 20]]`, []string{"distances", "1", "2"}},
		"too few columns of distances":    {`[[10, 20], [20, 10]]`, `[[10, 20], [20]]`, []string{"distances[1]", "1", "2"}},
		"a distance below local":          {`[[10, 20]`, `[[10, 9]`, []string{"distances[0][1]", "9"}},
		"a node that is not there":        {`"numaNode": 0, "path": "rc0/sw0/sw2"`, `"numaNode": 2, "path": "rc0/sw0/sw2"`, []string{"gpus[1].numaNode", "2"}},
		"a path with an empty step":       {`rc0/sw0/sw2`, `rc0//sw2`, []string{"gpus[1].path", "rc0//sw2"}},
		"a PCI address without function":  {`0000:02:00.0`, `0000:02:00`, []string{"gpus[1].pciBusID", "0000:02:00"}},
		"cards out of order":              {`0000:02:00.0`, `0000:00:00.0`, []string{"gpus[1].pciBusID", "0000:00:00.0", "0000:01:00.0"}},
		"instances while MIG is off":      {`"enabled": true`, `"enabled": false`, []string{"gpus[0].mig", "1"}},
		"an instance with no MIG profile": {`1c.2g.20gb+me`, `2g`, []string{"gpus[0].mig.instances[0].profile", `"2g"`}},
		"an instance of half a MiB":       {`"512Mi"`, `"512Ki"`, []string{"gpus[0].mig.instances[0].memory", "524288"}},
		"two kinds of NVLinks":            {`{"pairs"`, `{"switched": 12, "pairs"`, []string{"nvlinks", "12"}},
		"more NVLinks than there can be":  {`"links": 4`, `"links": 33`, []string{"nvlinks.pairs[0].links", "33"}},
		"no NVLinks":                      {`"links": 4`, `"links": 0`, []string{"nvlinks.pairs[0].links", "0"}},
		"a card wired to itself":          {`"b": 1`, `"b": 0`, []string{"nvlinks.pairs[0]"}},
		"a wire to no card":               {`"b": 1`, `"b": 2`, []string{"nvlinks.pairs[0].b", "2"}},
		"a pair that is named twice":      {`"links": 4}`, `"links": 4}, {"a": 1, "b": 0, "links": 1}`, []string{"nvlinks.pairs[1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(small, c.old, c.replacement, 1)
			if text == small {
				t.Fatalf("%q is not in the profile", c.old)
			}
			_, err := fake.ParseProfile([]byte(text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not hold %q", err, want)
				}
			}
		})
	}
}

func TestParseProfileRefusesMoreThanAMebibyte(t *testing.T) {
	if _, err := fake.ParseProfile(make([]byte, 1<<20+1)); err == nil || !strings.Contains(err.Error(), "1048577") {
		t.Errorf("error is %v, want one with the size", err)
	}
}

func ExampleLookup() {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		fmt.Println(err)
		return
	}
	inv := profile.Inventory("node-1")
	fmt.Println(len(inv.Devices), inv.Devices[0].Model, inv.Link(0, 7), "node", inv.Devices[0].NUMANode)
	// Output: 8 NVIDIA A100-SXM4-80GB NV12 node 3
}
